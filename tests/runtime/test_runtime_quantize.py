"""A quantised file loads and runs; a full disk leaves nothing, here and in conversion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from toolsrv_registry.errors import BusyError, UsageError
from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.convert import QuantizeError
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.checkpoint import atomic_file, convert
from toolsrv_runtime.convert.quantize import QuantType, quantize
from toolsrv_runtime.convert.tensors import tensor_specs
from toolsrv_runtime.convert.tiny import TokenizerKind, write_tiny_checkpoint
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_models import load_engine


@pytest.mark.parametrize("kind", get_args(QuantType))
@pytest.mark.parametrize("tokenizer", get_args(TokenizerKind))
def test_a_quantised_file_loads_and_runs(
    tmp_path: Path, kind: QuantType, tokenizer: TokenizerKind
) -> None:
    folder = write_tiny_checkpoint(
        tmp_path / "llama", tokenizer=tokenizer, hidden_size=256, intermediate_size=256
    )
    source = Path(convert(folder, type="f32").path)
    seen = []
    made = quantize(source, None, kind, progress=lambda done, total: seen.append((done, total)))
    assert made.path == str(tmp_path / f"llama.{kind.lower()}.gguf")
    assert made.size_bytes < 0.6 * made.source_bytes
    assert seen[-1][0] == seen[-1][1] == len(list(tensor_specs(read_architecture(folder))))
    engine, _ = load_engine(Path(made.path), threads=1)
    try:
        asked = (Piece("User: hello"),)
        reply = engine.generate(asked, grammar="start: /[a-z ]{12}/", max_tokens=30)
        assert len(reply.text) == 12
    finally:
        engine.close()


def test_a_file_is_not_quantised_twice_or_over_itself(tmp_path: Path) -> None:
    source = Path(convert(write_tiny_checkpoint(tmp_path / "llama")).path)
    with pytest.raises(UsageError, match="replace"):
        quantize(source, source, "F16")
    small = Path(quantize(source, None, "Q8_0").path)
    with pytest.raises(QuantizeError, match="quantised already"):
        quantize(small, None, "Q8_0")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(source.read_bytes()[:-1000])
    with pytest.raises(ModelError, match="incomplete"):
        quantize(cut, None, "Q8_0")
    with pytest.raises(ModelError, match="no model file"):
        quantize(tmp_path / "none.gguf", None, "Q8_0")


_FULL = """
import resource, sys
from pathlib import Path
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.quantize import quantize
what, source, target = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    if what == "convert":
        convert(Path(source), Path(target))
    else:
        quantize(Path(source), Path(target), "F16")
except ToolsrvError as error:
    print(type(error).__name__, error.message, error.hint)
"""


@pytest.mark.parametrize("what", ["convert", "quantize"])
def test_a_disk_that_fills_up_is_told_and_leaves_nothing(tmp_path: Path, what: str) -> None:
    source = write_tiny_checkpoint(tmp_path / "llama")
    if what == "quantize":
        source = Path(convert(source, type="f32").path)
    target = tmp_path / "out" / "made.gguf"
    target.parent.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _FULL, what, str(source), str(target)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("WriteError" if what == "convert" else "QuantizeError")
    assert "free" in done.stdout
    assert list(target.parent.iterdir()) == []


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    folder, target = write_tiny_checkpoint(tmp_path / "llama"), tmp_path / "made.gguf"
    partial = tmp_path / "made.gguf.partial"
    partial.write_bytes(b"what a killed process left")
    with atomic_file(target), pytest.raises(BusyError, match=r"made\.gguf"):
        convert(folder, target)
    convert(folder, target, force=True)  # another made it meanwhile
    assert target.stat().st_mode & 0o444 == 0o444
    assert not partial.exists()
