"""``toolsrv index build --encoder``: another encoder, kept as a setting."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv_registry.encoder import SHIPPED_ENCODER

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An encoder's folder: a copy of the one that ships, under a name of its own."""
    folder = tmp_path / "mine"
    shutil.copytree(SHIPPED_ENCODER, folder)
    card = json.loads((folder / "card.json").read_text("utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"name": "mine"}), "utf-8")
    return folder


def setting(run: Run) -> str:
    return str(json.loads(run("config", "show", "--json").stdout)["settings"]["encoder"]["value"])


@pytest.mark.usefixtures("ready_dir")
def test_searches_use_the_encoder_that_the_index_was_built_with(run: Run, folder: Path) -> None:
    done = run("index", "build", "--encoder", str(folder), "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["encoder"] == "mine"
    assert setting(run) == str(folder)
    assert json.loads(run("index", "status", "--json").stdout)["encoder"] == "mine"
    found = json.loads(run("search", "weather in Lima", "--json").stdout)
    assert found["degraded"] == ""
    assert run("index", "build", "--encoder", "shipped").exit_code == 0
    assert setting(run) == ""


@pytest.mark.usefixtures("ready_dir")
def test_what_is_no_encoder_changes_nothing(run: Run, tmp_path: Path) -> None:
    for wrong in (tmp_path / "away", tmp_path / "file.gguf", tmp_path):
        (tmp_path / "file.gguf").write_bytes(b"GGUF")
        done = run("index", "build", "--encoder", str(wrong))
        assert done.exit_code in (1, 2)
        assert str(wrong) in done.stderr
        assert setting(run) == ""


@pytest.mark.usefixtures("ready_dir")
def test_without_its_folder_words_answer_and_say_how_to_go_back(run: Run, folder: Path) -> None:
    assert run("index", "build", "--encoder", str(folder)).exit_code == 0
    folder.rename(folder.with_name("elsewhere"))
    found = run("search", "weather in Lima", "--json")
    assert found.exit_code == 0, found.stderr
    assert str(folder) in json.loads(found.stdout)["degraded"]
    assert run("index", "status").exit_code == 1
    assert run("index", "build", "--encoder", "shipped").exit_code == 0
