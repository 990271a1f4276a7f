"""Samples of episodes: functions that no catalog has, the words of their values, what is left out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli
from toolsrv_lab.conversations.episode import Episode, HeldOutTasks, Made, Offered, check, write
from toolsrv_lab.matching.episode_samples import api_of, drawn, episode_samples
from toolsrv_lab.matching.kinds import EPISODES, episodes
from toolsrv_lab.matching.pipeline import TRAINING, add, read_apis, read_samples
from toolsrv_registry.errors import DataError

TASK = "how many people live in Peru, and who runs line 4 of the metro there? also book a table"


def _function(name: str, description: str, **parameters: dict[str, object]) -> Offered:
    schema = {"type": "object", "properties": parameters, "required": [*parameters][:1]}
    return Offered(name, description, schema)


FUNCTIONS = (
    _function(
        "headcount", "Population of a nation.", nation={"type": "string"}, year={"type": "integer"}
    ),
    _function(
        "line_owner_for_rails",
        "Who runs a line.",
        city={"type": "string"},
        line={"type": "integer", "description": "Its number (e.g. 7)"},
        kind={"type": "string", "enum": ["metro", "tram"]},
    ),
    _function("shout", "Text in capitals.", text={"type": "string"}),
)
EPISODE = Episode(
    source="test",
    now="2026-11-27",
    task=TASK,
    functions=FUNCTIONS,
    steps=(
        Made("how many people live in Peru", "headcount", {"nation": "Peru"}, {"nation": "Peru"},
             {"population": 34, "capital": "Lima"}, sentence="34 people."),
        Made("who runs line 4 of the metro there", "line_owner_for_rails",
             {"city": "Lima", "line": 4, "kind": "metro"}, {"line": "4"}, {"owner": "ATU"},
             sentence="ATU runs it."),
    ),
    answer="34 people. ATU runs it.",
    unserved=("book a table",),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _is_an_episode() -> None:
    check(EPISODE)


def test_values_are_found_in_the_task_and_in_earlier_responses() -> None:
    apis, samples = episode_samples(EPISODE, random.Random(1))
    first, second = (one for one in samples if one.api and not one.whole)
    assert apis[first.api].name == "headcount"
    assert first.spans == {"nation": (0, 24, 28), "year": None}
    assert first.others[0] == second.api
    assert not first.facts
    api = apis[second.api]
    assert (api.tool, api.name) == ("rails", "line_owner")
    assert [one.description for one in api.parameters] == ["", "Its number", ""]
    number, begin, end = second.spans["city"] or (0, 0, 0)
    assert second.facts[number - 1] == ("capital", "Lima")
    assert second.facts[number - 1][1][begin:end] == "Lima"
    assert second.listed == {"kind": "metro"}
    begin, end = (second.spans["line"] or (0, 0, 0))[1:]
    assert TASK[begin:end] == "4"


def test_a_whole_task_does_not_state_what_a_response_tells() -> None:
    apis, samples = episode_samples(EPISODE, random.Random(1))
    second = [one for one in samples if one.whole][1]
    assert second.spans["city"] is None
    assert TASK[slice(*second.clause)] == "who runs line 4 of the metro there"
    assert [apis[one].name for one in second.others] == ["shout"]


def test_parts_and_tasks_that_nothing_serves_have_no_api() -> None:
    _, samples = episode_samples(EPISODE, random.Random(1))
    (part,) = [one for one in samples if not one.api and not one.facts]
    assert len(part.others) == len(FUNCTIONS)
    assert all(one.api or one.others for one in samples)
    none = replace(EPISODE, steps=(), answer="", reason="no function", unserved=())
    _, samples = episode_samples(none, random.Random(1))
    assert {one.whole for one in samples} == {True, False}
    assert all(not one.api and len(one.others) == len(FUNCTIONS) for one in samples)


def test_a_function_without_a_provider_gets_one_now_and_then() -> None:
    tools = {api_of(FUNCTIONS[0], random.Random(seed)).tool for seed in range(20)}
    assert "" in tools
    assert len(tools) > 3


def test_a_function_is_one_of_two_apis_in_however_many_episodes() -> None:
    rng, ids = random.Random(3), set[str]()
    for number in range(20):
        apis, _ = episode_samples(replace(EPISODE, task=f"{number}: {TASK}"), rng)
        ids |= {one.id for one in apis.values() if one.name == "headcount"}
    assert 1 <= len(ids) <= 2


def test_episodes_with_judged_tasks_are_left_out(tmp_path: Path) -> None:
    file, tasks = tmp_path / "episodes.jsonl", tmp_path / "tasks.jsonl"
    others = [replace(EPISODE, task=f"{number}: {TASK}") for number in range(60)]
    write(iter([EPISODE, *others]), file)
    assert len(drawn(file, 40, HeldOutTasks(), 1)[1]) == 40
    tasks.write_text(json.dumps({"task": TASK}) + "\n", "utf-8")
    (tmp_path / TRAINING).write_text("", "utf-8")
    assert add(tmp_path, [episodes([(file, 100)], HeldOutTasks([tasks]), 1)], 1) == {
        TRAINING: 0,
        EPISODES: 0,
    }
    counts = add(tmp_path, [episodes([(file, 100)], HeldOutTasks(), 1)], 1)
    assert counts == {TRAINING: 98, EPISODES: 2}
    known = read_apis(tmp_path)
    assert len(read_samples(tmp_path / TRAINING, known)) == 98
    every = episodes([(file, 0)], HeldOutTasks(), 1)
    assert len(every.training) + len(every.held) > 3 * 61


@pytest.mark.parametrize("text", ["{", '{"task": 1}', "[]"])
def test_a_file_that_holds_no_episodes_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    file.write_text(text, "utf-8")
    (tmp_path / TRAINING).write_text("", "utf-8")
    with pytest.raises(DataError, match=r"cannot read the episodes .*episodes\.jsonl"):
        episodes([(file, 5)], HeldOutTasks(), 1)


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    return lambda *words: CliRunner().invoke(cli, ["lab", "eval", "matcher", *map(str, words)])


def test_the_matcher_is_judged_on_tasks_in_other_words(
    judge: Callable[..., Result], tmp_path: Path
) -> None:
    tasks = tmp_path / "tasks.jsonl"
    calls = [{"api": "Data/country_facts/capital_city", "arguments": {"country": "Peru"}}]
    task = {"id": "a", "kind": "single", "task": "what is the capital of Peru?", "calls": calls}
    none = {
        "id": "b",
        "kind": "none",
        "task": "fold the laundry and feed my hamster Otto",
        "calls": [],
    }
    tasks.write_text(f"{json.dumps(task)}\n{json.dumps(none)}\n", "utf-8")
    done = judge("--tasks", tasks, "--other-words", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    counts = {name: (one["count"], one["of"]) for name, one in found.items() if name != "tasks"}
    assert counts == {
        "found": (1, 1), "kept": (1, 1), "given_up": (1, 1), "values": (1, 1), "unneeded": (0, 15),
    }  # fmt: skip


@pytest.mark.parametrize("words", [(), ("--other-words",), ("--samples", ".", "--other-words")])
def test_without_a_measure_nothing_is_judged(
    words: tuple[str, ...], judge: Callable[..., Result]
) -> None:
    done = judge(*words)
    assert done.exit_code == 2
    assert "--tasks FILE" in done.stderr
