"""Calls that a live host or a person refuses: how often they are made, and what a solve says of them.

The hosts are real servers on loopback that count what reaches them; solves are those of the model
that ships and of a scripted chat model.
"""

from __future__ import annotations

import asyncio
import json
import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.registry import Registry
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.result import Consent
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver

FaultyHost = runpy.run_path(str(Path(__file__).parents[1] / "faulty_host.py"))["FaultyHost"]
CHAT = Profile(name="toolllama-2", format="toolllama", context=8192)
OLDER_BOOK = (
    "My friend got me an older book called The Left Hand of Darkness. Who is its author, and what "
    "else has Ursula Le Guin written?"
)
WHATS = "Whats the author and the year of publication of Dune, Emma and Ulysses?"
BESIDES = "Who wrote the book 'Moby Dick' and which books has Herman Melville written besides?"


def said(function: str, **arguments: Any) -> str:
    return f"Thought: go\nAction: {function}\nAction Input: {json.dumps(arguments)}"


def find(title: str) -> str:
    return said("find_book_for_library", title=title)


ANSWER = said("Finish", return_type="give_answer", final_answer="I do not know.")
GIVE_UP = said("Finish", return_type="give_up_and_restart")


def catalog(tool: str, method: str, apis: dict[str, tuple[str, str, str]], url: str) -> Catalog:
    """Return a catalog of one tool: name -> what it does, its parameter, what that is."""
    made = tuple(
        Api(
            id=f"Things/{tool}/{name}",
            category="Things",
            tool=tool,
            name=name,
            description=what,
            method=method,
            url=f"{url}/{name}",
            required=(Parameter(name=key, description=meaning),),
        )
        for name, (what, key, meaning) in apis.items()
    )
    return Catalog(name="theirs", tools=(Tool(category="Things", name=tool, apis=made),))


def books(url: str) -> Catalog:
    apis = {
        "find_book": (
            "Find a book by its title: author, year of publication and publisher",
            "title",
            "Title of the book",
        ),
        "author": ("Which books an author has written", "author", "Name of the author"),
        "product": ("Look up a product by its name", "name", "Name of the product"),
    }
    return catalog("library", "GET", apis, url)


def notes(url: str) -> Catalog:
    apis = {
        "write": ("Write a word into the notebook of notes", "text", "The word"),
        "append": ("Append a word to the notebook of notes", "text", "The word to append"),
        "jot": ("Jot down a word in the notebook", "word", "The word"),
    }
    return catalog("notes", "POST", apis, url)


class World:
    """Solves with a catalog beside the one that ships, and what they came to at its host."""

    def __init__(self, host: Any, folder: Path) -> None:
        self.host = host
        self.asked: list[Consent] = []
        self._folder = folder

    @property
    def requests(self) -> Counter[str]:
        """How many requests each path had, queries aside."""
        return Counter(path.partition("?")[0] for _, _, path in self.host.calls)

    def solve(
        self, task: str, theirs: Catalog, engine: Engine, profile: Profile, **options: Any
    ) -> Outcome:
        async def no(wanted: Consent) -> bool:
            self.asked.append(wanted)
            return False

        async def main() -> Outcome:
            with Registry.open(self._folder, [theirs, load_offline_catalog()]) as registry:
                registry.ensure_index()
                network = Network(httpx.AsyncHTTPTransport())
                async with Caller(transports=offline_transports(), network=network) as caller:
                    solver = Solver(
                        retriever=registry.retriever, engine=engine, profile=profile, caller=caller
                    )
                    limits = Limits(seconds=60)
                    return await solver.solve(
                        task, SolveOptions(limits=limits, **options), ask=no
                    )  # fmt: skip

        return asyncio.run(main())

    def chat(self, path: str, *script: str, **options: Any) -> Outcome:
        """Solve a script with the library, whose calls are answered as ``path`` says."""
        theirs = books(f"{self.host.url}/{path}")
        engine = ScriptedEngine(script)
        return self.solve("find a book", theirs, engine, CHAT, category="Things", **options)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with FaultyHost() as host:
        yield World(host, tmp_path)


def kinds(outcome: Outcome) -> list[str]:
    return [one.kind for one in outcome.evidence]


@pytest.mark.parametrize("status", [404, pytest.param(422, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("task", "options"),
    [
        (OLDER_BOOK, {"strategy": "dfsdt"}),
        pytest.param(OLDER_BOOK, {"strategy": "dfs"}, marks=pytest.mark.nightly),
        pytest.param(OLDER_BOOK, {"strategy": "cot"}, marks=pytest.mark.nightly),
        (WHATS, {"strategy": "dfsdt"}),
        (BESIDES, {"strategy": "dfsdt", "width": 4}),
    ],
    ids=["dfsdt", "dfs", "cot", "several values", "wide"],
)
def test_the_model_that_ships_leaves_a_live_api_after_two_failed_calls(
    world: World, loaded: tuple[Engine, Profile], status: int, task: str, options: dict[str, Any]
) -> None:
    outcome = world.solve(task, books(f"{world.host.url}/{status}"), *loaded, **options)
    assert world.requests
    assert max(world.requests.values()) == 2
    assert outcome.status == "gave_up"
    assert "blocked_by_policy" not in kinds(outcome)  # it does not even try a third time


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("404", "not_found"),
        ("html", "not_json"),
        *(
            pytest.param(*one, marks=pytest.mark.nightly)
            for one in (("422", "bad_arguments"), ("401", "unauthorized"), ("500", "server_error"))
        ),
    ],
)
def test_a_third_call_after_two_failures_ends_at_once_and_says_so(
    world: World, path: str, kind: str
) -> None:
    script = (find("Emma"), find("Dune"), find("Ulysses"), ANSWER)
    outcome = world.chat(path, *script, strategy="react")
    assert world.requests == {f"/{path}/find_book": 2}
    assert kinds(outcome) == [kind, kind, "blocked_by_policy"]
    left = outcome.evidence[-1]
    assert (left.status, left.response, left.source) == (0, None, "live")
    assert left.arguments == {"title": "Ulysses"}
    assert "Things/library/find_book: 2 calls of it failed" in left.error
    assert outcome.usage.calls == 2
    assert "not called again in this solve" in outcome.tree[3].observation  # the model reads it


def test_failures_are_counted_over_branches_and_for_each_api(world: World) -> None:
    author = said("author_for_library", author="Melville")
    script = (find("Emma"), GIVE_UP, find("Dune"), find("Ulysses"), author, ANSWER)
    outcome = world.chat("404", *script, strategy="dfsdt")
    assert world.requests == {"/404/find_book": 2, "/404/author": 1}
    assert kinds(outcome) == ["not_found", "not_found", "blocked_by_policy", "not_found"]
    world.chat("404", find("Emma"), ANSWER, strategy="react")  # another solve begins anew
    assert world.requests["/404/find_book"] == 3


def test_calls_that_succeed_are_not_limited(world: World) -> None:
    titles = ["a", "b", "c", "d"]
    outcome = world.chat("fine", *map(find, titles), ANSWER, strategy="react")
    assert world.requests == {"/fine/find_book": 4}
    assert kinds(outcome) == ["ok"] * 4


@pytest.mark.parametrize("close_repeats", [True, False])
def test_the_same_failed_call_counts_as_often_as_it_is_sent(
    world: World, close_repeats: bool
) -> None:
    script = (find("Emma"), find("Emma"), find("Emma"), ANSWER)
    outcome = world.chat("404", *script, strategy="react", close_repeats=close_repeats)
    assert world.requests == {"/404/find_book": 1 if close_repeats else 2}
    assert outcome.usage.calls == (1 if close_repeats else 2)


def test_the_offline_catalog_may_be_tried_with_other_words(world: World) -> None:
    zone = "current_time_for_world_clock"
    wrong = [said(zone, city=one) for one in ("Nowhere", "Neverwhere", "Elsewhere")]
    theirs = books(world.host.url)
    outcome = world.solve(
        "what time is it in Nowhere", theirs, ScriptedEngine([*wrong, ANSWER]), CHAT,
        strategy="react",
    )  # fmt: skip
    assert kinds(outcome) == [outcome.evidence[0].kind] * 3
    assert {one.source for one in outcome.evidence} == {"offline"}
    assert 400 <= outcome.evidence[-1].status < 500
    assert not world.host.calls


NOTE = 'Write "alpha" into the notebook of notes'


@pytest.mark.parametrize(
    "strategy", ["dfsdt", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("dfs", "cot"))]
)
def test_the_model_that_ships_does_not_work_around_a_declined_call(
    world: World, loaded: tuple[Engine, Profile], strategy: str
) -> None:
    outcome = world.solve(NOTE, notes(world.host.url), *loaded, strategy=strategy)
    assert [one.path for one in world.asked] == ["/write"]  # and none of append and jot
    assert not world.host.calls
    assert kinds(outcome) == ["declined"]
    assert (outcome.status, outcome.missing) == ("partial", (NOTE,))
    assert outcome.reason.startswith(f"the person declined {world.asked[0].request}; ")
    assert len(outcome.searches) == 1  # nor are others looked for


@pytest.mark.parametrize(
    "task", [f"{NOTE}, and what is the capital of Peru?", f"What is the capital of Peru? {NOTE}."]
)
def test_what_else_a_task_asks_for_is_done_after_a_declined_call(
    world: World, loaded: tuple[Engine, Profile], task: str
) -> None:
    outcome = world.solve(task, notes(world.host.url), *loaded)
    assert [one.path for one in world.asked] == ["/write"]
    assert outcome.status == "partial"
    assert "Lima" in outcome.answer
    assert outcome.missing == (NOTE,)
    assert sorted(kinds(outcome)) == ["declined", "ok"]


def test_other_values_of_a_declined_wish_are_neither_called_nor_looked_for(
    world: World, loaded: tuple[Engine, Profile]
) -> None:
    task = 'Write "alpha" and "beta" into the notebook of notes.'
    outcome = world.solve(task, notes(world.host.url), *loaded)
    assert [one.arguments for one in world.asked] == [{"text": "alpha"}]
    assert len(outcome.searches) == 1
    assert outcome.status == "partial"
