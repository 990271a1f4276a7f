"""When a training saves, and what it notes: the Trainer's callback."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolsrv_lab.curve import draw_curves, read_curve
from toolsrv_lab.extras import load
from toolsrv_lab.finetune import seals
from toolsrv_lab.journal import Journal
from toolsrv_registry.errors import DataError

Progress = Callable[[int, int, float, int], None]
"""Called with (steps done, steps in all, loss of the last, tokens seen in all of them)."""

PREFIX = "checkpoint-"
"""How the Trainer names its checkpoints; the step follows."""


def make_recorder(
    journal: Journal | None, picture: Path, progress: Progress | None, save_seconds: float
) -> Any:
    """Return the Trainer's callback: when to save, and what to note.

    A function makes its class, since the class it derives from is loaded late.
    """
    torch = load("torch")
    base: Any = load("transformers").TrainerCallback

    class Recorder(base):  # type: ignore[misc]
        """Saves in time, seals what was saved, writes the journal."""

        def __init__(self) -> None:
            self.saving = False
            self._saved = self._started = time.monotonic()

        def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
            """Ask for a checkpoint when it is time, and at the end."""
            due = state.global_step >= state.max_steps
            due = due or time.monotonic() - self._saved > save_seconds
            if torch.distributed.is_initialized():  # clocks differ, and all must save together
                said = [due]
                torch.distributed.broadcast_object_list(said)
                due = said[0]
            self.saving = due
            control.should_save = control.should_save or due

        def on_epoch_end(self, args: Any, *_: Any, **__: Any) -> None:
            """Know that the Trainer itself may save now."""
            self.saving = self.saving or str(args.save_strategy.value) == "epoch"

        def on_save(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
            """Make the checkpoint count."""
            if state.is_world_process_zero:
                if journal is not None:
                    journal.sync()
                    if journal.values("loss"):
                        draw_curves([read_curve(journal.path.parent)], picture)
                seals.seal(Path(args.output_dir) / f"{PREFIX}{state.global_step}")
            self.saving = False
            self._saved = time.monotonic()

        def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
            """Note a step or an evaluation; stop when the loss is no number."""
            loss, step = (logs or {}).get("loss"), state.global_step
            if loss is not None and not math.isfinite(loss):
                raise DataError(
                    f"the loss is not a number at step {step}",
                    hint="give a lower --learning-rate, in another --out",
                )
            if journal is None or not logs:
                return
            seconds = round(time.monotonic() - self._started, 2)
            entry = {"step": step, "epoch": logs.get("epoch"), "seconds": seconds}
            if loss is not None:
                entry |= {key: logs[key] for key in ("loss", "learning_rate", "grad_norm")}
                journal.add(entry)
                if progress is not None:
                    progress(step, state.max_steps, loss, int(state.num_input_tokens_seen))
            elif "eval_loss" in logs:
                journal.add(entry | {"dev_loss": logs["eval_loss"]})

    return Recorder()
