"""LoRA adapters at the command line: merged, and applied by --adapter or the setting."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.runtime.lora_files import factors, write_gguf_adapter, write_peft

from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint

Run = Callable[..., Result]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(convert(write_tiny_checkpoint(tmp_path / "llama"), type="f32").path)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    pairs = factors({"blk.0.attn_q.weight": (32, 32)}, 2)
    return write_gguf_adapter(tmp_path / "lora.gguf", pairs, alpha=4)


def test_a_merged_model_is_on_the_list(run: Run, base: Path, tmp_path: Path) -> None:
    pairs = factors({"model.layers.0.self_attn.q_proj": (32, 32)}, 2)
    folder = write_peft(tmp_path / "peft", pairs, rank=2, alpha=4)
    out = tmp_path / "merged.gguf"
    done = run("model", "merge", str(base), str(folder), "--out", str(out), "--type", "q8_0")
    assert done.exit_code == 0, done.stderr
    assert f"1 of 21 tensors changed (1 as Q8_0; rank 2) in {out}" in done.stdout
    listed = json.loads(run("model", "list", "--json").stdout)
    assert "merged" in json.dumps(listed)
    again = run("model", "merge", "merged", str(folder), "--out", str(out))
    assert again.exit_code == 2
    said = run("model", "merge", str(base), str(folder), "--json").stdout
    assert json.loads(said)["adapter"] == "peft"


def test_model_info_tells_the_adapter_of_the_option_and_of_the_setting(
    run: Run, base: Path, adapter: Path
) -> None:
    info = run("model", "info", str(base), "--adapter", str(adapter), "--json")
    assert info.exit_code in (0, 2), info.stderr
    told = json.loads(info.stdout)["adapter"]
    assert (told["path"], told["rank"], told["alpha"]) == (str(adapter), 2, 4)
    assert run("config", "set", "adapter", str(adapter)).exit_code == 0
    assert "rank 2, alpha 4, 1 matrices" in run("model", "info", str(base)).stdout
    off = run("model", "info", str(base), "--adapter", "", "--json")
    assert json.loads(off.stdout)["adapter"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--adapter", "nowhere.gguf"), 2, "nowhere.gguf"),
        (("--adapter", "{base}"), 1, "no adapter but a model"),
        (("--adapter", "{folder}"), 1, "toolsrv model merge BASE"),
        (("--adapter", "{adapter}", "--model", "http://127.0.0.1:9/v1"), 2, "for a model file"),
    ],
)
def test_an_adapter_that_cannot_be_applied_is_told_before_a_solve(
    run: Run, base: Path, adapter: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    filled = [one.format(base=base, adapter=adapter, folder=adapter.parent) for one in words]
    done = run("solve", "What time is it?", "--model", str(base), *filled)
    assert done.exit_code == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("error: ") == 1
