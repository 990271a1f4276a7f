"""The training: contrastive in both directions, rounded weights at the end.

A batch's texts are to find their documents among all of the batch and some mined ones, and the documents
their texts. What another text needs as well, or what says the same, is left out of the sums. In the
last part of a run the weights are used as the int8 export will round them, so that rounding costs
next to nothing.

On a CPU one thread gives the same weights, bit by bit, however often a run is stopped.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .batches import Batch, Mined, Sampler, chunk_rows
from .files import Base, Trained
from .mining import Counted, Miner, Table
from .network import Network, Tensor, Weights, functional, torch
from .options import Options
from .pairs import Pairs

Progress = Callable[[int, float, float], None]
"""Called with (steps done, share of the budget that is spent, running mean of the loss)."""
State = dict[str, Any]
"""What a run goes on from: tensors and plain values."""
Save = Callable[[State], None]

SAVE_SECONDS = 100.0
_SMOOTH = 0.97
_LEAST_RATE = 1e-3
_LAST_MINING = 0.97
_MASKED = -1e4
_MINING_ROWS = {"cuda": 2_048, "cpu": 64}


def train(
    pairs: Pairs,
    base: Base,
    options: Options,
    device: str,
    *,
    progress: Progress | None = None,
    counted: Counted | None = None,
    state: State | None = None,
    save: Save | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Train on ``device`` ("cuda" or "cpu") and return the weights.

    ``counted`` is told how far a mining is. ``save`` is given a state every ``save_seconds`` and at the
    end; a run with that ``state`` goes on from it. Raises ValueError without pairs or budget.
    """
    if not len(pairs.needs):
        raise ValueError("there is no pair to learn from")
    if not (options.steps or options.seconds):
        raise ValueError("neither steps nor seconds are given")
    run = _Run(pairs, base, options, device)
    if state is not None:
        run.restore(state)
    saved = time.monotonic()
    while run.spent < 1:
        run.advance(counted)
        if progress is not None:
            progress(run.step, run.spent, run.loss)
        if save is not None and time.monotonic() - saved > save_seconds:
            save(run.state())
            saved = time.monotonic()
    if save is not None:
        save(run.state())
    return run.finish()


class _Run:
    """A network, its optimiser, and how far they are."""

    def __init__(self, pairs: Pairs, base: Base, options: Options, device: str) -> None:
        torch.manual_seed(options.seed)
        self._base = base
        self._options = options
        self._device = device
        self._pairs = pairs
        self._network = Network(base.tensors, base.shape, device)
        self._masters = list(self._network.masters.values())
        self._optimiser = torch.optim.AdamW(
            self._masters, lr=options.learning_rate, weight_decay=options.weight_decay,
            fused=device == "cuda",
        )  # fmt: skip
        self._documents = Table(pairs.documents, self._network, device)
        self._texts = Table(pairs.texts, self._network, device)
        self._relevant = self._on_device(pairs.relevant)
        self._sampler = Sampler(pairs, options)
        self._mined: Mined | None = None
        trained = np.zeros(len(pairs.documents), np.bool_)
        trained[pairs.needs[:, 1]] = trained[pairs.wholes[:, 1]] = True
        groups = self._on_device(pairs.groups)
        self._miner = Miner(
            self._documents, self._texts, groups, self._relevant,
            torch.from_numpy(trained).to(device), options,
        )  # fmt: skip
        self._begun, self._before = time.monotonic(), 0.0
        self.step = 0
        self.loss = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of this run, those before a restart with it."""
        return self._before + time.monotonic() - self._begun

    @property
    def spent(self) -> float:
        """Share of the budget that is spent."""
        steps, seconds = self._options.steps, self._options.seconds
        by_steps = self.step / steps if steps else 0.0
        return max(by_steps, self.seconds / seconds if seconds else 0.0)

    def advance(self, counted: Counted | None) -> None:
        """Take one step, with a mining before it where one is due."""
        spent = self.spent
        working = self._network.working(quantised=spent >= self._options.quantised_from)
        due = self.step % self._options.mine_every == 0 and spent < _LAST_MINING
        if self._mined is None or due:
            rows = _MINING_ROWS[self._device]
            self._mined = self._miner.mine(rows, working, counted)
        loss = self._loss(self._sampler.draw(self.step, self._mined), working)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._masters, 1.0)
        for group in self._optimiser.param_groups:
            group["lr"] = self._options.learning_rate * self._rate(spent)
        value = float(loss.detach())
        if math.isfinite(value) and math.isfinite(float(norm)):
            self._optimiser.step()
            smooth = _SMOOTH if self.step else 0.0
            self.loss = smooth * self.loss + (1 - smooth) * value
        self.step += 1

    def state(self) -> State:
        """Return what ``restore`` goes on from."""
        mined = self._mined or Mined(np.zeros((0, 0), np.int32), np.zeros((0, 0), np.int32))
        return {
            "weights": {name: one.detach() for name, one in self._network.masters.items()},
            "optimiser": self._optimiser.state_dict(),
            "negatives": torch.from_numpy(mined.negatives),
            "near": torch.from_numpy(mined.near),
            "alike": self._miner.alike,
            "position": list(self._sampler.position),
            "step": self.step,
            "loss": self.loss,
            "seconds": self.seconds,
        }

    def restore(self, state: State) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for name, one in self._network.masters.items():
                one.copy_(state["weights"][name])
        self._optimiser.load_state_dict(state["optimiser"])
        negatives, near = (state[name].cpu().numpy() for name in ("negatives", "near"))
        self._mined = Mined(negatives, near)
        self._miner.alike = state["alike"].to(self._device)
        epoch, at = state["position"]
        self._sampler.restore((int(epoch), int(at)))
        self.step, self.loss = int(state["step"]), float(state["loss"])
        self._before = float(state["seconds"])

    def finish(self) -> Trained:
        """Return the trained weights, those that are not trained with them."""
        about = {
            "options": dataclasses.asdict(self._options),
            "steps": self.step,
            "loss": self.loss,
            "seconds": round(self.seconds, 1),
            "device": self._device,
            "torch": str(torch.__version__),
            "data": self._pairs.counts(),
        }
        return Trained(self._base.tensors | self._network.masters, about)

    def _rate(self, spent: float) -> float:
        rise = min(1.0, (self.step + 1) / self._options.warmup)
        fall = min(1.0, (1 - spent) / self._options.decay)
        return max(rise * fall, _LEAST_RATE)

    def _loss(self, batch: Batch, working: Weights) -> Tensor:
        rows = chunk_rows(self._options)
        texts, positives, documents, columns = map(
            self._on_device, (batch.texts, batch.positives, batch.documents, batch.columns)
        )
        of_documents = self._documents.encode(documents, rows, working)
        of_texts = self._texts.encode(texts, rows, working)
        scores = self._options.scale * (of_texts @ of_documents.T)
        unfit, unfit_back = self._unfit(batch, texts, positives, documents, columns)
        each = torch.arange(len(texts), device=self._device)
        forward = functional.cross_entropy(scores.masked_fill(unfit, _MASKED), columns)
        turned = scores.index_select(1, columns).T.masked_fill(unfit_back, _MASKED)
        weight = self._options.backward
        return (forward + weight * functional.cross_entropy(turned, each)) / (1 + weight)

    def _unfit(
        self, batch: Batch, texts: Tensor, positives: Tensor, documents: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what is no negative: (texts, documents), and (documents of texts, texts)."""
        each = torch.arange(len(texts), device=self._device)
        unfit = self._miner.same(positives, documents)
        for needed in self._relevant[texts].unbind(1):
            unfit |= needed[:, None] == documents[None]
        unfit[:, : batch.filled] = True
        back = unfit[:, columns].T.clone()
        unfit[each, columns] = False
        back[each, each] = False
        return unfit, back

    def _on_device(self, array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.int64)).to(self._device)
