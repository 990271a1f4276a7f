"""A host's rest and the wait for a turn at it, against a real server on loopback."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.live_calls import caller
from tests.runtime.hosts.hostile import HostileHost

from toolsrv_registry.api import Api
from toolsrv_runtime.calls import rate_limits
from toolsrv_runtime.calls.addresses import AddressResolver, resolve_by_system
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.rate_limits import HostLimiter, HostLimits
from toolsrv_runtime.calls.transports import Connections

NAME = "api.test"
PATIENT = CallLimits(seconds=20, read_s=20)


class Clock:
    """A time that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def api(host: Any, path: str) -> Api:
    return Api(id="C/t/a", category="C", tool="t", name="a", url=host.url(path))


@pytest.mark.parametrize(("path", "later"), [("held_500", 0), ("held", 4)])
def test_after_a_rest_one_call_tries_and_its_outcome_decides_for_the_others(
    path: str, later: int
) -> None:
    async def run() -> None:
        clock = Clock()
        hosts = HostLimiter(HostLimits(rate=0, failures=2, rest_s=30), clock=clock)
        async with HostileHost() as host, caller(host, PATIENT, hosts=hosts) as one:
            for _ in range(3):
                await one.call(api(host, "500"), {})
            assert host.seen["500"] == 2
            clock.now += 31
            calls = asyncio.as_completed([one.call(api(host, path), {}) for _ in range(4)])
            for refused in [next(calls) for _ in range(3)]:
                got = await refused
                assert (got.kind, got.status, got.retry_after) == ("network_error", 0, None)
                assert "left alone" in got.error
            host.released.set()
            assert (await next(calls)).ok == bool(later)
            assert host.seen[path] == 1
            await asyncio.gather(*(one.call(api(host, path), {}) for _ in range(4)))
            assert host.seen[path] == 1 + later

    asyncio.run(run())


@pytest.mark.parametrize("end", ["given up", "never sent"])
def test_a_try_that_tells_nothing_leaves_the_next_call_to_try(end: str) -> None:
    async def run() -> None:
        clock = Clock()
        hosts = HostLimiter(HostLimits(rate=0, failures=1, rest_s=30), clock=clock)
        async with HostileHost() as host, caller(host, PATIENT, hosts=hosts) as one:
            await one.call(api(host, "500"), {})
            clock.now += 31
            if end == "given up":
                tried = asyncio.create_task(one.call(api(host, "held"), {}))
                await host.reached.wait()
                assert not (await one.call(api(host, "fine"), {})).ok
                tried.cancel()
                await asyncio.gather(tried, return_exceptions=True)
            else:
                network = Network(transport=Full(), hosts=hosts)
                got = await Caller(transports={}, network=network).call(api(host, "fine"), {})
                assert got.kind == "timed_out"
            assert (await one.call(api(host, "fine"), {})).ok

    asyncio.run(run())


class Full(httpx.AsyncBaseTransport):
    """A transport without a free connection."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.PoolTimeout("no connection is free", request=request)


def test_calls_that_get_no_turn_in_time_say_so_and_are_no_failures_of_the_host() -> None:
    async def run() -> None:
        hosts = HostLimiter(HostLimits(rate=0.001, at_once=3, failures=2))
        hurried = CallLimits(seconds=0.05)
        async with (
            HostileHost() as host,
            caller(host, PATIENT, hosts=hosts) as one,
            caller(host, hurried, hosts=hosts) as other,
        ):
            assert (await one.call(api(host, "fine"), {})).ok
            waited = await asyncio.gather(*(other.call(api(host, "fine"), {}) for _ in range(8)))
            assert {(got.kind, got.status) for got in waited} == {("timed_out", 0)}
            limit = "the limit for api.test is 0.001 calls a second and 3 at once"
            said = f"its turn did not come within 0.05 seconds: {limit}"
            assert {got.error for got in waited} == {said}
            assert host.seen["fine"] == 1
            assert hosts.cooldown(NAME) is None

    asyncio.run(run())


def test_who_gives_up_waiting_takes_no_turn_from_others() -> None:
    async def run() -> None:
        clock = Clock()
        hosts = HostLimiter(HostLimits(rate=0.01), clock=clock)
        async with hosts.slot(NAME):
            pass
        for _ in range(5):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), hosts.slot(NAME):
                    pass
        clock.now += 101
        async with asyncio.timeout(5), hosts.slot(NAME):
            pass

    asyncio.run(run())


def test_a_rate_is_the_time_between_two_calls_of_one_host_and_a_pause_a_longer_one() -> None:
    pace = rate_limits.RateLimiter(4)
    assert (pace.interval, rate_limits.RateLimiter(0).interval) == (0.25, 0)
    pace.called("a", 10)
    assert (pace.ready("a"), pace.ready("b")) == (10.25, 0)
    pace.pause("a", 9)
    assert pace.ready("a") == 10.25
    pace.pause("a", 12)
    pace.called("a", 10)
    assert pace.ready("a") == 12


def test_the_limits_of_a_host_are_told_without_a_rate_where_there_is_none() -> None:
    assert HostLimiter(HostLimits(rate=0, at_once=3)).describe() == "3 at once"
    assert HostLimiter(HostLimits(rate=0.5)).describe() == "0.5 calls a second and 4 at once"


def test_of_very_many_hosts_those_in_use_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "HOSTS_KEPT", 8)
    hosts = HostLimiter(HostLimits(rate=0, failures=1), clock=Clock())
    names = [f"h{number}.test" for number in range(40)]
    with hosts.attempt(NAME):
        for name in names:
            with hosts.attempt(name), hosts.attempt(name):
                hosts.record_outcome(name, failed=True)
        hosts.record_outcome(NAME, failed=True)
        for name in names:
            hosts.cooldown(name)
            with hosts.attempt(name):
                pass
        assert hosts.cooldown(NAME) is not None
    resting = [name for name in names if hosts.cooldown(name)]
    assert len(resting) <= 8


@pytest.mark.parametrize(("status", "later"), [(200, 200), (202, 202), (404, 404), (429, 0)])
def test_only_a_host_that_is_called_too_often_is_left_alone_as_long_as_it_asks(
    status: int, later: int
) -> None:
    async def run() -> list[int]:
        def answer(_: httpx.Request) -> httpx.Response:
            return httpx.Response(
                status, headers={"Retry-After": "9"}, stream=httpx.ByteStream(b"{}")
            )

        hosts = HostLimiter(HostLimits(rate=0))
        network = Network(transport=httpx.MockTransport(answer), hosts=hosts)
        target = Api(id="C/t/a", category="C", tool="t", name="a", url=f"https://{NAME}/x")
        limits = CallLimits(seconds=5, retries=0)
        async with Caller(transports={}, network=network, limits=limits) as one:
            return [(await one.call(target, {})).status for _ in range(2)]

    assert asyncio.run(run()) == [status, later]


@pytest.mark.parametrize(
    ("found", "kind", "said"),
    [
        (["127.0.0.1"], "ok", ""),
        (["127.0.0.9", "127.0.0.1"], "ok", ""),  # nothing listens at the first
        ([], "network_error", "has no address"),
        (UnicodeError("label too long"), "network_error", "is no name: label too long"),
        (OSError("gone"), "network_error", "does not resolve: gone"),
        (None, "timed_out", "no connection within 0.3 seconds"),
    ],
)
def test_each_address_of_a_name_is_tried_in_turn(
    found: list[str] | Exception | None, kind: str, said: str
) -> None:
    async def resolve(name: str, port: int) -> list[str]:
        del name, port
        if isinstance(found, Exception):
            raise found
        if found is None:
            await asyncio.sleep(60)
        return found or []

    async def run() -> None:
        async with HostileHost() as host:
            addresses = AddressResolver(own={f"{NAME}:{host.port}"}, resolve=resolve)
            network = Network(
                transport=Connections(addresses),
                hosts=HostLimiter(HostLimits(rate=0)),
                own=addresses.allows_any,
            )
            limits = CallLimits(seconds=20, connect_s=0.3 if found is None else 5, retries=0)
            async with Caller(transports={}, limits=limits, network=network) as one:
                got = await one.call(api(host, "fine"), {})
            assert got.kind == kind
            assert said in got.error

    asyncio.run(run())


def test_a_name_is_resolved_by_the_system_or_says_why_not() -> None:
    assert "127.0.0.1" in asyncio.run(resolve_by_system("localhost", 80))
    with pytest.raises((OSError, UnicodeError)):
        asyncio.run(resolve_by_system(f"{'a' * 70}.test", 80))


def test_a_full_pool_of_our_own_is_no_failure_of_the_host() -> None:
    async def run() -> None:
        hosts = HostLimiter(HostLimits(rate=0, failures=1))
        network = Network(transport=Full(), hosts=hosts)
        target = Api(id="C/t/a", category="C", tool="t", name="a", url=f"https://{NAME}/x")
        got = await Caller(transports={}, network=network).call(target, {})
        assert got.kind == "timed_out"
        assert hosts.cooldown(NAME) is None

    asyncio.run(run())
