"""Model files: what is told of good ones, and how bad ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_models import SHIPPED_MODEL, inspect_model, load_engine


def test_the_shipped_model_gets_the_compact_format_with_reasons() -> None:
    info = inspect_model()
    assert (info.architecture, info.profile.format) == ("llama", "compact")
    assert info.profile.grounded
    assert info.parameters == 6_917_376
    assert {"name", "format", "context", "rope", "stop", "bos", "grounded"} <= set(info.reasons)


def test_another_gguf_gets_the_chat_format(tiny_llama: Path) -> None:
    info = inspect_model(tiny_llama)
    assert info.profile.format == "chat"
    assert info.profile.context == info.context_train == 4096


def corrupt(tmp_path: Path, kind: str) -> Path:
    data = bytearray(SHIPPED_MODEL.read_bytes())
    path = tmp_path / f"{kind}.gguf"
    match kind:
        case "truncated":
            data = data[:1_500_000]
        case "header":
            data = data[:6]
        case "magic":
            data[:4] = b"ELF!"
        case "version":
            data[4:8] = (99).to_bytes(4, "little")
        case "counts":
            data[8:16] = (2**62).to_bytes(8, "little")
        case "keys":
            data[24:120] = b"\xff" * 96
        case "empty":
            data = bytearray()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "kind", ["truncated", "header", "magic", "version", "counts", "keys", "empty"]
)
def test_a_corrupt_gguf_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    path = corrupt(tmp_path, kind)
    for open_it in (inspect_model, load_engine):
        with pytest.raises(ModelError) as caught:
            open_it(path)
        assert str(path) in caught.value.message
        assert "\n" not in caught.value.message
        assert caught.value.hint


def test_a_missing_model_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model file"):
        inspect_model(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="is a folder"):
        inspect_model(tmp_path)
