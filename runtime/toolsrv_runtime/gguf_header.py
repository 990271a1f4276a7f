"""Read the header of a GGUF file without llama.cpp: metadata, and the expected file length.

Long arrays (the vocabulary) are skipped. Source: the GGUF specification of ggml, versions 2 and 3.
Does not decide whether the model can be run.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from toolsrv_runtime.errors import ModelError, NoModelFileError, NotAModelFileError
from toolsrv_runtime.files import UnfitFileError, describe_absence, open_file

VERSIONS = (2, 3)
HINT = "name a GGUF file; toolsrv model list shows those that have a name"
DOWNLOAD_AGAIN = "download or convert the model again"

_MAGIC = b"GGUF"
_MOST_ENTRIES = 1_000_000
_MOST_BYTES = 256_000_000
_KEPT_ITEMS = 4096
_NESTED = 4
"""Arrays in arrays; no model has any."""
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """``metadata`` without long arrays; ``size`` of the file in bytes.

    ``last`` is the tensor whose data come last: where they begin, values, GGML's type.
    """

    path: Path
    metadata: dict[str, Any]
    tensors: int
    size: int
    last: tuple[int, int, int] | None

    @property
    def architecture(self) -> str:
        """``general.architecture``, or nothing."""
        return str(self.metadata.get("general.architecture", ""))

    def own(self, key: str) -> Any:
        """Return the architecture's own metadata of that name, None without it."""
        return self.metadata.get(f"{self.architecture}.{key}")

    def needed(self) -> int:
        """Return how many bytes the whole file has, by its list of tensors."""
        import gguf  # noqa: PLC0415 - only when a file is damaged

        if self.last is None:
            return 0
        start, values, kind = self.last
        try:
            block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
        except ValueError:  # a type of the future
            return start
        return start + values // block * size


def read_header(path: Path, *, what: str = "model", hint: str = HINT) -> GgufHeader:
    """Return the header of the file; ``what`` it should be, and ``hint``, are for messages.

    Raises:
        NoModelFileError: No such file.
        NotAModelFileError: A folder, a device, or a file that is no GGUF.
        ModelError: A version that cannot be read, damaged, or closed to us.
    """
    try:
        with open_file(path) as file:
            _check_start(path, file.read(8), hint)
            size = os.fstat(file.fileno()).st_size
            with mmap.mmap(file.fileno(), min(size, _MOST_BYTES), access=mmap.ACCESS_READ) as data:
                return _read(path, data, size)
    except OSError as error:
        raise _unreadable(path, error, what, hint) from None


def check_start(path: Path) -> None:
    """Look at the first bytes of a file alone, in no time. Raises as ``read_header``."""
    try:
        with open_file(path) as file:
            _check_start(path, file.read(8), HINT)
    except OSError as error:
        raise _unreadable(path, error, "model", HINT) from None


def _unreadable(path: Path, error: OSError, what: str, hint: str) -> ModelError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        if path.is_symlink():
            return NoModelFileError(
                f"the {what} file {str(path)!r} {describe_absence(path)}", hint=hint
            )
        return NoModelFileError(f"there is no {what} file {str(path)!r}", hint=hint)
    if isinstance(error, IsADirectoryError):
        return NotAModelFileError(f"{str(path)!r} is a folder, no {what} file", hint=hint)
    kind = NotAModelFileError if isinstance(error, UnfitFileError) else ModelError
    return kind(f"the {what} file {str(path)!r} cannot be read: {error.strerror}", hint=hint)


def _check_start(path: Path, start: bytes, hint: str) -> None:
    if not start:
        raise NotAModelFileError(f"{str(path)!r} is empty (0 bytes)", hint=DOWNLOAD_AGAIN)
    if start[:4] != _MAGIC:
        raise NotAModelFileError(f"{str(path)!r} is not a GGUF file", hint=hint)
    if len(start) < 8:
        raise ModelError(f"{str(path)!r} ends after {len(start)} bytes", hint=DOWNLOAD_AGAIN)
    version = int.from_bytes(start[4:8], "little")
    if version in VERSIONS:
        return
    if int.from_bytes(start[4:8], "big") in VERSIONS:
        raise ModelError(
            f"{str(path)!r} is a big-endian GGUF file, for another kind of processor",
            hint="download the little-endian file, or convert the model again",
        )
    newer = version > max(VERSIONS)
    raise ModelError(
        f"{str(path)!r} is GGUF version {version}; versions 2 and 3 can be read",
        hint="update llama-cpp-python, or convert the model anew for version 3"
        if newer
        else "convert the model anew with a current llama.cpp",
    )


def _read(path: Path, data: mmap.mmap, size: int) -> GgufHeader:
    try:
        reader = _Reader(data)
        tensors, entries = reader.number("Q"), reader.number("Q")
        if max(tensors, entries) > _MOST_ENTRIES:
            raise ModelError(
                f"the head of {str(path)!r} is damaged: {tensors} tensors, {entries} entries",
                hint=DOWNLOAD_AGAIN,
            )
        metadata = {}
        for _ in range(entries):
            key = reader.text()
            metadata[key] = reader.value(reader.number("I"))
        last = max((reader.tensor() for _ in range(tensors)), default=None)
    except (struct.error, IndexError, KeyError, ValueError, OverflowError):
        raise ModelError(
            f"{str(path)!r} is damaged or incomplete: its head cannot be read to the end",
            hint=DOWNLOAD_AGAIN,
        ) from None
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        alignment = _ALIGNMENT
    start = -(-reader.at // alignment) * alignment
    place = None if last is None else (start + last[0], *last[1:])
    return GgufHeader(path, metadata, tensors, size, place)


class _Reader:
    """Reads on from the place behind magic and version."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.at = 8

    def number(self, kind: str) -> Any:
        """Return the next scalar."""
        (value,) = struct.unpack_from(f"<{kind}", self._data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return value

    def skip(self, count: int) -> None:
        """Step over bytes that must be there."""
        if self.at + count > len(self._data):
            raise IndexError
        self.at += count

    def text(self) -> str:
        """Return the next string."""
        length = self.number("Q")
        start = self.at
        self.skip(length)
        return self._data[start : self.at].decode(errors="replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        """Return the next value; None for a long array or one of strings.

        ``depth`` counts the arrays that it stands in.
        """
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_SCALARS[kind])
        if depth > _NESTED:
            raise ValueError(f"arrays are nested deeper than {_NESTED} levels")
        item, count = self.number("I"), self.number("Q")
        if item in (_STRING, _ARRAY):
            for _ in range(count):
                if item == _ARRAY:
                    self.value(_ARRAY, depth + 1)
                else:
                    self.skip(self.number("Q"))
            return None
        if count <= _KEPT_ITEMS:
            return [self.number(_SCALARS[item]) for _ in range(count)]
        self.skip(count * struct.calcsize(_SCALARS[item]))
        return None

    def tensor(self) -> tuple[int, int, int]:
        """Return the next tensor: where its data begin among all data, values, GGML's type."""
        self.text()
        shape = [self.number("Q") for _ in range(min(self.number("I"), 8))]
        kind, offset = self.number("I"), self.number("Q")
        return offset, prod(shape), kind
