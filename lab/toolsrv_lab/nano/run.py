"""A network, its optimisers and how far they are: Muon for matrices, AdamW for the rest, bf16.

Knows no shards and no clock but its own: ``training`` says when what is done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolsrv_lab.checkpoints import CHECKPOINT, read_checkpoint, write_checkpoint, written
from toolsrv_lab.curve import CURVE, PICTURE, draw_curves, read_curve
from toolsrv_lab.extras import load
from toolsrv_lab.journal import Journal
from toolsrv_lab.nano.episodes import Segment
from toolsrv_lab.nano.finished import WEIGHTS, finish, read_about
from toolsrv_lab.nano.muon import Muon
from toolsrv_lab.nano.network import Shape, make_network
from toolsrv_lab.nano.options import TrainingOptions
from toolsrv_lab.nano.rows import PADDING, Numbers
from toolsrv_lab.nano.scores import Scores, Tally
from toolsrv_lab.nano.targets import targets
from toolsrv_lab.nano.vocabulary import NUMBERS, Vocabulary
from toolsrv_registry.errors import DataError
from toolsrv_runtime.planner import layout

_SMOOTH = 0.97


class Run:
    """A training in the folder ``out``. ``tokens`` are those seen, ``loss`` its running mean."""

    def __init__(
        self,
        shape: Shape,
        vocabulary: Vocabulary,
        out: Path,
        options: TrainingOptions,
        *,
        compiled: bool,
    ) -> None:
        self._torch = torch = load("torch")
        torch.manual_seed(options.seed)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = make_network(shape).to(self._device)
        self._ready = torch.compile(self._network, dynamic=False) if compiled else self._network
        matrices = [
            (layer.weight, parts)
            for block in self._network.blocks
            for layer, parts in (
                (block.query_key_value, 3),
                (block.out, 1),
                (block.gate_up, 2),
                (block.down, 1),
            )
        ]
        self._muon = Muon(matrices, options.matrix_decay)
        known = {id(weight) for weight, _ in matrices}
        self._others = torch.optim.AdamW(
            [one for one in self._network.parameters() if id(one) not in known],
            lr=options.other_rate, betas=(0.9, 0.97), weight_decay=0.0, fused=True,
        )  # fmt: skip
        self._choices = [vocabulary.id_of(f"{layout.USE}{number}") for number in NUMBERS]
        self._choices.append(vocabulary.id_of(layout.NOTHING))
        self._weights = torch.ones(len(vocabulary), device=self._device)
        self._weights[self._choices] = options.choice_weight
        self._weights[vocabulary.id_of(layout.DONE)] = options.end_weight
        self._shape, self._out, self._options = shape, out, options
        self._vocabulary = vocabulary
        self._curve: Journal | None = None
        self._start: dict[str, Any] = {}
        self.step, self.loss, self.tokens, self._seconds = 0, 0.0, 0, 0.0

    def advance(self, rows: Numbers) -> None:
        """Take one step on a batch."""
        torch, options, started = self._torch, self._options, time.monotonic()
        logits, aims, weights = self._forward(rows, second=True)
        losses = torch.nn.functional.cross_entropy(logits, aims, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        loss.backward()
        others = [one for group in self._others.param_groups for one in group["params"]]
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        share = self._share()
        self._muon.move(options.matrix_rate * share, self.step)
        for group in self._others.param_groups:
            group["lr"] = options.other_rate * share
        self._others.step()
        self._network.zero_grad(set_to_none=False)
        value = float(loss.detach())
        self.loss = value if self.step == 0 else _SMOOTH * self.loss + (1 - _SMOOTH) * value
        self.step += 1
        self.tokens += int((rows[:, 3] != PADDING).sum())
        self._seconds += time.monotonic() - started

    def is_to_judge(self) -> bool:
        """Whether held-out rows are to be told now, and were not yet."""
        due = self.step % self._options.validate_every == 0 or self.step == self._options.steps
        return self.step > 0 and due and self.step not in {one["step"] for one in self._notes()}

    def validate(self, rows: Numbers) -> Scores:
        """Return how well held-out rows are told; what is left of a last batch is left out."""
        torch, size = self._torch, min(self._options.rows, len(rows))
        (closes,) = self._vocabulary.encode(Segment('"'))
        tally = Tally(self._choices, self._vocabulary.id_of('": "'), closes)
        with torch.no_grad():
            for at in range(0, len(rows) - size + 1, size):
                logits, aims, _ = self._forward(rows[at : at + size], second=False)
                loss = float(torch.nn.functional.cross_entropy(logits, aims, reduction="sum"))
                tally.add((logits.argmax(-1) == aims).tolist(), aims.tolist(), loss)
        return tally.scores()

    def note(self, scores: Scores) -> None:
        """Add a line to the curve, and draw it anew."""
        line = {"step": self.step, "seen": self.tokens, "seconds": round(self._seconds, 1),
                "train_loss": round(self.loss, 4)}  # fmt: skip
        line |= {name: round(value, 4) for name, value in scores._asdict().items()}
        with written(self._out):
            journal = self._journal()
            journal.add(line)
            journal.sync()
            draw_curves([read_curve(self._out)], self._out / PICTURE)

    def resume(self) -> None:
        """Go on from the checkpoint if there is one; the curve forgets what came after it."""
        state = read_checkpoint(self._out, self._settings(), self._device)
        if state is not None:
            self._network.load_state_dict(state["network"])
            self._others.load_state_dict(state["others"])
            self._muon.load_momenta(state["momenta"])
            self.step, self.loss = int(state["step"]), float(state["loss"])
            self.tokens, self._seconds = int(state["tokens"]), float(state["seconds"])
            self._start = state.get("start", {})
        self._notes()

    def begin(self, start: Path) -> None:
        """Take the weights of the run in ``start``, finished or not, where this one is new.

        Raises DataError where there are none, or of another shape.
        """
        if self.step:
            return
        hint = "name the folder of a run of the same sizes and vocabulary"
        whole, part = start / WEIGHTS, start / CHECKPOINT
        try:
            if whole.exists():
                weights = load("safetensors.torch").load_file(str(whole), device=self._device)
                _, about = read_about(start)
                seen = {"steps": about["steps"], "tokens": about["tokens"]}
            else:
                kept = self._torch.load(part, map_location=self._device, weights_only=True)
                weights = kept["network"]
                seen = {"steps": int(kept["step"]), "tokens": int(kept["tokens"])}
            self._network.load_state_dict(weights)
            self._start = {"run": start.name, **seen}
        except (OSError, ValueError, KeyError, RuntimeError, EOFError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise DataError(f"cannot start from the run {start}: {reason}", hint=hint) from error

    def save(self) -> None:
        """Write a checkpoint: whole or not at all."""
        state = {
            "network": self._network.state_dict(), "others": self._others.state_dict(),
            "momenta": self._muon.momenta, "step": self.step, "loss": self.loss,
            "tokens": self.tokens, "seconds": self._seconds, "start": self._start,
        }  # fmt: skip
        write_checkpoint(self._out, self._settings(), state)

    def finish(self, files: Sequence[Path]) -> Path:
        """Write the weights and what they were trained with; return the weights' file."""
        about = {
            "shape": self._shape.model_dump(), "options": self._options.model_dump(),
            "steps": self.step, "tokens": self.tokens, "seconds": round(self._seconds),
            "loss": self.loss, "device": self._device, "torch": self._torch.__version__,
        }  # fmt: skip
        if self._start:
            about["started_from"] = self._start
        if self._device == "cuda":
            about["gpu"] = self._torch.cuda.get_device_name()
        with written(self._out):
            return finish(self._out, self._network, self._vocabulary, files, about)

    def close(self) -> None:
        """Close the curve's file; idempotent."""
        if self._curve is not None:
            self._curve.close()

    def _forward(self, rows: Numbers, *, second: bool) -> tuple[Any, Any, Any]:
        """Return logits, aims and weights of the positions that predict something."""
        found = targets(rows, self._weights, self._options, second=second)
        with self._torch.autocast(self._device, self._torch.bfloat16):
            logits = self._ready(found.ids, found.places, found.mask, found.wanted)
        return logits[: len(found.aims)].float(), found.aims, found.weights

    def _share(self) -> float:
        options, done = self._options, self.step / self._options.steps
        falling = 1.0 if done < 1 - options.decay else (1 - done) / options.decay
        return min(1.0, (self.step + 1) / options.warmup) * falling

    def _journal(self) -> Journal:
        if self._curve is None:
            self._curve = Journal(self._out / CURVE, until=self.step)
        return self._curve

    def _notes(self) -> list[dict[str, Any]]:
        with written(self._out):
            return self._journal().entries

    def _settings(self) -> str:
        return json.dumps([self._shape.model_dump(), self._options.model_dump()])
