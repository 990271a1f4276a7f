"""Many new texts: found by words at once, their vectors made by a process in the background."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.cli.catalog import storing
from toolsrv_registry.index.vectors import BuildProgress, BuildState

Run = Callable[..., Result]


def test_vectors_follow_an_import_in_the_background(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "BACKGROUND", 0)
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Quay", "version": "1"},
        "servers": [{"url": "https://quay.example"}],
        "paths": {
            "/q": {"get": {"operationId": "moor", "summary": "Moor a ship", "responses": {}}}
        },
    }
    path = tmp_path / "quay.json"
    path.write_text(json.dumps(document), "utf-8")
    told = json.loads(run("catalog", "import", str(path), "--json").stdout)
    assert told["index"]["background"] is True
    assert told["index"]["error"] == ""
    deadline = time.monotonic() + 300
    while True:
        status = json.loads(run("index", "status", "--json").stdout)
        if status["state"] == "ready":
            break
        assert time.monotonic() < deadline, status
        time.sleep(0.5)
    assert status["building"] is None


def test_a_build_under_way_is_seen_by_others_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "index.progress"
    heard: list[tuple[int, int]] = []
    with BuildProgress(path).recording(lambda done, total: heard.append((done, total))) as show:
        show(2, 10)
        found = BuildProgress(path).read()
        assert found is not None
        assert (found.done, found.total) == (2, 10)
        show(3, 10)
    assert heard == [(2, 10), (3, 10)]
    assert BuildProgress(path).read() is None


def test_what_a_dead_process_left_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index.progress"
    path.write_text(
        BuildState(done=1, total=2, per_second=3, pid=2**22 + 5).model_dump_json(), "utf-8"
    )
    assert BuildProgress(path).read() is None
    path.write_text("{", "utf-8")
    assert BuildProgress(path).read() is None
