"""Checkpoint folders that count only when sealed, and the Trainer callback that saves them."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_lab.journal import Journal, draw_curves, read_curve
from toolsrv_registry.errors import DataError

SEAL = "complete.json"
_CHECKSUM_CHUNK = 1 << 22


def seal(folder: Path) -> None:
    """Force the folder's files onto the disk and seal it."""
    content = {}
    for path in _files(folder):
        with path.open("r+b") as file:  # Windows flushes no file that is open to read
            os.fsync(file.fileno())
        content[str(path.relative_to(folder))] = [path.stat().st_size, _checksum(path)]
    fresh = folder / f".{SEAL}.new"
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / SEAL)
    if sys.platform == "win32":  # it opens no folders, and keeps their entries by itself
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove_unsealed(parent: Path, prefix: str) -> None:
    """Remove the folders whose writing was cut off."""
    for folder in parent.glob(f"{prefix}*"):
        if not (folder / SEAL).is_file():
            shutil.rmtree(folder)


def newest_sealed(parent: Path, prefix: str) -> tuple[Path, int] | None:
    """Return the sealed folder with the highest number after ``prefix``, and the number."""
    found = [
        (int(number), folder)
        for folder in parent.glob(f"{prefix}*")
        if (folder / SEAL).is_file() and (number := folder.name.removeprefix(prefix)).isdecimal()
    ]
    return max(found)[::-1] if found else None


def check_seal(folder: Path) -> None:
    """Raise DataError unless every file is as it was when the folder was sealed."""
    hint = f"delete {str(folder)!r} to go on from the checkpoint before it, if there is one"
    try:
        content = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        expected = {str(name): (int(size), int(sum_)) for name, (size, sum_) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise DataError(f"the checkpoint {str(folder)!r} has a damaged seal", hint=hint) from None
    for name, (size, checksum) in expected.items():
        path = folder / name
        if not path.is_file():
            raise DataError(f"the checkpoint {str(folder)!r} lacks {name!r}", hint=hint)
        if path.stat().st_size != size or _checksum(path) != checksum:
            raise DataError(
                f"the checkpoint {str(folder)!r} is damaged: {name!r} has changed", hint=hint
            )


def _files(folder: Path) -> Iterator[Path]:
    return (one for one in sorted(folder.rglob("*")) if one.is_file() and one.name != SEAL)


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHECKSUM_CHUNK):
            value = zlib.crc32(chunk, value)
    return value


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
                seal(Path(args.output_dir) / f"{PREFIX}{state.global_step}")
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
