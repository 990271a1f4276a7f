"""Vectors of many texts, encoded in parts that are results of a log, so that a killed run goes on."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.cells import Cell, CellLog
from toolsrv_lab.evaluation.cells import Solver as CellSolver
from toolsrv_lab.execution import stateless
from toolsrv_registry.encoder import Encoder, Vectors
from toolsrv_registry.errors import DataError

PART = 64
"""Texts of a part: seconds of work, so that little is lost."""
_FLOAT = np.dtype("<f4")


class Encoded(BaseModel):
    """Vectors of a part's texts, in their order: float32 in little-endian order, in Base64."""

    model_config = ConfigDict(frozen=True)

    vectors: str


@dataclass(frozen=True, slots=True)
class Parts:
    """Texts in parts of alike length, by name; ``order`` are the texts' places in that order."""

    texts: Mapping[str, tuple[str, ...]]
    order: tuple[int, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Parts:
        """Divide texts."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        starts = range(0, len(order), PART)
        parts = {str(at): tuple(texts[one] for one in order[at : at + PART]) for at in starts}
        return cls(parts, tuple(order))

    def digest(self) -> str:
        """Return a hash of all texts and of how they are divided."""
        every = "\0".join(text for part in self.texts.values() for text in part)
        return hashlib.sha256(f"{PART}\0{every}".encode("utf-8", "replace")).hexdigest()


def cell_of(parts: Parts, encoder: Encoder) -> Cell:
    """Return the cell that an encoder's vectors of these texts are kept by."""
    return Cell(encoder.name, encoder.digest, f"encode {parts.digest()}")


def encoding(encoder: Encoder, digest: str) -> CellSolver[tuple[str, ...], None, Encoded]:
    """Return what encodes parts; raises as the encoder does.

    Raises:
        DataError: it is not the encoder of that digest, as another node of a cluster may have.
    """
    if encoder.digest != digest:
        raise DataError(
            f"the encoder {encoder.name} of this node is another one than the command's",
            hint="let every node read the same folder, named with its whole path",
        )

    async def encode(item: tuple[tuple[str, ...], None]) -> Encoded:
        vectors = await asyncio.to_thread(encoder.encode, item[0])
        return Encoded(vectors=base64.b64encode(vectors.astype(_FLOAT).tobytes()).decode())

    return stateless(encode)


def vectors_of(parts: Parts, encoder: Encoder, log: CellLog[Encoded]) -> Vectors:
    """Return the vectors of all texts, of shape (texts, dimensions), in the texts' own order.

    Raises:
        DataError: the log lacks some, or holds what is none.
    """
    found = np.zeros((len(parts.order), encoder.dimensions), _FLOAT)
    cell = cell_of(parts, encoder)
    for name, texts in parts.texts.items():
        one = log.get(cell, name)
        try:
            data = np.frombuffer(base64.b64decode(one.vectors if one else ""), _FLOAT)
            rows = data.reshape(len(texts), encoder.dimensions)
        except ValueError as error:
            raise DataError(
                f"part {name} of the vectors in {log.log.path} cannot be read",
                hint="delete that file to encode again",
            ) from error
        start = int(name)
        found[list(parts.order[start : start + len(texts)])] = rows
    return found.astype(np.float32, copy=False)
