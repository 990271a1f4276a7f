"""Journals of several solves that vote: no call of any is lost, and their trees are one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolsrv import operations
from toolsrv.runs.interrupted import interrupted_record
from toolsrv.runs.journal import JOURNALS, open_runs
from toolsrv.runs.queue import Journal, Run, Runs
from toolsrv.runs.records import RunRecord
from toolsrv.settings import load
from toolsrv.trees.shown import shown_record
from toolsrv.views.runs import continue_step
from toolsrv.workbench import Workbench
from toolsrv_runtime import outcome as out
from toolsrv_runtime.contract.models import ChatRequest, ToolCall, ToolMessage
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop

COUNTRIES = ("Peru", "Japan", "Norway")
CAPITALS = ("Lima", "Tokyo", "Oslo")
FUNCTION = "capital_city_for_country_facts"
TASK = "Name the capital cities of Peru, Japan and Norway"
VOTING = """
import asyncio, sys, time
from toolsrv.settings import load
from toolsrv.toolbox import AsyncToolbox
from toolsrv.workbench import Workbench
from toolsrv_runtime.contract.models import ToolCall, ToolMessage
from toolsrv_runtime.models.scripted import ScriptedChat
from toolsrv_runtime.profiles import Profile

def said(request):
    if any(isinstance(one, ToolMessage) for one in request.messages):
        sys.stdout.write("read\\n")  # one write: there are threads
        sys.stdout.flush()
        time.sleep(300)
    country = sys.argv[2:][request.seed // 1_000_003]
    return ToolCall("capital_city_for_country_facts", {"country": country})

async def main():
    engine = lambda: (ScriptedChat(said), Profile(name="chat", format="chat", context=8192))
    bench = Workbench(load().settings, load_engine=engine)
    async with AsyncToolbox.from_workbench(bench) as toolbox:
        await toolbox.solve(sys.argv[1], votes=len(sys.argv) - 2, on_event=lambda event: None)

asyncio.run(main())
"""


@pytest.fixture
def interrupted(ready_dir: Path) -> RunRecord:
    """The run of three votes, killed when each has had its first call."""
    process = subprocess.Popen(
        [sys.executable, "-c", VOTING, TASK, *COUNTRIES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [process.stdout.readline() for _ in COUNTRIES]
        process.kill()
        assert said == ["read\n"] * len(COUNTRIES), process.stderr.read()[-2_000:]
    with open_runs(ready_dir) as store:
        return store.whole("last")


def test_every_call_of_every_vote_is_kept_with_its_place_in_one_tree(
    interrupted: RunRecord, ready_dir: Path
) -> None:
    outcome = interrupted.outcome
    assert outcome is not None
    assert (interrupted.status, outcome.votes) == ("interrupted", 3)
    found = {one.arguments["country"]: one for one in outcome.evidence}
    assert set(found) == set(COUNTRIES)
    tree = {one.id: one for one in outcome.tree}
    assert len(tree) == len(outcome.tree)
    assert [one.id for one in outcome.tree if one.parent == -1] == [0]
    for country, capital in zip(COUNTRIES, CAPITALS, strict=True):
        made = found[country]
        assert made.response["capital"] == capital
        node = tree[made.node]
        assert (node.kind, node.parent, node.depth) == ("call", 0, 1)
        assert (node.function, node.arguments) == (FUNCTION, {"country": country})
        with open_runs(ready_dir) as store:
            assert capital in store.response(interrupted.id, made.node).text
    assert outcome.usage.calls == 3
    assert outcome.usage.model_calls == 3
    assert "3 votes" in str(shown_record(interrupted).facts)
    assert "what it found is known" in continue_step(interrupted)
    assert list((ready_dir / JOURNALS).glob("*.jsonl")) == []


def test_a_run_that_goes_on_makes_no_call_again_that_any_vote_had_made(
    interrupted: RunRecord, ready_dir: Path
) -> None:
    def said(request: ChatRequest) -> ScriptedReply:
        heard = sum(isinstance(one, ToolMessage) for one in request.messages)
        if request.expected.schema or heard >= len(COUNTRIES):
            return "They are Lima, Tokyo and Oslo."
        return ToolCall(FUNCTION, {"country": COUNTRIES[heard]})

    async def solve() -> out.Outcome:
        profile = Profile(name="chat", format="chat", context=8192)
        bench = Workbench(load({"data_dir": str(ready_dir)}).settings)
        try:
            task, options = operations.prepare(bench, "", {}, continues=interrupted.id)
            model = ScriptedChat(said), profile
            return await operations.solve(
                bench, task, options, on_event=lambda _: None, stop=Stop(), model=model
            )
        finally:
            await bench.aclose()

    outcome = asyncio.run(solve())
    assert (outcome.task, outcome.usage.calls) == (TASK, 0)
    assert {one.arguments["country"] for one in outcome.evidence} == set(COUNTRIES)


def events_of(vote: int, country: str, *, used: int) -> list[out.Event]:
    """Return what a solve says that calls one API twice, the second time below the first."""
    told: list[out.Event] = []
    for number, parent in ((1, 0), (2, 1)):
        arguments = {"country": country, "number": number}
        made = out.Evidence(
            node=number, api_id="c/t/a", function="a", arguments=arguments, status=200,
            response=f"{country} {number}", kind="ok", source="live", seconds=0.1, used=False,
        )  # fmt: skip
        told += [
            out.ThoughtEvent(
                vote=vote, seconds=0.1, node=number, parent=parent, depth=number, text=country
            ),
            out.CallEvent(
                vote=vote, seconds=0.2, node=number, depth=number, api_id="c/t/a", function="a",
                arguments=arguments,
            ),
            out.ObservationEvent(
                vote=vote, seconds=0.3, node=number, depth=number, status=200, text="",
                source="live", evidence=made,
            ),
        ]  # fmt: skip
    usage = out.Usage(model_calls=used, generated_tokens=10 * used, calls=2)
    told.append(out.BudgetEvent(vote=vote, seconds=0.4, usage=usage, limits=out.Limits()))
    told.append(out.BacktrackEvent(vote=vote, seconds=0.5, node=2, to=1, reason="no use"))
    return told


def test_votes_whose_events_come_mixed_make_one_tree_and_one_cost() -> None:
    votes = [
        events_of(0, "Peru", used=2),
        events_of(2, "Japan", used=3),
        events_of(5, "Oman", used=4),
    ]
    mixed = [event for row in zip(*votes, strict=True) for event in row]
    told = interrupted_record(
        "r", "t", SolveOptions(votes=6), mixed, out_time(), continues="", model="m", toolsrv="1"
    )
    outcome = told.outcome
    assert outcome is not None
    assert [(one.id, one.parent, one.thought, one.pruned) for one in outcome.tree] == [
        (0, -1, "", False),
        (1, 0, "Peru", False), (2, 1, "Peru", True),
        (3, 0, "Japan", False), (4, 3, "Japan", True),
        (5, 0, "Oman", False), (6, 5, "Oman", True),
    ]  # fmt: skip
    tree = {one.id: one for one in outcome.tree}
    assert all(tree[one.node].arguments == one.arguments for one in outcome.evidence)
    assert len(outcome.evidence) == 6
    assert (outcome.usage.calls, outcome.usage.model_calls) == (6, 9)
    assert outcome.usage.generated_tokens == 90


def out_time() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 11, 28, tzinfo=UTC)


class Written:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[out.Event] = []

    def add(self, event: out.Event) -> None:
        self.events.append(event)

    def discard(self) -> None:
        """Keep it."""

    def leave(self) -> None:
        """Keep it."""


def test_who_follows_a_run_sees_the_first_solve_and_the_journal_has_all() -> None:
    written = Written()

    def journal(_run: Run) -> Journal:
        return written

    async def main() -> Run:
        async def solve(_task: str, _options: SolveOptions, on_event: Any, _stop: Stop) -> Any:
            for vote in (0, 1):
                for event in events_of(vote, "Peru", used=1):
                    on_event(event)
            asked = out.ConsentEvent(
                vote=1,
                seconds=1.0,
                node=1,
                depth=1,
                method="POST",
                host="h",
                path="/",
                allowed=None,
            )
            on_event(asked)
            await asyncio.sleep(0)
            raise ValueError

        runs = Runs(solve, journal=journal)
        run = runs.start("a", SolveOptions())
        assert await run.wait(20)
        return run

    run = asyncio.run(main())
    assert len(written.events) == 17
    assert [one.vote for one in run.events] == [0] * 8 + [1]
    assert run.events[-1].kind == "consent"
