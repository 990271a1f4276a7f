"""``catalog pull``, ``recordings pull`` and ``model pull`` by short names, from a hub on loopback."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import runpy
import shutil
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from huggingface_hub import file_download

from toolsrv.model_list import ModelList
from toolsrv_catalogs import published
from toolsrv_catalogs.published import Published
from toolsrv_runtime import hub as library
from toolsrv_runtime import hub as recommended
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint

HubHost = runpy.run_path(str(Path(__file__).parents[1] / "hub_host.py"))["HubHost"]
TOOLBENCH = Path(__file__).parents[3] / "shared" / "data" / "toolbench" / "toolenv.tar.gz"
Run = Callable[..., Result]
TOOLS, CACHE = "stabletoolbench/ToolEnv2404", "stabletoolbench/Cache"
ARCHIVE, ZIP = "toolenv2404_filtered.tar.gz", "server_cache.zip"
FORECAST = "Weather/sky_desk/forecast"


def api(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"{name} of a place",
        "method": "GET",
        "url": "https://sky.example/",
        "required_parameters": [{"name": "city", "type": "STRING", "description": ""}],
        "optional_parameters": [],
        "body": {},
        "headers": {},
    }


def tool(name: str, *apis: str) -> bytes:
    listed = [*map(api, apis), {"name": "Broken", "required_parameters": "x"}]
    return json.dumps({"tool_name": name, "tool_description": "", "api_list": listed}).encode()


def tar_gz(files: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return whole.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


REPLIES = {
    "{'city': 'Oslo'}": {"error": "", "response": "{'sun': True}"},
    "{'city': 'Bern'}": {"error": "", "response": {"sun": False}},
}
ENV = tar_gz(
    {
        "toolenv2404_filtered/Weather/sky_desk.json": tool("Sky Desk", "Forecast", "Tides"),
        "toolenv2404_filtered/Weather/._sky_desk.json": b"\x00\x05",
        "toolenv2404_filtered/Sports/goals.json": tool("Goals", "Table"),
    }
)
REPLY_CACHE = zipped(
    {
        "tools/Weather/sky_desk_for_Weather/api.json": b"{}",
        "__MACOSX/tool_response_cache/Weather/sky_desk_for_Weather/forecast.json": b"x",
        "tool_response_cache/Weather/sky_desk_for_Weather/forecast.json": json.dumps(
            REPLIES
        ).encode(),
        "tool_response_cache/Weather/none_for_Weather/gone.json": json.dumps(REPLIES).encode(),
    }
)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with HubHost() as host:
        host.files[f"datasets/{TOOLS}"] = {ARCHIVE: ENV}
        host.files[f"datasets/{CACHE}"] = {ZIP: REPLY_CACHE}
        host.tags[f"datasets/{CACHE}"] = ["license:apache-2.0"]
        monkeypatch.setenv("HF_ENDPOINT", host.url)
        yield host


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of sources, with the archive of the tests in place of the one of 11.7 MB."""
    real = published.published()

    def ours() -> tuple[Published, ...]:
        known = {"size_bytes": len(ENV), "sha256": hashlib.sha256(ENV).hexdigest()}
        return (real[0].model_copy(update=known), *real[1:])

    monkeypatch.setattr(published, "published", ours)


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def pulled(run: Run, *options: str) -> dict[str, Any]:
    return document(run("catalog", "pull", "toolbench", "--no-index", "--json", *options))


def test_the_table_names_what_is_published(run: Run) -> None:
    rows = {
        one["name"]: one for one in json.loads(run("catalog", "pull", "--list", "--json").stdout)
    }
    assert rows["toolbench"]["repo"] == TOOLS
    assert rows["toolbench"]["size_bytes"] == 11_706_795
    assert len(rows["toolbench"]["sha256"]) == 64
    assert rows["toolbench"]["licence"] == "MIT"
    assert "11,706,795" in run("catalog", "pull", "--list").stdout
    (cache,) = json.loads(run("recordings", "pull", "--list", "--json").stdout)
    assert (cache["repo"], cache["file"], cache["sha256"]) == (CACHE, ZIP, "")


@pytest.mark.usefixtures("table")
def test_a_catalog_is_pulled_counted_and_keeps_where_it_is_from(run: Run, hub: Any) -> None:
    told = pulled(run)
    assert (told["catalog"], told["tools"], told["apis"], told["categories"]) == (
        "toolbench", 2, 3, 2,
    )  # fmt: skip
    assert len(told["refused"]) == 2
    assert told["origin"]["licence"] == "MIT"
    entry = document(run("catalog", "inspect", "toolbench", "--json"))
    assert entry["origin"] == told["origin"]
    assert entry["source"].startswith(f"{TOOLS}@b6141cc5")
    shown = run("catalog", "inspect", "toolbench").stdout
    assert "origin licence" in shown
    assert "MIT" in shown
    assert len(hub.ranges) == 1
    again = run("catalog", "pull", "toolbench", "--no-index")
    assert again.exit_code == 0
    assert "categories" in again.stdout
    assert "licence: MIT" in again.stderr
    assert len(hub.ranges) == 1  # the file is here, and it is the one of the table


@pytest.mark.usefixtures("table")
def test_a_pull_that_breaks_off_goes_on(run: Run, hub: Any, data_dir: Path) -> None:
    folder = data_dir / "downloads" / TOOLS
    folder.mkdir(parents=True)
    partial = folder / f"{ARCHIVE}.{hashlib.sha256(ENV).hexdigest()[:12]}.partial"
    partial.write_bytes(ENV[:100])
    assert pulled(run)["apis"] == 3
    assert hub.ranges == ["bytes=100-"]


def test_another_file_than_the_table_s_is_refused_unread(run: Run, hub: Any) -> None:
    done = run("catalog", "pull", "toolbench")
    assert done.exit_code == 1
    assert "were expected" in done.stderr
    assert not hub.ranges


@pytest.mark.usefixtures("table")
def test_damage_on_the_way_imports_nothing(run: Run, hub: Any, data_dir: Path) -> None:
    hub.wrong = {ARCHIVE}
    done = run("catalog", "pull", "toolbench")
    assert done.exit_code == 1
    assert "SHA-256" in done.stderr
    assert not [one for one in (data_dir / "downloads").rglob("*") if one.is_file()]
    names = [one["name"] for one in json.loads(run("catalog", "list", "--json").stdout)]
    assert names == ["offline"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        ((401, "RepoNotFound"), 2, "HF_TOKEN"),
        ((404, "RepoNotFound"), 2, "spelling"),
        ((429, ""), 1, "in 30 seconds"),
    ],
)
def test_refusals_of_the_hub_are_one_error_and_one_hint(
    run: Run, hub: Any, status: tuple[int, str], code: int, said: str
) -> None:
    hub.status[f"datasets/{TOOLS}"] = status
    hub.retry_after = "30"
    done = run("catalog", "pull", "toolbench")
    assert (done.exit_code, done.stderr.count("error: "), done.stderr.count("hint: ")) == (
        code, 1, 1,
    )  # fmt: skip
    assert said in done.stderr


def test_a_local_file_and_a_url_are_sources_too(
    run: Run, hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "data.zip"
    place.write_bytes(
        zipped(
            {
                "data/answer/G1/1.json": b'{"win": true}',
                "data/toolenv/tools/Weather/sky_desk.json": tool("Sky Desk", "Forecast"),
            }
        )
    )
    asked = run("catalog", "pull", "toolbench-2023")
    assert (asked.exit_code, "--file" in asked.stderr) == (2, True)
    told = document(
        run("catalog", "pull", "toolbench-2023", "--file", str(place), "--no-index", "--json")
    )
    assert (told["apis"], [one["path"] for one in told["files"]]) == (
        1, ["data/toolenv/tools/Weather/sky_desk.json"],
    )  # fmt: skip
    wrong = run("catalog", "pull", "toolbench", "--file", str(place))
    assert (wrong.exit_code, "has the SHA-256" in wrong.stderr) == (1, True)

    url = f"{hub.url}/datasets/{TOOLS}/resolve/main/{ARCHIVE}"
    refused = run("catalog", "pull", url, "--no-index")
    assert refused.exit_code != 0
    assert "own_hosts" in refused.stderr
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", "127.0.0.1, localhost")
    digest = hashlib.sha256(ENV).hexdigest()
    words = ("catalog", "pull", url, "--name", "web", "--no-index", "--json")
    told = document(run(*words, "--sha256", digest))
    assert (told["apis"], told["origin"]["address"], told["origin"]["sha256"]) == (3, url, digest)
    assert run(*words, "--sha256", "0" * 64).exit_code == 1
    unknown = run("catalog", "pull", "toolbenhc")
    assert (unknown.exit_code, "there are: toolbench" in unknown.stderr) == (2, True)
    assert run("catalog", "pull").exit_code == 2
    assert run("catalog", "pull", url, "--file", str(place)).exit_code == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolbench").write_bytes(b"{}")  # a name of the table is no file of the folder
    assert "were expected" in run("catalog", "pull", "toolbench").stderr
    pinned = run("recordings", "pull", "stabletoolbench", "--sha256", "0" * 64)
    assert (pinned.exit_code, "the hub lists the SHA-256" in pinned.stderr) == (1, True)


@pytest.mark.usefixtures("table")
def test_a_response_cache_answers_offline_and_says_how_much_of_the_catalog(
    run: Run, hub: Any, tmp_path: Path
) -> None:
    pulled(run)
    told = document(run("recordings", "pull", "stabletoolbench", "--json"))
    assert (told["added"], told["judged"]) == (2, {"real": 1, "simulated": 1})
    assert told["unknown_apis"] == ["Weather/none_for_Weather/gone"]
    assert (
        told["categories"]["Weather"]
        == (document(run("recordings", "stats", "--categories", "--json"))["categories"]["Weather"])
    )
    assert told["categories"]["Sports"] == {"apis": 1, "recorded": 0, "real": 0}
    assert told["origin"]["licence"] == "apache-2.0"
    assert told["origin"]["sha256"] == hashlib.sha256(REPLY_CACHE).hexdigest()
    call = document(run("call", FORECAST, '{"city": "Oslo"}', "--mode", "replay", "--json"))
    assert (call["source"], call["response"]) == ("recorded", "{'sun': True}")
    place = tmp_path / "again.zip"
    place.write_bytes(REPLY_CACHE)
    assert document(run("recordings", "import", str(place), "--json"))["added"] == 0
    shown = run("recordings", "pull", "stabletoolbench", "--file", str(place))
    assert "share" in shown.stdout
    place.write_bytes(b"PK no zip")
    broken = run("recordings", "pull", str(place))
    assert (broken.exit_code, "no zip archive" in broken.stderr) == (1, True)
    assert hub.ranges


@pytest.mark.usefixtures("table")
def test_what_no_recording_answers_is_simulated_and_says_so(
    run: Run, hub: Any, tmp_path: Path
) -> None:
    assert hub.files
    pulled(run)
    run("recordings", "pull", "stabletoolbench")
    script = tmp_path / "mirror.json"
    reply = json.dumps({"error": "", "response": {"sun": "perhaps"}})
    script.write_text(json.dumps({"replies": [reply]}), "utf-8")
    flags = ("--mode", "replay", "--simulate", "model", "--simulator", f"scripted:{script}")
    known = document(run("call", FORECAST, '{"city": "Oslo"}', *flags, "--json"))
    assert known["source"] == "recorded"
    other = document(run("call", FORECAST, '{"city": "Lima"}', *flags, "--json"))
    assert (other["source"], other["response"]) == ("simulated", {"sun": "perhaps"})


def test_a_short_name_is_a_file_of_a_repository_with_the_hub_s_digest(run: Run, hub: Any) -> None:
    content = b"GGUF" + bytes(5000)
    hub.files["Qwen/Qwen3-4B-GGUF"] = {
        "Qwen3-4B-Q4_K_M.gguf": content, "Qwen3-4B-Q8_0.gguf": content * 2,
    }  # fmt: skip
    told = document(run("model", "pull", "Qwen3-4B", "--json"))
    assert told["name"] == "qwen3-4b"
    assert told["sha256"] == hashlib.sha256(content).hexdigest()
    assert told["source"].startswith("Qwen/Qwen3-4B-GGUF:Qwen3-4B-Q4_K_M.gguf@")
    rows = json.loads(run("model", "pull", "--list", "--json").stdout)
    assert {4, 8, 16, 32} == {one["memory_gb"] for one in rows}
    assert "toolllama-2-7b-v2" in run("model", "pull", "--list").stdout
    missing = run("model", "pull", "qwen3-8b")
    assert (missing.exit_code, "Qwen/Qwen3-8B-GGUF" in missing.stderr) == (2, True)
    assert run("model", "pull").exit_code == 2


def test_a_checkpoint_becomes_a_quantised_model(
    run: Run, hub: Any, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_tiny_checkpoint(tmp_path / "tiny")
    repo = "ToolBench/ToolLLaMA-2-7b-v2"
    hub.files[repo] = {one.name: one.read_bytes() for one in made.iterdir()}
    (known,) = [one for one in recommended.recommended_models() if one.repo == repo]
    small = known.model_copy(update={"profile": "", "type": "Q8_0"})
    monkeypatch.setattr(recommended, "recommended_models", lambda: (small,))
    told = document(run("model", "pull", "toolllama-2-7b-v2", "--json"))
    assert told["name"] == "toolllama-2-7b-v2"
    assert told["path"].endswith("ToolLLaMA-2-7b-v2.q8_0.gguf")
    assert told["source"].endswith("converted, Q8_0")
    assert [one.name for one in (data_dir / "models" / "ToolBench").iterdir()] == [
        "ToolLLaMA-2-7b-v2.q8_0.gguf"
    ]
    brought = len(hub.ranges)
    assert run("model", "pull", "toolllama-2-7b-v2").exit_code == 0
    assert len(hub.ranges) == brought
    assert [one.name for one in ModelList(data_dir).entries()] == ["toolllama-2-7b-v2"]


@pytest.mark.skipif(not TOOLBENCH.is_file(), reason="ToolBench's data is not on this machine")
def test_toolbench_s_own_data_is_a_local_file(run: Run) -> None:
    told = document(
        run("catalog", "pull", "toolbench-2023", "--file", str(TOOLBENCH), "--dry-run", "--json")
    )
    assert told["apis"] > 16_000
    assert told["categories"] == 49


def test_a_document_at_a_url_is_brought_again_by_each_import(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", "127.0.0.1")
    pets = {
        "openapi": "3.0.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://pets.example"}],
        "paths": {
            "/pets": {"get": {"operationId": "list", "summary": "List pets", "responses": {}}}
        },
    }
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(pets), "utf-8")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/openapi.json"
        words = ("catalog", "import", url, "--name", "pets", "--no-index", "--json")
        assert len(document(run(*words))["added"]) == 1
        path.write_text(path.read_text("utf-8").replace("List pets", "List cats"), "utf-8")
        told = document(run(*words))
        server.shutdown()
    assert (len(told["changed"]), told["origin"]["address"]) == (1, url)


PULLS = {
    "catalog": (("catalog", "pull", "toolbench", "--no-index"), f"datasets/{TOOLS}", ARCHIVE),
    "recordings": (("recordings", "pull", "stabletoolbench"), f"datasets/{CACHE}", ZIP),
    "model": (
        ("model", "pull", "qwen3-4b"),
        "Qwen/Qwen3-4B-GGUF",
        "Qwen3-4B-Q4_K_M.gguf",
    ),
}
MODEL = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture(params=PULLS)
def one(request: pytest.FixtureRequest, hub: Any, table: None) -> tuple[tuple[str, ...], str, str]:
    """A command that pulls, the repository that it pulls from, and the file there."""
    del table
    hub.files["Qwen/Qwen3-4B-GGUF"] = {"Qwen3-4B-Q4_K_M.gguf": MODEL}
    return PULLS[request.param]


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        ((401, "RepoNotFound"), 2, "HF_TOKEN"),
        ((401, ""), 1, "HF_TOKEN"),
        ((403, "GatedRepo"), 2, "ask for access"),
        ((404, "RepoNotFound"), 2, "spelling"),
        ((404, "RevisionNotFound"), 2, "spelling"),
        ((429, ""), 1, "in 30 seconds"),
        ((500, ""), 1, "again in 30 seconds"),
        ((503, ""), 1, "again in 30 seconds"),
    ],
)
def test_every_refusal_is_one_error_and_one_hint_of_every_pull(
    run: Run, hub: Any, one: tuple[Any, str, str], status: tuple[int, str], code: int, said: str
) -> None:
    words, repo, _ = one
    hub.status[repo] = status
    hub.retry_after = "30"
    done = run(*words)
    assert (done.exit_code, done.stderr.count("error: "), done.stderr.count("hint: ")) == (
        code, 1, 1,
    ), done.stderr  # fmt: skip
    assert said in done.stderr
    assert repo.removeprefix("datasets/") in done.stderr
    assert not hub.ranges


def test_a_pull_that_broke_is_taken_up_by_the_same_command(
    run: Run, hub: Any, one: tuple[Any, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, _, name = one
    at_once = SimpleNamespace(**vars(time) | {"sleep": lambda _: None})  # between its five tries
    monkeypatch.setattr(file_download, "time", at_once)
    monkeypatch.setattr(library, "CHUNK_BYTES", 20)
    hub.cuts = [60, *[0] * 40]
    broken = run(*words)
    assert broken.exit_code == 1
    assert "the connection broke at 60 of" in broken.stderr
    assert "pull again: it goes on from there" in broken.stderr
    assert name in broken.stderr
    hub.cuts = []
    assert run(*words).exit_code == 0
    assert hub.ranges[-1] == "bytes=60-"


def test_a_wrong_digest_leaves_nothing_of_any_pull(
    run: Run, hub: Any, one: tuple[Any, str, str], data_dir: Path
) -> None:
    words, _, name = one
    hub.wrong = {name}
    done = run(*words)
    assert done.exit_code == 1
    assert "is not what the hub lists: SHA-256" in done.stderr
    assert not [path for path in data_dir.rglob("*") if name in path.name and path.stat().st_size]


def test_a_full_disk_is_told_before_any_pull(
    run: Run, hub: Any, one: tuple[Any, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, _, name = one
    used = shutil.disk_usage(Path.cwd())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: used._replace(free=10))
    done = run(*words)
    assert done.exit_code == 1
    assert f"{name} needs" in done.stderr
    assert "10 free" in done.stderr
    assert "--data-dir" in done.stderr
    assert not hub.ranges


def test_a_hub_that_is_not_there_is_told_by_every_pull(
    run: Run, one: tuple[Any, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = run(*one[0])
    assert done.exit_code == 1
    assert "cannot be reached" in done.stderr
    assert "HF_ENDPOINT" in done.stderr
