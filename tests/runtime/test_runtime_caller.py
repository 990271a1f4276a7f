"""Which calls a caller can make, and tools of MCP servers as calls."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv_registry.api import Api, McpTool, SecurityScheme
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls.authenticated import FixedValues
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.credentials import (
    key_names,
    missing_credentials,
    recovery_hint,
    subscription_page,
)
from toolsrv_runtime.calls.exchange import CallLimits, Exchange
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.rate_limits import CallUsage, DailyLimits, HostLimiter, HostLimits
from toolsrv_runtime.calls.result import RESULT_KINDS, ResultKind, Spool
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
        self.answer = Exchange("ok", 200, "read", "")

    def can_call(self, api: Api) -> bool:
        assert api == TOOL
        return self.able

    async def call(self, api: Api, arguments: dict[str, Any], limits: CallLimits) -> Exchange:
        del api, limits
        self.called.append(arguments)
        return self.answer

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


def test_a_server_that_keeps_failing_is_left_alone_and_its_calls_of_a_day_are_counted(
    tmp_path: Path,
) -> None:
    async def run(hosts: HostLimiter, kind: ResultKind, count: int) -> list[CallResult]:
        server = Server()
        server.answer = Exchange(kind, 0, None, "" if kind == "ok" else "broken")
        network = Network(transport=NOWHERE, tools=server, hosts=hosts)
        policy = Policy(rules=parse_rules("allow *"))
        async with Caller(transports={}, network=network, policy=policy) as caller:
            return [await caller.call(TOOL, {}) for _ in range(count)]

    limits = HostLimits(rate=0, failures=2)
    got = asyncio.run(run(HostLimiter(limits), "network_error", 3))
    assert [one.error for one in got[:2]] == ["broken"] * 2
    assert "files keeps failing and is left alone" in got[2].error
    got = asyncio.run(run(HostLimiter(limits), "bad_arguments", 3))
    assert [one.error for one in got] == ["broken"] * 3
    usage = CallUsage(tmp_path / "u.sqlite3", DailyLimits.parse("mcp:files=2"))
    got = asyncio.run(run(HostLimiter(limits, usage=usage), "ok", 3))
    assert [one.kind for one in got] == ["ok", "ok", "rate_limited"]
    assert "mcp:files was called 2 times today" in got[2].error
    got = asyncio.run(run(HostLimiter(limits, usage=usage), "ok", 1))
    assert got[0].hint.startswith("call again then, or allow more")


@pytest.mark.parametrize(
    ("size", "limit", "kind"), [(5, 100, "ok"), (50, 100, "ok"), (500, 100, "too_large")]
)
def test_a_large_response_goes_to_a_folder_and_one_that_is_too_large_to_none(
    tmp_path: Path, size: int, limit: int, kind: str
) -> None:
    steps: list[tuple[int, int | None]] = []
    spool = Spool(tmp_path, limit, texts=True, progress=lambda *done: steps.append(done))
    text = httpx.MockTransport(
        lambda _: httpx.Response(
            200, headers={"Content-Type": "text/plain"}, stream=httpx.ByteStream(b"x" * size)
        )
    )

    async def run() -> CallResult:
        network = Network(transport=text)
        async with Caller(transports={}, network=network, limits=CallLimits(size=20)) as caller:
            return await caller.call(LIVE, {}, spool=spool)

    got = asyncio.run(run())
    assert got.kind == kind
    if size == 5:
        assert (got.response, got.spooled) == ("xxxxx", None)
    elif size == 50:
        assert got.response == "50 bytes, text/plain"
        assert got.spooled is not None
        assert got.spooled.part.read_bytes() == b"x" * 50
        assert steps[-1] == (50, None)
    else:
        assert "more than 100 bytes" in got.error
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("message", "status", "kind"),
    [
        ("You are not subscribed to this API.", 403, "not_subscribed"),
        ("You have exceeded the DAILY quota", 403, "rate_limited"),
        ("API doesn't exist", 404, "gone"),
        ("no such city", 404, "not_found"),
        ("You have exceeded it", 404, "not_found"),
        ("forbidden", 403, "unauthorized"),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_what_gateways_say_with_one_status_is_told_apart(
    message: str, status: int, kind: str, wrapped: bool
) -> None:
    said = json.dumps({"message": message} if wrapped else message).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(status, stream=httpx.ByteStream(said)))
    assert call(Network(transport=transport), LIVE)[0].kind == kind


def test_what_a_call_lacks_is_said_where_it_would_leave_the_machine(apis: dict[str, Api]) -> None:
    scheme = SecurityScheme(name="k", kind="apiKey", place="header", key="X-Key")
    locked = LIVE.model_copy(update={"security": ((scheme,),)})
    network = Network(transport=NOWHERE)
    caller = Caller(transports=offline_transports(), network=network)
    assert caller.lacks(locked) == "a key that is not set (toolsrv keys set api.test)"
    for api in (LIVE, TOOL, apis["Data/country_facts/capital_city"]):
        assert caller.lacks(api) == ""
    assert Caller(transports={}).lacks(locked) == ""
    denied = Caller(transports={}, network=network, policy=Policy(rules=parse_rules("deny *")))
    assert denied.lacks(locked) == ""


def test_fixed_values_that_cannot_be_read_end_a_call() -> None:
    def fixed(catalog: str) -> FixedValues:
        raise DataError(f"{catalog}: broken", hint="mend it")

    got, _ = call(Network(transport=NOWHERE, fixed=fixed), LIVE)
    assert (got.kind, got.error, got.hint) == ("blocked_by_policy", "mine: broken", "mend it")


@pytest.mark.parametrize(
    "rule", ["*", "catalog:mine", "api.test", "api.test:8080", "[::1]", "[::1]:80", "127.0.0.1:1"]
)
def test_the_place_of_a_rule_is_written_as_it_is_read(rule: str) -> None:
    (read,) = parse_rules(f"allow GET {rule}")
    assert read.place == rule.removeprefix("*")


def test_what_to_do_about_an_outcome() -> None:
    def hint(kind: ResultKind, api: Api = LIVE, wait: float | None = None) -> str:
        return recovery_hint(kind, api, "api.test", wait)

    assert hint("ok") == ""
    assert hint("network_error", TOOL.model_copy(update={"method": "GET"})).endswith("mcp:files")
    assert "may have been carried out" in hint("network_error", TOOL)
    assert hint("gone", TOOL) == "read its server again: toolsrv catalog import mcp:files"
    assert hint("gone") == "choose another API; its provider has taken it away"
    assert hint("rate_limited", wait=8.6) == "wait 9 seconds, then call again"
    assert hint("rate_limited") == "wait a while, then call again"
    assert hint("unauthorized").endswith("toolsrv keys set api.test")
    assert hint("bad_arguments").endswith("toolsrv describe C/t/a")
    for kind in RESULT_KINDS:
        assert hint(kind) or kind in {
            "ok",
            "needs_consent",
            "declined",
            "needs_input",
            "replay_miss",
        }
    assert subscription_page(LIVE, "api.test", "") == "https://api.test"
    assert subscription_page(LIVE, "x.p.rapidapi.com", "") == "https://rapidapi.com/search/t"
    assert subscription_page(LIVE, "api.test", "https://plans.test") == "https://plans.test"


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (httpx.ConnectTimeout(""), "timed_out", "no connection within 7 seconds"),
        (httpx.ReadTimeout(""), "timed_out", "nothing came for 9 seconds"),
        (httpx.WriteTimeout(""), "timed_out", "no answer within 50 seconds"),
        (httpx.ConnectError("refused"), "network_error", "ConnectError: refused"),
        (httpx.RemoteProtocolError("odd"), "network_error", "RemoteProtocolError: odd"),
    ],
)
def test_how_a_connection_ends_is_said(error: Exception, kind: str, said: str) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    async def run() -> CallResult:
        network = Network(transport=httpx.MockTransport(fail))
        limits = CallLimits(seconds=50, connect_s=7, read_s=9, retries=0)
        async with Caller(transports={}, network=network, limits=limits) as caller:
            return await caller.call(LIVE, {})

    got = asyncio.run(run())
    assert (got.kind, got.status, got.error) == (kind, 0, said)


def test_keys_that_cannot_be_sent_together_are_told_from_keys_that_are_not_set() -> None:
    one, other = (
        SecurityScheme(name=name, kind="http", scheme=name) for name in ("basic", "bearer")
    )
    both = LIVE.model_copy(update={"security": ((one, other),)})
    assert missing_credentials(both, "api.test", lambda _: "").startswith("keys that are not set")
    said = missing_credentials(both, "api.test", lambda _: "id:s3cret")
    assert said == "credentials that cannot be sent together"
    assert key_names(LIVE, "x.p.rapidapi.com") == ("rapidapi",)
