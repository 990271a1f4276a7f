"""Arranging a ranking: every need near the top, twins folded, tools together, pages that fit."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.search.arrangement import (
    DuplicateFolder,
    cover_parts,
    fold_duplicates,
)
from toolsrv_registry.search.signals import Candidate

PARTS = ("the whole", "hotels", "weather", "money")


def candidate(api_id: str, score: float, part: str, similarity: float = 0.6) -> Candidate:
    return Candidate(api_id, score, 1, 1, similarity, part)


def ids(candidates: list[Candidate]) -> str:
    return "".join(one.api_id for one in candidates)


def crowd(*last: Candidate) -> list[Candidate]:
    """Five hits for hotels, then the given ones."""
    return [candidate(name, 0.9 - at / 100, "hotels") for at, name in enumerate("abcde")] + [*last]


def test_a_need_without_a_place_takes_one_from_a_need_that_has_many() -> None:
    ranked = crowd(candidate("w", 0.8, "weather"), candidate("m", 0.75, "money"))
    assert ids(cover_parts(ranked, PARTS)) == "abwcmde"


def test_the_best_of_all_keeps_its_place() -> None:
    ranked = crowd(candidate("w", 0.89, "weather"))
    assert ids(cover_parts(ranked, PARTS))[0] == "a"


def test_talk_that_finds_only_poor_apis_takes_no_place() -> None:
    for poor in (candidate("w", 0.5, "weather"), candidate("w", 0.8, "weather", similarity=0.2)):
        assert ids(cover_parts(crowd(poor), PARTS)) == "abcdew"


def test_where_nothing_was_measured_the_score_alone_decides() -> None:
    unmeasured = Candidate("w", 0.8, 1, None, 0.0, "weather")
    assert "w" in ids(cover_parts(crowd(unmeasured), PARTS))[:3]


def test_a_text_with_one_need_stays_as_it_is() -> None:
    ranked = crowd(candidate("w", 0.8, "weather"))
    assert cover_parts(ranked, PARTS[:1]) == ranked


def test_needs_that_have_two_places_each_keep_them() -> None:
    parts = ["hotels", "hotels", "weather", "weather", "money", "the whole"]
    ranked = [candidate(str(at), 0.9 - at / 100, part) for at, part in enumerate(parts)]
    assert cover_parts(ranked, PARTS) == ranked


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from(PARTS), st.floats(-1, 1)), max_size=30))
def test_covering_moves_and_loses_nothing(rows: list[tuple[float, str, float]]) -> None:
    ranked = [
        candidate(str(at), score, part, similarity)
        for at, (score, part, similarity) in enumerate(sorted(rows, reverse=True))
    ]
    covered = cover_parts(ranked, PARTS)
    assert sorted(covered, key=lambda c: int(c.api_id)) == ranked
    assert covered[:1] == ranked[:1]
    # What is not moved keeps its order.
    assert covered[8:] == [c for c in ranked if c in covered[8:]]


def api(
    tool: str,
    name: str = "Latest Rates",
    about: str = "",
    *parameters: str,
    category: str = "Money",
) -> Api:
    text = about or "The latest exchange rates of all currencies against a base"
    return Api(
        id=f"{category}/{tool.lower().replace(' ', '_')}/{name.lower().replace(' ', '_')}",
        category=category,
        tool=tool,
        name=name,
        description=text,
        required=tuple(Parameter(name=one) for one in parameters),
    )


def folded(text: str, *apis: Api, part: Callable[[int], str] = lambda _: "rates") -> list[str]:
    ranked = [candidate(one.id, 0.9 - at / 100, part(at)) for at, one in enumerate(apis)]
    kept = fold_duplicates(ranked, {one.id: one for one in apis}, text)
    return [f"{one.api.tool}+{len(one.similar)}" for one in kept]


def test_the_same_api_of_other_providers_is_folded_under_the_best() -> None:
    assert folded("exchange", api("Forex"), api("Fx Pro"), api("Rates Plus")) == ["Forex+2"]


def test_nearly_the_same_words_are_twins_too() -> None:
    about = "The latest exchange rates of all currencies against one base, updated hourly every day"
    other = about.replace("hourly", "daily") + " and night"
    assert folded("rates", api("Forex", about=about), api("Fx Pro", about=about)) == ["Forex+1"]
    assert folded("rates", api("Forex", about=about), api("Fx", about=other)) == [
        "Forex+0",
        "Fx+0",
    ]


def test_other_parameters_or_another_need_make_no_twin() -> None:
    one, two = api("Forex", "Latest Rates", "", "base"), api("Fx Pro", "Latest Rates", "", "date")
    assert len(folded("rates", one, two)) == 2
    assert len(folded("rates", api("Forex"), api("Fx Pro"), part=str)) == 2


def test_siblings_of_one_tool_are_never_twins_unless_copies() -> None:
    players = "Search players, teams and tournaments of all leagues."
    siblings = [api("Sports", name, players) for name in ("Tennis Search", "Cricket Search")]
    assert len(folded("search", *siblings)) == 2
    copy = siblings[0].model_copy(update={"id": "Money/sports/tennis_search_2"})
    assert folded("search", siblings[0], copy) == ["Sports+1"]


def test_a_tool_that_the_text_names_stays() -> None:
    about = "The flag of a category as an image in PNG format"
    apis = [api(f"{sport} Data", "Flag", about) for sport in ("Football", "Cricket", "Tennis")]
    assert folded("a flag", *apis) == ["Football Data+2"]
    assert folded("flags for cricket", *apis) == ["Football Data+1", "Cricket Data+0"]


def test_a_tool_named_by_what_its_api_says_anyway_is_a_twin() -> None:
    apis = [api(tool, "Random Joke", "Returns a random joke") for tool in ("Joke1", "Joke Test")]
    for text in ("random joke", "a joke", "make me laugh"):
        assert folded(text, *apis) == ["Joke1+1"]
    assert folded("joke test", *apis) == ["Joke1+0", "Joke Test+0"]


def test_texts_that_say_too_little_are_no_twins() -> None:
    apis = [api(tool, "Test", "test") for tool in ("One", "Two")]
    assert len(folded("test", *apis)) == 2


@given(st.lists(st.sampled_from(["Forex", "Fx", "Weather"]), max_size=12), st.integers(0, 12))
def test_a_longer_list_begins_as_a_shorter_one(tools: list[str], cut: int) -> None:
    apis = [
        api(tool, about="" if tool != "Weather" else f"Rain and wind number {at} of many places")
        for at, tool in enumerate(tools)
    ]
    apis = [one.model_copy(update={"id": f"{one.id}{at}"}) for at, one in enumerate(apis)]
    whole, head = DuplicateFolder("x"), DuplicateFolder("x")
    for at, one in enumerate(apis):
        whole.add(candidate(one.id, 0.5, "x"), one)
        if at < cut:
            head.add(candidate(one.id, 0.5, "x"), one)
    shorter = [one.api.id for one in head.kept()]
    assert [one.api.id for one in whole.kept()][: len(shorter)] == shorter
    everything = [i for one in whole.kept() for i in (one.api.id, *one.similar)]
    assert sorted(everything) == sorted(one.id for one in apis)


def test_a_candidate_whose_api_is_gone_is_left_out() -> None:
    one = api("Forex")
    assert (
        len(
            fold_duplicates(
                [candidate("gone", 0.9, "x"), candidate(one.id, 0.8, "x")], {one.id: one}
            )
        )
        == 1
    )
