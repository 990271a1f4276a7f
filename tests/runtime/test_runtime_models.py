"""Model files: what is told of good ones, and how bad ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.models import SHIPPED_MODEL, inspect_model, load_engine
from toolsrv_runtime.profile import choose


def test_the_shipped_model_gets_the_compact_format_with_reasons() -> None:
    info = inspect_model()
    assert (info.architecture, info.profile.format) == ("llama", "compact")
    assert info.profile.grounded
    assert info.parameters == 6_917_376
    assert set(info.reasons) == {"format", "context", "rope", "grounded"}


def test_another_gguf_gets_the_chat_format(tiny_llama: Path) -> None:
    info = inspect_model(tiny_llama)
    assert info.profile.format == "chat"
    assert info.profile.context == info.context_train == 4096


def test_toolllama_gets_linear_rope_scaling_by_two() -> None:
    for name in ("ToolLLaMA-2-7b-v2", "tool-llama-2", "ToolBench ToolLLaMA 2 7b v1"):
        profile, reasons = choose(
            {"general.name": name}, filename="x.gguf", trained_context=4096, compact_tokens=False
        )
        assert (profile.rope_freq_scale, profile.context) == (0.5, 8192)
        assert "linear" in reasons["rope"]


def test_a_file_name_alone_names_toolllama_one_with_ratio_four() -> None:
    profile, _ = choose(
        {}, filename="ToolLLaMA-7b.Q4_K_M.gguf", trained_context=2048, compact_tokens=False
    )
    assert profile.rope_freq_scale == 0.25


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
    with pytest.raises(ModelError, match="cannot be read"):
        inspect_model(tmp_path)
