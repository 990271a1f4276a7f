"""Values that a task does not say: asked at a terminal and by elicitation, else handed back.

Real processes and clients; the matcher that ships sees what is missing, the model is a script.
"""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
TERMINAL = runpy.run_path(str(HERE / "test_server_consent_terminal.py"))
terminal = TERMINAL["terminal"]
TASK = "What will my savings be after 10 years at 4 % interest?"
QUESTION = 'What is "amount" (Money invested) for the function "compound interest"?'
CALL: dict[str, Any] = {
    "function": "compound_interest_for_money_planner",
    "arguments": {"amount": 1000, "rate": 4, "years": 10},
}
WITHOUT_PTY = pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")


def script(folder: Path, amount: int = 1000) -> Path:
    """Write a model that makes up an amount, and then tells what came of it."""
    place = folder / f"script_{amount}.json"
    call = {**CALL, "arguments": {**CALL["arguments"], "amount": amount}}
    place.write_text(json.dumps({"replies": [call, "It will be 7401.22."]}), "utf-8")
    return place


@pytest.fixture
def solve(tmp_path: Path, ready_dir: Path) -> tuple[str, ...]:
    del ready_dir
    return ("solve", TASK, "--category", "Finance", "--model", f"scripted:{script(tmp_path)}")


@WITHOUT_PTY
def test_a_terminal_asks_and_goes_on(solve: tuple[str, ...]) -> None:
    with terminal(*solve, "--json") as one:
        one.read_until("Value (an empty line for none):")
        one.type("5,000\n")
        code, out = one.end()
    outcome = json.loads(out)
    assert (code, outcome["status"]) == (0, "answered"), one.said
    assert outcome["evidence"][0]["arguments"] == {"amount": 5000, "rate": 4, "years": 10}
    assert QUESTION in one.said
    assert "answered: What is" in one.said


@WITHOUT_PTY
def test_an_empty_line_is_no_answer(solve: tuple[str, ...]) -> None:
    with terminal(*solve, "--json") as one:
        one.read_until("Value (an empty line for none):")
        one.type("\n")
        code, out = one.end()
    assert (code, json.loads(out)["status"]) == (3, "needs_input"), one.said


def test_elsewhere_the_question_is_handed_back_and_the_answer_goes_on(
    solve: tuple[str, ...], run: Callable[..., Any], tmp_path: Path
) -> None:
    asked = run(*solve)
    assert asked.exit_code == 3, asked.output
    assert f"A value is missing: {QUESTION}" in asked.stderr
    (line,) = [one for one in asked.stderr.splitlines() if one.startswith("to go on: ")]
    handle = line.split("--answer-to ")[1].split()[0]
    shown = run("run", "show", handle)
    assert "needs input" in shown.output
    listed = json.loads(run("run", "list", "--json").stdout)
    assert [one["status"] for one in listed] == ["needs_input"]
    page = tmp_path / "run.html"
    assert run("run", "show", handle, "--html", str(page)).exit_code == 0
    assert "needs input" in page.read_text("utf-8")
    model = f"scripted:{script(tmp_path, 5000)}"
    went = ("solve", "5000 euros", "--answer-to", handle, "--category", "Finance")
    outcome = json.loads(run(*went, "--model", model, "--json").stdout)
    assert outcome["status"] == "answered"
    assert outcome["task"] == f"{TASK}\namount: 5000 euros"
    assert outcome["evidence"][0]["arguments"]["amount"] == 5000
    again = run("solve", "5000", "--answer-to", "last", "--model", model)
    assert again.exit_code == 2
    assert "asks nothing" in again.stderr


class Person:
    """Fills in the form that asks for a value; ``value`` None declines."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        del context
        self.asked.append(params)
        if self.value is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"amount": self.value})


@asynccontextmanager
async def client(folder: Path, era: str, person: Person | None, place: Path) -> AsyncIterator[Any]:
    """Yield a client of a server in this process whose model is a script."""
    from mcp import Client

    from toolsrv.mcp_server.server import build_server
    from toolsrv.settings import load
    from toolsrv.workbench import Workbench

    settings = load({"data_dir": str(folder), "model": f"scripted:{place}"}).settings
    bench = Workbench(settings)
    try:
        server = build_server(bench, warm=False)
        async with Client(server, mode=era, elicitation_callback=person) as one:
            yield one
    finally:
        await bench.aclose()


ASKED = {"task": TASK, "wait_s": 60, "options": {"category": "Finance"}}


@pytest.mark.anyio
async def test_a_client_with_elicitation_puts_the_form_to_the_person(
    ready_dir: Path, tmp_path: Path, era: str
) -> None:
    person = Person("5000")
    async with client(ready_dir, era, person, script(tmp_path)) as one:
        run = (await one.call_tool("solve_task", ASKED)).structured_content
    assert run["status"] == "answered", run
    assert run["evidence"][0]["arguments"]["amount"] == 5000
    (form,) = person.asked
    assert form.message.startswith(QUESTION)
    assert TASK in form.message
    assert form.requested_schema["required"] == ["amount"]
    assert form.requested_schema["properties"]["amount"]["type"] == "string"


@pytest.mark.anyio
async def test_a_client_whose_person_declines_is_asked_once(
    ready_dir: Path, tmp_path: Path, era: str
) -> None:
    person = Person(None)
    async with client(ready_dir, era, person, script(tmp_path)) as one:
        run = (await one.call_tool("solve_task", ASKED)).structured_content
    assert (run["status"], len(person.asked)) == ("needs_input", 1)


@pytest.mark.anyio
async def test_a_client_without_elicitation_gets_the_question_and_the_handle(
    ready_dir: Path, tmp_path: Path, era: str
) -> None:
    async with client(ready_dir, era, None, script(tmp_path)) as one:
        result = await one.call_tool("solve_task", ASKED)
        run, text = result.structured_content, result.content[0].text
        assert not result.is_error
        assert (run["status"], run["questions"]) == ("needs_input", [QUESTION])
        for part in (run["run_id"], QUESTION, "answer_to"):
            assert part in text
        assert run["run_id"] in run["next_step"]
        kept = (await one.call_tool("get_run", {"run_id": run["run_id"]})).structured_content
        assert kept["questions"] == [QUESTION]
        shown = (await one.call_tool("show_run", {"run_id": run["run_id"]})).structured_content
        assert shown["status"] == "needs_input"
    async with client(ready_dir, era, None, script(tmp_path, 5000)) as one:  # read from the disk
        given = {**ASKED, "task": "5000", "answer_to": run["run_id"]}
        went = (await one.call_tool("solve_task", given)).structured_content
    assert went["status"] == "answered", went
    assert went["evidence"][0]["arguments"]["amount"] == 5000
