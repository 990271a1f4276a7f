"""How much memory a model takes, from the sizes in its file's header.

Knows neither the machine nor llama.cpp; an estimate, within a tenth on LLaMAs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_runtime.gguf_header import Header
from toolsrv_runtime.profile import KvType

BATCH, GPU_BATCH = 256, 512
"""Tokens that are evaluated in one step at most: on a processor, and on a GPU as llama.cpp has it."""

STATES = 9
"""States that are kept of a recurrent model; see ``engine.llama``."""

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

    def on_host(self, gpu_layers: int, layers: int) -> Footprint:
        """Return what is left for the processor's memory when ``gpu_layers`` of ``layers`` are not.

        Both count the output as one; the scratch memory of the rest stays as large.
        """
        left = max(0.0, 1 - gpu_layers / max(1, layers))
        return Footprint(
            weights=round(self.weights * left),
            per_token=round(self.per_token * left),
            scratch=self.scratch,
        )

    def caches_within(self, available: int, *, cells: int, further: int) -> int:
        """Return how many caches there is room for, one at least: of ``cells`` tokens the first.

        Each other has ``further`` tokens, and is worked out in memory of its own.
        """
        left = available - self.total(cells)
        return 1 + max(0, left // max(1, self.scratch + further * self.per_token))


def batch_for(*, gpu: bool) -> int:
    """Return how many tokens are evaluated in one step at most.

    On a processor larger batches read no faster: Qwen2.5-Coder 0.5B read prompts of 900 tokens at 62
    tokens for each second of a core with 256, 56 with 512, 53 with 1,024; 1.5B 22 with 256, 20 with
    512.
    """
    return GPU_BATCH if gpu else BATCH


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
    batch: int = BATCH,
) -> Footprint:
    """Return what a model takes; ``weights`` is the size of its files in bytes.

    ``kv_type`` is how keys and values are kept. Without ``flash_attention`` a batch, of up to
    ``batch`` tokens, has a weight for every cell, in each head.
    """
    layers, width = _number(header, "block_count"), _number(header, "embedding_length")
    heads = _number(header, "attention.head_count") or 1
    size = width // max(1, heads)
    key = _number(header, "attention.key_length") or size
    value = _number(header, "attention.value_length") or size
    state = _state(header, layers, width)
    attends = not state or _number(header, "attention.head_count") > 0
    kv_heads = _per_layer(header.own("attention.head_count_kv"), layers, heads) if attends else 0
    inner = _number(header, "feed_forward_length")
    floats = vocabulary + 4 * width + 2 * inner + heads * batch
    looked_at = 0 if flash_attention else 4 * batch * (heads + 1)
    return Footprint(
        weights=weights,
        per_token=-(-kv_heads * (key + value) * _BLOCK_BYTES[kv_type] // _BLOCK) + looked_at,
        scratch=4 * batch * floats + STATES * state,
    )


def _state(header: Header, layers: int, width: int) -> int:
    """Return the bytes of a recurrent model's state of one sequence; 0 where it keeps none."""
    inner, size = _number(header, "ssm.inner_size"), _number(header, "ssm.state_size")
    groups = max(1, _number(header, "ssm.group_count"))
    read = max(0, _number(header, "ssm.conv_kernel") - 1) * (inner + 2 * groups * size)
    own = inner * size + read
    if head := _number(header, "wkv.head_size"):
        own = width * (head + 2)
    return 4 * layers * own


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
