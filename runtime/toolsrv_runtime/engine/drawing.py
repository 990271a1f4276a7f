"""From logits to a token: the grammar's mask, temperature, top-p. Knows no model."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from toolsrv_runtime.engine.base import Sampling

Logits = NDArray[np.float32]
"""One row, (vocabulary,)."""


def draw(
    logits: Logits, allowed: NDArray[np.bool_], sampling: Sampling, rng: np.random.Generator
) -> int:
    """Return an allowed token: the likeliest, or one drawn at the sampling's temperature."""
    masked = np.where(allowed, logits, -np.inf)
    if sampling.temperature <= 0:
        return int(masked.argmax())
    scaled = (masked - masked.max()) / sampling.temperature
    weights = np.exp(scaled.astype(np.float64))
    weights /= weights.sum()
    if sampling.top_p < 1:
        order = np.argsort(-weights, kind="stable")
        keep = int(np.searchsorted(np.cumsum(weights[order]), sampling.top_p)) + 1
        weights[order[keep:]] = 0
        weights /= weights.sum()
    return int(rng.choice(len(weights), p=weights))


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Return natural-log probabilities, (vocabulary,)."""
    row = logits.astype(np.float64)
    top = float(row.max())
    result: NDArray[np.float64] = row - top - math.log(float(np.exp(row - top).sum()))
    return result
