"""Training of a network on packed rows: Muon for matrices, AdamW for the rest, held-out scores.

A killed training continues from its checkpoint with the same batches (Muon: Jordan et al. 2024).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolsrv_lab.extras import load
from toolsrv_lab.journal import CURVE, PICTURE, Journal, draw_curves, read_curve
from toolsrv_lab.nano.episodes import Segment
from toolsrv_lab.nano.export import WEIGHTS, finish, read_about
from toolsrv_lab.nano.network import Shape, TrainingOptions, make_network
from toolsrv_lab.nano.rows import LINES, PADDING, Numbers, read_shard, targets
from toolsrv_lab.nano.vocabulary import NUMBERS, Vocabulary
from toolsrv_lab.training_runs import (
    CHECKPOINT,
    SAVE_SECONDS,
    exclusive_training,
    keep_freed_memory,
    read_checkpoint,
    write_checkpoint,
    write_whole,
)
from toolsrv_registry.errors import DataError
from toolsrv_runtime.planner import layout

_POLYNOMIAL, _TIMES = (3.4445, -4.7750, 2.0315), 5
_FIRST_MOMENTUM, _MOMENTUM, _MOMENTUM_STEPS = 0.85, 0.95, 3_000


class Muon:
    """The optimiser of ``matrices``: weights, each with the number of matrices stacked in it.

    ``momenta`` is its state, to be saved and put back with ``load_momenta``.
    """

    def __init__(self, matrices: Sequence[tuple[Any, int]], decay: float) -> None:
        self._torch = torch = load("torch")
        self._matrices = list(matrices)
        self._decay = decay
        self.momenta = [torch.zeros_like(weight) for weight, _ in self._matrices]

    def load_momenta(self, values: Sequence[Any]) -> None:
        """Put a saved state back."""
        for kept, value in zip(self.momenta, values, strict=True):
            kept.copy_(value)

    def move(self, rate: float, step: int) -> None:
        """Take the step of number ``step`` along the gradients, at this rate."""
        torch = self._torch
        momentum = min(_MOMENTUM, _FIRST_MOMENTUM + step / _MOMENTUM_STEPS)
        groups: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
        with torch.no_grad():
            for (weight, parts), kept in zip(self._matrices, self.momenta, strict=True):
                kept.lerp_(weight.grad, 1 - momentum)
                update = weight.grad.lerp(kept, momentum)
                for piece, change in zip(weight.chunk(parts), update.chunk(parts), strict=True):
                    groups.setdefault(tuple(piece.shape), []).append((piece, change))
            for (rows, columns), pieces in groups.items():
                turned = _orthogonal(torch.stack([change for _, change in pieces]))
                scale = max(1.0, rows / columns) ** 0.5
                for (piece, _), change in zip(pieces, turned, strict=True):
                    piece.mul_(1 - rate * self._decay)
                    piece.add_(change, alpha=-rate * scale)


def _orthogonal(stacked: Any) -> Any:
    """Return the nearest semi-orthogonal matrices, roughly (Newton-Schulz)."""
    first, second, third = _POLYNOMIAL
    x = stacked.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_TIMES):
        square = x @ x.mT
        x = first * x + (second * square + third * (square @ square)) @ x
    return (x.mT if tall else x).to(stacked.dtype)


class Scores(NamedTuple):
    """Shares of what is right to the last token, the prompt given; ``loss`` is in nats a token."""

    loss: float
    tokens: float
    choice: float
    values: float


class Tally:
    """Counts what is right. A value is what stands between ``opens`` (``": "``) and a quote."""

    def __init__(self, choices: Collection[int], opens: int, closes: int) -> None:
        self._choices, self._opens, self._closes = frozenset(choices), opens, closes
        self._right = {"tokens": [0, 0], "choice": [0, 0], "values": [0, 0]}
        self._loss = 0.0

    def add(self, hits: Sequence[bool], aims: Sequence[int], loss: float) -> None:
        """Count the predictions of a batch, in their order, and their summed loss."""
        self._loss += loss
        start = None
        for at, (hit, aim) in enumerate(zip(hits, aims, strict=True)):
            self._count("tokens", hit)
            if aim in self._choices:
                self._count("choice", hit)
            if aim == self._opens:
                start = at + 1
            elif start is not None and aim == self._closes:
                self._count("values", all(hits[start : at + 1]))
                start = None

    def scores(self) -> Scores:
        """Return the shares of what was counted."""
        shares = {name: good / max(1, of) for name, (good, of) in self._right.items()}
        return Scores(self._loss / max(1, self._right["tokens"][1]), **shares)

    def _count(self, name: str, hit: bool) -> None:
        self._right[name][0] += hit
        self._right[name][1] += 1


def batches(
    files: Sequence[Path], shape: Shape, *, rows: int, seed: int, done: int
) -> Iterator[Numbers]:
    """Yield batches (rows, 5, length) without end, from the one behind ``done`` batches on.

    The shards come one after the other, again and again, the rows of each in a seeded order; what
    is left of a shard after its last whole batch is passed over.

    Raises:
        DataError: A shard is damaged or of another vocabulary, or none has a batch of rows.
    """
    rng, step = np.random.default_rng(seed), 0
    while True:
        before = step
        for path in files:
            found = read_rows(path, shape)
            order = rng.permutation(len(found))
            for at in range(0, len(order) - rows + 1, rows):
                if step >= done:
                    yield found[order[at : at + rows]]
                step += 1
        if step == before:
            raise DataError(
                f"no shard has the {rows} rows of a step",
                hint="give a smaller --batch, or make more rows: toolsrv lab episodes",
            )


def read_rows(path: Path, shape: Shape) -> Numbers:
    """Return the rows of a shard; raises DataError unless the network can read them."""
    found = read_shard(path)
    if found.ndim != 3 or found.shape[1] != LINES or not len(found):
        raise DataError(
            f"the shard {path} holds no rows, but numbers of the shape {found.shape}",
            hint="delete it and make it again: toolsrv lab episodes",
        )
    if not 0 <= int(found[:, 0].min()) <= int(found[:, 0].max()) < shape.vocabulary:
        raise DataError(
            f"the shard {path} was made with another vocabulary than the one beside it",
            hint="make vocabulary and rows anew, in another folder: toolsrv lab episodes",
        )
    if found.shape[2] > shape.context:
        raise DataError(
            f"the rows of {path} have {found.shape[2]:,} tokens, the network {shape.context:,}",
            hint="make shorter rows: toolsrv lab episodes --length",
        )
    return found


_SMOOTH = 0.97


class NetworkRun:
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
        with write_whole(self._out):
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
        with write_whole(self._out):
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
        with write_whole(self._out):
            return self._journal().entries

    def _settings(self) -> str:
        return json.dumps([self._shape.model_dump(), self._options.model_dump()])


Progress = Callable[[int, int, float, int], None]
"""Called with (steps done, steps in all, running mean of the loss, tokens seen)."""


def train(
    shape: Shape,
    vocabulary: Vocabulary,
    files: Sequence[Path],
    held_out: Path,
    out: Path,
    options: TrainingOptions,
    *,
    start: Path | None = None,
    progress: Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
    compiled: bool = True,
) -> Path:
    """Train a network on shards and return the file of its weights (``out``/weights.safetensors).

    It begins with the weights of the run in ``start``, if one is named.
    ``compiled`` costs a minute at the start and doubles the speed; without a C++ compiler it is
    left. Rows are taken in a seeded order, the shards one after the other, again and again.

    Raises:
        DataError: Damaged shards, a checkpoint of other settings, no room on the disk. What was
            trained until then is kept.
        BusyError: Another training works in ``out``.
        UsageError: Sizes that fit no network, or a library that is missing.
    """
    torch = load("torch")
    load("matplotlib.figure")
    if not torch.cuda.is_available():
        keep_freed_memory()
    with write_whole(out):
        out.mkdir(parents=True, exist_ok=True)
    judged = read_rows(held_out, shape)
    run = NetworkRun(shape, vocabulary, out, options, compiled=compiled and can_compile())
    with exclusive_training(out), contextlib.closing(run):
        run.resume()
        if start is not None:
            run.begin(start)
        source = batches(files, shape, rows=options.rows, seed=options.seed, done=run.step)
        _work(run, source, judged, options.steps, progress, save_seconds)
        return run.finish(files)


def _work(
    run: NetworkRun,
    source: Iterator[Numbers],
    judged: Numbers,
    steps: int,
    progress: Progress | None,
    save_seconds: float,
) -> None:
    """Train until ``steps``. What was judged is behind a checkpoint: judging takes a while."""
    saved = time.monotonic()
    while True:
        if run.is_to_judge():
            run.save()
            run.note(run.validate(judged))
            saved = time.monotonic()
        if run.step >= steps:
            return
        run.advance(_next(source, run))
        if progress is not None:
            progress(run.step, steps, run.loss, run.tokens)
        if time.monotonic() - saved > save_seconds:
            run.save()
            saved = time.monotonic()


def can_compile() -> bool:
    """Whether torch can compile a network here: on processors it needs a C++ compiler."""
    if load("torch").cuda.is_available():
        return True
    return any(shutil.which(one) for one in (os.environ.get("CXX") or "g++", "clang++"))


def _next(source: Iterator[Numbers], run: NetworkRun) -> Numbers:
    try:
        return next(source)
    except DataError:
        if run.step:
            run.save()
        raise
