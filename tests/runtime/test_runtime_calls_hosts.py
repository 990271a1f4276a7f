"""Live calls against real servers on loopback that are honest, slow, broken or hostile."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any
from urllib.parse import parse_qs, unquote

import httpx
import pytest
from tests.live_calls import PATIENT, QUICK, api, caller
from tests.openapi_documents import document, read_api
from tests.runtime.hosts.hostile import HostileHost, bomb

from toolsrv_registry.api import Parameter
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.rate_limits import HostLimiter, HostLimits
from toolsrv_runtime.calls.transports import Connections


def ask(path: str, limits: CallLimits = PATIENT, **more: Any) -> tuple[CallResult, Any]:
    method = more.pop("method", "GET")

    async def run() -> tuple[CallResult, Any]:
        async with HostileHost() as host, caller(host, limits, **more) as one:
            return await one.call(api(host.url(path), method=method), {}), host

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("fine", "ok"),
        ("endless", "too_large"),
        ("bomb", "too_large"),
        ("big", "too_large"),
        ("stunted", "network_error"),
        ("broken_gzip", "network_error"),
        ("brotli", "network_error"),
        ("zipped", "ok"),
        ("short", "network_error"),
        ("long", "ok"),
        ("charset", "ok"),
        ("latin", "ok"),
        ("utf8_lie", "ok"),
        ("deep", "not_json"),
        ("rather_deep", "not_json"),
        ("page", "not_json"),
        ("comments", "ok"),
        ("commented_page", "not_json"),
        ("punycode", "ok"),
        ("nan", "ok"),
        ("private", "blocked_by_policy"),
        ("other_port", "blocked_by_policy"),
        ("user", "blocked_by_policy"),
        ("no_label", "blocked_by_policy"),
        ("circle", "server_error"),
        ("moved", "ok"),
        ("busy", "ok"),
        ("shut", "rate_limited"),
        ("some_day", "rate_limited"),
        ("flaky", "ok"),
        ("headers", "network_error"),
        ("no_http", "network_error"),
        ("reset", "network_error"),
        ("reset_head", "network_error"),
        ("reset_body", "network_error"),
        ("400", "bad_arguments"),
        ("401", "unauthorized"),
        ("402", "not_subscribed"),
        ("403", "unauthorized"),
        ("subscribe", "not_subscribed"),
        ("404", "not_found"),
        ("gone_api", "gone"),
        ("410", "gone"),
        ("500", "server_error"),
        ("503", "server_error"),
        ("999", "server_error"),
    ],
)
def test_whatever_a_host_does_is_a_typed_result(path: str, kind: str) -> None:
    got, _ = ask(path)
    assert got.kind == kind
    assert got.source == "live"
    assert bool(got.error) == bool(got.hint) == (kind != "ok")
    got.model_dump_json()


def test_what_comes_of_odd_answers() -> None:
    assert ask("nan")[0].response == {"a": None, "b": None}
    assert ask("charset")[0].response == "å!"
    assert ask("latin")[0].response == "å!"
    assert ask("zipped")[0].response == {"a": 1}
    assert len(ask("big")[0].response) == 20_000
    assert ask("punycode")[0].response == "a-b"
    assert ask("shut")[0].retry_after == 86_400
    assert ask("some_day")[0].retry_after is None
    assert ask("subscribe")[0].page.startswith("https://")


@pytest.mark.parametrize("path", ["slow", "silent"])
def test_one_byte_a_moment_and_silence_end_in_time(path: str) -> None:
    got, _ = ask(path, QUICK)
    assert got.kind == "timed_out"
    assert 0.3 < got.seconds < 3


def test_a_bomb_never_grows_large_in_memory() -> None:
    bomb()
    tracemalloc.start()
    try:
        assert ask("bomb")[0].kind == "too_large"
        assert ask("endless")[0].kind == "too_large"
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    _, host = ask("private")
    assert dict(host.seen) == {"private": 1}


@pytest.mark.parametrize(
    ("rules", "sent"),
    [
        ("", 2),
        ("deny * api.test:443", 1),
        ("ask GET api.test:443", 1),
        ("deny * other.test:443", 2),
    ],
)
def test_a_redirect_to_another_port_has_the_rules_of_that_port(rules: str, sent: int) -> None:
    seen: list[str] = []

    async def host(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        if request.url.scheme == "http":
            return httpx.Response(301, headers={"Location": "https://api.test/x"})
        return httpx.Response(200, stream=httpx.ByteStream(b"{}"))

    async def run() -> CallResult:
        network = Network(httpx.MockTransport(host))
        policy = Policy(rules=parse_rules(rules))
        async with Caller(transports={}, network=network, policy=policy) as one:
            return await one.call(api("http://api.test/x"), {})

    got = asyncio.run(run())
    assert len(seen) == sent
    assert got.kind == ("ok" if sent == 2 else "blocked_by_policy")


def test_only_calls_that_may_be_repeated_are_tried_again() -> None:
    assert ask("reset")[1].seen["reset"] == 3
    rules = parse_rules("allow POST")
    got, host = ask("reset", method="POST", policy=Policy(rules=rules))
    assert (got.kind, host.seen["reset"]) == ("network_error", 1)


def test_a_host_that_keeps_failing_is_left_alone() -> None:
    async def run() -> None:
        limits = CallLimits(seconds=3, retries=0)
        async with (
            HostileHost() as host,
            caller(host, limits, hosts=HostLimiter(HostLimits(rate=0, failures=3))) as one,
        ):
            for _ in range(5):
                got = await one.call(api(host.url("500")), {})
            assert host.seen["500"] == 3
            assert (got.kind, got.status) == ("network_error", 0)
            assert "left alone" in got.error

    asyncio.run(run())


def test_a_host_that_asks_for_a_pause_gets_it() -> None:
    async def run() -> None:
        async with HostileHost() as host, caller(host) as one:
            assert (await one.call(api(host.url("shut")), {})).kind == "rate_limited"
            assert (await one.call(api(host.url("fine")), {})).kind == "rate_limited"
            assert dict(host.seen) == {"shut": 1}

    asyncio.run(run())


def test_connections_are_used_again() -> None:
    async def run() -> None:
        async with HostileHost() as host, caller(host) as one:
            for _ in range(5):
                assert (await one.call(api(host.url("fine")), {})).ok
            assert host.connections == 1

    asyncio.run(run())


def test_a_name_whose_answer_changes_is_called_at_no_other_address() -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"]])

    async def changing(name: str, port: int) -> list[str]:
        del name, port
        return next(answers)

    async def run() -> None:
        async with HostileHost() as host:
            network = Network(transport=Connections(AddressResolver(resolve=changing)))
            async with Caller(transports={}, limits=QUICK, network=network) as one:
                kinds = [(await one.call(api(host.url("fine")), {})).kind for _ in range(3)]
            assert kinds == ["blocked_by_policy"] * 3
            assert host.connections == 0

    asyncio.run(run())


def test_a_host_that_does_not_exist_is_a_network_error() -> None:
    async def nowhere(name: str, port: int) -> list[str]:
        raise OSError(f"{name}:{port} is unknown")

    async def run() -> CallResult:
        network = Network(transport=Connections(AddressResolver(resolve=nowhere)))
        async with Caller(transports={}, limits=QUICK, network=network) as one:
            return await one.call(api("https://no.test/x"), {})

    assert asyncio.run(run()).kind == "network_error"


JSON_VALUES: list[tuple[str, Any]] = [
    ("object", {"a": [1, {"b": "/ü ;,=&?\n\r\x7f"}], "none": None}),
    ("array", ["x", "y,z", 2.5, True]),
    ("string", 'two words, "quoted"\nÜber'),
    ("integer", 7),
    ("boolean", False),
]


@pytest.mark.parametrize(("kind", "value"), JSON_VALUES)
def test_a_parameter_of_json_content_arrives_as_json(kind: str, value: Any) -> None:
    places = ("path", "query", "header", "cookie")
    content = {"application/json": {"schema": {"type": kind}}}
    parameters = [
        {"name": place, "in": place, "required": True, "content": content} for place in places
    ]

    async def run() -> tuple[CallResult, str]:
        async with HostileHost() as host, caller(host) as one:
            server: dict[str, Any] = {"servers": [{"url": host.url("")}]}
            target = read_api(document({"parameters": parameters}, "/echo/{path}", **server))
            got = await one.call(target, dict.fromkeys(places, value))
            return got, host.heads[-1].decode()

    got, head = asyncio.run(run())
    assert got.kind != "bad_arguments"
    line, *lines = head.split("\r\n")
    fields = dict(one.split(": ", 1) for one in lines if ": " in one)
    path, _, query = line.split(" ")[1].partition("?")
    arrived = {
        "path": unquote(path.removeprefix("/echo/")),
        "query": parse_qs(query)["query"][0],
        "header": fields["header"],
        "cookie": unquote(fields["Cookie"].removeprefix("cookie=")),
    }
    assert {place: json.loads(text) for place, text in arrived.items()} == dict.fromkeys(
        places, value
    )


def test_consent_is_for_one_call_only_and_rules_do_not_replace_it_in_a_tainted_run() -> None:
    async def run() -> None:
        policy = Policy(rules=parse_rules("allow PUT"))
        async with HostileHost() as host, caller(host, policy=policy) as one:
            target = api(
                host.url("fine"),
                method="POST",
                required=(Parameter(name="text", place="body"),),
            )
            refused = await one.call(target, {"text": "a"})
            assert refused.kind == "needs_consent"
            assert refused.consent is not None
            assert refused.consent.model_dump(exclude={"reason", "api_id"}) == {
                "method": "POST",
                "host": f"api.test:{host.port}",
                "path": "/fine",
                "arguments": {"text": "a"},
            }
            assert not host.heads
            assert (await one.call(target, {"text": "a"}, consent=refused.consent)).ok
            other = await one.call(target, {"text": "b"}, consent=refused.consent)
            assert other.kind == "needs_consent"
            put = target.model_copy(update={"method": "PUT"})
            assert (await one.call(put, {"text": "a"})).ok
            assert (await one.call(put, {"text": "a"}, tainted=True)).kind == "needs_consent"
            assert b'{"text":"a"}' in host.heads[0]

    asyncio.run(run())


def test_rules_hold_for_a_catalog_and_the_subscription_page_is_the_providers() -> None:
    async def run() -> None:
        policy = Policy(rules=parse_rules("deny * catalog:theirs"))
        home = ApiOrigin("theirs", "https://example.com/subscribe")
        async with HostileHost() as host, caller(host, policy=policy, home=lambda _: home) as one:
            assert (await one.call(api(host.url("fine")), {})).kind == "blocked_by_policy"
        async with HostileHost() as host, caller(host, home=lambda _: home) as one:
            got = await one.call(api(host.url("subscribe")), {})
            assert got.page == "https://example.com/subscribe"

    asyncio.run(run())
