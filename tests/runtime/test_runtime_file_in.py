"""What waits for a writer or has no end is refused wherever a file is read."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.engine import scripted
from toolsrv_runtime.files import UnfitFileError, open_file, read_file
from toolsrv_runtime.gguf_header import check_start
from toolsrv_runtime.models.scripted import load_script
from toolsrv_runtime.profiles import choose as user
from toolsrv_runtime.profiles.builtin import ModelFacts
from toolsrv_runtime.profiles.choose import choose_profile, read_profile
from toolsrv_runtime.toolbench.answer_files import read_answer
from toolsrv_runtime.toolbench.prompts import PROMPTS_FILE, read_prompts, stored_prompts

READERS = [check_start, load_script, read_answer, read_profile, read_prompts]
ROOM = 1 << 30


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Whoever reads on without end gets a MemoryError, not the whole machine's memory."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that nobody writes to; opening it waits for ever."""
    os.mkfifo(tmp_path / "pipe.toml")
    return tmp_path / "pipe.toml"


@pytest.mark.parametrize("read", READERS)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(
    read: Callable[[Path], object], pipe: Path, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (pipe, tmp_path / "socket", Path("/dev/zero")):
            with pytest.raises(ToolsrvError, match="a pipe, socket or device") as caught:
                read(path)
            assert str(path) in caught.value.message
            assert caught.value.hint


def test_pipes_in_folders_of_ours_are_refused_too(pipe: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolsrvError, match=r"pipe\.toml"):
        choose_profile(ModelFacts({}, "x.gguf", 4096, compact_tokens=False), folder=tmp_path)
    pipe.rename(tmp_path / PROMPTS_FILE)
    with pytest.raises(ToolsrvError, match=PROMPTS_FILE):
        stored_prompts(tmp_path)
    (tmp_path / PROMPTS_FILE).rename(tmp_path / "config.json")
    with pytest.raises(ToolsrvError, match=r"config\.json"):
        read_architecture(tmp_path)


def test_a_script_or_profile_is_read_up_to_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted, "MOST_SCRIPT_BYTES", 20)
    monkeypatch.setattr(user, "_MOST_BYTES", 20)
    path = tmp_path / "long.toml"
    path.write_text('replies = ["hello"] #')
    for read in (load_script, read_profile):
        with pytest.raises(ToolsrvError, match="more than 20 bytes"):
            read(path)
    path.write_text('replies = ["hello"]\n')
    load_script(path)


def test_links_are_followed_and_what_is_missing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read_file(tmp_path / "link", 3) == b"abc"
    with pytest.raises(UnfitFileError):
        read_file(tmp_path / "link", 2)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
