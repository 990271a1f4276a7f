"""GGUF heads that are made to be read without end, and what is no file at all."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_header import check_start, read_header

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


@pytest.mark.parametrize("read", [check_start, read_header])
def test_a_pipe_and_a_device_are_refused_without_waiting(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(ModelError, match="cannot be read: it is a pipe, socket or device"):
            read(path)


@pytest.mark.parametrize("length", [4, 7])
def test_a_file_that_ends_in_its_first_eight_bytes_is_told_so(tmp_path: Path, length: int) -> None:
    path = tmp_path / "short.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0"[:length])
    with pytest.raises(ModelError, match=f"ends after {length} bytes"):
        read_header(path)
