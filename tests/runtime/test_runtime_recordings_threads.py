"""What may wait for a person or for another process does so in a thread, not in the event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.recordings.callers import RecordingCaller
from toolsrv_runtime.calls.recordings.storage import RecordingStore

KEYED = Api(
    id="C/t/a",
    category="C",
    tool="t",
    name="a",
    url="https://keyed.test/x",
    security=((SecurityScheme(name="main", kind="apiKey", place="header", key="X-Key"),),),
)


class Host(httpx.AsyncBaseTransport):
    """A transport that answers with the key that it got."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        key = request.headers["X-Key"]
        return httpx.Response(200, stream=httpx.ByteStream(f'{{"n": {len(key)}}}'.encode()))


def test_the_loop_goes_on_while_a_keyring_asks_to_be_unlocked() -> None:
    unlocked = threading.Event()

    def keys(name: str) -> str:
        assert unlocked.wait(60)
        return "k" * 20 if name == "keyed.test" else ""

    async def run() -> None:
        async with Caller(
            transports={}, network=Network(transport=Host(), keys=keys, hosts=None)
        ) as caller:
            called = asyncio.create_task(caller.call(KEYED, {}))
            await asyncio.sleep(0)
            unlocked.set()  # were the loop to wait for the key, this would never be reached
            assert (await called).response == {"n": 20}

    asyncio.run(run())


def test_the_name_of_a_key_is_written_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    note = RecordingStore.note_key

    def noting(store: RecordingStore, name: str) -> None:
        threads.append(threading.get_ident())
        note(store, name)

    monkeypatch.setattr(RecordingStore, "note_key", noting)

    async def run() -> None:
        network = Network(transport=Host(), keys=lambda _: "k" * 20, hosts=None)
        with RecordingStore.open(tmp_path / "r.sqlite3") as store:
            caller = RecordingCaller(store, transports={}, network=network)
            for _ in range(2):
                assert (await caller.call(KEYED, {})).ok
            assert store.key_names() == {"keyed.test/main"}
        assert len(threads) == 1
        assert threading.get_ident() not in threads

    asyncio.run(run())
