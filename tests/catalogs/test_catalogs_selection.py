"""Rules by tag, path and method: what they take, and what an import says of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolsrv_catalogs.importer import read_catalog
from toolsrv_catalogs.selection import selection
from toolsrv_registry.errors import DataError, UsageError

OPERATIONS = [
    (("repos", "git"), "/repos/{id}", "GET"),
    (("repos",), "/repos/{id}", "DELETE"),
    (("users",), "/admin/users/{id}", "GET"),
    ((), "/[x]", "POST"),
]


def taken(*, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> list[int]:
    wanted = selection(include, exclude)
    found = [at for at, one in enumerate(OPERATIONS) if wanted.wanted(*one)]
    assert wanted.left_out == (len(OPERATIONS) - len(found) if wanted else 0)
    return found


def test_rules_of_a_kind_add_up_and_those_of_two_kinds_hold_together() -> None:
    assert taken() == [0, 1, 2, 3]
    assert taken(include=("tag:Repos",)) == [0, 1]
    assert taken(include=("tag:git", "tag:users")) == [0, 2]
    assert taken(include=("tag:repos", "method:get")) == [0]
    assert taken(exclude=("path:/admin/*", "method:DELETE")) == [0, 3]
    assert taken(include=("path:/*/{id}",), exclude=("tag:git",)) == [1, 2]
    assert taken(include=("path:/[[]x]",)) == [3]


@pytest.mark.parametrize(
    "rule", ["repos", "tag:", "colour:red", "tag", "path: ", "tag:" + "x" * 400]
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(UsageError):
        selection((rule,))


def test_every_rule_that_includes_has_to_fit_something() -> None:
    wanted = selection(("tag:repos", "method:PUT"))
    for one in OPERATIONS:
        wanted.wanted(*one)
    with pytest.raises(UsageError) as raised:
        wanted.check()
    assert raised.value.hint == "the methods are: DELETE, GET, POST"


def test_tool_files_are_chosen_by_category_tool_and_address(tmp_path: Path) -> None:
    def api(name: str, method: str) -> dict[str, Any]:
        return {"name": name, "method": method, "url": f"https://x.example/{name}"}

    for name in ("sea", "sky"):
        folder = tmp_path / "tools" / "Weather"
        folder.mkdir(parents=True, exist_ok=True)
        listed = [api("tide", "GET"), api("book", "POST")]
        document = {"tool_name": name, "api_list": listed}
        (folder / f"{name}.json").write_text(json.dumps(document), "utf-8")
    reading = read_catalog(tmp_path, include=("tag:sea",), exclude=("path:/book",))
    assert [api.id for api in reading.catalog.apis] == ["Weather/sea/tide"]
    assert len(reading.catalog.tools) == 1
    assert sum(one.unselected for one in reading.files) == 3
    assert sum(one.apis for one in reading.files) == 1


def test_a_broken_document_is_told_before_a_rule_that_fits_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"openapi', "utf-8")
    with pytest.raises(DataError, match="no JSON"):
        read_catalog(path, include=("tag:sea",))
