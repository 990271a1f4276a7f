"""The best of many scores: the same as a full sort gives, however they are spread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.search.signals import best


def sorted_best(scores: npt.NDArray[np.float32], depth: int, above: float) -> list[int]:
    order = sorted(range(len(scores)), key=lambda at: (-float(scores[at]), at))
    return [at for at in order if scores[at] > above][:depth]


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 3_000),
    depth=st.integers(1, 30),
    steps=st.sampled_from([2, 7, 1_000]),
    empty=st.floats(0, 1),
)
def test_they_are_those_of_a_full_sort(
    seed: int, count: int, depth: int, steps: int, empty: float
) -> None:
    chance = np.random.default_rng(seed)
    scores = (chance.integers(-steps, steps, count) / steps).astype(np.float32)
    scores[chance.random(count) < empty] = 0.0
    assert best(scores, depth).tolist() == sorted_best(scores, depth, 0.0)
    scores[chance.random(count) < empty] = -np.inf
    assert best(scores, depth, -1.5).tolist() == sorted_best(scores, depth, -1.5)


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 64 * 128, 64 * 128 + 1])
def test_blocks_of_any_number_are_cut_at_the_depth(count: int) -> None:
    scores = np.arange(count, dtype=np.float32) + 1
    assert best(scores, 64).tolist() == list(range(count - 1, max(-1, count - 65), -1))
