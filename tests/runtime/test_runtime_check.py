"""The quality filter at work: what is called, checks over real sockets, recordings."""

from __future__ import annotations

import asyncio
import json
import runpy
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_registry.errors import BusyError, DataError, NotFoundError, UsageError
from toolsrv_registry.storage.health import HealthEntry, HealthStatus
from toolsrv_runtime.check.backends import (
    NO_KEY,
    LiveTransport,
    ReplyRecorder,
    live_backend,
    offline_backend,
    recorded_backend,
)
from toolsrv_runtime.check.checker import (
    UNREACHED_LIMIT,
    Checker,
    CheckOptions,
    CheckResult,
    excerpt,
)
from toolsrv_runtime.check.plan import CheckItem, CheckPlan, make_plan
from toolsrv_runtime.check.replies import ApiReply, Backend, CallerBackend

FaultyHost = runpy.run_path(str(Path(__file__).parents[1] / "faulty_host.py"))["FaultyHost"]


def api(name: str, host: str = "one.test", path: str | None = None, **parts: Any) -> Api:
    url = f"https://{host}/{name if path is None else path}"
    return Api(
        **{"id": f"C/t/{name}", "category": "C", "tool": "t", "name": name, "url": url} | parts
    )


# --- planning -------------------------------------------------------------------------------------


def planned(apis: Sequence[Api], **options: Any) -> CheckPlan:
    defaults: dict[str, Any] = {"latest": {}, "since": "2026-11-01", "refuses": lambda _: ""}
    return make_plan(apis, **(defaults | options))


def entry(item: CheckItem, checked_at: str, verdict: HealthStatus = HealthStatus.OK) -> HealthEntry:
    return HealthEntry(
        api_id=item.api.id, content_hash=item.content_hash, checked_at=checked_at, verdict=verdict
    )


def test_what_cannot_be_called_is_left_out_with_its_reason() -> None:
    scheme = SecurityScheme(name="k", kind="apiKey", place="header", key="X-Key")
    apis = [
        api("fine"),
        api("post", method="POST"),
        api("plain", url="http://one.test/x"),
        api("nowhere", url=""),
        api("odd", url="https://[broken"),
        api("other", host="two.test"),
        api("unknown", required=(Parameter(name="id", type="NUMBER"),)),
        api("hole", path="{team}"),
        api("locked", security=((scheme,),)),
    ]
    world = live_backend(apis[:1], timeout=1)
    plan = planned(apis, refuses=world.refuses)
    asyncio.run(world.aclose())
    assert [item.api.name for item in plan.items] == ["fine"]
    reasons = {api_id.removeprefix("C/t/"): why for api_id, why in plan.not_checked.items()}
    assert "POST" in reasons["post"]
    assert "https" in reasons["plain"]
    assert reasons["unknown"] == "no value known for 'id'"
    assert "'team'" in reasons["hole"]
    assert "credentials" in reasons["locked"]
    assert set(reasons) == {
        "post", "plain", "nowhere", "odd", "other", "unknown", "hole", "locked"
    }  # fmt: skip


def test_a_sample_is_the_same_whatever_was_checked_before() -> None:
    apis = [api(f"n{number}") for number in range(50)]
    whole = planned(apis, size=20, seed=3).items
    latest = {(i.api.id, i.content_hash): entry(i, "2026-11-10") for i in whole[:5]}
    rest = planned(apis, size=20, seed=3, latest=latest)
    assert rest.items == whole[5:]
    assert rest.recent == 5
    assert planned(apis, size=20, seed=4).items != whole


def test_only_recent_checks_of_the_same_content_count() -> None:
    (item,) = planned([api("a")]).items
    key = (item.api.id, item.content_hash)
    recent = {key: entry(item, "2026-11-10")}
    assert not planned([api("a")], latest=recent).items
    assert planned([api("a")], latest={key: entry(item, "2026-10-10")}).items
    assert planned([api("a", description="changed")], latest=recent).items
    busy = {key: entry(item, "2026-11-10", HealthStatus.RATE_LIMITED)}
    assert planned([api("a")], latest=busy).items


# --- checks over real sockets ---------------------------------------------------------------------


@pytest.fixture
def host() -> Iterator[Any]:
    with FaultyHost() as server:
        yield server


class Kept:
    """What a check kept, as a store would."""

    def __init__(self, *, busy: int = 0) -> None:
        self.entries: dict[str, HealthEntry] = {}
        self._busy = busy

    def __call__(self, entries: Sequence[HealthEntry]) -> None:
        if self._busy:
            self._busy -= 1
            raise BusyError("another process writes")
        self.entries.update({one.api_id: one for one in entries})


def checked(
    apis: Sequence[Api],
    world: Backend,
    *,
    keep: Callable[[Sequence[HealthEntry]], None] | None = None,
    **rules: Any,
) -> CheckResult:
    async def run() -> CheckResult:
        plan = planned(apis, refuses=world.refuses)
        keeper = keep or Kept()
        try:
            return await Checker(
                plan.items, world, keep=keeper, rules=CheckOptions(**({"rate": 0} | rules))
            ).run()
        finally:
            await world.aclose()

    return asyncio.run(run())


def test_every_kind_of_answer_gets_its_verdict(host: Any) -> None:
    wanted = {
        "fine": ("ok", "alive"),
        "slow": ("slow", "dead"),
        "never": ("timed_out", "dead"),
        "reset": ("broken", "dead"),
        "half": ("broken", "dead"),
        "html": ("html", "dead"),
        "error": ("error_text", "dead"),
        "empty": ("empty", "dead"),
        "500": ("http_error", "dead"),
        "404": ("http_error", "dead"),
        "401": ("unauthorized", "unknown"),
        "nothing": ("no_data", "unknown"),
        "text": ("not_json", "alive"),
        "busy": ("ok", "alive"),
        "flaky": ("ok", "alive"),
    }
    # Each at a host of its own, so that one that pauses holds up nobody else.
    apis = [api(name, host=f"h{place}.test") for place, name in enumerate(wanted)]
    kept = Kept()
    world = live_backend(apis, timeout=1.5, via=host.url)
    result = checked(apis, world, keep=kept, slow=0.3, concurrency=16)
    assert result.ended == "complete"
    found = {one.api_id.removeprefix("C/t/"): one for one in kept.entries.values()}
    assert {name: (one.verdict, one.standing) for name, one in found.items()} == wanted
    assert result.tally.done == len(wanted)
    assert found["404"].reason.startswith("404 on 20")
    assert found["slow"].seconds >= 0.3
    assert "does not exist" in found["error"].excerpt
    assert {one.source for one in found.values()} == {"live"}


def test_the_rate_of_each_host_is_kept(host: Any) -> None:
    apis = [api(f"fine{n}", host=name) for name in ("a.test", "b.test") for n in range(6)]
    rate = 5.0
    result = checked(apis, live_backend(apis, timeout=5, via=host.url), rate=rate)
    assert result.tally.done == 12
    for name in ("a.test", "b.test"):
        times = host.times(name)
        assert len(times) == 6
        # A call can reach the server late, the first one too: on a loaded machine by 0.06 s.
        assert times[-1] - times[0] >= 5 / rate * 0.8


def test_a_host_that_is_called_too_often_is_set_aside(host: Any) -> None:
    apis = [api("shut"), api("shut/2"), api("fine", host="two.test")]
    result = checked(apis, live_backend(apis, timeout=5, via=host.url), concurrency=1)
    verdicts = {one.api_id: one.verdict for one in result.entries}
    assert verdicts == {"C/t/shut": "rate_limited", "C/t/fine": "ok"}
    assert "too often" in result.not_checked["C/t/shut/2"]
    assert len(host.times("one.test")) == 1


def test_a_limit_of_calls_ends_a_check(host: Any) -> None:
    apis = [api(f"fine{n}") for n in range(9)]
    result = checked(apis, live_backend(apis, timeout=5, via=host.url), calls=4)
    assert (result.ended, result.tally.calls, len(result.entries)) == ("call_limit", 4, 4)


def test_a_dead_network_kills_no_api() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    apis = [api(f"n{n}", host=f"h{n}.test") for n in range(UNREACHED_LIMIT + 20)]
    kept = Kept()
    result = checked(apis, live_backend(apis, timeout=5, via=url), keep=kept, tries=1)
    assert result.ended == "no_network"
    assert not kept.entries
    assert len(result.unconfirmed) >= UNREACHED_LIMIT


def test_results_wait_while_another_process_writes(host: Any) -> None:
    apis = [api(f"fine{n}") for n in range(40)]
    kept = Kept(busy=1)
    checked(apis, live_backend(apis, timeout=5, via=host.url), keep=kept)
    assert len(kept.entries) == 40


def test_a_store_that_cannot_be_written_ends_the_check(host: Any) -> None:
    def full(_: Sequence[HealthEntry]) -> None:
        raise DataError("no space left")

    apis = [api(f"fine{n}") for n in range(40)]
    with pytest.raises(DataError):
        checked(apis, live_backend(apis, timeout=5, via=host.url), keep=full)
    assert len(host.calls) < 40


def test_a_stopped_check_keeps_what_it_has_judged(host: Any) -> None:
    apis = [api(f"fine{n}") for n in range(5)] + [api("gate", host="two.test")]
    kept = Kept()

    async def run() -> CheckResult:
        world = live_backend(apis, timeout=30, via=host.url)
        plan = planned(apis, refuses=world.refuses)
        replies: list[str] = []

        def heard(api_id: str, _: ApiReply) -> None:
            replies.append(api_id)
            if len(replies) == 5:
                asyncio.get_running_loop().call_soon(checker.stop)

        checker = Checker(plan.items, world, keep=kept, rules=CheckOptions(rate=0), heard=heard)
        try:
            return await checker.run()
        finally:
            await world.aclose()

    result = asyncio.run(run())
    host.gate.set()
    assert result.ended == "stopped"
    assert set(kept.entries) == {f"C/t/fine{n}" for n in range(5)}


def test_a_default_that_its_own_type_refuses_is_not_called(host: Any) -> None:
    target = api("fine", required=(Parameter(name="n", type="NUMBER", default="many"),))
    result = checked([target], live_backend([target], timeout=5, via=host.url))
    assert "must be a number" in result.not_checked[target.id]
    assert not host.calls


def test_a_private_address_is_not_called() -> None:
    target = api("fine", host="localhost")
    result = checked([target], live_backend([target], timeout=5))
    assert "not a public address" in result.not_checked[target.id]


def test_a_host_of_ones_own_may_be_private_and_without_tls(host: Any) -> None:
    own = host.url.removeprefix("http://")
    target = api("fine", url=f"{host.url}/fine")
    other = api("other", url="http://127.0.0.1:9/fine")
    world = live_backend([target, other], timeout=5, own={own})
    assert "https" in world.refuses(other)
    kept = Kept()
    result = checked([target, other], world, keep=kept)
    assert {one.verdict for one in result.entries} == {HealthStatus.OK}
    assert list(kept.entries) == [target.id]


def test_a_busy_service_of_ones_own_is_given_its_time(host: Any) -> None:
    own = host.url.removeprefix("http://")
    target = api("busy", url=f"{host.url}/busy")
    result = checked([target], live_backend([target], timeout=5, own={own}))
    assert [one.verdict for one in result.entries] == [HealthStatus.OK]


def test_the_key_goes_to_its_own_hosts_only(host: Any) -> None:
    key = "secret-key-0123456789"
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"you sent": request.headers.get("x-rapidapi-key")})

    apis = [api("a", host="x.p.rapidapi.com"), api("b", host="rapidapi.com.evil.test")]
    world = live_backend(apis, timeout=5, key=key)
    assert isinstance(world, CallerBackend)
    network: Any = world._callers["x.p.rapidapi.com"]._network
    live: LiveTransport = network.transport._inner
    live._inner = httpx.MockTransport(answer)  # type: ignore[assignment]
    result = checked(apis, world)
    sent = {request.headers["host"]: request.headers.get("x-rapidapi-key") for request in asked}
    assert sent == {"x.p.rapidapi.com": key, "rapidapi.com.evil.test": None}
    assert all(key not in one.excerpt for one in result.entries)

    echo = [api("echo", host="x.p.rapidapi.com")]
    said = checked(echo, live_backend(echo, timeout=5, key=key, via=host.url))
    assert said.entries[0].verdict == "ok"
    assert "rapidapi-key" not in said.entries[0].excerpt.lower()


def test_without_a_key_rapidapi_is_left_alone() -> None:
    target = api("a", host="x.p.rapidapi.com")
    world = live_backend([target], timeout=5)
    assert world.refuses(target) == NO_KEY
    asyncio.run(world.aclose())


@pytest.mark.parametrize("url", ["ftp://x", "localhost", "http://u:p@h", "http://h:x", ""])
def test_a_gateway_must_be_a_url(url: str) -> None:
    with pytest.raises(UsageError):
        live_backend([], timeout=5, via=url)


def test_the_catalog_that_ships_is_checked_offline(apis: dict[str, Api]) -> None:
    some = [one for one in apis.values() if one.category == "Science"]
    result = checked([*some, api("x")], offline_backend(timeout=10))
    assert {one.verdict for one in result.entries} == {HealthStatus.OK}
    assert {one.source for one in result.entries} == {"offline"}
    assert len(result.entries) == len(some)


# --- recordings -----------------------------------------------------------------------------------


def test_a_recording_is_judged_like_the_replies_it_holds(host: Any, tmp_path: Path) -> None:
    names = ["fine", "html", "error", "empty", "404", "reset", "text"]
    apis = [api(name) for name in names]
    file = tmp_path / "deep" / "replies.jsonl"

    async def run() -> CheckResult:
        world = live_backend(apis, timeout=5, via=host.url)
        with ReplyRecorder(file) as recorder:
            plan = planned(apis, refuses=world.refuses)
            try:
                return await Checker(
                    plan.items, world, keep=Kept(), rules=CheckOptions(rate=0), heard=recorder.add
                ).run()
            finally:
                await world.aclose()

    live = asyncio.run(run())
    again = checked([*apis, api("unheard")], recorded_backend(file))
    assert {one.api_id: one.verdict for one in again.entries} == {
        one.api_id: one.verdict for one in live.entries
    }
    assert {one.source for one in again.entries} == {"recorded"}


def test_half_a_line_of_a_killed_recorder_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_bytes(b'{"api_id": "C/t/a", "status": 200, "body": {"a": 1}}\n{"api_id": "C/')
    (first,) = checked([api("a")], recorded_backend(file)).entries
    with ReplyRecorder(file) as recorder:
        recorder.add("C/t/b", ApiReply(404, 0.1, body="\ud800 <\u2028>"))
    assert first.verdict == "ok"
    result = checked([api("a"), api("b")], recorded_backend(file))
    assert {one.api_id: one.verdict for one in result.entries} == {
        "C/t/a": "ok",
        "C/t/b": "http_error",
    }


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", '{"status": 200}', '{"api_id": "a", "status": "x"}', "{" * 50_000]
)
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({"api_id": "x", "status": 200}) + "\n" + line + "\n")
    with pytest.raises(DataError, match="line 2"):
        recorded_backend(file)


def test_the_deepest_and_oddest_reply_is_recorded_and_told(tmp_path: Path) -> None:
    deep: Any = "\ud800\x1b[31m"
    for _ in range(400):
        deep = [deep]
    reply = ApiReply(200, 0.1, body={"a": deep, "b": float("nan")})
    with ReplyRecorder(tmp_path / "replies.jsonl") as recorder:
        recorder.add("C/t/a", reply)
    (found,) = checked([api("a")], recorded_backend(tmp_path / "replies.jsonl")).entries
    assert found.verdict == "ok"
    assert excerpt(ApiReply(200, 0.1, body="\ud800\x1b[31m\u202e ok")).encode().endswith(b" ok")


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        recorded_backend(tmp_path / "nowhere")
