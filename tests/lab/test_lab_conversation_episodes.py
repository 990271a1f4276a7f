"""Episodes of all generators are checked, repeatable by their seed, and differ between seeds."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.conversations import corners, services_a, services_b
from toolsrv_lab.conversations.episode import (
    Episode,
    EpisodeError,
    Made,
    Offered,
    check,
    read,
    write,
)
from toolsrv_lab.conversations.needs_episodes import checked, held_out
from toolsrv_lab.conversations.needs_episodes.catalog import Catalog, is_held_out
from toolsrv_lab.conversations.needs_episodes.writer import Writer
from toolsrv_lab.conversations.offline_episodes import OfflineEpisodes
from toolsrv_lab.conversations.services_b.catalog import all_services
from toolsrv_lab.conversations.services_b.expressions import evaluate, is_allowed, record
from toolsrv_lab.conversations.wording import enumerated, fill, ordinal
from toolsrv_lab.nano.world import World

TOOLENV = Path(__file__).parents[3] / "shared" / "data" / "toolbench" / "toolenv.tar.gz"
COUNT = 40


def dumped(episode: Episode) -> str:
    return json.dumps(asdict(episode))


def tasks(episodes: Iterator[Episode]) -> list[str]:
    """Return the tasks of so many episodes, each checked."""
    found = []
    for one in itertools.islice(episodes, COUNT):
        check(one)
        found.append(one.task)
    return found


@pytest.mark.parametrize("generator", [services_a, services_b, corners])
def test_a_generator_repeats_itself_by_its_seed(generator: Any) -> None:
    first = list(generator.episodes(3, COUNT))
    assert [dumped(one) for one in first] == [dumped(one) for one in generator.episodes(3, COUNT)]
    assert len({one.task for one in first}) == COUNT
    other = tasks(generator.episodes(4, COUNT))
    assert len(other) == COUNT
    assert len(set(other) & {one.task for one in first}) < 3


def test_talk_repeats_itself_by_its_seed() -> None:
    first = list(corners.talk(3, COUNT))
    assert first == list(corners.talk(3, COUNT))
    assert first != list(corners.talk(4, COUNT))
    assert all(one["task"] and one["reply"] and "{" not in one["reply"] for one in first)


def test_errands_of_the_offline_catalog_are_called_and_checked() -> None:
    with World(load_offline_catalog().apis) as world:
        source = OfflineEpisodes(world, "2026-11-27")

        def thirty(seed: int) -> list[Episode]:
            return list(itertools.islice(source.episodes(seed, 1), 30))

        first, again, other = thirty(3), thirty(3), thirty(4)
    for one in first:
        check(one)
    assert any(one.steps and one.steps[0].response for one in first)
    # Responses may hold the time of day.
    assert [(one.task, one.functions) for one in first] == [
        (one.task, one.functions) for one in again
    ]
    assert [one.task for one in first] != [one.task for one in other]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    if not TOOLENV.exists():
        pytest.skip("needs ToolBench's archive of tool files among the shared data")
    return Catalog(TOOLENV)


def test_needs_over_toolbench_repeat_themselves_by_their_seed(catalog: Catalog) -> None:
    assert not any(is_held_out(api) for api in catalog.apis.values())
    with World(catalog.offline) as world:
        first = tasks(checked(Writer(catalog, world, 3), COUNT))
        assert first == tasks(checked(Writer(catalog, world, 3), COUNT))
        other = tasks(checked(Writer(catalog, world, 4), COUNT))
    assert len(first) == len(other) == COUNT
    assert len(set(first) & set(other)) < 3
    assert held_out(3)["seed"] == 3


def test_episodes_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    first = list(corners.episodes(5, 8))
    assert write(iter(first), file) == 8
    assert [dumped(one) for one in read(file)] == [dumped(one) for one in first]


# --- the check


GOOD = Episode(
    source="test",
    now="2026-11-27",
    task="Weather in Split for 3 days, and the moon",
    functions=(
        Offered(
            "weather",
            "Forecast.",
            {
                "type": "object",
                "properties": {
                    "place": {"type": "object", "properties": {"city": {"type": "string"}}},
                    "days": {"type": "integer"},
                    "units": {"type": "string", "enum": ["C", "F"]},
                },
                "required": ["days"],
                "additionalProperties": False,
            },
        ),
        Offered("name_of", "Name.", {"type": "object", "properties": {"id": {}}}),
    ),
    steps=(
        Made(
            "Weather in Split for 3 days",
            "weather",
            {"place": {"city": "Split"}, "days": 3, "units": "C"},
            {"place.city": "Split", "days": "3"},
            {"highs": [11, 12, 14], "ids": ["a1"]},
            sentence="Highs: 11, 12 and 14.",
        ),
        Made("Weather in Split", "name_of", {"id": ["a1"]}, {}, {"name": "Split"}),
    ),
    answer="For the 3 days the highs are 11, 12 and 14.",
    unserved=("the moon",),
)


def step(**changes: Any) -> Episode:
    return replace(GOOD, steps=(replace(GOOD.steps[0], **changes), *GOOD.steps[1:]))


def test_a_consistent_episode_passes() -> None:
    check(GOOD)


@pytest.mark.parametrize(
    ("episode", "words"),
    [
        (replace(GOOD, functions=(*GOOD.functions, GOOD.functions[0])), "one name"),
        (replace(GOOD, functions=GOOD.functions[:1]), "1 functions"),
        (replace(GOOD, functions=(*GOOD.functions, Offered("a b", "", {}))), "'a b'"),
        (replace(GOOD, task=" "), "no task"),
        (replace(GOOD, reason="none"), "steps or a reason"),
        (replace(GOOD, answer=""), "without answer"),
        (replace(GOOD, unserved=("the sun",)), "the sun"),
        (replace(GOOD, answer="It is 15."), "nowhere: 15"),
        (replace(GOOD, answer="It is 1."), ""),
        (step(name="other"), "not offered"),
        (step(words="Rain"), "Rain"),
        (step(error="503"), "sentence for a failed call"),
        (step(said={"place.city": "split"}), "'split'"),
        (step(said={"place.city": "Split", "days": "3", "until": "3"}), "until"),
        (step(said={"place.city": "Split"}), "days = 3"),
        (step(arguments={"days": "3"}, said={"days": "3"}), "not of type"),
        (step(arguments={"place": {"city": "Split"}}, said={"place": "Split"}), "required"),
    ],
)
def test_an_inconsistent_episode_is_refused_with_the_reason(episode: Episode, words: str) -> None:
    if not words:  # the number of items of a list
        check(episode)
        return
    with pytest.raises(EpisodeError, match=words):
        check(episode)


# --- forms


RESPONSE = {
    "names": ["a", "b", "c"],
    "one": ["a"],
    "none": [],
    "open": True,
    "shut": False,
    "items": [{"name": "x"}, {"name": "y"}],
    "note": "",
}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("{r.names|join}.", "a, b and c."),
        ("{r.one|join}", "a"),
        ("{r.names|count} of them", "3 of them"),
        ("{r.open|yesno:open:shut}", "open"),
        ("{r.shut|yesno:open:shut until {a.hour}}", "shut until 9"),
        ("{r.shut|yesno:open}", ""),
        ("Done{r.note|if: ({r.note})}{r.names|if: for {r.names.0}}.", "Done for a."),
        ("{r.missing|if:never}nothing", "nothing"),
        ("{r.items.1.name}, {r.items.-1.name}", "y, y"),
        ("{r.names}", "a, b, c"),
        ("{a.hour}  o'clock\n", "9 o'clock"),
    ],
)
def test_a_form_is_filled(form: str, text: str) -> None:
    assert fill(form, RESPONSE, {"hour": 9}) == text


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("{r.missing}", LookupError),
        ("{r.items.2.name}", LookupError),
        ("{r.none|join}", LookupError),
        ("{r.names|upper}", ValueError),
        ("{r.names", ValueError),
        ("r.names}", ValueError),
    ],
)
def test_a_form_that_cannot_be_filled_is_an_error(form: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        fill(form, RESPONSE, {})


# --- expressions


NAMES: dict[str, Any] = {
    "a": record({"city": "Split", "sizes": [3, 1, 2], "inner": {"x": 5}}),
    "sum": sum,
    "sorted": sorted,
    "dict": dict,
    "math.pi": 3,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.city + '!'", "Split!"),
        ("a.inner.x * 2 - 1", 9),
        ("a.absent or 'none'", "none"),
        ("a.city[::-1].lower()", "tilps"),
        ("sum(x for x in a.sizes if x > 1) // 2", 2),
        ("[i + j for i in a.sizes for j in (10, 20)]", [13, 23, 11, 21, 12, 22]),
        ("{k: v for k, v in [('p', 1)]}", {"p": 1}),
        ("(lambda x: 'big' if x >= 3 else 'small')(a.sizes[0])", "big"),
        ("1 < a.sizes[2] < 3 and not a.absent", True),
        ("dict(n=-math.pi ** 2, t=','.join(['x', *['y']]))", {"n": -9, "t": "x,y"}),
    ],
)
def test_an_expression_has_the_value_that_python_gives(text: str, value: Any) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.city.__class__",
        "a.city.format(a)",
        "sum.__globals__",
        "(x := 1)",
        "f'{a.city}'",
        "dict(**a)",
        "math.sqrt(4)",
        "~1",
        "1 +",
    ],
)
def test_what_an_expression_may_not_do_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        evaluate(text, NAMES)
    assert evaluate("a.__class__", NAMES) is None  # a field of the record, and absent


def test_every_expression_of_the_files_is_allowed() -> None:
    inside: Callable[[str], list[str]] = re.compile(r"\{([^{}]+)\}").findall
    found: list[str] = []
    for service in all_services():
        for chain in service.chains:
            found += [one for _, bound in chain.ops for one in bound.values()]
            found += [one for text in chain.sentences for one in inside(text)]
        for op in service.ops:
            found += op.responses
            texts = [text for group in op.groups.values() for text in group.sentences]
            texts += [text for pair in (*op.failures, *op.corrections) for text in pair]
            found += [one for text in texts for one in inside(text)]
    assert len(found) > 1_000
    assert [one for one in found if not is_allowed(one.strip())] == []


def test_lists_and_ordinals_in_words() -> None:
    assert enumerated(["a", "b", "c"], "or") == "a, b or c"
    assert [ordinal(one) for one in (1, 2, 3, 4, 11, 12, 13, 21, 112)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"]
    )
    with pytest.raises(LookupError):
        enumerated([])
