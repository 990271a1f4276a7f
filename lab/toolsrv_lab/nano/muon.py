"""Muon: momentum whose directions are made orthogonal (Jordan et al. 2024), for weight matrices.

It learns in a third of the steps that AdamW needs at this size. Knows nothing about networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolsrv_lab.extras import load

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
