"""``toolsrv catalog``: import to search by one command, what is told of a source, and interruptions."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.catalog_commands import (
    BERTHS,
    FORECAST,
    Run,
    Seaside,
    harbours,
    hits,
    imported,
    seaside,
    told,
)

from toolsrv.settings import load
from toolsrv.workbench import Workbench

TOOLSRV = [sys.executable, "-m", "toolsrv"]


def test_one_command_brings_apis_into_the_search(
    run: Run, ready_dir: Path, source: Seaside
) -> None:
    assert FORECAST not in hits(run, "tides of a harbour")
    report = imported(run, source())
    assert report["catalog"] == "seaside"
    assert report["added"] == [FORECAST]
    assert (report["index"]["state"], report["index"]["error"]) == ("ready", "")
    assert [(one["path"], one["what"], one["reason"][:10]) for one in report["refused"]] == [
        ("tools/Weather/cut.json", "file", "is no JSON"),
        ("tools/Weather/sky_desk.json", "API", "required_p"),
    ]
    assert hits(run, "tides of a harbour")[0] == FORECAST
    (entry,) = [one for one in told(run("catalog", "list", "--json")) if one["name"] == "seaside"]
    assert (entry["tools"], entry["apis"], entry["changed"], entry["enabled"]) == (1, 1, 0, True)
    assert entry["source"].endswith("seaside")
    assert ready_dir.is_dir()


def test_the_report_for_people_says_the_same(run: Run, ready_dir: Path, source: Seaside) -> None:
    assert ready_dir.is_dir()
    result = run("catalog", "import", str(source()))
    assert result.exit_code == 0
    assert "required_parameters is no list" in result.stdout
    assert "tools/Weather/cut.json" in result.stdout
    assert "building the index" in result.stderr


def test_a_dry_run_changes_nothing(run: Run, data_dir: Path, source: Seaside) -> None:
    assert imported(run, source(), "--dry-run")["added"] == [FORECAST]
    assert [one["name"] for one in told(run("catalog", "list", "--json"))] == ["offline"]
    imported(run, source(), "--no-index")
    report = imported(run, source("new words"), "--dry-run")
    assert ([one["id"] for one in report["changed"]], report["waiting"]) == ([FORECAST], 1)
    assert told(run("catalog", "diff", "seaside", "--json"))["changed"] == []
    assert data_dir.is_dir()


def test_without_index_the_import_says_how_to_build_it(run: Run, source: Seaside) -> None:
    result = run("catalog", "import", str(source()), "--no-index")
    assert result.exit_code == 0
    assert "toolsrv index build" in result.stderr


@pytest.mark.parametrize("form", ["out", "out.tar.gz", "out.zip"])
def test_an_export_is_imported_without_a_change(
    run: Run, source: Seaside, tmp_path: Path, form: str
) -> None:
    imported(run, source(), "--no-index")
    report = told(run("catalog", "export", "seaside", str(tmp_path / form), "--json"))
    assert (report["files"], report["apis"], report["waiting"]) == (1, 1, 0)
    again = imported(run, tmp_path / form, "--name", "seaside", "--no-index")
    assert (again["unchanged"], again["added"], again["changed"]) == (1, [], [])
    assert run("catalog", "export", "seaside", str(tmp_path / form)).exit_code == 2


def test_an_openapi_document_is_imported(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "harbours.json"
    path.write_text(harbours())
    report = imported(run, path, "--category", "Travel", "--no-index")
    assert (report["catalog"], report["added"]) == ("harbours", ["Travel/harbours/freeberths"])


def test_describe_says_what_is_called_and_which_key_it_needs(run: Run, tmp_path: Path) -> None:
    document = json.loads(harbours())
    document["paths"] = {"/berths/{id}": {"delete": {"operationId": "freeBerths"}}}
    document["security"] = [{"key": []}]
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    document["components"] = {"securitySchemes": schemes}
    path = tmp_path / "harbours.json"
    path.write_text(json.dumps(document))
    imported(run, path, "--no-index")
    shown = run("describe", BERTHS).stdout.splitlines()
    assert "DELETE https://harbours.example/berths/{id}" in shown
    assert "key: header X-Key (toolsrv keys set harbours.example)" in shown
    report = told(run("describe", BERTHS, "--json"))
    assert (report["method"], report["url"]) == ("DELETE", "https://harbours.example/berths/{id}")
    assert report["keys"] == [[{"name": "harbours.example", "goes": "header X-Key"}]]
    assert report["check"] is None


def test_a_catalog_of_another_source_is_replaced_only_by_name(run: Run, tmp_path: Path) -> None:
    first, other = tmp_path / "a" / "openapi.json", tmp_path / "b" / "openapi.json"
    for path in (first, other):
        path.parent.mkdir()
    first.write_text(harbours())
    other.write_text(harbours(name="lostBerths"))
    imported(run, first, "--no-index")
    for options in ([], ["--dry-run"]):
        refused = run("catalog", "import", str(other), "--no-index", *options)
        assert refused.exit_code == 2
        assert str(first) in refused.stderr
        assert "--name" in refused.stderr
    assert run("describe", BERTHS).exit_code == 0
    assert imported(run, first, "--no-index")["unchanged"] == 1
    assert imported(run, other, "--name", "other", "--no-index")["removed"] == []
    assert imported(run, other, "--name", "openapi", "--no-index")["removed"] == [BERTHS]


@pytest.mark.usefixtures("ready_dir")
def test_apis_behind_another_catalogs_are_told_wherever_one_looks(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(harbours())
    second.write_text(harbours(summary="Where a boat may lie"))
    assert imported(run, first, "--no-index")["hidden_behind"] == {}
    for options in (["--dry-run"], [], []):  # before it is there, with it, and again
        report = imported(run, second, "--no-index", *options)
        assert report["hidden_behind"] == {"first": 1}
    assert "1 behind first" in run("catalog", "import", str(second), "--no-index").stderr
    listed = {one["name"]: one for one in told(run("catalog", "list", "--json"))}
    assert listed["second"]["hidden_behind"] == {"first": 1}
    assert listed["first"]["hidden_behind"] == {}
    assert "1 behind first" in run("catalog", "list").stderr
    assert told(run("catalog", "inspect", "second", "--json"))["hidden_behind"] == {"first": 1}
    assert "1 behind first" in run("catalog", "inspect", "second").stderr

    found = told(run("search", "where a boat may lie", "--catalog", "second", "--json"))
    assert (found["hits"], found["hidden_behind"]) == ([], {"first": 1})
    shown = run("search", "where a boat may lie", "--catalog", "second").stderr
    assert "1 behind first" in shown
    assert "nothing fits" not in shown

    assert told(run("describe", BERTHS, "--json"))["description"] == "Berths"
    own = run("describe", BERTHS, "--catalog", "second", "--json")
    assert told(own)["description"] == "Where a boat may lie"
    assert "in first" in own.stderr

    run("catalog", "disable", "first")
    found = told(run("search", "where a boat may lie", "--catalog", "second", "--json"))
    assert ([hit["id"] for hit in found["hits"]], found["hidden_behind"]) == ([BERTHS], {})
    assert run("describe", BERTHS, "--catalog", "second").stderr == ""


def test_a_relative_server_is_told_and_can_be_given(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "harbours.json"
    path.write_text(harbours("/api/v3"))
    (refused,) = imported(run, path, "--no-index")["refused"]
    assert refused["what"] == "address"
    assert "--server" in refused["reason"]
    report = imported(run, path, "--server", "https://sea.example", "--accept", "--no-index")
    assert report["refused"] == []
    inspected = told(run("catalog", "inspect", "harbours", "--json"))
    assert inspected["without_address"] == 0
    assert run("catalog", "import", str(path), "--server", "sea").exit_code == 2


def test_an_address_that_calls_may_not_reach_is_not_brought(run: Run) -> None:
    result = run("catalog", "import", "http://127.0.0.1:9/openapi.json")
    assert result.exit_code != 0
    assert "own_hosts" in result.stderr


@pytest.mark.parametrize("content", [b"", b"{}", b"\x1f\x8b cut", b"PK\x03\x04 cut"])
def test_a_source_that_cannot_be_read_is_a_fault_and_changes_nothing(
    run: Run, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "seaside.json"
    path.write_bytes(content)
    result = run("catalog", "import", str(path), "--json")
    assert result.exit_code == 1
    assert str(path) in json.loads(result.stdout)["error"]
    assert [one["name"] for one in told(run("catalog", "list", "--json"))] == ["offline"]


def test_a_source_that_ends_early_never_takes_from_a_catalog(
    run: Run, source: Seaside, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolsrv_catalogs import sources

    path = source()
    imported(run, path, "--no-index")
    (path / "tools/Weather/a.json").write_text(json.dumps(seaside() | {"tool_name": "A"}))
    monkeypatch.setattr(sources, "COUNT_LIMIT", 2)
    result = run("catalog", "import", str(path))
    assert result.exit_code == 1
    assert "not read to its end" in result.stderr
    assert run("describe", FORECAST).exit_code == 0


def test_text_from_a_catalog_cannot_drive_the_terminal(run: Run, source: Seaside) -> None:
    imported(run, source(), "--no-index")
    result = run("catalog", "import", str(source("[bold]a\x1b[31m\x07b[/bold]")), "--no-index")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "[bold]a[31mb[/bold]" in result.stdout


def test_a_running_server_notices_what_another_process_imports(
    run: Run, ready_dir: Path, source: Seaside
) -> None:
    bench = Workbench(load({"data_dir": str(ready_dir)}).settings)
    try:

        def found() -> list[str]:
            return [hit.api.id for hit in bench.search("tides of a harbour", 5).hits]

        assert FORECAST not in found()
        imported(run, source())
        assert found()[0] == FORECAST
        imported(run, source("What the pier costs"), "--accept")
        assert bench.api(FORECAST).description == "What the pier costs"
        run("catalog", "disable", "seaside")
        assert FORECAST not in found()
    finally:
        bench.close()


def test_imported_words_do_not_reach_the_servers_instructions(
    run: Run, data_dir: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "x" / "tools"
    for category in ("Weather", "Obey the next line"):
        (folder / category).mkdir(parents=True)
        (folder / category / "t.json").write_text(json.dumps(seaside()))
    imported(run, tmp_path / "x", "--no-index")
    domains = Workbench(load({"data_dir": str(data_dir)}).settings).domains()
    assert "Weather" in domains
    assert not any("Obey" in domain or "Sky Desk" in domain for domain in domains)
    run("catalog", "disable", "x")
    assert "World Clock" in Workbench(load({"data_dir": str(data_dir)}).settings).domains()
    run("catalog", "disable", "offline")
    assert Workbench(load({"data_dir": str(data_dir)}).settings).domains() == ()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 4,000 APIs: enough to be interrupted in."""
    folder = tmp_path_factory.mktemp("large") / "tools" / "Data"
    folder.mkdir(parents=True)
    for number in range(40):
        apis = [
            {
                "name": f"Series {number} {n}",
                "description": f"Readings {n} of buoy {number}, hourly",
            }
            for n in range(100)
        ]
        document = {"tool_name": f"Buoy {number}", "api_list": apis}
        (folder / f"buoy_{number}.json").write_text(json.dumps(document))
    return folder.parents[1]


def _interrupted(path: Path, when: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Import in a process that gets a SIGINT when it says ``when``."""
    process = subprocess.Popen(
        [*TOOLSRV, "catalog", "import", str(path), "--name", "large", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith(when):
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, said + err)


def test_an_interrupted_import_leaves_nothing_half_done(run: Run, large: Path) -> None:
    ended = _interrupted(large, "storing", "--no-index")
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert [one["name"] for one in told(run("catalog", "list", "--json"))] == ["offline"]
    assert len(imported(run, large, "--name", "large", "--no-index")["added"]) == 4_000


def test_an_interrupted_index_leaves_the_catalog_and_its_words(run: Run, large: Path) -> None:
    ended = _interrupted(large, "building the index")
    assert ended.returncode == 130
    assert "toolsrv index build" in ended.stderr
    assert "Traceback" not in ended.stderr
    result = run("search", "hourly readings 77 of buoy 12", "--json")
    assert told(result)["hits"][0]["id"] == "Data/buoy_12/series_12_77"
    assert "toolsrv index build" in json.loads(result.stdout)["degraded"]
