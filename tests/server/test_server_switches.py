"""Switches, aids and votes from the command line and MCP to the options of a solve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from toolsrv import settings
from toolsrv.solve_options import solve_options
from toolsrv.workbench import Workbench
from toolsrv_lab.evaluation.cells import make_options
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.profiles import DEFAULTS, SizeClass, size_class
from toolsrv_runtime.profiles.builtin import ModelFacts, chat, compact
from toolsrv_runtime.profiles.choose import read_profile

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("run", "given", "expected"),
    [
        ({}, {}, {}),
        ({"switches": "plan, self-check"}, {}, {"switches": {"plan", "self-check"}}),
        ({"switches": "none", "aids": "none"}, {}, {"switches": set(), "aids": set()}),
        ({"aids": "check,match", "votes": 3}, {}, {"aids": {"check", "match"}, "votes": 3}),
        ({"switches": "plan"}, {"switches": []}, {"switches": set()}),
        ({"strategy": "plan"}, {}, {"strategy": "dfsdt", "switches": {"plan"}}),
        ({}, {"strategy": "plan", "votes": 2}, {"switches": {"plan"}, "votes": 2}),
    ],
)
def test_commands_and_requests_become_options(
    data_dir: Path, run: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]
) -> None:
    bench = Workbench(settings.load({"data_dir": data_dir}).settings, run)
    assert bench.options(**given) == SolveOptions.model_validate(expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"switches": "plan,guess"}, ["no switch 'guess'", "self-check"]),
        ({"aids": "luck"}, ["no aid 'luck'", "coverage"]),
        ({"votes": 0}, ["votes = '0'", "greater than or equal to 1"]),
        ({"max_model_calls": 0}, ["max_model_calls = '0'"]),
        ({"seed": -1}, ["seed = '-1'"]),
        ({"widht": 3}, ["no option 'widht'", "width"]),
    ],
)
def test_what_does_not_exist_is_refused(
    data_dir: Path, given: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(UsageError) as error:
        solve_options(settings.load({"data_dir": data_dir}).settings, given)
    assert all(word in f"{error.value.message} {error.value.hint}" for word in words)


@pytest.mark.parametrize("flag", [("--switch", "plan"), ("--aids", "none"), ("--votes", "2")])
def test_the_model_that_ships_takes_none_of_them(
    run: Run, data_dir: Path, flag: tuple[str, str]
) -> None:
    assert data_dir
    done = run("solve", "capital of Peru", *flag)
    assert done.exit_code == 2
    assert "format compact" in done.stderr


def test_evaluations_set_them_for_a_cell() -> None:
    options = make_options(
        SolveOptions(), "plan", "check+match", ['switches=["self-check"]', "votes=3"]
    )
    assert options.switches == frozenset({"plan", "self-check"})
    assert options.aids == frozenset({"check", "match"})
    assert options.votes == 3


@pytest.mark.parametrize(
    ("parameters", "size"),
    [(0, "large"), (134_515_008, "tiny"), (494_032_768, "small"), (7_241_732_096, "large")],
)
def test_a_profile_is_that_of_the_model_s_size(parameters: int, size: SizeClass) -> None:
    facts = ModelFacts({}, "m.gguf", 4096, compact_tokens=False, parameters=parameters)
    profile, reasons = chat(facts)
    assert size_class(parameters) == size
    assert (profile.aids, profile.switches) == (DEFAULTS[size].aids, DEFAULTS[size].switches)
    assert size in reasons["switches"]
    assert compact(facts)[0].switches == frozenset()


def test_a_user_s_profile_may_set_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('aids = ["check"]\nswitches = ["plan"]\n', encoding="utf-8")
    facts = ModelFacts({}, "m.gguf", 4096, compact_tokens=False)
    profile, reasons = read_profile(path).apply(facts, path)
    assert profile.aids == frozenset({"check"})
    assert profile.switches == frozenset({"plan"})
    assert reasons["switches"] == f"set in {path}"
    assert profile.model_dump(mode="json")["switches"] == ["plan"]
