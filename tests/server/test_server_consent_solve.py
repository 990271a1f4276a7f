"""Consent in the middle of a solve: a real client in both eras, one call for each yes.

Over stdio; a no over every transport.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
HELPERS = runpy.run_path(str(HERE / "writing.py"))
always, Person = HELPERS["always"], HELPERS["Person"]
TASK: str = HELPERS["TASK"]
NEWER_AT_NIGHT = pytest.mark.parametrize(
    "era",
    ["legacy", pytest.param("auto", marks=pytest.mark.nightly)],
    ids=["2025-11-25", "2026-07-28"],
)
SOURCES = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}


@pytest.fixture
def host(ready_dir: Path) -> Iterator[Any]:
    """A host that the data folder's catalog names, beside the catalog that ships."""
    with HELPERS["FaultyHost"]() as one:
        HELPERS["serve"](one, ready_dir)
        yield one


def client(host: Any, data_dir: Path, era: str, person: Any, **settings: str) -> Any:
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(
        command=sys.executable,
        args=[str(HERE / "scripted_server.py"), "stdio"],
        env={
            "TOOLSRV_DATA_DIR": str(data_dir),
            "TOOLSRV_OWN_HOSTS": host.url.removeprefix("http://"),
            **SOURCES,
            **settings,
        },
    )
    return Client(parameters, mode=era, elicitation_callback=person)


async def solve(one: Any, word: str, **given: Any) -> dict[str, Any]:
    asked = {
        "task": TASK.format(word=word),
        "wait_s": 60,
        "options": {"category": "Notes"},
        **given,
    }
    found: dict[str, Any] = (await one.call_tool("solve_task", asked)).structured_content
    return found


async def test_a_person_who_says_yes_has_that_call_made_once(
    host: Any, ready_dir: Path, era: str
) -> None:
    person = always("accept")
    async with client(host, ready_dir, era, person) as one:
        run = await solve(one, "alpha")
    assert (run["status"], run["answer"]) == ("answered", "It is 42.")
    assert host.written == ['{"text":"alpha"}']
    assert len(person.asked) == 1
    for part in ("POST 127.0.0.1:", "/write", '"text": "alpha"', "for the task: WRITE alpha"):
        assert part in person.asked[0]
    assert [(call["status"], call["source"]) for call in run["evidence"]] == [(200, "live")]


@asynccontextmanager
async def over(
    transport: str, host: Any, data_dir: Path, era: str, person: Any, start_http: Any
) -> AsyncIterator[Any]:
    """Yield a client of a scripted server with a person behind it, over any transport."""
    own = host.url.removeprefix("http://")
    if transport == "stdio":
        async with client(host, data_dir, era, person) as one:
            yield one
    elif transport == "memory":
        from mcp import Client

        from toolsrv.mcp_server.server import build_server
        from toolsrv.settings import load

        settings = load({"data_dir": str(data_dir), "own_hosts": own}).settings
        bench = runpy.run_path(str(HERE / "scripted_server.py"))["scripted_bench"](settings)
        try:
            server = build_server(bench, warm=False)
            async with Client(server, mode=era, elicitation_callback=person) as one:
                yield one
        finally:
            await bench.aclose()
    else:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        server = start_http({"TOOLSRV_DATA_DIR": str(data_dir), "TOOLSRV_OWN_HOSTS": own})
        headers = {"Authorization": f"Bearer {server.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(
                streamable_http_client(server.url, http_client=http),
                mode=era,
                elicitation_callback=person,
            ) as one,
        ):
            yield one


@pytest.mark.parametrize(("action", "ok"), [("decline", True), ("cancel", True), ("accept", False)])
async def test_a_person_who_says_no_declines_the_call_and_the_solve_says_so(
    host: Any,
    ready_dir: Path,
    transport: str,
    era: str,
    action: str,
    ok: bool,
    start_http: Any,
) -> None:
    person = always(action, ok=ok)
    async with over(transport, host, ready_dir, era, person, start_http) as one:
        run = await solve(one, "alpha")
        shown = await one.call_tool("show_run", {"run_id": run["run_id"]})
        single = {"id": "Notes/notes/write", "arguments": {"text": "alpha"}}
        alone = (await one.call_tool("call_api", single)).structured_content
    assert (host.written, host.calls) == ([], [])
    assert len(person.asked) == 2  # once by the run, once by the single call
    assert (run["status"], run["answer"]) == ("partial", "It is 42.")
    assert run["reason"].startswith("the person declined POST 127.0.0.1:")
    assert run["missing"] == [run["reason"].removeprefix("the person declined ")]
    assert "call_api" not in run["next_step"]
    assert [(call["status"], call["kind"]) for call in run["evidence"]] == [(0, "declined")]
    assert alone["kind"] == "declined"
    for text in (run["evidence"][0]["error"], shown.content[0].text, alone["error"]):
        assert "the person said no to POST 127.0.0.1:" in text
        assert "setting" not in text


@pytest.mark.parametrize("era", ["auto"])
async def test_a_client_that_cannot_ask_gets_the_observation(
    host: Any, ready_dir: Path, era: str
) -> None:
    HELPERS["serve"](host, ready_dir, only=True)
    async with client(host, ready_dir, era, None) as one:
        run = await solve(one, "alpha")
        shown = await one.call_tool("show_run", {"run_id": run["run_id"]})
    assert (run["status"], run["evidence"][0]["kind"]) == ("answered", "needs_consent")
    assert host.calls == []
    assert "needs a person's consent" in shown.content[0].text


@pytest.mark.parametrize("era", ["legacy"])
async def test_nothing_that_needs_consent_is_offered_where_nobody_can_be_asked(
    host: Any, ready_dir: Path, era: str
) -> None:
    async with client(host, ready_dir, era, None) as one:
        how = {"category": "Notes", "max_model_calls": 4}
        run = await solve(one, "alpha", options=how)
    assert host.calls == []
    assert all(call["api_id"] != "Notes/notes/write" for call in run["evidence"])


@pytest.mark.parametrize("era", ["auto"])
async def test_a_yes_is_no_rule_and_what_is_denied_is_not_asked_about(
    host: Any, ready_dir: Path, era: str
) -> None:
    person = always("accept")
    rules = {"TOOLSRV_CALLS": "ask POST"}
    async with client(host, ready_dir, era, person, **rules) as one:
        await solve(one, "alpha")
        await solve(one, "alpha")
    assert len(person.asked) == 2
    async with client(host, ready_dir, era, person, TOOLSRV_CALLS="deny POST") as one:
        await solve(one, "alpha", max_model_calls=4)
    assert len(person.asked) == 2
    assert len(host.written) == 2


@NEWER_AT_NIGHT
async def test_a_question_waits_for_whoever_follows_the_run(
    host: Any, ready_dir: Path, era: str
) -> None:
    person = always("accept")
    async with client(host, ready_dir, era, person) as one:
        run = await solve(one, "alpha", wait_s=0)
        assert run["status"] in {"queued", "working"}
        again = await one.call_tool("get_run", {"run_id": run["run_id"], "wait_s": 60})
    assert again.structured_content["status"] == "answered"
    assert len(person.asked) == 1
    assert host.written == ['{"text":"alpha"}']


@NEWER_AT_NIGHT
async def test_questions_of_runs_in_parallel_do_not_mix(
    host: Any, ready_dir: Path, era: str
) -> None:
    words = ["alpha", "beta", "gamma", "delta"]
    open_questions: list[str] = []
    all_there = anyio.Event()

    async def says(question: str) -> str:
        open_questions.append(question)
        if len(open_questions) == len(words):
            all_there.set()
        with anyio.move_on_after(20):
            await all_there.wait()
        for number, word in enumerate(words):  # answered in another order than asked
            if f'"text": "{word}"' in question:
                assert f"WRITE {word}" in question
                await anyio.sleep(0.3 * (len(words) - number))
                return "accept" if word in {"alpha", "delta"} else "decline"
        raise AssertionError(question)

    found: dict[str, dict[str, Any]] = {}
    async with client(host, ready_dir, era, Person(says)) as one:

        async def work(word: str) -> None:
            found[word] = await solve(one, word)

        async with anyio.create_task_group() as group:
            for word in words:
                group.start_soon(work, word)
    assert len(open_questions) == len(words)
    assert sorted(host.written) == ['{"text":"alpha"}', '{"text":"delta"}']
    statuses = {word: [call["status"] for call in run["evidence"]] for word, run in found.items()}
    assert statuses == {"alpha": [200], "beta": [0], "gamma": [0], "delta": [200]}
    ends = {word: run["status"] for word, run in found.items()}
    assert ends == dict.fromkeys(words, "answered") | {"beta": "partial", "gamma": "partial"}


@NEWER_AT_NIGHT
async def test_waiting_for_a_person_costs_no_time_of_the_budget(
    host: Any, ready_dir: Path, era: str
) -> None:
    async def says(_question: str) -> str:
        await anyio.sleep(4)
        return "accept"

    async with client(host, ready_dir, era, Person(says)) as one:
        await solve(one, "warm", wait_s=60)
        started = time.monotonic()
        run = await solve(one, "alpha", max_seconds=3.5)
    assert time.monotonic() - started > 4
    assert (run["status"], run["evidence"][0]["status"]) == ("answered", 200)
    assert run["usage"]["seconds"] < 3.5


@NEWER_AT_NIGHT
async def test_a_run_that_is_cancelled_waits_for_nobody(
    host: Any, ready_dir: Path, era: str
) -> None:
    asked = anyio.Event()

    async def says(_question: str) -> str:
        asked.set()
        await anyio.sleep(5)
        return "accept"

    async with client(host, ready_dir, era, Person(says)) as one:
        run_id = (await solve(one, "alpha", wait_s=0))["run_id"]
        ended: dict[str, Any] = {}

        async def follow() -> None:
            got = await one.call_tool("get_run", {"run_id": run_id, "wait_s": 60})
            ended.update(got.structured_content)

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            with anyio.fail_after(60):
                await asked.wait()
            started = time.monotonic()
            told = await one.call_tool("cancel_run", {"run_id": run_id})
            assert told.structured_content["status"] == "cancelled"
            assert time.monotonic() - started < 4
    assert ended["status"] == "cancelled"
    assert host.written == []
