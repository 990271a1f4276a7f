"""What happens to the data folder while toolsrv works on it: deleted, full, killed, shared."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.server_processes import Wire, opened, spawn

TOOLSRV = [sys.executable, "-m", "toolsrv"]
# As for a catalog too large to be indexed by a search.
LARGE = (
    "import sys\n"
    "from toolsrv import workbench\n"
    "from toolsrv_registry.search import recall\n"
    "workbench.INDEXED_AT_ONCE = recall._BUILD_AT_ONCE = 0\n"
    "sys.argv = ['toolsrv', 'serve']\n"
    "from toolsrv.cli.main import main\n"
    "main()\n"
)


def toolsrv(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOOLSRV, *arguments], capture_output=True, text=True, timeout=120, check=False, **options
    )


def source(folder: Path, name: str, version: int, count: int) -> str:
    """Write a tool file of so many APIs and return its path."""
    tool = {
        "tool_name": name,
        "tool_description": f"the tool {name}",
        "category_name": "Tools",
        "api_list": [
            {
                "name": f"{name} {n}",
                "description": f"does {name} {n} as of version{version}",
                "required_parameters": [],
                "optional_parameters": [],
                "method": "GET",
                "url": f"https://example.org/{n}",
            }
            for n in range(count)
        ],
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}.json"
    path.write_text(json.dumps(tool))
    return str(path)


def texts_of(folder: Path, catalog: str) -> set[str]:
    """Return the versions that a stored catalog's texts say."""
    from toolsrv_registry.catalog_state import STORE_FILE
    from toolsrv_registry.storage.store import Store

    with Store.open(folder / STORE_FILE) as store:
        apis = store.apis(catalog=catalog)
    return {api.description.rpartition("version")[2] for api in apis}


def search(process: subprocess.Popen[str], wire: Wire, number: int) -> dict[str, Any]:
    call = {"name": "search_apis", "arguments": {"query": "time difference between cities"}}
    answer = wire(process, {"id": number, "method": "tools/call", "params": call})
    assert not answer["result"].get("isError", False), answer
    found: dict[str, Any] = answer["result"]["structuredContent"]
    assert found["hits"][0]["id"] == "Location/world_clock/time_difference"
    return found


@pytest.mark.nightly
def test_chromas_folder_deleted_under_a_running_server_is_made_anew_by_the_next_search(
    ready_dir: Path, wire: Wire
) -> None:
    process = opened(spawn(*TOOLSRV, "serve"), wire)
    assert search(process, wire, 2)["degraded"] == ""
    for number in (3, 4):
        shutil.rmtree(ready_dir / "chroma")
        assert search(process, wire, number)["degraded"] == ""
        assert (ready_dir / "chroma" / "chroma.sqlite3").is_file()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "the vector index is gone; building it anew" in err
    assert "Traceback" not in err


@pytest.mark.nightly
def test_a_large_index_deleted_under_a_running_server_leaves_words_until_it_is_built(
    ready_dir: Path, wire: Wire
) -> None:
    process = opened(spawn(sys.executable, "-c", LARGE), wire)
    assert search(process, wire, 2)["degraded"] == ""
    shutil.rmtree(ready_dir / "chroma")
    for number in (3, 4):
        told = search(process, wire, number)["degraded"]
        assert "words only" in told
        assert "toolsrv index build" in told
    built = toolsrv("index", "build", "--json")
    assert json.loads(built.stdout)["state"] == "ready"
    assert search(process, wire, 5)["degraded"] == ""
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_graph_files_deleted_under_a_running_server_never_end_it(
    ready_dir: Path, wire: Wire
) -> None:
    process = opened(spawn(sys.executable, "-c", LARGE), wire)
    search(process, wire, 2)
    for path in list((ready_dir / "chroma").iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
    search(process, wire, 3)
    (ready_dir / "chroma" / "chroma.sqlite3").write_bytes(b"")
    search(process, wire, 4)
    assert json.loads(toolsrv("index", "build", "--json").stdout)["state"] == "ready"
    assert search(process, wire, 5)["degraded"] == ""
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.nightly
@pytest.mark.parametrize(
    "names", [("same", "same"), pytest.param(("one", "two"), marks=pytest.mark.nightly)]
)
def test_two_imports_at_once_both_end_well(
    ready_dir: Path, tmp_path: Path, names: tuple[str, str]
) -> None:
    processes = [
        spawn(
            *TOOLSRV, "catalog", "import", source(tmp_path / "s", name, version, 40),
            "--name", name, "--accept", "--json",
        )
        for version, name in enumerate(names)
    ]  # fmt: skip
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert "Traceback" not in err
        json.loads(out)
    assert [len(texts_of(ready_dir, name)) for name in names] == [1, 1]
    status = json.loads(toolsrv("index", "status", "--json").stdout)
    assert status["state"] == "ready"
    found = json.loads(toolsrv("search", f"does {names[1]} 7", "--json").stdout)
    assert found["degraded"] == ""
    assert found["hits"][0]["id"].startswith(f"Tools/{names[1]}/")


@pytest.mark.nightly
def test_an_import_killed_at_any_moment_is_completed_by_the_next(
    ready_dir: Path, tmp_path: Path
) -> None:
    for version, sign in enumerate(["", "storing", "building"]):
        path = source(tmp_path / "s", "made", version, 60)
        process = spawn(*TOOLSRV, "catalog", "import", path, "--name", "made", "--accept")
        assert process.stderr is not None
        for line in process.stderr:
            if sign in line:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        listed = toolsrv("catalog", "list", "--json")
        assert listed.returncode == 0, listed.stderr
        found = toolsrv("search", "time difference between cities", "--json")
        assert json.loads(found.stdout)["hits"][0]["id"] == "Location/world_clock/time_difference"
    path = source(tmp_path / "s", "made", 9, 60)
    done = toolsrv("catalog", "import", path, "--name", "made", "--accept", "--json")
    assert done.returncode == 0, done.stderr
    assert texts_of(ready_dir, "made") == {"9"}
    assert json.loads(toolsrv("index", "status", "--json").stdout)["state"] == "ready"


def _limited(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def test_an_import_without_room_is_told_and_completed_once_there_is_room(
    ready_dir: Path, tmp_path: Path
) -> None:
    first, second = (source(tmp_path / "s", "made", version, 400) for version in (1, 2))
    assert toolsrv("catalog", "import", first, "--name", "made", "--no-index").returncode == 0
    words = ("catalog", "import", second, "--name", "made", "--accept", "--no-index", "--json")
    done = toolsrv(*words, preexec_fn=partial(_limited, 50_000))
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert str(ready_dir) in told["error"]
    assert "disk" in told["hint"]
    assert "remove" not in told["hint"]
    assert "Traceback" not in done.stderr
    assert texts_of(ready_dir, "made") == {"1"}
    assert toolsrv(*words).returncode == 0
    assert texts_of(ready_dir, "made") == {"2"}


def test_an_index_without_room_leaves_the_import_and_says_what_to_do(
    ready_dir: Path, tmp_path: Path
) -> None:
    path = source(tmp_path / "s", "made", 1, 20)
    assert toolsrv("catalog", "import", path, "--name", "made", "--no-index").returncode == 0
    limit = (ready_dir / "chroma" / "chroma.sqlite3").stat().st_size // 4
    done = toolsrv("index", "build", "--json", preexec_fn=partial(_limited, limit))
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert "chroma" in told["error"]
    assert "index build" in told["hint"]
    assert "Traceback" not in done.stderr
    assert json.loads(toolsrv("index", "build", "--json").stdout)["state"] == "ready"


@pytest.mark.parametrize(
    "words",
    [
        ("catalog", "list"),
        ("search", "time"),
        ("index", "build"),
        ("catalog", "disable", "offline"),
    ],
)
def test_a_folder_by_a_newer_version_is_refused_and_untouched(
    ready_dir: Path, words: tuple[str, ...]
) -> None:
    store = ready_dir / "registry.sqlite3"
    connection = sqlite3.connect(store)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.close()
    before = store.read_bytes()
    done = toolsrv(*words, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert "newer" in told["error"]
    assert "upgrade" in told["hint"]
    assert "Traceback" not in done.stderr
    assert store.read_bytes() == before
