"""Large documents: whole, in time that grows with them, in JSON and YAML alike."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml

from toolsrv_catalogs.importer import ImportResult, read_catalog
from toolsrv_lab.evaluation.imports import declared, large_document


def _read(path: Path, operations: int) -> tuple[ImportResult, float]:
    path.write_text(json.dumps(large_document(operations)), "utf-8")
    started = time.process_time()
    reading = read_catalog(path)
    return reading, time.process_time() - started


def test_every_operation_is_read_and_none_is_refused(tmp_path: Path) -> None:
    document = large_document(602)
    assert declared(document) == 602
    assert document == large_document(602)
    reading, _ = _read(tmp_path / "large.json", 602)
    assert len(reading.catalog.apis) == 602
    assert not any(one.refused for one in reading.files)
    change = next(one for one in reading.catalog.apis if one.name == "change_thing3")
    assert [one.name for one in change.required] == ["area_id", "thing_id", "property0"]
    assert len(change.optional) == 32


def test_yaml_and_json_of_one_document_are_one_catalog(tmp_path: Path) -> None:
    reading, _ = _read(tmp_path / "large.json", 40)
    path = tmp_path / "large.yaml"
    path.write_text(yaml.safe_dump(large_document(40), sort_keys=False), "utf-8")
    assert read_catalog(path).catalog.apis == reading.catalog.apis


@pytest.mark.nightly
def test_time_grows_with_the_document_and_not_faster(tmp_path: Path) -> None:
    _read(tmp_path / "warm.json", 40)
    _, small = _read(tmp_path / "small.json", 400)
    _, large = _read(tmp_path / "large.json", 3_200)
    assert large < 20 * small  # eight times the operations
