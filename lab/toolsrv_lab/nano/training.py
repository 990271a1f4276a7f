"""Train a network on packed rows: Muon for the matrices, AdamW for the rest, bf16 where there is.

Muon (orthogonalised momentum) learns in a third of the steps that AdamW needs at this size. The
loss counts what the model is to write, the choice of a function more than a letter, and the second
aims of ``rows``. A checkpoint is written every two minutes, whole or not at all; a run that is
started again with the same settings goes on from it, and ``curve.jsonl`` keeps how it went.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.checkpoints import read_checkpoint, write_checkpoint
from toolsrv_lab.extras import load
from toolsrv_lab.nano.episodes import Segment
from toolsrv_lab.nano.network import Shape, make_network
from toolsrv_lab.nano.rows import PADDING, Numbers, read_shard
from toolsrv_lab.nano.vocabulary import NUMBERS, Vocabulary
from toolsrv_runtime.formats import layout

Progress = Callable[[int, int, float], None]
"""Called with (steps done, steps in all, running mean of the loss)."""

CURVE = "curve.jsonl"
WEIGHTS = "weights.safetensors"
ABOUT = "training.json"
_SAVE_SECONDS = 120.0
_SMOOTH = 0.97
# Muon's polynomial (Jordan et al. 2024) and how often it is applied.
_POLYNOMIAL, _TIMES = (3.4445, -4.7750, 2.0315), 5
# Where a mask forbids.
_NEVER = -1e4


class TrainingOptions(BaseModel):
    """How a network is trained. ``decay`` is the share of the steps in which the rate falls."""

    model_config = ConfigDict(frozen=True)

    steps: int = 4_000
    rows: int = 8
    matrix_rate: float = 0.02
    other_rate: float = 3e-3
    matrix_decay: float = 0.02
    warmup: int = 60
    decay: float = 0.45
    choice_weight: float = 4.0
    end_weight: float = 2.0
    clause_aim: float = 1.0
    line_aim: float = 0.2
    validate_every: int = 200
    seed: int = 0


class Scores(NamedTuple):
    """Shares of spans of held-out rows that are right to the last token, the prompt given."""

    loss: float
    tokens: float
    choice: float
    values: float


def train(
    shape: Shape,
    vocabulary: Vocabulary,
    files: Sequence[Path],
    held_out: Path,
    out: Path,
    options: TrainingOptions,
    *,
    progress: Progress | None = None,
    save_seconds: float = _SAVE_SECONDS,
    compiled: bool = True,
) -> Path:
    """Train a network on shards and return the file of its weights (``out``/weights.safetensors).

    ``compiled`` costs a minute at the start and doubles the speed. Rows are taken in a seeded order, the shards one after the other, again and again. Raises
    DataError for damaged shards and for a checkpoint of other settings.
    """
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(shape, vocabulary, out, options, compiled=compiled)
    run.resume()
    judged = read_shard(held_out)
    saved = time.monotonic()
    batches = _batches(files, options, run.step)
    while run.step < options.steps:
        run.advance(next(batches))
        if progress is not None:
            progress(run.step, options.steps, run.loss)
        if run.step % options.validate_every == 0 or run.step == options.steps:
            run.note(run.validate(judged))
        if time.monotonic() - saved > save_seconds:
            run.save()
            saved = time.monotonic()
    return run.finish()


def _batches(files: Sequence[Path], options: TrainingOptions, done: int) -> Iterator[Numbers]:
    """Yield batches of rows, from the one behind ``done`` steps on."""
    rng, step = np.random.default_rng(options.seed), 0
    while True:
        for path in files:
            rows = read_shard(path)
            order = rng.permutation(len(rows))
            for at in range(0, len(order) - options.rows + 1, options.rows):
                if step >= done:
                    yield rows[order[at : at + options.rows]]
                step += 1


class _Run:
    """A network, its optimisers and how far they are."""

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
        self._matrices = [
            (layer.weight, parts)
            for block in self._network.blocks
            for layer, parts in (
                (block.query_key_value, 3),
                (block.out, 1),
                (block.gate_up, 2),
                (block.down, 1),
            )
        ]
        self._momenta = [torch.zeros_like(weight) for weight, _ in self._matrices]
        known = {id(weight) for weight, _ in self._matrices}
        self._others = torch.optim.AdamW(
            [one for one in self._network.parameters() if id(one) not in known],
            lr=options.other_rate, betas=(0.9, 0.97), weight_decay=0.0, fused=True,
        )  # fmt: skip
        self._choices = [vocabulary.id_of(f"{layout.USE}{number}") for number in NUMBERS]
        self._choices.append(vocabulary.id_of(layout.NOTHING))
        self._opens, done = vocabulary.id_of('": "'), vocabulary.id_of(layout.DONE)
        (self._closes,) = vocabulary.encode(Segment('"'))
        self._weights = torch.ones(len(vocabulary), device=self._device)
        self._weights[self._choices] = options.choice_weight
        self._weights[done] = options.end_weight
        self._shape, self._out, self._options = shape, out, options
        self.step, self.loss, self._tokens, self._seconds = 0, 0.0, 0, 0.0

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
        self._move_matrices(options.matrix_rate * share)
        for group in self._others.param_groups:
            group["lr"] = options.other_rate * share
        self._others.step()
        self._network.zero_grad(set_to_none=False)
        value = float(loss.detach())
        self.loss = value if self.step == 0 else _SMOOTH * self.loss + (1 - _SMOOTH) * value
        self.step += 1
        self._tokens += int((rows[:, 3] != PADDING).sum())
        self._seconds += time.monotonic() - started

    def validate(self, rows: Numbers) -> Scores:
        """Return how well held-out rows are told."""
        torch, size = self._torch, self._options.rows
        right = {"tokens": [0, 0], "choice": [0, 0], "values": [0, 0]}
        total = count = 0.0
        with torch.no_grad():
            for at in range(0, len(rows) - size + 1, size):
                part = rows[at : at + size]
                logits, aims, _ = self._forward(part, second=False)
                total += float(torch.nn.functional.cross_entropy(logits, aims, reduction="sum"))
                count += len(aims)
                hits = (logits.argmax(-1) == aims).tolist()
                self._tally(right, hits, aims.tolist())
        shares = {name: good / max(1, of) for name, (good, of) in right.items()}
        return Scores(total / max(1.0, count), **shares)

    def _tally(self, right: dict[str, list[int]], hits: list[bool], aims: list[int]) -> None:
        """Count right tokens, choices, and values: what stands between ``": "`` and a quote."""
        start = None
        for at, (hit, aim) in enumerate(zip(hits, aims, strict=True)):
            _count(right["tokens"], hit)
            if aim in self._choices:
                _count(right["choice"], hit)
            if aim == self._opens:
                start = at + 1
            elif start is not None and aim == self._closes:
                _count(right["values"], all(hits[start : at + 1]))
                start = None

    def note(self, scores: Scores) -> None:
        """Add a line to the curve."""
        line = {"step": self.step, "tokens": self._tokens, "seconds": round(self._seconds, 1),
                "train_loss": round(self.loss, 4)}  # fmt: skip
        line |= {name: round(value, 4) for name, value in scores._asdict().items()}
        with (self._out / CURVE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _forward(self, rows: Numbers, *, second: bool) -> tuple[Any, Any, Any]:
        """Return logits, aims and weights of the positions that predict something.

        Their number is padded to a multiple, since every other shape would be compiled anew.
        """
        torch, options = self._torch, self._options
        data = torch.from_numpy(rows.astype(np.int64)).to(self._device)
        ids, first, places, owner, later = data.unbind(1)
        length = ids.shape[1]
        seen = (owner[:, None] == 0) | (owner[:, None] == owner[:, :, None])
        seen &= torch.ones(length, length, dtype=torch.bool, device=self._device).tril()
        mask = torch.zeros(seen.shape, dtype=torch.bfloat16, device=self._device)
        mask = mask.masked_fill_(~seen, _NEVER)[:, None]
        aims, weights = first.flatten(), self._weights[first.flatten().clamp(min=0)]
        if second:
            extra = (aims < 0) & (later.flatten() >= 0)
            of_task = owner.flatten() > 0
            aims = torch.where(extra, later.flatten(), aims)
            share = torch.where(of_task, options.clause_aim, options.line_aim)
            weights = torch.where(extra, share, weights)
        wanted = (aims >= 0).nonzero()[:, 0]
        room = math.ceil(len(wanted) / 1024) * 1024
        padded = torch.nn.functional.pad(wanted, (0, room - len(wanted)))
        with torch.autocast(self._device, torch.bfloat16):
            logits = self._ready(ids, places, mask, padded)
        return logits[: len(wanted)].float(), aims[wanted], weights[wanted]

    def _share(self) -> float:
        options, done = self._options, self.step / self._options.steps
        falling = 1.0 if done < 1 - options.decay else (1 - done) / options.decay
        return min(1.0, (self.step + 1) / options.warmup) * falling

    def _move_matrices(self, rate: float) -> None:
        torch = self._torch
        momentum = min(0.95, 0.85 + self.step / 3_000)
        groups: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
        with torch.no_grad():
            for (weight, parts), kept in zip(self._matrices, self._momenta, strict=True):
                kept.lerp_(weight.grad, 1 - momentum)
                update = weight.grad.lerp(kept, momentum)
                for piece, change in zip(weight.chunk(parts), update.chunk(parts), strict=True):
                    groups.setdefault(tuple(piece.shape), []).append((piece, change))
            for (rows, columns), pieces in groups.items():
                turned = _orthogonal(torch.stack([change for _, change in pieces]))
                scale = max(1.0, rows / columns) ** 0.5
                for (piece, _), change in zip(pieces, turned, strict=True):
                    piece.mul_(1 - rate * self._options.matrix_decay)
                    piece.add_(change, alpha=-rate * scale)

    def resume(self) -> None:
        """Go on from the checkpoint if there is one."""
        state = read_checkpoint(self._out, self._settings(), self._device)
        if state is None:
            return
        self._network.load_state_dict(state["network"])
        self._others.load_state_dict(state["others"])
        for kept, value in zip(self._momenta, state["momenta"], strict=True):
            kept.copy_(value)
        self.step, self.loss = int(state["step"]), float(state["loss"])
        self._tokens, self._seconds = int(state["tokens"]), float(state["seconds"])

    def save(self) -> None:
        """Write a checkpoint: whole or not at all."""
        state = {
            "network": self._network.state_dict(), "others": self._others.state_dict(),
            "momenta": self._momenta, "step": self.step, "loss": self.loss,
            "tokens": self._tokens, "seconds": self._seconds,
        }  # fmt: skip
        write_checkpoint(self._out, self._settings(), state)

    def finish(self) -> Path:
        """Write the weights and what they were trained with; return the weights' file."""
        self.save()
        fresh = self._out / f".{WEIGHTS}.new"
        tensors = {name: one.cpu() for name, one in self._network.state_dict().items()}
        load("safetensors.torch").save_file(tensors, str(fresh))
        fresh.replace(self._out / WEIGHTS)
        about = {
            "shape": self._shape.model_dump(), "options": self._options.model_dump(),
            "steps": self.step, "tokens": self._tokens, "seconds": round(self._seconds),
            "loss": self.loss, "device": self._device, "torch": self._torch.__version__,
        }  # fmt: skip
        (self._out / ABOUT).write_text(json.dumps(about, indent=2) + "\n", "utf-8")
        return self._out / WEIGHTS

    def _settings(self) -> str:
        return json.dumps([self._shape.model_dump(), self._options.model_dump()])


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


def _count(pair: list[int], hit: bool) -> None:
    pair[0] += hit
    pair[1] += 1
