"""How much memory a model takes, from the sizes in its file's header.

Knows neither the machine nor llama.cpp; an estimate, within a tenth on LLaMAs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_runtime.gguf_header import Header
from toolsrv_runtime.profile import KvType

_BATCH = 256
_BLOCK = 32
_BLOCK_BYTES: Mapping[KvType, int] = {"f16": 64, "q8_0": 34, "q4_0": 18}
"""Bytes of a block of 32 numbers in ggml's types: a 16-bit scale and the numbers, where quantised."""


class Footprint(BaseModel):
    """Bytes: of the weights, of one token in the KV cache, and of what a batch is worked out in.

    What a batch needs for every token in the cache is part of ``per_token``.
    """

    model_config = ConfigDict(frozen=True)

    weights: int
    per_token: int
    scratch: int

    def total(self, cells: int) -> int:
        """Return the bytes with room for ``cells`` tokens."""
        return self.weights + self.scratch + cells * self.per_token

    def cells_within(self, available: int) -> int:
        """Return for how many tokens there is room in ``available`` bytes; may be negative."""
        return (available - self.weights - self.scratch) // max(1, self.per_token)

    def caches_within(self, available: int, *, cells: int, further: int) -> int:
        """Return how many caches there is room for, one at least: of ``cells`` tokens the first.

        Each other has ``further`` tokens, and is worked out in memory of its own.
        """
        left = available - self.total(cells)
        return 1 + max(0, left // max(1, self.scratch + further * self.per_token))


def resident_cells(context: int) -> int:
    """Return how many tokens of a tree are worth keeping beside a path of ``context`` tokens."""
    return context + min(3 * context, 16_384)


def further_cells(context: int) -> int:
    """Return how many tokens each cache beyond the first holds, where a model has several."""
    return 2 * context


def footprint(
    header: Header,
    *,
    weights: int,
    vocabulary: int,
    kv_type: KvType = "f16",
    flash_attention: bool = True,
) -> Footprint:
    """Return what a model takes; ``weights`` is the size of its files in bytes.

    ``kv_type`` is how keys and values are kept. Without ``flash_attention`` a batch has a weight
    for every cell, in each head.
    """
    layers, width = _number(header, "block_count"), _number(header, "embedding_length")
    heads = _number(header, "attention.head_count") or 1
    size = width // max(1, heads)
    key = _number(header, "attention.key_length") or size
    value = _number(header, "attention.value_length") or size
    kv_heads = _per_layer(header.own("attention.head_count_kv"), layers, heads)
    inner = _number(header, "feed_forward_length")
    floats = vocabulary + 4 * width + 2 * inner + heads * _BATCH
    looked_at = 0 if flash_attention else 4 * _BATCH * (heads + 1)
    return Footprint(
        weights=weights,
        per_token=-(-kv_heads * (key + value) * _BLOCK_BYTES[kv_type] // _BLOCK) + looked_at,
        scratch=4 * _BATCH * floats,
    )


def _number(header: Header, key: str) -> int:
    value = header.own(key)
    if isinstance(value, list):  # one for each layer
        value = max((one for one in value if isinstance(one, int)), default=0)
    return value if isinstance(value, int) and value > 0 else 0


def _per_layer(said: Any, layers: int, otherwise: int) -> int:
    """Return the sum over all layers of a number that may be given once or for each."""
    if isinstance(said, list):
        return sum(one for one in said if isinstance(one, int))
    return layers * (said if isinstance(said, int) and said > 0 else otherwise)


def told(count: int) -> str:
    """Return a number of bytes as people read it: ``4.1 GB``."""
    for unit, size in _UNITS.items():
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


_UNITS: Mapping[str, int] = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}
