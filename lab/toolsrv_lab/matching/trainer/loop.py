"""A training of the matcher, step by step: three losses, AdamW, warm-up, linear decay.

In bfloat16 where matrices are multiplied, without dropout. The same seed gives the same samples in
the same order on any machine; what a step trains on depends on its number alone, so that a
training that goes on from its state is the one that was never broken off.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from .network import HEADS, Network
from .options import Options
from .rows import Array, Batch, Rows, epochs

torch: Any = importlib.import_module("torch")  # types are checked where there is none, too
functional: Any = torch.nn.functional

Progress = Callable[[int, int, float, int], None]
"""Called with (steps done, steps in all, running mean of the loss, tokens read)."""

_AT_ONCE = {"cuda": 130_000, "cpu": 6_000}
"""Tokens of a batch at most: what memory holds. A step has as many batches as it needs."""
_AHEAD = 6
_LEARN = 0.4
"""Share of a training after which the learning rate falls."""
_BOOL = ("firsts", "lasts", "chosen")
_SMOOTH = 0.98


class Run:
    """A network, its optimiser and how far they are."""

    def __init__(self, rows: Rows, network: Network, options: Options, device: str) -> None:
        self.network = network
        self._rows = rows
        self._options = options
        self._device = device
        weights = network.state
        inner = [weights[one] for one in network.trained if not one.startswith(HEADS)]
        heads = [weights[one] for one in network.trained if one.startswith(HEADS)]
        self._optimiser = torch.optim.AdamW(
            [{"params": inner, "rate": options.learning_rate},
             {"params": heads, "rate": options.head_rate}],
            lr=options.learning_rate, weight_decay=options.weight_decay, fused=True,
        )  # fmt: skip
        self.step = 0
        self.tokens = 0
        self.loss = 0.0
        self.seconds = 0.0

    def train(self, progress: Progress | None, saved: Callable[[], None]) -> None:
        """Train to the end. ``saved`` is called after each step and may keep ``state``.

        Raises FloatingPointError where the loss is no number any more.
        """
        made = _ahead(itertools.islice(self._steps(), self.step, self._options.steps))
        began = time.monotonic() - self.seconds
        with contextlib.closing(made):
            for batches in made:
                if self._done >= 1:
                    break
                self._advance(batches)
                self.seconds = time.monotonic() - began
                if progress is not None:
                    total = max(self.step, round(self.step / self._done))
                    progress(self.step, total, self.loss, self.tokens)
                before = time.monotonic()
                saved()
                began += time.monotonic() - before

    def state(self) -> dict[str, Any]:
        """Return what a training goes on from."""
        weights = {name: self.network.state[name].detach() for name in self.network.trained}
        return {
            "network": weights, "optimiser": self._optimiser.state_dict(), "step": self.step,
            "loss": self.loss, "tokens": self.tokens, "seconds": self.seconds,
        }  # fmt: skip

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from ``state``."""
        self.network.load(state["network"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.step, self.loss, self.tokens, self.seconds = (
            state[key] for key in ("step", "loss", "tokens", "seconds")
        )

    @property
    def _done(self) -> float:
        """The share of the training that is behind it."""
        options = self._options
        steps = self.step / options.steps if options.steps else 0.0
        return max(steps, self.seconds / options.seconds if options.seconds else 0.0)

    def _steps(self) -> Iterator[Callable[[], list[Batch]]]:
        options = self._options
        drawn = epochs(len(self._rows), options.groups, options.seed)
        for number, samples in enumerate(drawn):
            yield partial(self._made, number, samples)

    def _made(self, number: int, samples: Array) -> list[Batch]:
        rng = np.random.default_rng([self._options.seed, 1, number])
        return self._rows.step(samples, self._options.others, rng, _AT_ONCE[self._device])

    def _advance(self, batches: list[Batch]) -> None:
        """Take one step."""
        quantised = self._done >= self._options.int8_from
        totals = [
            max(1, sum(getattr(one, name) for one in batches))
            for name in ("groups", "choices", "aims")
        ]
        self._optimiser.zero_grad(set_to_none=True)
        value = torch.zeros((), device=self._device)
        for batch in batches:
            part = losses(self.network, batch, self._device, quantised=quantised)
            loss = sum(one / total for one, total in zip(part, totals, strict=True))
            loss.backward()
            value += loss.detach()
        moved = [one for group in self._optimiser.param_groups for one in group["params"]]
        torch.nn.utils.clip_grad_norm_([one for one in moved if one.grad is not None], 1.0)
        share = min(1.0, (self.step + 1) / max(1, self._options.warmup))
        share *= min(1.0, max(0.0, (1 - self._done) / (1 - _LEARN)))
        for group in self._optimiser.param_groups:
            group["lr"] = group["rate"] * share
        self._optimiser.step()
        self._count(float(value), sum(one.tokens for one in batches))

    def _count(self, loss: float, tokens: int) -> None:
        if not np.isfinite(loss):
            raise FloatingPointError(f"the loss of step {self.step + 1} is {loss}")
        self.loss = loss if self.step == 0 else _SMOOTH * self.loss + (1 - _SMOOTH) * loss
        self.step += 1
        self.tokens += tokens


def losses(network: Network, batch: Batch, device: str, *, quantised: bool) -> tuple[Any, Any, Any]:
    """Return three sums: does each API serve, which one does, where clause and values stand.

    They are over ``groups``, ``choices`` and ``aims`` of the batch.
    """
    b = {name: _tensor(name, one, device) for name, one in batch.arrays.items()}
    with torch.autocast(device, dtype=torch.bfloat16):
        serves, firsts, lasts = network(b, batch.parts, quantised=quantised)
    judged = functional.binary_cross_entropy_with_logits(serves, b["serves"], reduction="none")
    scores = serves[b["seats"].clamp_min(0)].masked_fill(b["seats"] < 0, -1e9)
    chosen = (torch.logsumexp(scores, 1) - scores[:, 0]) * b["chosen"]
    spans = serves.new_zeros(())
    if firsts is not None:
        at = b["aim_row"], b["aim_marker"]
        for logits, aim in ((firsts, b["aim_first"]), (lasts, b["aim_last"])):
            spans = spans + 0.25 * functional.cross_entropy(logits[at], aim, reduction="sum")
    return (judged * b["weights"]).sum(), chosen.sum(), spans


def _tensor(name: str, array: Array, device: str) -> Any:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if name not in _BOOL and not tensor.is_floating_point():
        tensor = tensor.long()
    return tensor.to(device)


def _ahead(made: Iterable[Callable[[], list[Batch]]]) -> Generator[list[Batch], None, None]:
    """Yield what calls return, made in a thread some steps ahead."""
    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[list[Batch]]] = deque()
        for one in made:
            waiting.append(pool.submit(one))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
