"""What goes wrong around a data folder: processes killed, disks full, several writers, damage."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsrv_registry.api import Catalog
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.encoder import SHIPPED_ENCODER, HashingEncoder, OnnxEncoder
from toolsrv_registry.errors import DataError
from toolsrv_registry.ranker import MODEL_FILE, SHIPPED_RANKER, Ranker
from toolsrv_registry.registry import Registry
from toolsrv_registry.search.retriever import Retriever
from toolsrv_registry.storage.schema import MIGRATIONS
from toolsrv_registry.storage.store import Store

WORKER = str(Path(__file__).with_name("fault_worker.py"))
KILLS = [15, pytest.param(50, marks=pytest.mark.nightly)]
# Above 1,000 vectors Chroma keeps its graph in files of its own.
APIS = 1_100
MIB = 1024 * 1024


class Worker:
    """The other process: see ``fault_worker.py``."""

    def __init__(self, folder: Path, *, tmpfs: str = "") -> None:
        command = [sys.executable, WORKER, str(folder)]
        if tmpfs:
            mount = f'mount -t tmpfs -o size={tmpfs} none "$1" && shift && exec "$@"'
            command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(folder.parent), *command]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answer()

    def send(self, do: str, **asked: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "apis": APIS} | asked) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "fault" not in found, found
        assert found.get("code", 0) == (-9 if found.get("killed") else 0), found
        return found

    def __call__(self, do: str, **asked: Any) -> dict[str, Any]:
        self.send(do, **asked)
        return self.answer()

    def end(self) -> None:
        self._process.communicate(timeout=60)


Start = Callable[..., Worker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start workers; all of them end with the test."""
    workers: list[Worker] = []

    def one(folder: Path, **options: str) -> Worker:
        workers.append(Worker(folder, **options))
        return workers[-1]

    yield one
    for worker in workers:
        worker.end()


def graphs(folder: Path) -> list[Path]:
    return [path for path in (folder / "chroma").iterdir() if path.is_dir()]


# --- killed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", KILLS)
def test_killed_at_any_moment_of_import_and_build_everything_opens_and_the_next_run_completes(
    tmp_path: Path, start: Start, kills: int
) -> None:
    worker = start(tmp_path)
    worker("write", version=0)
    whole = worker("write", version=1)["seconds"]
    chance = random.Random(3)
    stored, killed = 1, 0
    for version in range(2, kills + 2):
        # Each half of the work gets its share: most of the time is spent in the build.
        share = chance.uniform(0, 0.25) if version % 3 == 0 else chance.uniform(0, 1.0)
        killed += worker("write", version=version, kill_after=share * whole)["killed"]
        found = worker("check")
        assert found["integrity"] == "ok"
        assert found["apis"] == APIS
        (present,) = map(int, found["versions"])
        assert present in {stored, version}
        stored = present
        assert (found["by_words"], found["hits"]) == (5, 5)
        assert (found["state"] == "ready") == (found["degraded"] == "")
    assert killed > kills // 2
    assert worker("write", version=99)["state"] == "ready"
    found = worker("check")
    assert (found["versions"], found["measured"], found["degraded"]) == (["99"], True, "")
    assert len(graphs(tmp_path)) == 1


def test_builds_leave_nothing_behind_on_disk(tmp_path: Path, start: Start) -> None:
    worker = start(tmp_path)
    sizes = []
    for version in range(4):
        worker("write", version=version)
        assert len(graphs(tmp_path)) == 1
        sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()))
    assert sizes[-1] < 2 * sizes[0]


# --- a full disk ------------------------------------------------------------------------------


@pytest.fixture
def small_disk(start: Start) -> Iterator[Callable[[str], Worker]]:
    """Return a worker whose data folder is the only thing on a disk of its own."""
    folder = Path(tempfile.mkdtemp(prefix="toolsrv-disk-"))
    tried = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(folder)]
    if (
        shutil.which("unshare") is None
        or subprocess.run(tried, capture_output=True, check=False).returncode
    ):
        folder.rmdir()
        pytest.skip("no disk can be mounted here")
    yield lambda size: start(folder / "data", tmpfs=size)
    folder.rmdir()


def test_a_disk_that_is_full_before_an_import_ends_leaves_the_old_catalog(
    small_disk: Callable[[str], Worker],
) -> None:
    worker = small_disk("64m")
    worker("write", version=0, apis=220)
    worker("room", size="1400k")
    told = worker("write", version=1)
    assert told["kind"] == "DataError"
    assert "full" in told["error"]
    assert STORE_FILE in told["error"]
    assert "free some disk space" in told["hint"]
    found = worker("check")
    assert (found["integrity"], found["versions"], found["apis"]) == ("ok", ["0"], 220)
    assert (found["hits"], found["measured"]) == (5, True)
    worker("room", size="64m")
    assert worker("write", version=2)["state"] == "ready"
    found = worker("check")
    assert (found["versions"], found["degraded"]) == (["2"], "")


def test_a_disk_that_is_full_before_a_build_ends_leaves_words_and_gives_its_room_back(
    small_disk: Callable[[str], Worker],
) -> None:
    worker = small_disk("64m")
    worker("write", version=0, apis=220)
    worker("write", version=1, apis=2_200, build=False)
    worker("room", size="3m")
    told = worker("write", version=1, apis=2_200)
    assert told["kind"] == "DataError"
    assert "the disk is full" in told["error"]
    assert "free some disk space" in told["hint"]
    assert "index build" in told["hint"]
    found = worker("check")
    assert (found["integrity"], found["versions"], found["hits"]) == ("ok", ["1"], 5)
    assert found["degraded"]
    worker("room", size="64m")
    assert worker("write", version=1, apis=2_200)["state"] == "ready"
    found = worker("check")
    assert (found["measured"], found["degraded"]) == (True, "")


@pytest.mark.parametrize(
    "limit", [100_000, *(pytest.param(one, marks=pytest.mark.nightly) for one in (0, 400_000))]
)
def test_an_import_over_the_limit_on_file_sizes_leaves_the_old_catalog(
    tmp_path: Path, start: Start, limit: int
) -> None:
    worker = start(tmp_path)
    worker("write", version=0)
    told = worker("write", version=1, apis=3 * APIS, file_limit=limit)
    assert told["kind"] == "DataError"
    assert STORE_FILE in told["error"]
    assert "remove" not in told["hint"]
    found = worker("check")
    assert (found["integrity"], found["versions"], found["measured"]) == ("ok", ["0"], True)
    assert worker("write", version=1, apis=3 * APIS)["state"] == "ready"


def test_a_build_over_the_limit_on_file_sizes_leaves_the_old_index(
    tmp_path: Path, start: Start
) -> None:
    worker = start(tmp_path)
    worker("write", version=0)
    worker("write", version=1, build=False)
    told = worker("write", version=1, file_limit=300_000)
    assert told["kind"] == "DataError"
    assert "check its disk" in told["hint"]
    assert worker("check")["state"] == "stale"
    assert len(graphs(tmp_path)) == 1
    assert worker("write", version=1)["state"] == "ready"
    assert worker("check")["degraded"] == ""


# --- several at once --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("one", "two"), pytest.param(("same", "same"), marks=pytest.mark.nightly)]
)
def test_two_imports_at_once_both_end_and_nothing_is_mixed(
    tmp_path: Path, start: Start, names: tuple[str, str]
) -> None:
    workers = [start(tmp_path), start(tmp_path)]
    for version in (1, 3):
        for number, (worker, name) in enumerate(zip(workers, names, strict=True)):
            worker.send("write", version=version + number, name=name)
        for worker in workers:
            assert "error" not in worker.answer()
        found = workers[0]("check")
        assert found["integrity"] == "ok"
        assert found["apis"] == APIS * len(set(names))
        assert len(found["versions"]) == len(set(names))
        assert set(found["versions"]) <= {str(version), str(version + 1)}
    assert workers[1]("write", version=9, name=names[1])["state"] == "ready"
    assert workers[0]("check")["degraded"] == ""
    assert len(graphs(tmp_path)) == 1


@pytest.mark.nightly
def test_a_reader_during_imports_and_builds_always_gets_whole_answers(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_registry.search.recall._BUILD_AT_ONCE", 0)
    worker = start(tmp_path)
    worker("write", version=0)
    searches = measured = 0
    with Registry.open(tmp_path, encoder=HashingEncoder(16)) as registry:
        for version in range(1, 5):
            worker.send("write", version=version)
            done: list[dict[str, Any]] = []
            waiting = threading.Thread(target=lambda: done.append(worker.answer()))  # noqa: B023
            waiting.start()
            while waiting.is_alive():
                result = registry.retriever.search("does task 77")
                searches += 1
                measured += result.degraded == ""
                assert result.degraded == "" or "out of date" in result.degraded
                assert len({hit.api.id for hit in result.hits}) == 5
                for hit in result.hits:
                    number = hit.api.description.rpartition("version")[2]
                    assert int(number) in {version - 1, version}
            waiting.join()
            assert done[0]["state"] == "ready"
        after = registry.retriever.search("does task 77")
        assert after.degraded == ""
        assert {hit.api.description.rpartition("version")[2] for hit in after.hits} == {"4"}
    assert searches > 10
    assert measured > 0


# --- versions and damage ----------------------------------------------------------------------


def test_a_folder_by_a_newer_version_is_refused_whole_and_untouched(
    tmp_path: Path, catalog: Catalog
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.ensure_index()
    connection = sqlite3.connect(tmp_path / STORE_FILE)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.execute("ALTER TABLE catalogs ADD COLUMN later TEXT")
    connection.commit()
    connection.close()

    def contents() -> dict[str, bytes]:
        files = (path for path in tmp_path.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files if path.suffix != ".sqlite3-shm"}

    before = contents()
    more = Catalog(name="more", tools=catalog.tools[:1])
    for catalogs in ([], [more]):
        with pytest.raises(DataError) as caught:
            Registry.open(tmp_path, catalogs, encoder=HashingEncoder())
        assert "newer" in caught.value.message
        assert "upgrade" in caught.value.hint
    assert contents() == before


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder") / "encoder"
    shutil.copytree(SHIPPED_ENCODER, folder)
    return folder


@pytest.mark.parametrize("name", ["model.int8.onnx", "tokenizer.json", "card.json"])
@pytest.mark.parametrize("how", ["missing", "altered", "emptied"])
def test_with_a_broken_encoder_an_indexed_folder_is_searched_by_words_and_says_so(
    tmp_path: Path, catalog: Catalog, encoder_folder: Path, name: str, how: str
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(encoder_folder, folder, copy_function=_linked)
    data = tmp_path / "data"
    Store.open(data / STORE_FILE).close()
    whole = (folder / name).read_bytes()
    (folder / name).unlink()
    if how != "missing":
        (folder / name).write_bytes(whole[:-7] + b"garbage" if how == "altered" else b"")
    with Registry.open(data, [catalog], encoder=OnnxEncoder(folder)) as registry:
        result = registry.retriever.search("convert money to another currency")
        assert result.hits[0].api.id == "Finance/money/convert_currency"
        assert result.hits[0].dense_rank is None
        assert "words only" in result.degraded
        assert str(folder) in result.degraded
        assert "reinstall" in result.degraded
        with pytest.raises(DataError):
            registry.ensure_index()


def _linked(source: str, target: str) -> None:
    """Copy without the bytes: what a test alters it unlinks first."""
    Path(target).hardlink_to(source)


@pytest.mark.parametrize("name", [MODEL_FILE, "card.json"])
@pytest.mark.parametrize("how", ["missing", "altered", "emptied"])
def test_with_a_broken_ranker_the_order_is_plain_and_says_so(
    hashed: Registry, tmp_path: Path, name: str, how: str
) -> None:
    if not SHIPPED_RANKER.is_dir():
        pytest.skip("no ranker ships")
    folder = tmp_path / "ranker"
    shutil.copytree(SHIPPED_RANKER, folder)
    whole = (folder / name).read_bytes()
    if how == "missing":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(whole[:-7] + b"garbage" if how == "altered" else b"")
    hashed.ensure_index()
    broken = Retriever(hashed.store, hashed.index, hashed.index.encoder, Ranker(folder))
    result = broken.search("convert an amount of money to another currency")
    assert result.hits[0].api.id == "Finance/money/convert_currency"
    assert result.hits[0].dense_rank is not None
    assert "plain order" in result.degraded
    assert str(folder) in result.degraded
    assert "reinstall" in result.degraded


def test_an_index_folder_deleted_under_an_open_registry_is_built_anew_or_done_without(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.ensure_index()
        assert registry.retriever.search("weather forecast").degraded == ""
        shutil.rmtree(tmp_path / "chroma")
        result = registry.retriever.search("weather forecast")
        assert (result.degraded, result.hits[0].api.name) == ("", "Forecast")
        monkeypatch.setattr("toolsrv_registry.search.recall._BUILD_AT_ONCE", 0)
        shutil.rmtree(tmp_path / "chroma")
        result = registry.retriever.search("weather forecast")
        assert "words only" in result.degraded
        assert "index build" in result.degraded
        assert result.hits[0].api.name == "Forecast"
        assert registry.index.build().state == "ready"
        assert registry.retriever.search("weather forecast").degraded == ""
