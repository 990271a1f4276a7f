"""A Chroma server on loopback, as the chromadb package brings it, shared by several processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.encoder import HashingEncoder, Progress, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.registry import Registry

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]
CHROMA = Path(sys.executable).with_name("chroma")
TASK = "time difference between cities"

pytestmark = pytest.mark.skipif(not CHROMA.exists(), reason="the chroma command is not here")


class CountingEncoder(HashingEncoder):
    """The fake, counting the texts it is asked to encode."""

    def __init__(self) -> None:
        super().__init__(32)
        self.texts = 0

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        self.texts += len(texts)
        return super().encode(texts, progress=progress)


class ChromaServer:
    """``chroma run`` on a free port that stays the same when it is started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        place = ("--host", "127.0.0.1", "--port", str(self._port), "--path", str(self._folder))
        self.process = subprocess.Popen(
            [str(CHROMA), "run", *place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                assert self.process.poll() is None
                assert time.monotonic() < deadline
            else:
                return

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ChromaServer]:
    one = ChromaServer(tmp_path / "chroma-server")
    one.start()
    yield one
    one.stop()


def opened(
    folder: Path, server: ChromaServer, *catalogs: Catalog, encoder: HashingEncoder | None = None
) -> Registry:
    return Registry.open(
        folder, catalogs, encoder=encoder or CountingEncoder(), chroma_url=server.url
    )


# --- whole processes --------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path, server: ChromaServer) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSRV_")}
    return kept | {"TOOLSRV_DATA_DIR": str(tmp_path / "data"), "TOOLSRV_CHROMA_URL": server.url}


def toolsrv(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "toolsrv", *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Serving:
    """``toolsrv serve`` on stdio, spoken to line by line."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "toolsrv", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._number = 0
        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self._ask("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def search(self) -> str:
        """Return what the search says against itself; its best hit must be the right one."""
        found = self._ask("tools/call", {"name": "search_apis", "arguments": {"query": TASK}})
        content: dict[str, Any] = found["structuredContent"]
        assert content["hits"][0]["id"] == "Location/world_clock/time_difference"
        return str(content["degraded"])

    def end(self) -> str:
        _, err = self._process.communicate(timeout=60)
        return err

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            if answer.get("id") == self._number:
                result: dict[str, Any] = answer["result"]
                return result

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


@pytest.mark.nightly
def test_two_servers_share_the_index_that_a_third_process_built(
    environment: dict[str, str], server: ChromaServer, tmp_path: Path
) -> None:
    built = toolsrv(environment, "index", "build")
    assert (built["state"], built["place"]) == ("ready", server.url)
    servings = [Serving(environment), Serving(environment)]
    assert [one.search() for one in servings] == ["", ""]
    status = toolsrv(environment, "index", "status")
    assert (status["collection"], status["built_at"]) == (built["collection"], built["built_at"])
    assert not (tmp_path / "data" / "chroma").exists()

    server.stop()
    for one in servings:
        told = one.search()
        assert "words only" in told
        assert server.url in told
    server.start()
    assert [one.search() for one in servings] == ["", ""]
    assert toolsrv(environment, "index", "status")["collection"] == built["collection"]
    for one in servings:
        assert "Traceback" not in one.end()


# --- one process, several registries ----------------------------------------------------------


def test_another_data_folder_takes_the_vectors_from_the_server(
    tmp_path: Path, server: ChromaServer, catalog: Catalog
) -> None:
    first, second = CountingEncoder(), CountingEncoder()
    with (
        opened(tmp_path / "a", server, catalog, encoder=first) as a,
        opened(tmp_path / "b", server, catalog, encoder=second) as b,
    ):
        a.ensure_index()
        assert first.texts == 12
        assert b.ensure_index().state == "ready"
        assert second.texts == 0
        best = [one.retriever.search("weather forecast").hits[0] for one in (a, b)]
        assert best[0] == best[1]
        # Each keeps its own: what one drops the other does not miss.
        a.store.put_catalog(Catalog(name="small", tools=catalog.tools[:2]))
        a.ensure_index()
        assert b.retriever.search("weather forecast").degraded == ""


def test_vectors_of_another_encoder_are_not_taken(
    tmp_path: Path, server: ChromaServer, catalog: Catalog
) -> None:
    with opened(tmp_path / "a", server, catalog, encoder=HashingEncoder(16)) as a:
        a.ensure_index()
    other = CountingEncoder()
    with opened(tmp_path / "b", server, catalog, encoder=other) as b:
        assert b.ensure_index().state == "ready"
        assert other.texts == 12


def test_a_server_that_stops_in_a_build_leaves_the_old_index_for_when_it_is_back(
    tmp_path: Path, server: ChromaServer, catalog: Catalog, make_api: MakeApi,
    make_catalog: MakeCatalog,
) -> None:  # fmt: skip
    class Stopping(CountingEncoder):
        """Stops the server between two writes to it."""

        def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
            server.stop()
            return super().encode(texts, progress=progress)

    more = make_catalog(make_api("A", "B", "c", "something new"), name="more")
    with opened(tmp_path / "a", server, catalog) as registry:
        old = registry.ensure_index()
    with opened(tmp_path / "a", server, more, encoder=Stopping()) as registry:
        with pytest.raises(DataError) as caught:
            registry.index.build()
        assert server.url in caught.value.message
    server.start()
    with opened(tmp_path / "a", server) as registry:
        status = registry.index.status()
        assert (status.state, status.collection) == ("stale", old.collection)
        assert registry.index.build().apis == 13
        assert registry.retriever.search("something new").degraded == ""
        assert len(registry.index._chroma.names(registry.store.owner())) == 1


def test_a_server_that_hangs_does_not_hang_a_search(
    tmp_path: Path, server: ChromaServer, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_registry.index.chroma._SEARCH_SECONDS", 2.0)
    monkeypatch.setattr("toolsrv_registry.search.recall._BUILD_AT_ONCE", 0)
    with opened(tmp_path / "a", server, catalog) as registry:
        registry.ensure_index()
        assert registry.retriever.search("weather forecast").degraded == ""
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        result = registry.retriever.search("weather forecast")
        assert time.monotonic() - began < 20
        assert "words only" in result.degraded
        assert result.hits[0].api.name == "Forecast"
        server.process.send_signal(signal.SIGCONT)
        assert registry.retriever.search("weather forecast").degraded == ""


def test_a_server_that_lost_its_data_is_filled_again(
    tmp_path: Path, server: ChromaServer, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "a", server, catalog) as registry:
        registry.ensure_index()
        for name in registry.index._chroma.names(registry.store.owner()):
            registry.index._chroma.drop(name)
        with monkeypatch.context() as patch:
            patch.setattr("toolsrv_registry.search.recall._BUILD_AT_ONCE", 0)
            told = registry.retriever.search("weather forecast").degraded
        assert "words only" in told
        assert "index build" in told
        assert registry.retriever.search("weather forecast").degraded == ""
