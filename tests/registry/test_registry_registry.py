"""The registry as a whole: light to open, up to date, one data directory per user."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolsrv_registry.api import Catalog
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_registry.registry import Registry

_HEAVY = ("chromadb", "onnxruntime", "tokenizers", "grpc", "httpx", "torch")


def test_opening_listing_and_describing_load_nothing_heavy(
    tmp_path: Path, catalog: Catalog
) -> None:
    (tmp_path / "catalog.json").write_text(catalog.model_dump_json())
    program = (
        "import sys, json\nfrom pathlib import Path\n"
        "from toolsrv_registry.api import Catalog\n"
        "from toolsrv_registry.functions import FunctionList\n"
        "from toolsrv_registry.registry import Registry\n"
        "folder = Path(sys.argv[1])\n"
        "catalog = Catalog.model_validate_json((folder / 'catalog.json').read_text())\n"
        "registry = Registry.open(folder / 'data', [catalog])\n"
        "apis = registry.store.apis(); registry.get(apis[0].id); FunctionList(apis).to_json()\n"
        "registry.store.stats(); registry.index.status(); registry.store.names.match(['city'], 5)\n"
        "print(json.dumps([name for name in sys.argv[2:] if name in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), *_HEAVY],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_a_registry_is_found_again_as_it_was(tmp_path: Path, catalog: Catalog) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        built = registry.ensure_index()
        found = registry.retriever.search("weather forecast")
    started = time.perf_counter()
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        assert registry.ensure_index() == built
        assert registry.retriever.search("weather forecast") == found
    print(f"reopen and search: {time.perf_counter() - started:.3f} s")  # noqa: T201  (a figure)


def test_get_passes_on_the_nearest_ids(hashed: Registry) -> None:
    assert hashed.get("Weather/sky_watch/forecast").name == "Forecast"
    with pytest.raises(NotFoundError):
        hashed.get("no/such/api")


def test_warming_loads_in_the_background_and_never_fails(tmp_path: Path, catalog: Catalog) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.warm().join()
        assert registry.retriever.search("weather").degraded == ""
    with Registry.open(
        tmp_path, encoder=HashingEncoder(), chroma_url="http://127.0.0.1:9"
    ) as registry:
        registry.warm().join()
        assert "127.0.0.1:9" in registry.retriever.search("weather").degraded


def test_a_data_directory_that_is_a_file_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataError):
        Registry.open(tmp_path / "data")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Chroma server on a free loopback port."""
    binary = Path(sys.executable).with_name("chroma")
    if not binary.exists():
        pytest.skip("the chroma command is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [binary, "run", "--path", tmp_path_factory.mktemp("server"), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                pytest.skip("the Chroma server does not start here")
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def test_two_data_directories_share_a_chroma_server(
    tmp_path: Path, catalog: Catalog, server: str
) -> None:
    def opened(name: str, *catalogs: Catalog) -> Registry:
        return Registry.open(tmp_path / name, catalogs, encoder=HashingEncoder(), chroma_url=server)

    with opened("a", catalog) as a, opened("b", catalog) as b:
        assert a.ensure_index().place == server
        assert b.ensure_index().state == "ready"
        assert a.index.status().collection != b.index.status().collection
        assert a.retriever.search("weather forecast").hits[0].dense_rank is not None
        a.store.put_catalog(Catalog(name="small", tools=catalog.tools[:2]))
        assert a.ensure_index().apis == 3
        assert b.retriever.search("weather forecast").degraded == ""
    with opened("a") as a:
        assert a.index.status().state == "ready"
        assert not (tmp_path / "a" / "chroma").exists()


def test_a_server_that_never_answers_does_not_hang_a_search(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_registry.index.chroma._ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Registry.open(
            tmp_path, [catalog], encoder=HashingEncoder(), chroma_url=url
        ) as registry:
            result = registry.retriever.search("weather forecast")
    assert result.hits
    assert url in result.degraded
