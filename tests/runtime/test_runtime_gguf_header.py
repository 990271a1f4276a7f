"""A GGUF head that is made to be read without end."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_header import read_header

INT32, ARRAY = 5, 9


def nesting(path: Path, levels: int) -> Path:
    """Write a head with one entry: arrays in arrays, the innermost of one number."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    entry = struct.pack("<Q", 1) + b"k" + struct.pack("<I", ARRAY)
    arrays = struct.pack("<IQ", ARRAY, 1) * (levels - 1) + struct.pack("<IQi", INT32, 1, 7)
    path.write_bytes(head + entry + arrays)
    return path


@pytest.mark.parametrize("levels", [6, 100, 5_000, 500_000])
def test_arrays_in_arrays_without_end_are_a_damaged_file(tmp_path: Path, levels: int) -> None:
    with pytest.raises(ModelError, match="damaged") as caught:
        read_header(nesting(tmp_path / "deep.gguf", levels))
    assert caught.value.hint


@pytest.mark.parametrize(("levels", "kept"), [(1, [7]), (2, None), (5, None)])
def test_a_few_levels_are_stepped_over(tmp_path: Path, levels: int, kept: list[int] | None) -> None:
    assert read_header(nesting(tmp_path / "flat.gguf", levels)).metadata == {"k": kept}
