"""Covering a list: a need without an API near the top gets the place of one that is not missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolsrv_registry.search.arrangement import (
    COVERED_HEAD,
    Floats,
    cover_subtasks,
    listed_subtasks,
)
from toolsrv_registry.search.signals import Candidate

NEEDS = ("news", "stock price", "joke")
# Six candidates: four of the news, one of the price, one more of the news.
SHARES = {name: np.asarray([1, 0, 0], np.float32) for name in "abde"} | {
    "c": np.asarray([0, 1, 0], np.float32)
}


def candidate(api_id: str, score: float = 0.5, part: str = "all", near: float = 0.6) -> Candidate:
    return Candidate(api_id, score, 1, 1, near, part)


def after(
    hit: Candidate | None,
    shares: dict[str, Floats] = SHARES,
    asked: Callable[[str], object] = lambda _: None,
) -> str:
    ranked = [candidate(name, 0.9 - at / 10) for at, name in enumerate("abcdef")]

    def search(need: str) -> Sequence[Candidate]:
        asked(need)
        return [hit] if hit else []

    return "".join(one.api_id for one in cover_subtasks(ranked, NEEDS, shares, search))


def test_a_need_that_nothing_serves_takes_the_last_place_of_one_that_has_two() -> None:
    assert after(candidate("j", part="joke")) == "abcdjef"


def test_only_needs_that_nothing_serves_are_searched_for() -> None:
    asked: list[str] = []
    after(None, asked=asked.append)
    assert asked == ["joke"]


def test_a_poor_hit_takes_no_place() -> None:
    assert after(candidate("j", 0.1)) == after(candidate("j", near=0.1)) == "abcdef"


def test_a_good_hit_that_is_there_already_is_not_doubled() -> None:
    assert after(candidate("d")) == "abcdef"


def test_where_every_place_serves_another_need_nothing_moves() -> None:
    each = {"a": np.asarray([1, 0, 0], np.float32), "b": np.asarray([0, 1, 0], np.float32)}
    ranked = [candidate("a"), candidate("b")]
    ranked += [candidate(name, part=name) for name in "cdef"]
    assert cover_subtasks(ranked, NEEDS, each, lambda _: [candidate("j")]) == ranked
    assert (
        cover_subtasks(ranked[:COVERED_HEAD], NEEDS, each, lambda _: [candidate("j")])
        == ranked[:COVERED_HEAD]
    )


def test_a_hit_from_further_down_moves_up_and_is_not_shown_twice() -> None:
    assert after(candidate("f", part="joke")) == "abcdfe"


def test_a_long_text_and_a_single_need_are_left_to_the_ranking() -> None:
    assert listed_subtasks(["a joke and a quote"]) == ["a joke", "a quote"]
    assert listed_subtasks(["a joke"]) == []
    assert listed_subtasks(["a joke and a quote " + "of a long story " * 10]) == []
