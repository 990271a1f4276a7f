"""``toolsrv lab eval imports``: each document's operations, read, refused or lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolsrv.cli.main import cli
from toolsrv_lab.evaluation.imports import declared, documents_in, evaluate, reason, totals
from toolsrv_registry.errors import UsageError


def _operation(**more: Any) -> dict[str, Any]:
    return {"responses": {}, **more}


def _document(**paths: Any) -> dict[str, Any]:
    info = {"title": "Sea", "version": "1"}
    return {
        "openapi": "3.1.0",
        "info": info,
        "servers": [{"url": "https://s.example"}],
        "paths": paths,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    whole = _document(**{"/a": {"get": _operation(), "post": _operation()}})
    partly = _document(
        **{"/a": {"get": _operation(), "trace": _operation()}, "/b": {"get": {"$ref": "#/nowhere"}}}
    )
    files = {
        "whole.json": json.dumps(whole),
        "more/partly.yaml": json.dumps(partly),
        "none.json": json.dumps({"some": "thing"}),
        "broken.json": "{",
        "package.json": "{}",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_operations_are_read_or_refused_with_a_reason_and_none_is_lost(folder: Path) -> None:
    found = {one.path: one for one in evaluate(documents_in(folder), folder)}
    assert set(found) == {"whole.json", "more/partly.yaml", "broken.json"}
    whole, partly = found["whole.json"], found["more/partly.yaml"]
    assert (whole.declared, whole.read, whole.refused, whole.lost) == (2, 2, {}, 0)
    assert (partly.declared, partly.read, partly.lost) == (3, 1, 0)
    assert set(partly.refused) == {"TRACE is never called", "… leads to nothing"}
    assert "cannot be parsed" in found["broken.json"].fault
    summed = totals(list(found.values()))
    assert (summed.documents, summed.failed, summed.declared, summed.read) == (3, 1, 5, 3)
    assert summed.refused == sum(summed.reasons.values()) == 2


def test_operations_are_counted_by_the_specification_s_own_list() -> None:
    item = {"get": {}, "parameters": [], "summary": "x", "additionalOperations": {"COPY": {}}}
    assert declared(_document(**{"/a": item, "/b": {"$ref": "#/x"}})) == 2
    assert declared([]) == declared({"paths": []}) == 0
    assert reason("the parameter 'x' of 12") == reason('the parameter "yy" of 3')


def test_a_document_that_takes_too_long_costs_only_itself(folder: Path) -> None:
    paths = documents_in(folder / "whole.json")
    (late,) = evaluate(paths, folder / "whole.json", seconds=0.0)
    assert (late.path, late.read) == ("whole.json", 0)
    assert "took more than" in late.fault


def test_the_command_prints_totals_and_every_document(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["lab", "eval", "imports", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["totals"]["read"], len(document["documents"])) == (3, 3)
    shown = CliRunner().invoke(cli, ["lab", "eval", "imports", "--made", "5"])
    assert shown.exit_code == 0


def test_a_folder_without_documents_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        documents_in(tmp_path)
