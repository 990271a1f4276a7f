"""Int8 copy of a collection's vectors: all cosines by one matrix product in onnxruntime.

The copy is kept in a file beside the store. A product of (n, d) by (d,) costs O(n d).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolsrv_registry.encoder import Vectors
from toolsrv_registry.index.array_files import array_texts, read_arrays, text_array, write_arrays
from toolsrv_registry.onnx_runtime import onnxruntime

_ZERO = 128
"""Activations are unsigned with this zero point: what the fastest kernels take."""
_PEAK = 127
_UINT8, _INT8, _INT32 = 2, 3, 6  # TensorProto.DataType
_IR_VERSION, _OPSET = 10, 20
_TINY = 1e-12
_NO_SATURATION = "session.x64quantprecision"
"""Processors without VNNI add two products in 16 bits, where cosines were off by up to 0.03.

The slower kernel takes 0.62 ms for 4 rows and 16,000 vectors instead of 0.47; elsewhere it changes
nothing.
"""

Floats = npt.NDArray[np.float32]


def quantize(rows: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return rows (n, d) as integers of [-127, 127] and the scale (n,) of each row."""
    scales = np.abs(rows).max(axis=1, initial=_TINY) / np.float32(_PEAK)
    return np.rint(rows / scales[:, None]).astype(np.int8), scales.astype(np.float32)


class Int8Product:
    """Multiplies by the transpose of a matrix (n, d). Thread-safe; O(n d) a row.

    The error of a product of unit vectors of 384 dimensions is 0.0003 (standard deviation).
    """

    def __init__(self, integers: npt.NDArray[np.int8], scales: Floats) -> None:
        runtime = onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry(_NO_SATURATION, "1")
        self._scales = scales
        self._session: Any = runtime.InferenceSession(
            _graph(np.ascontiguousarray(integers.T)), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, rows: Floats) -> Floats:
        """Return the products (m, n) of rows (m, d) with all rows of the matrix."""
        integers, scales = quantize(rows)
        asked = (integers.astype(np.int16) + _ZERO).astype(np.uint8)
        (sums,) = self._session.run(None, {"asked": asked})
        found: Floats = sums.astype(np.float32)
        found *= self._scales
        found *= scales[:, None]
        return found


def _graph(matrix: npt.NDArray[np.int8]) -> bytes:
    """Return the model that multiplies ``asked`` (rows, d) by a constant matrix (d, n)."""
    depth, width = matrix.shape
    node = b"".join(
        [
            *(_bytes(1, name) for name in (b"asked", b"matrix", b"zero")),
            _bytes(2, b"sums"),
            _bytes(4, b"MatMulInteger"),
        ]
    )
    zero = _tensor(b"zero", _UINT8, (), bytes([_ZERO]))
    graph = b"".join(
        [
            _bytes(1, node),
            _bytes(2, b"product"),
            _bytes(5, _tensor(b"matrix", _INT8, (depth, width), matrix.tobytes())),
            _bytes(5, zero),
            _bytes(11, _value(b"asked", _UINT8, depth)),
            _bytes(12, _value(b"sums", _INT32, width)),
        ]
    )
    return _number(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, _OPSET))


def _tensor(name: bytes, kind: int, shape: tuple[int, ...], content: bytes) -> bytes:
    dims = b"".join(_number(1, size) for size in shape)
    return dims + _number(2, kind) + _bytes(8, name) + _bytes(9, content)


def _value(name: bytes, kind: int, width: int) -> bytes:
    """Return the type of an input or output of any number of rows."""
    shape = _bytes(1, _bytes(2, b"rows")) + _bytes(1, _number(1, width))
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


_log = logging.getLogger(__name__)

MOST = 100_000
"""Of more texts no copy is made: 40 MB, and then the graph is as fast."""
_FORMAT = "1"

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FlatIndex:
    """The texts of a collection by their hashes, with their vectors.

    ``integers`` (texts, dimensions) times ``scales`` (texts,) are the vectors.
    """

    collection: str
    hashes: tuple[str, ...]
    integers: npt.NDArray[np.int8]
    scales: Vectors

    def over(self, hashes: Sequence[str]) -> Cosines:
        """Return what tells the cosines with texts by their hashes, which may repeat."""
        known = {key: at for at, key in enumerate(self.hashes)}
        at = np.fromiter((known.get(key, -1) for key in hashes), np.int64, len(hashes))
        absent = np.flatnonzero(at < 0)
        if len(absent) == len(at):
            return Cosines(None, absent)
        return Cosines(Int8Product(self.integers[at], self.scales[at]), absent)


@dataclass(frozen=True, slots=True)
class Cosines:
    """Cosines with texts in a fixed order; ``absent`` are the places of those that are unknown."""

    product: Int8Product | None
    absent: Places

    def __call__(self, vectors: Vectors) -> Vectors:
        """Return the cosines (n, texts) of unit vectors (n, d), -inf with an unknown text."""
        if self.product is None:
            return np.full((len(vectors), len(self.absent)), -np.inf, np.float32)
        found = self.product(vectors)
        found[:, self.absent] = -np.inf
        return found


class FlatFile:
    """The flat copy of one collection after the other, kept at ``path``. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._current: FlatIndex | None = None

    def get(self, collection: str, read: Callable[[], Mapping[str, Vectors]]) -> FlatIndex:
        """Return the copy of a collection; cheap while it is the one asked for last.

        ``read`` returns all its vectors by hash, and is asked where no file holds them; what it
        raises is passed on.
        """
        with self._lock:
            if self._current is None or self._current.collection != collection:
                self._current = self._load(collection) or self._make(collection, read())
            return self._current

    def _load(self, collection: str) -> FlatIndex | None:
        try:
            arrays = read_arrays(self._path)
            if str(arrays["state"]) != f"{_FORMAT} {collection}":
                return None
            return _read_flat(collection, arrays)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            _log.warning("the vectors in %s are damaged (%s); reading them anew", self._path, error)
            return None

    def _make(self, collection: str, vectors: Mapping[str, Vectors]) -> FlatIndex:
        hashes = tuple(sorted(vectors))
        rows = (
            np.stack([vectors[key] for key in hashes]) if hashes else np.zeros((0, 0), np.float32)
        )
        integers, scales = quantize(rows)
        arrays = {
            "state": np.asarray(f"{_FORMAT} {collection}"),
            "hashes": text_array(hashes),
            "integers": integers,
            "scales": scales,
        }
        try:
            write_arrays(self._path, arrays)
        except OSError as error:
            _log.warning("cannot keep the vectors in %s: %s", self._path, error.strerror)
        return FlatIndex(collection, hashes, integers, scales)


def _read_flat(collection: str, arrays: Mapping[str, npt.NDArray[Any]]) -> FlatIndex:
    hashes, integers, scales = array_texts(arrays["hashes"]), arrays["integers"], arrays["scales"]
    if integers.dtype != np.int8 or integers.ndim != 2 or scales.dtype != np.float32:
        raise ValueError("it holds other numbers")
    if not len(hashes) == len(integers) == len(scales):
        raise ValueError("its parts do not belong together")
    return FlatIndex(collection, hashes, integers, scales)
