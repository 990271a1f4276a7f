"""Searching for other candidates in the middle of a solve, once what was offered has failed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import numpy as np
import pytest
from tests.agents import Hit, Hits, Unmatched
from tests.toolllama_replies import GIVE_UP, TOOLLLAMA, answer

from toolsrv_catalogs.offline import OFFLINE_HOST
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.matcher import Match, MatchRequest, Slot
from toolsrv_registry.pairing import PairedTokens
from toolsrv_runtime.agent.candidates import MOST_RERANKED, MOST_SEARCHES, Candidates, rerank
from toolsrv_runtime.calls.caller import Caller
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver

EMPTY = PairedTokens((101,), (0,), (0,), (None,), ((),))
TASK = "Measure the width of the door, and then convert 30 centimetres to inches"


def api(name: str) -> Api:
    return Api(
        id=f"C/t/{name}",
        category="C",
        tool="t",
        name=name,
        url=f"https://{OFFLINE_HOST}/{name}",
        required=(Parameter(name="x"),),
    )


@dataclass
class Shelf(Unmatched):
    """A retriever that has these APIs, best first, for whatever is asked."""

    names: str
    clauses: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Hits:
        del category
        self.asked.append((text, limit))
        return Hits([Hit(api(n), self.clauses.get(n, text)) for n in self.names[:limit]])


def call(name: str) -> str:
    return f'Thought: try\nAction: {name}_for_t\nAction Input: {{"x": "1"}}'


async def world(scope: Any, receive: Any, send: Any) -> None:
    """Serve the APIs of even letters (b, d, …); the others fail."""
    del receive
    status = 200 if (ord(scope["path"][-1]) - ord("a")) % 2 else 500
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"value": 12}'})


def solve(
    finder: Shelf, script: list[str], *, profile: Profile = TOOLLLAMA, **options: Any
) -> tuple[Outcome, list[Event], ScriptedEngine]:
    engine, events = ScriptedEngine(script), list[Event]()

    async def main() -> Outcome:
        transport = httpx.ASGITransport(app=world, raise_app_exceptions=False)
        async with Caller(transports={OFFLINE_HOST: transport}) as caller:
            solver = Solver(retriever=finder, engine=engine, profile=profile, caller=caller)
            return await solver.solve(
                TASK, SolveOptions.model_validate(options), on_event=events.append
            )

    return asyncio.run(main()), events, engine


def test_when_all_candidates_failed_others_are_offered_at_once() -> None:
    outcome, events, engine = solve(
        Shelf("acbd"), [call("a"), call("c"), call("b"), answer("12")], candidates=2
    )
    assert outcome.status == "answered"
    assert [search.api_ids for search in outcome.searches] == [
        ("C/t/a", "C/t/c"),
        ("C/t/b", "C/t/d"),
    ]
    assert outcome.searches[1].reason
    assert outcome.candidates == ("C/t/a", "C/t/c", "C/t/b", "C/t/d")
    assert [e.api_ids for e in events if e.kind == "candidates"] == [
        search.api_ids for search in outcome.searches
    ]
    assert "b_for_t" not in engine.prompts[1]
    assert "b_for_t" in engine.prompts[2]
    assert '"a_for_t"' not in engine.prompts[2].split("width of the door")[0]


def test_after_a_path_gave_up_the_next_one_has_other_candidates() -> None:
    outcome, _, engine = solve(Shelf("acb"), [GIVE_UP, call("b"), answer("12")], candidates=2)
    assert outcome.status == "answered"
    assert [one.api_id for one in outcome.evidence] == ["C/t/b"]
    assert "b_for_t" in engine.prompts[1]
    # What was not called stays where there is room.
    assert "a_for_t" in engine.prompts[1]


def test_a_model_that_calls_whatever_it_gets_is_left_to_give_up() -> None:
    profile = TOOLLLAMA.model_copy(update={"anew_after_give_up": False})
    outcome, _, _ = solve(Shelf("acb"), [GIVE_UP, GIVE_UP], profile=profile, candidates=2)
    assert (outcome.status, len(outcome.searches)) == ("gave_up", 1)
    script = [call("a"), call("c"), call("b"), answer("12")]
    outcome, _, _ = solve(Shelf("acb"), script, profile=profile, candidates=2)
    assert (outcome.status, len(outcome.searches)) == ("answered", 2)


def test_what_worked_stays_and_only_what_is_left_is_searched_for() -> None:
    first, second = "Measure the width of the door", "convert 30 centimetres to inches"
    shelf = Shelf("bacd", clauses={"b": first, "a": second})
    outcome, _, engine = solve(
        shelf, [call("b"), call("a"), GIVE_UP, call("d"), answer("12")], candidates=2
    )
    assert outcome.status == "answered"
    assert outcome.searches[1].query == second
    assert "b_for_t" in engine.prompts[3].split("User:")[0]


def test_nothing_new_leaves_the_offer_as_it_is() -> None:
    outcome, events, _ = solve(Shelf("ac"), [GIVE_UP, GIVE_UP], candidates=2)
    assert outcome.status == "gave_up"
    assert [search.api_ids for search in outcome.searches] == [("C/t/a", "C/t/c"), ()]
    assert len([e for e in events if e.kind == "candidates"]) == 1


def test_searches_are_few_however_long_the_solve() -> None:
    script = [call("a"), call("c"), call("e"), *[GIVE_UP] * 20]
    outcome, _, _ = solve(Shelf("acegikmoqsuwy"), script, candidates=1)
    assert outcome.status == "gave_up"
    assert len(outcome.searches) == MOST_SEARCHES
    assert len(outcome.candidates) == MOST_SEARCHES


def test_a_solve_that_works_searches_once() -> None:
    shelf = Shelf("bd")
    outcome, _, _ = solve(shelf, [call("b"), answer("12")], candidates=2)
    assert len(outcome.searches) == len(shelf.asked) == 1


def test_a_task_that_nothing_fits_is_not_searched_for_again() -> None:
    class Unfit(Shelf):
        def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Hits:
            found = super().search(text, limit, category=category)
            return Hits(found.hits, nothing_fits=True, dead_left_out=3)

    shelf = Unfit("acb")
    outcome, _, _ = solve(shelf, [GIVE_UP, GIVE_UP], candidates=2)
    assert len(shelf.asked) == 1
    assert "no API in the catalog fits" in outcome.reason
    assert "3 left out" in outcome.reason


def test_what_fits_best_and_needs_consent_is_noted() -> None:
    class Asking(Shelf):
        def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Hits:
            found = super().search(text, limit, category=category)
            return Hits(found.hits, need_consent=("C/t/z", "C/t/y"))

    outcome, events, _ = solve(Asking("bd"), [call("b"), answer("12")], candidates=2)
    assert outcome.status == "answered"
    (note,) = outcome.notes
    assert note.startswith("C/t/z fits the task best but was left out")
    assert [one.text for one in events if one.kind == "note"] == [note]


def test_an_outcome_tells_its_searches_as_json() -> None:
    outcome, _, _ = solve(Shelf("acb"), [GIVE_UP, call("b"), answer("12")], candidates=2)
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome
    assert json.loads(outcome.model_dump_json())["searches"][0]["query"].startswith("Measure")


@dataclass
class Knowing(Shelf):
    """One whose matcher knows what the task needs: log-odds by name, -2.0 for every other."""

    serves: dict[str, float] = field(default_factory=dict)
    read: list[MatchRequest] = field(default_factory=list)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        self.read.append(asked)
        nowhere = Slot(0.0, np.zeros(1, np.float32), np.zeros(1, np.float32), EMPTY, 0)
        return [Match(self.serves.get(one.name, -2.0), nowhere, {}) for one in apis]


@pytest.mark.parametrize("limit", [1, 3, 9])
def test_a_name_means_the_same_api_all_through(limit: int) -> None:
    offer = Candidates(Shelf("abcdefghijkl"), TASK, limit, None, most=9)
    offer.begin()
    before = {function.name: function.api.id for function in offer.available}
    failed = {function.api.id for function in offer.available[1:]}
    assert offer.again({"C/t/a"}, failed, "test")
    after = {function.name: function.api.id for function in offer.all}
    assert before.items() <= after.items()
    assert not failed & {function.api.id for function in offer.available}
    assert offer.available[0].api.id == "C/t/a"
    assert len(offer.available) <= 9


@pytest.mark.parametrize(("form", "offered"), [("compact", 9), ("chat", 12)])
def test_only_the_compact_model_is_offered_nine_at_most(
    form: Literal["compact", "chat"], offered: int
) -> None:
    profile = Profile(name=form, format=form, context=8192)
    task, shelf, engine = "Dear me", Shelf("abcdefghijkl"), ScriptedEngine(["no"], loop=True)

    async def main() -> Outcome:
        async with Caller(transports={}) as caller:
            solver = Solver(retriever=shelf, engine=engine, profile=profile, caller=caller)
            return await solver.solve(
                task, SolveOptions(candidates=12, limits=Limits(model_calls=1))
            )

    outcome = asyncio.run(main())
    assert len(outcome.searches[0].api_ids) == offered
    assert any("at most 9 APIs" in note for note in outcome.notes) == (form == "compact")


class Noted:
    """Hints that add a sentence, a question whose best hit goes first, and an open part."""

    def query(self, task: str) -> str:
        return task.upper()

    def expansion(self, task: str) -> tuple[str, ...]:  # noqa: ARG002
        return ("calculator",)

    def extra_queries(self, task: str) -> tuple[str, ...]:  # noqa: ARG002
        return ("which day",)

    def uncovered(self, task: str, functions: object, results: object) -> tuple[str, ...]:  # noqa: ARG002
        return ("a part",)


def test_hints_add_to_the_first_search_and_put_words_into_later_ones() -> None:
    shelf = Shelf("abcdef")
    offer = Candidates(shelf, "a task", 2, None, hints=Noted())
    assert offer.begin().query == "A TASK"
    assert offer.search_for("a part", (), "why")
    assert [text for text, _ in shelf.asked] == ["A TASK. calculator. which day", "A PART"]
    plain = Candidates(shelf, "a task", 2, None, hints=Noted(), wider=False)
    plain.begin()
    assert shelf.asked[2:] == [("A TASK. calculator", 2)]


def test_the_best_hit_of_an_extra_query_is_offered_first() -> None:
    @dataclass
    class Reading(Knowing):
        def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
            assert asked.clause is None
            self.serves = {"e": 3.0} if asked.text == "which day" else {"c": 4.0}
            return super().match(asked, apis)

    searched = Candidates(Reading("abcdef"), "a task", 3, None, hints=Noted()).begin()
    assert searched.api_ids == ("C/t/e", "C/t/c", "C/t/a")


def test_a_part_that_nothing_serves_gets_the_last_places_and_no_number_changes() -> None:
    offer = Candidates(Shelf("abcdefghijkl"), TASK, 9, None, most=9)
    offer.begin()
    assert offer.search_for("convert 30 centimetres", {"C/t/i"}, "why")
    shown = [function.api.id for function in offer.available]
    assert shown == [f"C/t/{name}" for name in "abcdejkli"]
    assert offer.searches[-1].api_ids == ("C/t/j", "C/t/k", "C/t/l")


def test_a_part_is_looked_for_where_there_is_room_before_anything_goes() -> None:
    offer = Candidates(Shelf("abcdef"), TASK, 3, None)
    offer.begin()
    assert offer.search_for("convert 30 centimetres", (), "why")
    assert [function.api.id for function in offer.available] == [f"C/t/{name}" for name in "abcdef"]
    assert not offer.search_for("something else", (), "why")
    assert [function.api.id for function in offer.available] == [f"C/t/{name}" for name in "abcdef"]


def test_of_hits_that_the_search_finds_alike_the_matcher_decides_the_order() -> None:
    shelf = Knowing("abcdefghij", serves={"h": 3.0, "d": 5.0, "c": -1.0, "a": -4.0})
    offer = Candidates(shelf, TASK, 4, None)
    searched = offer.begin()
    assert searched.api_ids == ("C/t/d", "C/t/h", "C/t/c", "C/t/b")
    assert shelf.asked == [(TASK, MOST_RERANKED)]
    assert shelf.read == [MatchRequest(TASK)]
    narrow = Candidates(shelf, TASK, 4, None, wider=False)
    assert narrow.begin().api_ids == ("C/t/a", "C/t/b", "C/t/c", "C/t/d")
    assert shelf.asked[1:] == [(TASK, 4)]
    assert len(shelf.read) == 1


@pytest.mark.parametrize(("scores", "first"), [((0.9, 0.2), "a"), ((0.6, 0.5), "b")])
def test_the_search_and_the_matcher_both_speak_for_a_hit(
    scores: tuple[float, float], first: str
) -> None:
    hits = [Hit(api(name), TASK, score) for name, score in zip("ab", scores, strict=True)]
    shelf = Knowing("ab", serves={"a": -1.0, "b": 2.0})
    ranked = rerank(hits, TASK, shelf.match)
    assert ranked[0].hit.api.id == f"C/t/{first}"
    assert 0 < ranked[1].score < ranked[0].score < 1
    assert [one.hit for one in rerank(hits, TASK, lambda _, __: [])] == hits


@dataclass
class LackingHits(Hits):
    need_keys: dict[str, str] = field(default_factory=dict)


class Lacking(Shelf):
    """One that has left out an API without its key."""

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Hits:
        found = super().search(text, limit, category=category)
        lack = {"C/t/z": "a key that is not set (toolsrv keys set api.test)"}
        return LackingHits(found.hits, need_keys=lack)


NAMED = "C/t/z fits this task but needs a key that is not set (toolsrv keys set api.test)"


def test_a_solve_that_lacks_only_a_key_names_the_api_and_the_command() -> None:
    for shelf, script in ((Lacking("bd"), [GIVE_UP, GIVE_UP, GIVE_UP]), (Lacking(""), [])):
        outcome, _, _ = solve(shelf, script, candidates=2)
        assert (outcome.status, outcome.reason) == ("gave_up", NAMED)
        assert list(outcome.need_keys) == ["C/t/z"]


def test_beside_calls_that_succeeded_the_lack_comes_first() -> None:
    outcome, _, _ = solve(Lacking("bd"), [call("b"), GIVE_UP, GIVE_UP, GIVE_UP], candidates=2)
    assert outcome.status != "answered"
    assert outcome.reason.startswith(f"{NAMED}; ")


def test_an_answer_without_what_lacks_a_key_is_noted() -> None:
    outcome, _, _ = solve(Lacking("bd"), [call("b"), answer("12")], candidates=2)
    assert outcome.status == "answered"
    assert any(one.startswith("C/t/z fits the task too") for one in outcome.notes)
