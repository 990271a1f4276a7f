"""Consent over MCP: asked of the person behind the client, in both eras, for one call, once."""

from __future__ import annotations

import importlib.util
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from toolsrv.mcp_server.server import build_server
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store

_SPEC = importlib.util.spec_from_file_location(
    "faulty_host_too", Path(__file__).parents[1] / "faulty_host.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)

pytestmark = pytest.mark.anyio
WRITE = "Data/t/write"


class Person:
    """Answers what it is asked, and remembers it."""

    def __init__(self, action: str, ok: object) -> None:
        self.asked: list[str] = []
        self._action = action
        self._ok = ok

    async def __call__(self, context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        del context
        self.asked.append(params.message)
        content = {"ok": self._ok} if self._action == "accept" else None
        return ElicitResult(action=self._action, content=content)  # type: ignore[arg-type]


def serve(api: Api, data_dir: Path) -> None:
    data_dir.mkdir()
    with Store.open(data_dir / STORE_FILE) as store:
        store.put_catalog(
            Catalog(name="theirs", tools=(Tool(category="Data", name="t", apis=(api,)),))
        )


async def call(person: Any, era: str, data_dir: Path, stack: AsyncExitStack) -> Any:
    """Call a POST API through a client with or without a person behind it."""
    from mcp import Client

    host = stack.enter_context(_MODULE.FaultyHost())
    api = Api(
        id=WRITE,
        category="Data",
        tool="t",
        name="write",
        method="POST",
        url=f"{host.url}/fine",
        required=(Parameter(name="text"),),
    )
    serve(api, data_dir)
    own = host.url.removeprefix("http://")
    bench = Workbench(load({"data_dir": str(data_dir), "own_hosts": own}).settings)
    stack.push_async_callback(bench.aclose)
    server = build_server(bench, warm=False)
    client = await stack.enter_async_context(Client(server, mode=era, elicitation_callback=person))
    return await client.call_tool("call_api", {"id": WRITE, "arguments": {"text": "hello"}})


async def test_the_person_sees_the_call_and_allows_it(era: str, data_dir: Path) -> None:
    person = Person("accept", ok=True)
    async with AsyncExitStack() as stack:
        got = await call(person, era, data_dir, stack)
    assert len(person.asked) == 1
    for part in ("POST 127.0.0.1:", "/fine", '"text": "hello"'):
        assert part in person.asked[0]
    # The host knows no POST: that it says so shows that the call was made.
    assert got.structured_content["status"] == 501


@pytest.mark.parametrize(
    ("action", "ok"),
    [("accept", False), ("accept", "yes"), ("accept", 1), ("decline", True), ("cancel", True)],
)
async def test_without_a_yes_nothing_is_sent(
    action: str, ok: object, era: str, data_dir: Path
) -> None:
    person = Person(action, ok)
    async with AsyncExitStack() as stack:
        got = await call(person, era, data_dir, stack)
    assert len(person.asked) == 1
    told = got.structured_content
    assert got.is_error
    assert (told["kind"], told["status"], told["ok"]) == ("declined", 0, False)
    for part in ("the person said no to POST 127.0.0.1:", "must not be retried or worked around"):
        assert part in told["error"]
        assert part in got.content[0].text
    assert told["hint"] == "only the person may run it again and say yes"
    assert "setting" not in got.content[0].text


@pytest.mark.parametrize("era", ["legacy"])
async def test_an_error_of_the_client_is_no_answer_of_a_person(era: str, data_dir: Path) -> None:
    async def broken(context: Any, params: Any) -> Any:
        from mcp.types import ErrorData

        del context, params
        return ErrorData(code=-32603, message="no window to show the form in")

    async with AsyncExitStack() as stack:
        got = await call(broken, era, data_dir, stack)
    assert got.structured_content["kind"] == "needs_consent"


async def test_a_client_that_cannot_ask_gets_the_refusal(era: str, data_dir: Path) -> None:
    async with AsyncExitStack() as stack:
        got = await call(None, era, data_dir, stack)
    assert got.is_error
    assert got.structured_content["kind"] == "needs_consent"
    assert got.structured_content["consent"]["arguments"] == {"text": "hello"}
