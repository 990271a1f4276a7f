"""Calls per host and day: counted across processes, told, refused, and never lost in silence."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.rate_limits import (
    KEPT_DAYS,
    CallUsage,
    DailyLimits,
    HostLimiter,
    HostLimits,
)

HOST = "api.example.com"
API = Api(id="C/t/a", category="C", tool="t", name="a", url=f"https://{HOST}/a")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 27, 23, 59, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def call(usage: CallUsage, *statuses: int, catalog: str = "", retries: int = 0) -> list[CallResult]:
    """Return the results of one call for each status that the host answers with."""
    left = list(statuses)

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(left.pop(0), stream=httpx.ByteStream(b'{"a": 1}'))

    async def main() -> list[CallResult]:
        network = Network(
            transport=httpx.MockTransport(answer),
            hosts=HostLimiter(HostLimits(rate=0), usage=usage),
        )
        limits = CallLimits(retries=retries, backoff_s=0.001)
        async with Caller(
            transports={}, network=network, home=lambda _: ApiOrigin(catalog), limits=limits
        ) as caller:
            return [await caller.call(API, {}) for _ in statuses[: len(statuses) - retries]]

    return asyncio.run(main())


def test_limits_are_read_and_the_nearest_one_counts() -> None:
    limits = DailyLimits.parse("500, API.example.com=50; catalog:Tools=7, mcp:files=3")
    assert limits.limit_for("other.example") == 500
    assert limits.limit_for("api.example.com.") == 50
    assert limits.limit_for("other.example", "tools") == 7
    assert limits.limit_for("api.example.com", "tools") == 50
    assert limits.limit_for("mcp:files") == 3
    assert DailyLimits.parse("").limit_for("a") == 0


@pytest.mark.parametrize("text", ["x", "-1", "=5", "a=", "a:80=5", "http://a=5", "a/b=5", "*=5"])
def test_what_no_host_fits_is_no_limit(text: str) -> None:
    with pytest.raises(UsageError):
        DailyLimits.parse(text)


def test_a_host_is_called_so_often_and_opens_the_next_day(tmp_path: Path) -> None:
    clock = Clock()
    usage = CallUsage(tmp_path / "u.sqlite3", DailyLimits(every=2), now=clock)
    assert [one.kind for one in call(usage, 200, 200, 200)] == ["ok", "ok", "rate_limited"]
    refused = call(usage, 200)[0]
    assert (refused.status, refused.source) == (0, "live")
    assert "2026-11-28 00:00 UTC" in refused.error
    assert "calls_per_day" in refused.hint
    assert usage.spent(HOST).left == 0
    clock.now += timedelta(minutes=2)
    assert call(usage, 200)[0].ok
    assert usage.spent(HOST).describe == "1 of 2 calls today, 1 left until 2026-11-29 00:00 UTC"


def test_the_count_outlives_the_process_that_counted(tmp_path: Path) -> None:
    path = tmp_path / "u.sqlite3"
    first = CallUsage(path, DailyLimits(every=1))
    assert first.take(HOST) is None
    first.close()
    assert CallUsage(path, DailyLimits(every=1)).take(HOST) is not None


def test_a_limit_that_is_lowered_holds_for_the_calls_already_made(tmp_path: Path) -> None:
    usage = CallUsage(tmp_path / "u.sqlite3", DailyLimits(every=5))
    assert [usage.take(HOST) for _ in range(3)] == [None] * 3
    usage.close()
    count = CallUsage(tmp_path / "u.sqlite3", DailyLimits(every=2)).take(HOST)
    assert count is not None
    assert (count.calls, count.limit, count.left) == (3, 2, 0)


def test_a_host_that_nobody_called_has_no_calls(tmp_path: Path) -> None:
    usage = CallUsage(tmp_path / "u.sqlite3", DailyLimits(hosts={HOST: 9}))
    usage.close()  # not open yet
    assert usage.spent(HOST).calls == 0
    assert [usage.take("other.example") for _ in range(4)] == [None] * 4
    assert (usage.spent(HOST).calls, usage.spent(HOST).left) == (0, 9)


def test_processes_and_threads_share_one_limit(tmp_path: Path) -> None:
    path = tmp_path / "u.sqlite3"
    taken: list[bool] = []
    program = (
        "import sys; from pathlib import Path\n"
        "from toolsrv_runtime.calls.rate_limits import CallUsage, DailyLimits\n"
        "usage = CallUsage(Path(sys.argv[1]), DailyLimits(every=30))\n"
        "print(sum(usage.take('api.example.com') is None for _ in range(20)))\n"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    usage = CallUsage(path, DailyLimits(every=30))

    def take() -> None:
        taken.extend(usage.take(HOST) is None for _ in range(10))

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = sum(int(one.communicate(timeout=120)[0]) for one in others) + sum(taken)
    assert made == 30
    assert usage.spent(HOST).calls == 30


def test_a_repeated_call_counts_and_keeps_its_first_end(tmp_path: Path) -> None:
    usage = CallUsage(tmp_path / "u.sqlite3", DailyLimits(every=2))
    assert call(usage, 503, 200, retries=1)[0].ok
    assert usage.spent(HOST).calls == 2
    usage = CallUsage(tmp_path / "v.sqlite3", DailyLimits(every=1))
    assert call(usage, 503, 200, retries=1)[0].status == 503


def test_where_nothing_can_be_counted_a_limit_refuses_and_else_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "u.sqlite3").mkdir()  # no file can be opened there
    refused = call(CallUsage(tmp_path / "u.sqlite3", DailyLimits(every=5)), 200)[0]
    assert refused.kind == "blocked_by_policy"
    assert "cannot be counted" in refused.error
    with caplog.at_level(logging.WARNING):
        assert [one.ok for one in call(CallUsage(tmp_path / "u.sqlite3"), 200, 200)] == [True, True]
    assert sum("not counted" in one.message for one in caplog.records) == 1


def test_the_last_success_of_an_api_is_kept(tmp_path: Path) -> None:
    clock = Clock()
    usage = CallUsage(tmp_path / "u.sqlite3", now=clock)
    call(usage, 500)
    assert usage.last_successes([API.id]) == {}
    call(usage, 200)
    assert usage.last_successes([API.id, "C/t/b"]) == {API.id: "2026-11-27T23:59:00+00:00"}


def test_the_hosts_of_a_day_are_listed_with_the_most_called_first(tmp_path: Path) -> None:
    clock = Clock()
    limits = DailyLimits.parse("b.test=3")
    usage = CallUsage(tmp_path / "u.sqlite3", limits, now=clock)
    assert usage.today() == []
    for host in ("c.test", "a.test", "b.test", "b.test"):
        usage.take(host)
    assert [(one.host, one.calls, one.limit) for one in usage.today()] == [
        ("b.test", 2, 3),
        ("a.test", 1, 0),
        ("c.test", 1, 0),
    ]
    assert (usage.spent("a.test").describe, usage.spent("a.test").left) == ("1 calls today", None)
    clock.now += timedelta(days=1)
    assert usage.today() == []


def test_counts_are_kept_for_a_month(tmp_path: Path) -> None:
    clock = Clock()
    usage = CallUsage(tmp_path / "u.sqlite3", now=clock)
    usage.take(HOST)
    for later, calls in ((KEPT_DAYS, 1), (1, 0)):
        clock.now += timedelta(days=later)
        usage.take(HOST)
        then, clock.now = clock.now, Clock().now
        assert usage.spent(HOST).calls == calls
        clock.now = then


def test_what_cannot_be_read_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "u.sqlite3").write_bytes(b"no database at all" * 100)
    usage = CallUsage(tmp_path / "u.sqlite3")
    assert (usage.today(), usage.spent(HOST).calls, usage.last_successes(["a"])) == ([], 0, {})
