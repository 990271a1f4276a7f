"""Several calls of one reply at work: at the same time, in order, within budget, policy and Stop."""

from __future__ import annotations

import asyncio
import json
import runpy
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_registry.registry import Registry
from toolsrv_runtime.agent.candidates import ApiRetriever, RetrievedApis
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.result import Consent
from toolsrv_runtime.contract.models import AssistantMessage, ChatRequest, ToolCall, ToolMessage
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop

FaultyHost = runpy.run_path(str(Path(__file__).parents[1] / "faulty_host.py"))["FaultyHost"]
SEVERAL = Profile(name="chat", format="chat", context=8192, calls_per_turn=8)
SINGLE = SEVERAL.model_copy(update={"calls_per_turn": 1})
TASK = "look the things up"
LIMITS = Limits(seconds=600)
WRITES = "https://things.example"


def things(url: str, **paths: str) -> Catalog:
    """Return a catalog of one tool: the name of each API -> its path; "write" is a POST."""
    apis = tuple(
        Api(
            id=f"Things/things/{name}",
            category="Things",
            tool="things",
            name=name,
            description=f"{name}: look the things up",
            method="POST" if name == "write" else "GET",
            url=f"{url}/{path}",
            required=(Parameter(name="q"),),
        )
        for name, path in paths.items()
    )
    return Catalog(name="theirs", tools=(Tool(category="Things", name="things", apis=apis),))


def call(name: str, q: str = "a", **more: Any) -> ToolCall:
    return ToolCall(f"{name}_for_things", {"q": q, **more})


@dataclass(frozen=True)
class Blind:
    """A retriever without a matcher."""

    finder: ApiRetriever

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        return self.finder.search(text, limit, category=category)

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        return self.finder.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        return self.finder.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        del asked, apis
        return []


def wanting(*wanted: ToolCall) -> Callable[[ChatRequest], ScriptedReply]:
    """Return a model that makes those of the wanted calls that the conversation does not hold.

    As many as it may; then it is done, or gives up where it may not say so.
    """

    def say(request: ChatRequest) -> ScriptedReply:
        expected = request.expected
        if expected.schema is not None:
            return '"A"'
        if not request.tools:
            return "They say fine."
        made = [(one.name, one.arguments) for one in calls_of(request)]
        left = [one for one in wanted if (one.name, one.arguments) not in made]
        if left:
            return left[: expected.calls]
        return "done" if expected.text else ToolCall(NO_FUNCTION_FITS, {"reason": "all failed"})

    return say


def calls_of(request: ChatRequest) -> list[ToolCall]:
    turns = (one for one in request.messages if isinstance(one, AssistantMessage))
    return [one for turn in turns for one in turn.calls]


def prompted(chat: ScriptedChat) -> list[ChatRequest]:
    """Return the requests that the model replied to with calls: all but the last with tools."""
    return [one for one in chat.requests if one.tools][:-1]


class Lab:
    """Solves with a catalog of "things", and what they came to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.events: list[Event] = []
        self.left: set[str] = set()

    def solve(
        self, chat: ScriptedChat, theirs: Catalog, *, profile: Profile = SEVERAL,
        transport: httpx.AsyncBaseTransport | None = None, stop: Stop | None = None,
        ask: Any = None, limits: Limits = LIMITS, **options: Any,
    ) -> Outcome:  # fmt: skip
        async def main() -> Outcome:
            with Registry.open(self._folder, [theirs], encoder=HashingEncoder()) as registry:
                if transport is None:
                    network = Network(httpx.AsyncHTTPTransport())
                else:
                    network = Network(transport, hosts=None)
                async with Caller(transports={}, network=network) as caller:
                    solver = Solver(
                        retriever=Blind(registry.retriever), engine=chat, profile=profile,
                        caller=caller,
                    )  # fmt: skip
                    try:
                        return await solver.solve(
                            TASK, SolveOptions(limits=limits, candidates=8, **options),
                            on_event=self.events.append, stop=stop, ask=ask,
                        )  # fmt: skip
                    finally:
                        others = asyncio.all_tasks() - {asyncio.current_task()}
                        self.left = {one.get_name() for one in others}

        return asyncio.run(main())


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def host() -> Iterator[Any]:
    with FaultyHost() as server:
        yield server


def when_there(
    host: Any, many: int, then: Callable[[], None]
) -> tuple[threading.Thread, list[bool]]:
    """Do ``then`` once so many requests are at the host, and say so; else after a long while."""
    met: list[bool] = []

    def wait() -> None:
        host.wait_for(1, 300)  # loading takes its time
        met.append(host.wait_for(many, 15))
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, met


def test_the_calls_of_a_reply_are_under_way_together_and_told_in_order(lab: Lab, host: Any) -> None:
    thread, met = when_there(host, 2, host.gate.set)  # none is answered before both are there
    chat = ScriptedChat(wanting(call("one"), call("two")))
    outcome = lab.solve(chat, things(host.url, one="gate/1", two="gate/2"))
    thread.join()
    assert met == [True]
    assert outcome.status == "answered"
    assert [(one.function, one.parent) for one in outcome.tree[1:3]] == [
        ("one_for_things", 0),
        ("two_for_things", outcome.tree[1].id),
    ]
    kinds = [one.kind for one in lab.events if one.kind in {"call", "observation"}]
    assert kinds == ["call", "observation"] * 2
    nodes = [getattr(one, "node", 0) for one in lab.events if one.kind in {"call", "observation"}]
    assert nodes == sorted(nodes)
    assert len(prompted(chat)) == 1
    assert outcome.usage.calls == len(host.calls) == 2


def test_one_call_a_turn_is_what_a_profile_says_by_default(lab: Lab, host: Any) -> None:
    chat = ScriptedChat(wanting(call("one"), call("two")))
    outcome = lab.solve(chat, things(host.url, one="fine/1", two="fine/2"), profile=SINGLE)
    assert outcome.status == "answered"
    assert {one.expected.calls for one in chat.requests if one.tools} == {1}
    assert "Call one function at a time" in chat.requests[0].messages[0].text


def test_a_stop_ends_all_calls_of_a_reply(lab: Lab, host: Any) -> None:
    stop = Stop()
    thread, met = when_there(host, 2, stop.set)
    chat = ScriptedChat(wanting(call("one"), call("two")))
    outcome = lab.solve(chat, things(host.url, one="gate/1", two="gate/2"), stop=stop)
    thread.join()
    host.gate.set()
    assert met == [True]
    assert (outcome.status, outcome.evidence) == ("cancelled", ())
    assert lab.left == set()


def test_calls_that_the_budget_does_not_allow_are_not_started(lab: Lab, host: Any) -> None:
    chat = ScriptedChat(wanting(*(call("one", q) for q in "abc")))
    limits = LIMITS.model_copy(update={"calls": 2})
    outcome = lab.solve(chat, things(host.url, one="fine"), limits=limits)
    assert (len(host.calls), outcome.usage.calls, len(outcome.evidence)) == (2, 2, 2)
    assert "the 2 calls are used up" in outcome.reason


def test_a_failed_call_is_seen_with_its_error_beside_the_others(lab: Lab, host: Any) -> None:
    chat = ScriptedChat(wanting(call("one"), call("two"), call("three")))
    outcome = lab.solve(chat, things(host.url, one="fine/1", two="404/2", three="fine/3"))
    assert [one.status for one in outcome.evidence] == [200, 404, 200]
    (request,) = [one for one in chat.requests if one.tools and calls_of(one)]
    turn, *results = request.messages[2:6]
    assert isinstance(turn, AssistantMessage)
    assert [one.name.partition("_")[0] for one in turn.calls] == ["one", "two", "three"]
    assert [one.call for one in results if isinstance(one, ToolMessage)] == list(turn.calls)
    assert ["error" in one.text for one in results] == [False, True, False]


def test_an_api_is_left_alone_after_two_failures_of_one_reply(lab: Lab, host: Any) -> None:
    chat = ScriptedChat(wanting(*(call("one", q) for q in "abc"), call("two")))
    outcome = lab.solve(chat, things(host.url, one="500/1", two="fine/2"))
    asked = [path for _, _, path in host.calls if path.startswith("/500")]
    assert len(asked) == 2
    kinds = [one.kind for one in outcome.evidence]
    assert kinds == ["server_error", "server_error", "blocked_by_policy", "ok"]


async def yes(_wanted: Consent) -> bool:
    return True


@pytest.mark.parametrize("allowed", [True, False])
def test_what_needs_consent_waits_for_its_turn_and_what_follows_for_the_answer(
    lab: Lab, allowed: bool
) -> None:
    sent: list[str] = []
    before: list[list[str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        return httpx.Response(200, stream=httpx.ByteStream(b'{"a": "fine"}'))

    async def ask(wanted: Consent) -> bool:
        assert wanted.method == "POST"
        before.append(sorted(sent))
        return allowed

    wanted = (call("one"), call("two"), call("write"), call("three"))
    theirs = things(WRITES, one="one", two="two", write="write", three="three")
    chat = ScriptedChat(wanting(*wanted))
    outcome = lab.solve(chat, theirs, transport=httpx.MockTransport(answer), ask=ask)
    assert before == [["/one", "/two"]]
    assert sent[2:] == ["/write", "/three"][not allowed :]
    kinds = [one.kind for one in outcome.evidence]
    assert kinds == ["ok", "ok", "ok" if allowed else "declined", "ok"]
    assert len(prompted(chat)) == (1 if allowed else 2)  # a no makes the rest of the reply void


STATUSES = {"one": 200, "two": 200, "missing": 404, "broken": 500}
CALLS = st.lists(
    st.sampled_from(
        [
            *(call(name, q) for name in STATUSES for q in "abc"),
            call("one", "a", odd=1),
            ToolCall("two_for_things", {}),
        ]
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda one: json.dumps([one.name, one.arguments]),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    wanted=CALLS,
    most=st.integers(1, 7),
    strategy=st.sampled_from(["dfsdt", "dfs", "react", "cot"]),
)
def test_the_tree_is_that_of_calls_one_by_one(
    wanted: list[ToolCall], most: int, strategy: str, tmp_path: Path
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        said = json.dumps({"said": request.url.params["q"]}).encode()
        status = STATUSES[request.url.path[1:]]
        return httpx.Response(status, stream=httpx.ByteStream(said))

    found = []
    for profile in (SEVERAL, SINGLE):
        chat = ScriptedChat(wanting(*wanted))
        theirs = things(WRITES, **{name: name for name in STATUSES})
        outcome = Lab(tmp_path).solve(
            chat, theirs, profile=profile, transport=httpx.MockTransport(answer),
            strategy=strategy, limits=Limits(seconds=600, calls=most, model_calls=200),
        )  # fmt: skip
        evidence = [one.model_dump(exclude={"seconds"}) for one in outcome.evidence]
        found.append((outcome.tree, evidence, outcome.status, outcome.reason, outcome.usage.calls))
    assert found[0] == found[1]
