"""Which calls a caller can make, and tools of MCP servers as calls."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from toolsrv_registry.api import Api, McpTool, SecurityScheme
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.exchange import CallLimits, Exchange
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.transports import offline_transports

LIVE = Api(id="C/t/a", category="C", tool="t", name="a", url="https://api.test/x")
NOWHERE = httpx.MockTransport(lambda _: httpx.Response(500))
TOOL = LIVE.model_copy(
    update={
        "method": "POST",
        "url": "mcp://files/read",
        "mcp": McpTool(server="files", name="read", fingerprint="0" * 64),
    }
)


class Server:
    """An MCP server's side: whether its tool can be called, and what was called."""

    def __init__(self, *, able: bool = True) -> None:
        self.able = able
        self.called: list[dict[str, Any]] = []
        self.closed = 0

    def can_call(self, api: Api) -> bool:
        assert api == TOOL
        return self.able

    async def call(self, api: Api, arguments: dict[str, Any], limits: CallLimits) -> Exchange:
        del api, limits
        self.called.append(arguments)
        return Exchange("ok", 200, "read", "")

    async def aclose(self) -> None:
        self.closed += 1


def call(network: Network | None, api: Api, *, waiting: bool = False) -> tuple[CallResult, bool]:
    """Return the result of a call, and whether it could be made on a yes."""

    async def run() -> tuple[CallResult, bool]:
        policy = Policy(rules=parse_rules("allow *"))
        home = ApiOrigin("mine", waiting=waiting)
        async with Caller(
            transports={}, network=network, policy=policy, home=lambda _: home
        ) as caller:
            return await caller.call(api, {}), caller.can_call(api, asks=True)

    return asyncio.run(run())


def test_a_tool_of_an_mcp_server_is_called_and_its_connection_closed() -> None:
    server = Server()
    got, able = call(Network(transport=NOWHERE, tools=server), TOOL)
    assert (got.kind, got.response, got.source, able) == ("ok", "read", "live", True)
    assert (server.called, server.closed) == ([{}], 1)


def test_a_tool_whose_change_waits_is_not_called() -> None:
    server = Server()
    got, able = call(Network(transport=NOWHERE, tools=server), TOOL, waiting=True)
    assert (got.kind, got.status, able) == ("blocked_by_policy", 0, False)
    assert "waits" in got.error
    assert "toolsrv catalog accept mine" in got.hint
    assert server.called == []


def test_a_tool_is_not_called_where_its_server_cannot_be_reached() -> None:
    got, _ = call(Network(transport=NOWHERE), TOOL)
    assert (got.kind, "setting mode" in got.hint) == ("blocked_by_policy", True)
    assert call(Network(transport=NOWHERE, tools=Server(able=False)), TOOL)[1] is False


@pytest.mark.parametrize("api", [LIVE, TOOL])
def test_nothing_is_called_without_a_network(api: Api) -> None:
    got, able = call(None, api)
    assert (got.kind, able) == ("blocked_by_policy", False)


def test_an_api_of_this_machine_is_ready_offline_and_others_are_not(apis: dict[str, Api]) -> None:
    served = apis["Data/country_facts/capital_city"]
    caller = Caller(transports=offline_transports(), network=Network(transport=NOWHERE))
    assert (caller.ready(served).callable, caller.ready(served).offline) == (True, True)
    assert (caller.ready(LIVE).callable, caller.ready(LIVE).offline) == (True, False)
    assert caller.ready(LIVE).calls_left is None


def test_a_key_over_plain_http_goes_to_no_host_but_ones_own() -> None:
    scheme = SecurityScheme(name="k", kind="apiKey", place="header", key="X-Key")
    api = LIVE.model_copy(update={"url": "http://api.test/x", "security": ((scheme,),)})
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(b"{}"))

    network = Network(transport=httpx.MockTransport(answer), keys=lambda _: "s3cret")
    assert call(network, api)[0].kind == "unauthorized"
    assert sent == []
    assert call(replace(network, own=lambda _host, _port: True), api)[0].ok
    assert [one.headers["X-Key"] for one in sent] == ["s3cret"]


@pytest.mark.parametrize(
    ("content", "known", "said"),
    [
        (b"x" * 2_000, False, "more than 100 bytes; its first 100 characters are kept"),
        (
            b"x" * 2_000,
            True,
            "2,000 bytes, and 100 are read at most; its first 100 characters are kept",
        ),
        (b"\0" * 2_000, True, "2,000 bytes, and 100 are read at most; nothing of it is kept"),
    ],
)
def test_how_large_a_response_is_and_what_is_kept_of_it_is_said(
    content: bytes, known: bool, said: str
) -> None:
    headers = {"Content-Length": str(len(content))} if known else {}

    async def run() -> CallResult:
        transport = httpx.MockTransport(
            lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(content))
        )
        limits = CallLimits(size=100)
        async with Caller(
            transports={}, network=Network(transport=transport), limits=limits
        ) as caller:
            return await caller.call(LIVE, {})

    got = asyncio.run(run())
    assert (got.kind, got.error) == ("too_large", f"the response has {said}")
