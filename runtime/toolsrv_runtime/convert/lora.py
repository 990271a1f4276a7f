"""What a LoRA adapter is once it is read: pairs of factors by the name of the matrix that they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolsrv_runtime.convert.errors import AdapterError
from toolsrv_runtime.convert.shards import Floats, Stored
from toolsrv_runtime.convert.tensors import interleaved
from toolsrv_runtime.gguf_header import AGAIN, Header

HINT = "name a GGUF LoRA adapter, or a PEFT folder with adapter_config.json and its weights"


@dataclass(frozen=True)
class Pair:
    """The two factors of one matrix's change: ``a`` (rank, columns), ``b`` (rows, rank).

    ``heads``: rows of ``b`` are in Hugging Face's order and are reordered for llama.cpp.
    """

    a: Stored
    b: Stored
    scale: float
    heads: int | None = None

    @property
    def rank(self) -> int:
        """Columns of ``b``."""
        return self.b.shape[1]

    def factors(self) -> tuple[Floats, Floats]:
        """Return ``a``, and ``b`` in GGUF's row order, scaled."""
        b = self.b.read()
        if self.heads is not None:
            b = interleaved(b, self.heads)
        return self.a.read(), np.asarray(b * np.float32(self.scale), np.float32)


@dataclass(frozen=True)
class Adapter:
    """``pairs`` by the base's GGUF tensor name. ``weights`` is the file that holds the values."""

    path: Path
    name: str
    kind: str
    weights: Path
    pairs: Mapping[str, Pair]

    @property
    def rank(self) -> int:
        """The largest rank of a pair."""
        return max(one.rank for one in self.pairs.values())


@dataclass(frozen=True)
class Base:
    """A base model's file: its head and its tensors (``gguf.ReaderTensor``) by name."""

    path: Path
    header: Header
    reader: Any
    tensors: Mapping[str, Any]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, (rows, columns) of a matrix."""
        return tuple(int(one) for one in reversed(self.tensors[name].shape))


def paired(
    halves: Mapping[str, Mapping[str, Stored]],
    scale: Any,
    heads: Mapping[str, int | None] | None = None,
) -> dict[str, Pair]:
    """Return pairs of ``a`` and ``b``; ``scale`` gives a rank's factor.

    Raises:
        AdapterError: One is missing, or they do not go together.
    """
    found = {}
    for name, both in halves.items():
        if len(both) < 2:
            other = "lora_b" if "a" in both else "lora_a"
            raise AdapterError(f"the adapter has no {other} for {name[:200]!r}", hint=AGAIN)
        a, b = both["a"], both["b"]
        if len(a.shape) != 2 or len(b.shape) != 2 or not a.shape[0] or a.shape[0] != b.shape[1]:
            raise AdapterError(
                f"the factors of {name[:200]!r} do not go together: {list(a.shape)}, "
                f"{list(b.shape)}",
                hint=AGAIN,
            )
        found[name] = Pair(a, b, scale(a.shape[0]), (heads or {}).get(name))
    return found
