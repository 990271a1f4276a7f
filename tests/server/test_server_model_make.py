"""``toolsrv model convert`` and ``quantize``, and the way into fine-tuning, at the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv_runtime.convert.tiny import write_tiny_checkpoint

Run = Callable[..., Result]


def test_a_checkpoint_becomes_a_small_gguf_in_two_commands(run: Run, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "ToolLLaMA-2-tiny", max_position_embeddings=4096)
    made = run("model", "convert", str(folder), "--profile", "toolllama-2", "--json")
    assert made.exit_code == 0, made.stderr
    said = json.loads(made.stdout)
    assert said["path"] == str(tmp_path / "ToolLLaMA-2-tiny.f16.gguf")
    assert (said["context"], said["rope"]["factor"]) == (8192, 2)
    small = tmp_path / "small.gguf"
    done = run("model", "quantize", said["path"], "--type", "q8_0", "--out", str(small))
    assert done.exit_code == 0, done.stderr
    assert f"Q8_0 in {small}: {small.stat().st_size:,} bytes" in done.stdout
    info = json.loads(run("model", "info", str(small), "--json").stdout)
    assert info["context_train"] == 8192
    assert info["profile"]["name"] == "toolllama-2"
    assert info["profile"]["rope_freq_scale"] is None


def test_a_file_that_is_there_stays_without_force(run: Run, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    made = Path(json.loads(run("model", "convert", str(folder), "--json").stdout)["path"])
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    for words in (("convert", str(folder)), ("quantize", str(made))):
        command = ("model", *words, "--out", str(notes))
        done = run(*command)
        assert done.exit_code == 2
        assert "is there already" in done.stderr
        assert "--force" in done.stderr
        assert notes.read_text() == "mine"
    assert run("model", "quantize", str(made), "--out", str(notes), "--force").exit_code == 0
    assert notes.read_bytes()[:4] == b"GGUF"


def test_what_the_folder_leaves_open_is_noted(run: Run, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "ToolLLaMA-2-tiny")
    made = run("model", "convert", str(folder), "--out", str(tmp_path / "made.gguf"))
    assert made.exit_code == 0
    assert "give --profile toolllama-2" in made.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("model", "convert", "nowhere"), 2, "does not exist"),
        (("model", "convert", "nowhere", "--type", "q8_0"), 2, "--type"),
        (("model", "convert", "nowhere", "--profile", "mine"), 2, "no profile 'mine'"),
        (("model", "convert", "nowhere", "--profile", "mine.toml"), 2, "cannot read the profile"),
        (("model", "quantize", "nowhere.gguf"), 2, "nowhere.gguf"),
        (("lab", "train", "model", "--data", "x", "--out", "y"), 2, "--base"),
        (("lab", "train", "model", "--base", "b", "--data", "x", "--out", "y", "--rank", "4"),
         2, "--lora"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_told_in_one_line(
    run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    done = run(*words)
    assert done.exit_code == code
    assert done.stderr.count("error: ") == 1
    assert said in done.stderr


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_without_the_extra_fine_tuning_says_what_to_install(run: Run, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    words = ("--base", str(folder), "--data", "x", "--out", str(tmp_path / "run"))
    done = run("lab", "train", "model", *words)
    assert done.exit_code == 2
    assert "needs torch" in done.stderr
    assert "pip install '.[lab]' in toolsrv's sources" in done.stderr
