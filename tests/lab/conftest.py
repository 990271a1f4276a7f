"""Shared by the laboratory's tests: a data folder for each file, and its commands on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of one file's tests."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def run(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command of the laboratory in this process."""
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(data_dir))
    return lambda *words: CliRunner().invoke(cli, ["lab", *map(str, words)])
