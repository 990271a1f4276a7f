"""Recordings: keys, the store, callers that record and replay, and what is never recorded."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult, Network
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.recordings import MASK, Recording, call_key, canonical_arguments
from toolsrv_runtime.calls.recordings.callers import RecordingCaller, ReplayingCaller
from toolsrv_runtime.calls.recordings.storage import RecordingFilter, RecordingStore
from toolsrv_runtime.errors import ArgumentError

CANARY = "canary-7d21/+=x9"
FORECAST = Api(
    id="Weather/sky/forecast",
    category="Weather",
    tool="sky",
    name="forecast",
    url="https://sky.test/{city}",
    required=(Parameter(name="city"),),
    optional=(
        Parameter(name="days", type="NUMBER", default="3"),
        Parameter(name="hourly", type="BOOLEAN"),
        Parameter(name="day", type="DATE"),
        Parameter(name="fields", type="ARRAY"),
    ),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with RecordingStore.open(tmp_path / "recordings.sqlite3") as opened:
        yield opened


def entry(number: int = 0, **more: Any) -> Recording:
    arguments = {"city": f"Oslo {number}"}
    made = CallResult(
        api_id=FORECAST.id,
        arguments=arguments,
        url="",
        status=200,
        response={"n": number},
        error="",
        source="live",
        seconds=0.1,
    )
    return Recording.from_result(FORECAST, made).model_copy(update=more)


# --- keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Oslo", "days": 3}, {"city": "Oslo", "days": "3"}),
        ({"city": "Oslo", "days": 3}, {"days": 3.0, "city": "Oslo"}),
        ({"city": "Oslo"}, {"city": "Oslo", "days": 3}),
        ({"city": "Oslo", "hourly": True}, {"city": "Oslo", "hourly": "true"}),
        ({"city": 5}, {"city": "5"}),
        ({"city": "Oslo", "day": ""}, {"city": "Oslo", "day": None}),
    ],
)
def test_spellings_of_one_call_share_a_key(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert call_key(FORECAST, one) == call_key(FORECAST, other)


@pytest.mark.parametrize(
    "other",
    [{"city": "oslo"}, {"city": "Oslo", "days": 4}, {"city": "Oslo", "hourly": False}, {}],
)
def test_different_calls_do_not(other: dict[str, Any]) -> None:
    assert call_key(FORECAST, {"city": "Oslo"}) != call_key(FORECAST, other)


def test_the_same_arguments_of_another_api_have_another_key() -> None:
    other = FORECAST.model_copy(update={"id": "Weather/sky/past"})
    assert call_key(FORECAST, {"city": "Oslo"}) != call_key(other, {"city": "Oslo"})


def test_a_default_that_does_not_fit_its_type_is_left_out() -> None:
    odd = FORECAST.model_copy(
        update={"optional": (Parameter(name="days", type="NUMBER", default="some"),)}
    )
    assert canonical_arguments(odd, {"city": "Oslo"}) == {"city": "Oslo"}


@pytest.mark.parametrize("bad", [{"town": "Oslo"}, {"city": "Oslo", "days": "many"}, {"city": []}])
def test_arguments_that_do_not_fit_have_a_key_of_their_own(bad: dict[str, Any]) -> None:
    assert call_key(FORECAST, bad) == call_key(FORECAST, dict(reversed(bad.items())))


def test_endless_nesting_is_refused() -> None:
    deep: Any = []
    for _ in range(20_000):
        deep = [deep]
    with pytest.raises(ArgumentError):
        call_key(FORECAST, {"city": "Oslo", "fields": deep})


@pytest.mark.parametrize("field", ["arguments", "response"])
def test_an_entry_is_not_deeper_than_a_response_may_be(field: str) -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(ValidationError):
        Recording.model_validate(entry().model_dump() | {field: deep})


NUMBERS = st.one_of(
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
CALLS = st.fixed_dictionaries(
    {"city": st.text(min_size=1, max_size=20).filter(lambda text: text != "")},
    optional={
        "days": NUMBERS,
        "hourly": st.booleans(),
        "day": st.dates().map(str),
        "fields": st.lists(st.one_of(st.text(max_size=8), NUMBERS), max_size=4),
    },
)


@given(call=CALLS, seed=st.randoms(use_true_random=False))
def test_a_key_knows_no_order_and_no_spelling(call: dict[str, Any], seed: random.Random) -> None:
    try:
        bound = args.bind(FORECAST, call)
    except ArgumentError:  # a lone surrogate
        return
    names = list(call)
    seed.shuffle(names)
    spelt = {name: call[name] for name in names}
    if "days" in spelt:
        text = json.dumps(spelt["days"])
        spelt["days"] = spelt["days"] if "e" in text else text  # "1e16" is a text of its own
    if "hourly" in spelt:
        spelt["hourly"] = str(spelt["hourly"]).lower()
    key = call_key(FORECAST, call)
    assert key == call_key(FORECAST, spelt) == call_key(FORECAST, bound)
    assert key == call_key(FORECAST, canonical_arguments(FORECAST, call))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    arguments=st.dictionaries(st.sampled_from(["city", "days", "fields", "x", "day"]), JSON),
    response=JSON,
)
def test_any_arguments_and_response_can_be_recorded(
    arguments: dict[str, Any], response: Any
) -> None:
    key = call_key(FORECAST, arguments)
    made = entry(key=key, arguments=arguments, response=response)
    again = Recording.model_validate(json.loads(made.line()))
    assert again == made
    assert again.digest == made.digest


# --- the store -------------------------------------------------------------------------------


def test_live_comes_before_imported_before_simulated_and_then_the_newest(
    store: RecordingStore,
) -> None:
    key = entry().key
    for number, provenance in enumerate(("simulated", "imported", "live", "live", "simulated")):
        store.add(entry(provenance=provenance, response=number))
    found = store.find(key)
    assert found is not None
    assert found.response == 3
    assert store.prune(RecordingFilter(provenances=frozenset({"live"}))) == 2
    found = store.find(key)
    assert found is not None
    assert found.response == 1


def test_entries_are_never_changed(store: RecordingStore) -> None:
    store.add(entry())
    with pytest.raises(DataError), store._database.write() as db:
        db.execute("UPDATE entries SET document = '{}'")
    assert store.stats().entries == 1


def test_what_is_pruned_is_what_was_chosen(store: RecordingStore) -> None:
    store.add(entry(1, recorded_at="2020-01-01T00:00:00.000000+00:00"))
    store.add(entry(1, response=2))
    store.add(entry(2, kind="server_error", status=500))
    store.add(entry(3, recorded_at=""))
    assert store.count(RecordingFilter(before="2021")) == 1
    assert store.count(RecordingFilter(failed=True)) == 1
    assert store.prune(RecordingFilter(superseded=True)) == 1
    assert store.prune(RecordingFilter(failed=True, api_ids=frozenset({"other"}))) == 0
    assert [one.arguments["city"] for one in store.entries()] == ["Oslo 1", "Oslo 2", "Oslo 3"]
    stats = store.stats()
    assert (stats.entries, stats.calls, stats.apis) == (3, 3, 1)
    assert stats.kinds == {"ok": 2, "server_error": 1}


def test_many_entries_come_back_in_order(store: RecordingStore) -> None:
    assert store.add_all(entry(number) for number in range(1_200)) == 1_200
    assert [one.response["n"] for one in store.entries()] == list(range(1_200))


_WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_runtime_recordings as own
from toolsrv_runtime.calls.recordings.storage import RecordingStore
with RecordingStore.open(Path(sys.argv[1])) as store:
    for number in range(100_000):
        store.add(own.entry(number, response="x" * 3_000))
        print(number, flush=True)
"""


@pytest.mark.parametrize("after", [1, 60])
def test_kill_9_in_the_middle_of_writes_loses_nothing_committed(tmp_path: Path, after: int) -> None:
    path = tmp_path / "recordings.sqlite3"
    command = [sys.executable, "-c", _WRITER, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout.read().split()]
    with RecordingStore.open(path) as store:
        kept = [one.arguments["city"] for one in store.entries()]
        assert len(kept) in (len(told), len(told) + 1)
        assert kept == [f"Oslo {number}" for number in range(len(kept))]
        store.add(entry(999_999))
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


# --- callers ---------------------------------------------------------------------------------


class Host(httpx.AsyncBaseTransport):
    """Answers with what it was asked, headers included, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        broken = request.url.path.endswith("broken")
        seen = {"url": str(request.url), "headers": dict(request.headers), "n": self.asked}
        return httpx.Response(
            503 if broken else 200,
            headers={"Content-Type": "application/json"},
            stream=httpx.ByteStream(json.dumps(seen).encode()),
            request=request,
        )


def world(host: Host) -> dict[str, Any]:
    return {
        "transports": {},
        "network": Network(transport=host, keys=lambda name: CANARY if name == "sky.test" else ""),
    }


def record(store: RecordingStore, calls: list[tuple[Api, dict[str, Any]]]) -> list[CallResult]:
    async def run() -> list[CallResult]:
        caller = RecordingCaller(store, **world(Host()))
        return [await caller.call(api, arguments) for api, arguments in calls]

    return asyncio.run(run())


def replay(
    store: RecordingStore, calls: list[tuple[Api, dict[str, Any]]], policy: Policy | None = None
) -> list[CallResult]:
    async def run() -> list[CallResult]:
        caller = ReplayingCaller(store, policy=policy)
        return [await caller.call(api, arguments) for api, arguments in calls]

    return asyncio.run(run())


def test_a_recorded_call_is_given_again_as_recorded(store: RecordingStore) -> None:
    [live, broken] = record(store, [(FORECAST, {"city": "Oslo"}), (FORECAST, {"city": "broken"})])
    assert (live.source, live.kind, broken.kind) == ("live", "ok", "server_error")
    [again, still] = replay(
        store, [(FORECAST, {"days": "3", "city": "Oslo"}), (FORECAST, {"city": "broken"})]
    )
    assert (again.source, again.response) == ("recorded", live.response)
    assert (again.status, again.seconds) == (200, 0.0)
    assert still == broken.model_copy(update={"source": "recorded", "seconds": 0.0})


def test_a_miss_names_the_nearest_recorded_arguments(store: RecordingStore) -> None:
    record(store, [(FORECAST, {"city": city, "days": 2}) for city in ("Oslo", "Rome", "Bern")])
    [miss] = replay(store, [(FORECAST, {"city": "Roma", "days": 2})])
    assert (miss.kind, miss.source, miss.status) == ("replay_miss", "recorded", 0)
    assert miss.nearest == {"city": "Rome", "days": 2}
    assert "Rome" in miss.error
    assert not miss.ok
    other = FORECAST.model_copy(update={"id": "Weather/sky/past"})
    [nothing] = replay(store, [(other, {"city": "Rome"})])
    assert (nothing.kind, nothing.nearest) == ("replay_miss", None)


def test_refusals_are_found_again_without_a_recording(store: RecordingStore) -> None:
    post = FORECAST.model_copy(update={"id": "Weather/sky/set", "method": "POST"})
    calls: list[tuple[Api, dict[str, Any]]] = [(FORECAST, {}), (post, {"city": "Oslo"})]
    first = record(store, calls)
    assert [one.kind for one in first] == ["bad_arguments", "needs_consent"]
    assert store.stats().entries == 0
    again = replay(store, calls)
    assert [one.model_copy(update={"source": "live"}) for one in again] == first


def test_a_consented_call_is_replayed_without_a_person(store: RecordingStore) -> None:
    post = FORECAST.model_copy(update={"method": "POST"})

    async def run() -> CallResult:
        caller = RecordingCaller(store, **world(Host()))
        asked = await caller.call(post, {"city": "Oslo"})
        return await caller.call(post, {"city": "Oslo"}, consent=asked.consent)

    made = asyncio.run(run())
    [again] = replay(store, [(post, {"city": "Oslo"})])
    assert made.ok
    assert (again.kind, again.response) == ("ok", made.response)


def test_a_simulated_entry_says_so_when_it_is_replayed(store: RecordingStore) -> None:
    store.add(entry(provenance="simulated"))
    [again] = replay(store, [(FORECAST, {"city": "Oslo 0"})])
    assert again.source == "simulated"


def test_what_could_be_called_while_recording_can_be_replayed(store: RecordingStore) -> None:
    scheme = SecurityScheme(name="main", kind="apiKey", place="header", key="X-Key")
    keyed = FORECAST.model_copy(update={"security": ((scheme,),)})
    elsewhere = keyed.model_copy(update={"url": "https://other.test/"})
    recording = RecordingCaller(store, **world(Host()))
    assert recording.can_call(keyed)
    assert not recording.can_call(elsewhere)
    replaying = ReplayingCaller(store)
    assert replaying.can_call(FORECAST)
    assert replaying.can_call(keyed)
    assert not replaying.can_call(elsewhere)


def test_a_full_disk_is_told_once_and_the_calls_go_on(
    store: RecordingStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    pages = store._database.read("PRAGMA page_count")[0][0]
    store._database.read(f"PRAGMA max_page_count = {pages}")
    results = record(store, [(FORECAST, {"city": "x" * 9_000 + str(n)}) for n in range(8)])
    assert all(one.ok for one in results)
    assert len(caplog.records) == 1
    assert "the disk is full" in caplog.text


def test_a_damaged_store_is_a_readable_error(tmp_path: Path) -> None:
    path = tmp_path / "recordings.sqlite3"
    path.write_bytes(b"no database at all" * 1_000)
    with pytest.raises(DataError):
        RecordingStore.open(path)


# --- secrets ---------------------------------------------------------------------------------


def everything(store: RecordingStore) -> bytes:
    """Return every byte of the store's files."""
    folder = store.path.parent
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


def test_no_key_enters_a_recording(store: RecordingStore) -> None:
    schemes = [
        SecurityScheme(name="main", kind="apiKey", place="header", key="X-Key"),
        SecurityScheme(name="query", kind="apiKey", place="query", key="k"),
        SecurityScheme(name="cookie", kind="apiKey", place="cookie", key="c"),
        SecurityScheme(name="bearer", kind="http", scheme="bearer"),
        SecurityScheme(name="basic", kind="http", scheme="basic"),
    ]
    apis = [FORECAST.model_copy(update={"security": ((one,),)}) for one in schemes]
    results = record(store, [(api, {"city": f"Oslo {n}"}) for n, api in enumerate(apis)])
    results += record(store, [(apis[0], {"city": f"Oslo and {CANARY}"})])
    assert all(one.ok for one in results)
    written = everything(store)
    for spelt in (CANARY, "canary-7d21", "Y2FuYXJ5", "canary-7d21%2F"):
        assert spelt.encode() not in written
    assert store.key_names() == {"sky.test"}


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "X-API-Key", "access_token", "Authorization", "password", "token"]
)
def test_an_argument_that_is_a_credential_is_masked(store: RecordingStore, name: str) -> None:
    api = FORECAST.model_copy(update={"optional": (Parameter(name=name),)})
    secret = "s3cretS3cretValue99"
    [made] = record(store, [(api, {"city": "Oslo", name: secret})])
    assert secret.encode() not in everything(store)
    [kept] = store.entries()
    assert kept.arguments == {"city": "Oslo", name: MASK}
    [again] = replay(store, [(api, {"city": "Oslo", name: secret})])
    assert again.response == made.response
    [other] = replay(store, [(api, {"city": "Oslo", name: "another secret"})])
    assert other.kind == "replay_miss"


def test_a_bearer_token_in_a_response_is_masked(store: RecordingStore) -> None:
    told = "use Authorization: Bearer abc123def456ghi789jkl now"
    made = entry(response={"how": [told]})
    raw = CallResult(**(made.result({}, "").model_dump() | {"response": {"how": [told]}}))
    store.add(Recording.from_result(FORECAST, raw))
    assert b"abc123def456" not in everything(store)


def test_an_ordinary_argument_called_token_stays(store: RecordingStore) -> None:
    api = FORECAST.model_copy(update={"optional": (Parameter(name="token"),)})
    record(store, [(api, {"city": "Oslo", "token": "bitcoin"})])
    [kept] = store.entries()
    assert kept.arguments["token"] == "bitcoin"


def test_a_recording_caller_is_a_caller(store: RecordingStore) -> None:
    assert isinstance(ReplayingCaller(store), Caller)
