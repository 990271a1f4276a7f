"""Several processes on one data directory, some of them killed in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import BusyError
from toolsrv_registry.registry import Registry
from toolsrv_registry.storage.store import Store

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]

# Encodes one text, says so, and waits to be killed.
_STUCK_BUILD = """
import sys, threading
from pathlib import Path
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.registry import Registry

class Stuck(HashingEncoder):
    def encode(self, texts, *, progress=None):
        print("building", flush=True)
        threading.Event().wait()

Registry.open(Path(sys.argv[1]), encoder=Stuck()).ensure_index()
"""

_BUILD = """
import sys
from pathlib import Path
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.registry import Registry

class Loud(HashingEncoder):
    def encode(self, texts, *, progress=None):
        print("encoded", len(texts), flush=True)
        return super().encode(texts, progress=progress)

sys.stdin.readline()
with Registry.open(Path(sys.argv[1]), encoder=Loud()) as registry:
    print(registry.ensure_index().collection, flush=True)
    print(len(registry.retriever.search("weather forecast").hits), flush=True)
"""

_STUCK_PUT = """
import sys, threading
from pathlib import Path
from toolsrv_registry.storage import rows, store
from toolsrv_registry.api import Api, Catalog, Tool

def stuck(*_):
    print("writing", flush=True)
    threading.Event().wait()

count = iter(range(99))
real = rows.put_api
rows.put_api = lambda *a: real(*a) if next(count) < 5 else stuck()
apis = tuple(Api(id=f"A/t/{n}", category="A", tool="t", name=str(n)) for n in range(9))
opened = store.Store.open(Path(sys.argv[1]))
opened.put_catalog(Catalog(name="new", tools=(Tool(category="A", name="t", apis=apis),)))
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def more(make_api: MakeApi, make_catalog: MakeCatalog) -> Catalog:
    return make_catalog(make_api("A", "B", "c", "something new"), name="more")


def test_a_build_killed_half_way_leaves_the_old_index_and_the_next_completes(
    tmp_path: Path, catalog: Catalog, more: Catalog
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        old = registry.ensure_index()
        registry.store.put_catalog(more)
    process = start(_STUCK_BUILD, str(tmp_path))
    assert said(process) == "building"
    kill(process)
    with Registry.open(tmp_path, encoder=HashingEncoder()) as registry:
        status = registry.index.status()
        assert (status.state, status.collection) == ("stale", old.collection)
        owner = registry.store.owner()
        assert len(registry.index._chroma.names(owner)) == 2
        probe = registry.index.encoder.encode(["Daily weather forecast for a city"])
        assert registry.index.query(probe, 1)[0]
        status = registry.ensure_index()
        assert (status.state, status.apis) == ("ready", 13)
        assert registry.index._chroma.names(owner) == [status.collection]


def test_two_processes_that_build_at_once_make_one_index(tmp_path: Path, catalog: Catalog) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()):
        pass
    processes = [start(_BUILD, str(tmp_path)) for _ in range(2)]
    outputs = [process.communicate("go\n")[0].split("\n") for process in processes[::-1]]
    assert [process.returncode for process in processes] == [0, 0]
    lines = [line for output in outputs for line in output]
    assert lines.count("encoded 12") == 1
    assert len({line for line in lines if line.startswith("toolsrv-")}) == 1
    assert lines.count("5") == 2


def test_an_index_built_by_another_process_is_used_without_reopening(
    tmp_path: Path, catalog: Catalog, more: Catalog
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.ensure_index()
        assert registry.retriever.search("something new").degraded == ""
        registry.store.put_catalog(more)
        process = start(_BUILD, str(tmp_path))
        process.communicate("go\n")
        result = registry.retriever.search("A: B: c. something new")
        assert result.degraded == ""
        assert (result.hits[0].api.name, result.hits[0].dense_rank) == ("c", 1)


def test_an_index_wiped_and_rebuilt_by_another_process_is_found_again(
    tmp_path: Path, catalog: Catalog
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        first = registry.ensure_index().collection
        registry.retriever.search("weather")
        (tmp_path / "chroma" / "chroma.sqlite3").unlink()
        start(_BUILD, str(tmp_path)).communicate("go\n")
        assert registry.index.status().collection != first
        assert registry.retriever.search("weather").degraded == ""


def test_a_put_killed_half_way_leaves_the_old_catalogs(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / STORE_FILE
    with Store.open(path) as store:
        store.put_catalog(catalog)
    process = start(_STUCK_PUT, str(path))
    assert said(process) == "writing"
    with Store.open(path) as store:
        assert store.stats().apis == 12
    kill(process)
    with Store.open(path) as store:
        assert [entry.name for entry in store.catalogs()] == ["small"]
        assert store.names.match(["forecast"], 1)


def test_a_writer_that_never_ends_makes_others_busy_not_broken(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_registry.storage.database.BUSY_SECONDS", 0.1)
    path = tmp_path / STORE_FILE
    with Store.open(path) as first, Store.open(path) as second:
        with first._database.write(), pytest.raises(BusyError) as caught:
            second.put_catalog(catalog)
        assert caught.value.hint
        assert second.put_catalog(catalog).added


def test_many_threads_share_a_registry(hashed: Registry) -> None:
    faults: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                result = hashed.retriever.search(f"weather forecast {number}")
                assert result.degraded == ""
                hashed.retriever.scores("convert money", [hit.api for hit in result.hits])
                hashed.store.get(result.hits[0].api.id)
        except BaseException as error:  # noqa: BLE001  (carried to the test's own thread)
            faults.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_stores_first_opened_at_the_same_time_all_open(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom toolsrv_registry.storage.store import Store\n"
        "sys.stdin.readline()\nprint(Store.open(Path(sys.argv[1])).owner())"
    )
    processes = [start(program, str(tmp_path / "data" / STORE_FILE)) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    owners = {process.communicate()[0].strip() for process in processes}
    assert len(owners) == 1
    assert owners != {""}
