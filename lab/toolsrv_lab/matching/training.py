"""Train the matcher: which API of a group serves the clause, and where each value begins and ends.

AdamW, warm-up and linear decay; bfloat16 where the processor has it; rows of a step run in parts
of like length, without dropout. A checkpoint is written every two minutes, whole or not at all; a
run that is started again with the same settings goes on from it.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.checkpoints import SAVE_SECONDS, read_checkpoint, write_checkpoint, written
from toolsrv_lab.extras import load
from toolsrv_lab.matching.batches import Row, Rows, steps
from toolsrv_lab.matching.network import matcher_network
from toolsrv_lab.matching.samples import Sample
from toolsrv_lab.matching.shipped import holds_shipped, load_shipped
from toolsrv_lab.memory import keep_freed_memory
from toolsrv_lab.versions import versions
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError

Progress = Callable[[int, int, float, int], None]
"""Called with (steps done, steps in all, running mean of the loss, tokens read)."""

WEIGHTS, ABOUT = "matcher.pt", "training.json"

_PARTS = 6
_SMOOTH = 0.98


class TrainingOptions(BaseModel):
    """How a matcher is trained: ``groups`` a step, each of one API that serves and ``others``."""

    model_config = ConfigDict(frozen=True)

    steps: int = 2_400
    groups: int = 16
    others: int = 2
    learning_rate: float = 1.5e-4
    head_rate: float = 1e-3
    warmup: int = 100
    weight_decay: float = 0.01
    seed: int = 0


def train(
    base: Path,
    out: Path,
    samples: Sequence[Sample],
    apis: Mapping[str, Api],
    options: TrainingOptions,
    *,
    start: Path | None = None,
    progress: Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Path:
    """Train on ``samples`` and return the file of the weights in ``out``.

    ``start`` is the folder of a finished training whose weights it begins with.

    Raises DataError for a checkpoint of other settings, or too few samples.
    """
    if len(samples) < options.groups:
        raise DataError(
            f"a step takes {options.groups} samples, there are {len(samples)}",
            hint="write more: toolsrv lab samples",
        )
    if not load("torch").cuda.is_available():
        keep_freed_memory()
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(base, out, options, start)
    run.resume()
    rows = Rows(run.tokenizer, apis)
    saved = time.monotonic()
    planned = steps(
        rows, samples, groups=options.groups, others=options.others, seed=options.seed,
        count=options.steps,
    )  # fmt: skip
    for number, groups in enumerate(planned):
        if number < run.step:
            continue
        run.advance(groups)
        if progress is not None:
            progress(run.step, options.steps, run.loss, run.tokens)
        if time.monotonic() - saved > save_seconds:
            run.save()
            saved = time.monotonic()
    return run.finish(len(samples))


class _Run:
    """A network, its optimiser and how far they are."""

    def __init__(self, base: Path, out: Path, options: TrainingOptions, start: Path | None) -> None:
        self._torch = torch = load("torch")
        torch.manual_seed(options.seed)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = load("tokenizers").Tokenizer.from_file(str(base / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._network = matcher_network(base).to(self._device).eval()
        self._before: dict[str, Any] = {}
        if start is not None:
            self._before = load_finished(self._network, start)
        inner = [one for one in self._network.encoder.parameters() if one.requires_grad]
        known = {id(one) for one in self._network.encoder.parameters()}
        heads = [one for one in self._network.parameters() if id(one) not in known]
        self._optimiser = torch.optim.AdamW(
            [{"params": inner, "rate": options.learning_rate},
             {"params": heads, "rate": options.head_rate}],
            lr=options.learning_rate, weight_decay=options.weight_decay,
        )  # fmt: skip
        self._out = out
        self._options = options
        self.step = 0
        self.tokens = 0
        self.loss = 0.0

    def advance(self, groups: Sequence[Sequence[Row]]) -> None:
        """Take one step."""
        loss = self._loss(groups)
        for group in self._optimiser.param_groups:
            group["lr"] = group["rate"] * self._share()
        self._optimiser.zero_grad()
        loss.backward()
        self._torch.nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
        self._optimiser.step()
        value = float(loss.detach())
        self.loss = value if self.step == 0 else _SMOOTH * self.loss + (1 - _SMOOTH) * value
        self.step += 1
        self.tokens += sum(len(row.paired.ids) for group in groups for row in group)

    def _loss(self, groups: Sequence[Sequence[Row]]) -> Any:
        functional = self._torch.nn.functional
        flat = [row for group in groups for row in group]
        serves: list[Any] = [None] * len(flat)
        spans: list[Any] = []
        for part in _parts(flat):
            logits, losses = self._read([flat[at] for at in part])
            for at, logit in zip(part, logits, strict=True):
                serves[at] = logit
            spans += losses
        begin, chosen, judged = 0, [], []
        for group in groups:
            scores = self._torch.stack(serves[begin : begin + len(group)])
            begin += len(group)
            right = [row.serves for row in group]
            judged.append(functional.binary_cross_entropy_with_logits(
                scores, scores.new_tensor([float(one) for one in right])
            ))  # fmt: skip
            if any(right) and len(group) > 1:
                chosen.append(functional.cross_entropy(
                    scores[None], self._torch.tensor([right.index(True)], device=self._device)
                ))  # fmt: skip
        total = self._torch.stack(judged).mean()
        if chosen:
            total = total + self._torch.stack(chosen).mean()
        return total + self._torch.stack(spans).mean() if spans else total

    def _read(self, rows: Sequence[Row]) -> tuple[Any, list[Any]]:
        torch = self._torch
        longest = max(len(row.paired.ids) for row in rows)
        most = max(1, *(len(row.paired.markers) for row in rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        kinds, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        markers = torch.zeros(len(rows), most, dtype=torch.long)
        first, last = torch.full((2, len(rows), most, longest), -1e4)
        for at, row in enumerate(rows):
            length = len(row.paired.ids)
            ids[at, :length] = torch.tensor(row.paired.ids)
            kinds[at, :length] = torch.tensor(row.paired.kinds)
            mask[at, :length] = 1
            markers[at, : len(row.paired.markers)] = torch.tensor(
                row.paired.markers, dtype=torch.long
            )
            for marker in range(len(row.paired.markers)):
                firsts, lasts = row.paired.places(marker)
                first[at, marker, [0, *firsts]] = 0.0
                last[at, marker, [0, *lasts]] = 0.0
        device = self._device
        with torch.autocast(device, dtype=torch.bfloat16):
            serves, begins, ends = self._network(
                ids.to(device), kinds.to(device), mask.to(device), markers.to(device)
            )
        begins, ends = begins.float() + first.to(device), ends.float() + last.to(device)
        losses = []
        for at, row in enumerate(rows):
            for marker, aims in row.aims.items():
                for logits, aim in zip((begins, ends), aims, strict=True):
                    losses.append(0.5 * torch.nn.functional.cross_entropy(
                        logits[at, marker][None], torch.tensor([aim], device=device)
                    ))  # fmt: skip
        return serves.float(), losses

    def _share(self) -> float:
        options = self._options
        if self.step < options.warmup:
            return (self.step + 1) / options.warmup
        return max(0.02, (options.steps - self.step) / max(1, options.steps - options.warmup))

    @property
    def _settings(self) -> str:
        return json.dumps([self._options.model_dump(), self._before])

    def resume(self) -> None:
        """Go on from the checkpoint if there is one."""
        state = read_checkpoint(self._out, self._settings, self._device)
        if state is not None:
            self._network.load_state_dict(state["network"])
            self._optimiser.load_state_dict(state["optimiser"])
            self.step, self.loss, self.tokens = (state[key] for key in ("step", "loss", "tokens"))

    def save(self) -> None:
        """Write the checkpoint."""
        state = {
            "network": self._network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "step": self.step,
            "loss": self.loss,
            "tokens": self.tokens,
        }
        write_checkpoint(self._out, self._settings, state)

    def finish(self, samples: int) -> Path:
        """Write the weights and what they were made of; return their file."""
        path = self._out / WEIGHTS
        fresh = path.with_name(f".{path.name}.new")
        with written(self._out, fresh):
            self._torch.save(self._network.state_dict(), fresh)
            fresh.replace(path)
        about = {
            **({"begun_with": self._before} if self._before else {}),
            "options": self._options.model_dump(), "steps": self.step, "loss": self.loss,
            "tokens": self.tokens, "samples": samples, "versions": versions("torch", "transformers"),
        }  # fmt: skip
        (self._out / ABOUT).write_text(json.dumps(about, indent=2) + "\n", "utf-8")
        return path


def load_finished(network: Any, run: Path) -> dict[str, Any]:
    """Give a network the weights of a finished training and return what is known of that.

    ``run`` may be the folder of a matcher as it ships. Raises DataError where it holds neither.
    """
    if holds_shipped(run):
        return load_shipped(network, run)
    try:
        about: dict[str, Any] = json.loads((run / ABOUT).read_text("utf-8"))
        weights = load("torch").load(run / WEIGHTS, map_location="cpu", weights_only=True)
        network.load_state_dict(weights)
    except (OSError, ValueError, KeyError, RuntimeError, pickle.UnpicklingError) as error:
        raise DataError(
            f"{run} holds no finished training of a matcher: {error}",
            hint="finish it: toolsrv lab train matcher",
        ) from error
    return about


def _parts(rows: Sequence[Row]) -> Iterator[list[int]]:
    """Yield the places of rows in parts of like length."""
    order = sorted(range(len(rows)), key=lambda at: len(rows[at].paired.ids))
    size = max(1, -(-len(order) // _PARTS))
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]
