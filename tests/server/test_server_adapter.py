"""LoRA adapters at the command line: merged, and applied by --adapter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.runtime.lora_files import factors, write_gguf_adapter, write_peft

from toolsrv.model_loading import KEPT
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


def test_model_info_tells_the_adapter_of_the_option(run: Run, base: Path, adapter: Path) -> None:
    info = run("model", "info", str(base), "--adapter", str(adapter), "--json")
    assert info.exit_code in (0, 2), info.stderr
    told = json.loads(info.stdout)["adapter"]
    assert (told["path"], told["rank"], told["alpha"]) == (str(adapter), 2, 4)
    words = ("model", "info", str(base), "--adapter")
    assert "rank 2, alpha 4, 1 matrices" in run(*words, str(adapter)).stdout
    off = run(*words, "", "--json")
    assert json.loads(off.stdout)["adapter"] is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--adapter", "nowhere.gguf"), 2, "nowhere.gguf"),
        (("--adapter", "{base}"), 2, "no adapter but a model"),
        (("--adapter", "{folder}"), 2, "there is no adapter_config.json"),
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


def test_a_peft_folder_is_merged_once_and_anew_where_it_changes(
    run: Run, base: Path, tmp_path: Path, data_dir: Path
) -> None:
    def info() -> tuple[str, bytes]:
        done = run("model", "info", str(base), "--adapter", str(folder), "--json")
        assert done.exit_code in (0, 2), done.stderr
        return (path := json.loads(done.stdout)["path"]), Path(path).read_bytes()

    shapes = {"model.layers.0.self_attn.q_proj": (32, 32)}
    folder = write_peft(tmp_path / "peft", factors(shapes, 2), rank=2, alpha=4)
    first = info()
    assert Path(first[0]).parent == data_dir / "models" / "merged"
    made = Path(first[0]).stat().st_ino
    assert info() == first
    assert Path(first[0]).stat().st_ino == made
    by_hand = tmp_path / "by_hand.gguf"
    assert run("model", "merge", str(base), str(folder), "--out", str(by_hand)).exit_code == 0
    assert by_hand.read_bytes() == first[1]
    for seed in range(2, 6):
        write_peft(folder, factors(shapes, 2, seed), rank=2, alpha=4)
        other = info()
        assert other[0] != first[0]
        assert other[1] != first[1]
    assert len(list(Path(first[0]).parent.glob("*.gguf"))) == KEPT
    assert not list(Path(first[0]).parent.glob("*.partial"))
    write_peft(folder, factors(shapes, 2, 5), rank=2, alpha=8)
    assert info()[0] != other[0]


def test_two_at_once_merge_an_adapter_once(base: Path, tmp_path: Path, data_dir: Path) -> None:
    shapes = {"model.layers.0.self_attn.q_proj": (32, 32)}
    folder = write_peft(tmp_path / "peft", factors(shapes, 2), rank=2, alpha=4)
    code = (
        "import sys; from pathlib import Path; from toolsrv.model_loading import merged_model\n"
        "base, folder, data = map(Path, sys.argv[1:])\n"
        "found = merged_model(base, folder, data, lambda *_: print('merging', flush=True))\n"
        "print(found)"
    )
    words = [sys.executable, "-c", code, str(base), str(folder), str(data_dir)]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate(timeout=300)[0].splitlines() for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert said[0][-1] == said[1][-1]
    assert sorted("merging" in one for one in said) == [False, True]
    assert Path(said[0][-1]).is_file()


def test_a_peft_folder_that_does_not_fit_is_told(run: Run, base: Path, tmp_path: Path) -> None:
    folder = write_peft(
        tmp_path / "peft",
        factors({"model.layers.9.self_attn.q_proj": (32, 32)}, 2),
        rank=2,
        alpha=4,
    )
    done = run("solve", "What time is it?", "--model", str(base), "--adapter", str(folder))
    assert done.exit_code == 2
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr
