"""Batches of rows for training, in an order that a run which goes on finds again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.rows import LINES, Numbers, read_shard
from toolsrv_registry.errors import DataError


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
