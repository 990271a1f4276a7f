"""Every test that docs/security.md names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
ROWS = [
    line.strip("|").split("|")
    for line in TEXT.partition("## Attacks")[2].splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| attack "))
]


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda one: one.rpartition("/")[2])
def test_a_test_of_the_table_is_there(file: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in functions(ROOT / file)


def test_every_attack_names_its_tests_and_nothing_else_looks_like_one() -> None:
    assert len(ROWS) >= 50
    for attack, tests in ROWS:
        assert attack.strip()
        assert re.fullmatch(r"\s*`tests/[\w/]+\.py::\w+`(, `tests/[\w/]+\.py::\w+`)*\s*", tests), (
            tests
        )
    assert TEXT.count("::test_") == len(re.findall(r"`tests/[\w/]+\.py::test_\w+`", TEXT))


def test_what_it_links_to_is_there() -> None:
    for text, base in ((TEXT, ROOT / "docs"), ((ROOT / "SECURITY.md").read_text("utf-8"), ROOT)):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (base / target).exists(), target
