"""Files that cannot be run: what the user reads; memory that does not suffice; a shared model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from toolsrv_registry.errors import MemoryShortError
from toolsrv_runtime import gguf_models
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_header import read_header
from toolsrv_runtime.gguf_models import SHIPPED_MODEL, inspect_model, load_engine
from toolsrv_runtime.profiles import KvType
from toolsrv_runtime.requirements import (
    Footprint,
    available_memory,
    estimate_footprint,
    fit_cells,
    format_bytes,
    further_cells,
    physical_cores,
    resident_cells,
)

GB = 10**9


def refusal(path: Path) -> ModelError:
    """How loading ``path`` is refused; inspecting it must be refused in the same words."""
    with pytest.raises(ModelError) as first:
        inspect_model(path)
    with pytest.raises(ModelError) as second:
        load_engine(path)
    assert first.value.message == second.value.message
    assert str(path) in first.value.message
    assert "\n" not in first.value.message
    assert first.value.hint
    return first.value


def write_gguf(path: Path, architecture: str, *, tensors: int = 1, **metadata: Any) -> Path:
    """A GGUF file with metadata and a small tensor; ``__`` in a key stands for a dot."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        name = key.replace("__", ".")
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        else:
            writer.add_string(name, value)
    for at in range(tensors):
        writer.add_tensor(f"blk.{at}.attn_norm.weight", np.ones(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    assert "there is no model file" in refusal(tmp_path / "none.gguf").message


def test_a_file_of_zero_bytes_says_so(tmp_path: Path) -> None:
    path = tmp_path / "zero.gguf"
    path.touch()
    assert "is empty (0 bytes)" in refusal(path).message


def test_something_else_is_not_a_gguf_file(tmp_path: Path) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<!doctype html>" * 100)
    assert "is not a GGUF file" in refusal(path).message


@pytest.mark.parametrize("share", [0.3, 0.9, 0.9999])
def test_a_truncated_file_says_how_much_of_it_is_there(tmp_path: Path, share: float) -> None:
    whole = SHIPPED_MODEL.read_bytes()
    path = tmp_path / "part.gguf"
    path.write_bytes(whole[: int(len(whole) * share)])
    error = refusal(path)
    assert f"has {path.stat().st_size:,} of {len(whole):,} bytes" in error.message
    assert "download" in error.hint


def test_a_file_cut_in_its_head_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "head.gguf"
    path.write_bytes(SHIPPED_MODEL.read_bytes()[:5000])
    assert "its head cannot be read to the end" in refusal(path).message


@pytest.mark.parametrize(
    ("start", "said", "remedy"),
    [
        (b"GGUF" + (4).to_bytes(4, "little"), "GGUF version 4", "update llama-cpp-python"),
        (b"GGUF" + (1).to_bytes(4, "little"), "GGUF version 1", "convert the model anew"),
        (b"GGUF" + (3).to_bytes(4, "big"), "big-endian", "little-endian"),
    ],
)
def test_another_version_says_what_can_be_read(
    tmp_path: Path, start: bytes, said: str, remedy: str
) -> None:
    path = tmp_path / "version.gguf"
    path.write_bytes(start + SHIPPED_MODEL.read_bytes()[8:])
    error = refusal(path)
    assert said in error.message
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("architecture", "metadata", "said"),
    [
        ("bert", {"bert__pooling_type": 2}, "is an embedding model (bert)"),
        ("nomic-bert", {}, "is an embedding model (nomic-bert)"),
        ("llama", {"llama__attention__causal": False}, "is an embedding model"),
        ("qwen3", {"qwen3__pooling_type": 3}, "for embeddings or ranking"),
        ("clip", {}, "is the image part of a model"),
        ("llama", {"general__type": "adapter"}, "is a LoRA adapter"),
        ("hyena9", {}, "architecture 'hyena9'"),
    ],
)
def test_what_is_no_writing_model_is_named_for_what_it_is(
    tmp_path: Path, architecture: str, metadata: dict[str, Any], said: str
) -> None:
    path = write_gguf(tmp_path / "other.gguf", architecture, **metadata)
    assert said in refusal(path).message


def test_a_file_with_a_vocabulary_alone_says_so(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "vocab.gguf", "llama", tensors=0)
    assert "holds a vocabulary and no weights" in refusal(path).message


def test_a_llama_without_its_tensors_is_damaged(tmp_path: Path) -> None:
    error = refusal(write_gguf(tmp_path / "bare.gguf", "llama"))
    assert "damaged or incomplete" in error.message


def test_missing_parts_of_a_split_model_are_named(tmp_path: Path) -> None:
    path = tmp_path / "big-00001-of-00003.gguf"
    path.write_bytes(SHIPPED_MODEL.read_bytes())
    (tmp_path / "big-00003-of-00003.gguf").touch()
    assert "missing are: big-00002-of-00003.gguf" in refusal(path).message


def seven_billion() -> Footprint:
    """LLaMA-2 7B in 4 bits: 512 KiB of keys and values for a token."""
    return Footprint(weights=4_080_000_000, per_token=524_288, scratch=100_000_000)


def test_a_model_that_fits_gets_all_the_cells_that_help() -> None:
    cells = fit_cells(
        Path("m.gguf"), seven_billion(), context=8192, wanted=24_576, available=24 * GB
    )
    assert cells == 24_576
    unknown = fit_cells(
        Path("m.gguf"), seven_billion(), context=8192, wanted=24_576, available=None
    )
    assert unknown == 24_576


def test_where_memory_is_short_less_of_the_tree_stays() -> None:
    cells = fit_cells(
        Path("m.gguf"), seven_billion(), context=8192, wanted=24_576, available=12 * GB
    )
    assert 8192 <= cells < 24_576
    assert seven_billion().total(cells) <= 12 * GB


def test_caches_beside_the_first_are_made_where_there_is_memory_for_them() -> None:
    needs, cells = Footprint(weights=10, per_token=2, scratch=5), 100
    whole = needs.total(cells)
    found = [
        needs.caches_within(whole + more, cells=cells, further=40) for more in (-20, 0, 84, 85, 255)
    ]
    assert found == [1, 1, 1, 2, 4]


@pytest.mark.parametrize("room", [0, 1])
def test_a_model_has_no_more_caches_than_there_is_memory_for(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    needs = inspect_model().memory
    context = inspect_model().profile.context
    further = needs.scratch + further_cells(context) * needs.per_token
    free = needs.total(resident_cells(context)) + room * further
    monkeypatch.setattr(gguf_models, "available_memory", lambda _: free)
    engine, _ = load_engine()
    assert isinstance(engine, LlamaEngine)
    made = engine._lanes._count
    engine.close()
    assert made == 1 + room


@pytest.mark.parametrize(
    ("available", "remedy"),
    [(6 * GB, "set context = 3328"), (4 * GB, "weights alone take 4.08 GB")],
)
def test_a_model_that_does_not_fit_is_refused_with_the_numbers_and_what_would(
    available: int, remedy: str
) -> None:
    with pytest.raises(MemoryShortError) as caught:
        fit_cells(Path("m.gguf"), seven_billion(), context=8192, wanted=24_576, available=available)
    assert "needs 8.47 GB" in caught.value.message
    assert f"{format_bytes(available)} are available" in caught.value.message
    assert remedy in caught.value.hint


def test_a_context_beyond_all_memory_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "wide", max_position_embeddings=2_000_000_000)
    path = Path(convert(folder).path)
    profile = tmp_path / "all.toml"
    profile.write_text("context = 2000000000\nflash_attention = true\n")
    with pytest.raises(MemoryShortError) as caught:
        load_engine(path, profile=str(profile))
    assert "256 GB for a context of 2,000,000,000 tokens" in caught.value.message
    assert "set context = " in caught.value.hint


def test_the_estimate_counts_grouped_queries_and_layers_of_their_own_size(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "grouped")
    header = read_header(Path(convert(folder).path))
    needs = estimate_footprint(header, weights=1000, vocabulary=448)
    assert needs.per_token == 2 * 2 * (8 + 8) * 2  # layers, kv heads, key and value, 16 bits
    kinds: tuple[tuple[KvType, int], ...] = (("q8_0", 34), ("q4_0", 18))
    for kind, size in kinds:
        quantised = estimate_footprint(header, weights=1000, vocabulary=448, kv_type=kind)
        assert quantised.per_token == 2 * 2 * (8 + 8) * size // 32
    every = estimate_footprint(header, weights=1000, vocabulary=448, flash_attention=False)
    assert every.per_token == needs.per_token + 256 * (4 + 1) * 4  # batch, heads and mask, 32 bits
    header.metadata["llama.attention.head_count_kv"] = [1, 4]
    assert estimate_footprint(header, weights=1000, vocabulary=448).per_token == 5 * (8 + 8) * 2


def test_the_shipped_models_estimate_is_what_llama_cpp_takes() -> None:
    """Resident memory before and after, in a process of its own."""
    code = (
        "from pathlib import Path\n"
        "import llama_cpp, numpy\n"
        "from toolsrv_runtime.gguf_models import inspect_model, load_engine\n"
        "from toolsrv_runtime.contract.models import Piece\n"
        "pages = lambda: int(Path('/proc/self/statm').read_text().split()[1])\n"
        "info = inspect_model()\n"
        "before = pages()\n"
        "engine, _ = load_engine(threads=1)\n"
        "engine.count((Piece('x'),))\n"
        "print((pages() - before) * 4096, info.memory.model_dump_json())\n"
    )
    words = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split(maxsplit=1)
    taken, needs = int(words[0]), Footprint.model_validate_json(words[1])
    assert taken < 1.1 * needs.total(resident_cells(4096))


def test_memory_and_cores_of_this_machine_are_known() -> None:
    assert (available_memory() or 0) > 10**8
    assert physical_cores() >= 1


SHARED = """
import sys
from pathlib import Path
from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.gguf_models import load_engine
engine, _ = load_engine(Path(sys.argv[1]), threads=1)
print("ready", flush=True)
sys.stdin.readline()
reply = engine.generate((Piece("System: a"),), grammar="start: /[a-z ]{20,30}/", max_tokens=40)
mapped = private = 0
inside = False
for line in Path("/proc/self/smaps").read_text().splitlines():
    words = line.split()
    if "-" in words[0] and not words[0].endswith(":"):
        inside = line.endswith(".gguf")
    elif inside and words[0] == "Rss:":
        mapped += int(words[1])
    elif inside and words[0] == "Private_Dirty:":
        private += int(words[1])
print(mapped, private, reply.text, flush=True)
"""


def test_two_processes_run_the_same_model_and_share_its_pages() -> None:
    command = [sys.executable, "-c", SHARED, str(SHIPPED_MODEL)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    said = [one.communicate("\n", timeout=120)[0].split(maxsplit=2) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert said[0][2] == said[1][2]
    for mapped, private, _ in said:
        assert int(mapped) > 1000  # kB of the file's own pages
        assert int(private) == 0
