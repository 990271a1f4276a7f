"""StableToolBench: its cache behind a world, hits and misses of solves, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli
from toolsrv_lab.evaluation.stable import CacheUse, StableResult, by_set, failed_solve
from toolsrv_lab.evaluation.stable_world import use_of
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls.result import CallResult

HERE = Path(__file__).parent


def api(name: str, tool: str = "Sky Watch") -> dict[str, Any]:
    """Return an entry of a query's ``api_list``."""
    return {
        "category_name": "Weather",
        "tool_name": tool,
        "api_name": name,
        "api_description": "",
        "required_parameters": [],
        "optional_parameters": [],
        "method": "GET",
    }


def parameter(name: str) -> dict[str, Any]:
    return {"name": name, "type": "STRING", "description": "a city", "default": ""}


QUERIES = [
    {
        "query": "What is the wind in Lima?",
        "query_id": 7,
        "api_list": [api("Wind"), api("Sun")],
        "relevant APIs": [["Sky Watch", "Wind"]],
    },
    {
        "query": "When does the sun rise in Oslo?",
        "query_id": 8,
        "api_list": [api("Sun")],
        "relevant APIs": [["Sky Watch", "Sun"]],
    },
    {
        "query": "What of the moon?",
        "query_id": 9,
        "api_list": [api("Moon", "Elsewhere")],
        "relevant APIs": [["Elsewhere", "Moon"]],
    },
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog, imported, queries and a cache in StableToolBench's forms."""
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    tool = {
        "tool_name": "Sky Watch",
        "tool_description": "Weather of cities",
        "api_list": [
            {
                "name": name,
                "description": f"{name} in a city",
                "url": f"https://sky.example/{name}",
                "method": "GET",
                "required_parameters": [parameter("city")],
                "optional_parameters": [],
            }
            for name in ("Wind", "Sun")
        ],
    }
    folder = tmp_path / "toolenv" / "tools" / "Weather"
    folder.mkdir(parents=True)
    (folder / "sky_watch.json").write_text(json.dumps(tool), "utf-8")
    (tmp_path / "G1_instruction.json").write_text(json.dumps(QUERIES), "utf-8")
    cached = tmp_path / "tool_response_cache" / "Weather" / "sky_watch_for_Weather"
    cached.mkdir(parents=True)
    wind = {
        "{'city': 'Lima'}": {"error": "", "response": "{'speed': 31, 'unit': 'km/h', 'at': None}"},
        "{'city': 'Oslo'}": {"error": "", "response": {"speed": 4}},
    }
    (cached / "wind.json").write_text(json.dumps(wind), "utf-8")
    done = run("catalog", "import", str(tmp_path / "toolenv"), "--name", "sky")
    assert done.exit_code == 0, done.output
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


GIVE_UP = {"function": "Finish", "arguments": {"return_type": "give_up_and_restart"}}


def script(place: Path, *replies: Any, loop: bool = False) -> str:
    path = place / "script.json"
    path.write_text(json.dumps({"replies": list(replies), "loop": loop}), "utf-8")
    return f"scripted:{path}"


def call(name: str, city: str) -> dict[str, Any]:
    return {"function": f"{name}_for_sky_watch", "arguments": {"city": city}}


def stable(place: Path, model: str, *words: str) -> Result:
    shared = ["--queries", str(place / "G1_instruction.json"), "--model", model]
    shared += ["--cache", str(place / "tool_response_cache"), "--strategy", "react"]
    return run("lab", "eval", "stable", *shared, "--set", "aids=[]", *words)


def test_hits_and_misses_of_the_cache_are_counted(place: Path) -> None:
    model = script(
        place,
        call("wind", "Lima"),
        "The wind in Lima is 31 km/h.",
        call("sun", "Oslo"),
        GIVE_UP,
        loop=True,
    )
    out = str(place / "out")
    shown = stable(place, model, "--out", out, "--misses", "error", "--json")
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    (found, whole) = (report["sets"][name] for name in ("G1_instruction", "all"))
    assert found["queries"] == 2
    assert found["calls"] == 2
    assert [found[one]["count"] for one in ("hits", "real_hits", "misses")] == [1, 1, 1]
    assert found["covered"]["count"] == 1
    assert found["needed_called"]["count"] == 1
    assert whole["pass_rate"]["solved"]["of"] == 2
    assert report["left_out"] == {"need an API that no enabled catalog has": 1}
    assert report["settings"]["cache"]["added"] == 2
    assert sorted(one.name for one in (place / "out" / "answers" / "G1_instruction").iterdir()) == [
        "7_react.json",
        "8_react.json",
    ]
    judged = run("lab", "eval", "pass-rate", f"{out}/answers/G1_instruction", "--sopr", "--json")
    assert judged.exit_code == 0, judged.output
    sopr = json.loads(judged.stdout)["sets"][0]["sopr_percent"]
    assert sopr == found["pass_rate"]["sopr_percent"]


@pytest.mark.parametrize(
    ("number", "made", "use", "share"),
    [
        ("8", call("sun", "Oslo"), "missed", "0/1 = 0"),
        ("7", call("wind", "Oslo"), "simulated", "1/1 = 100"),  # an object: no service's text
    ],
)
def test_a_miss_and_a_simulated_hit_are_told_apart(
    place: Path, number: str, made: dict[str, Any], use: str, share: str
) -> None:
    (place / "ids.json").write_text(json.dumps({number: 0}), "utf-8")
    model = script(place, made, GIVE_UP, loop=True)
    words = ["--ids", str(place / "ids.json"), "--out", str(place / "out")]
    shown = stable(place, model, *words)
    assert shown.exit_code == 0, shown.output
    assert share in shown.stdout
    _, line = (place / "out" / "results.jsonl").read_text("utf-8").splitlines()
    used = json.loads(line)["result"]["use"]
    assert {name: count for name, count in used.items() if count} == {use: 1}


def test_a_run_that_stopped_goes_on_and_reads_the_cache_once(place: Path) -> None:
    out = ["--out", str(place / "out")]
    first = script(place, call("wind", "Lima"), "The wind in Lima is 31 km/h.")
    cut = stable(place, first, *out)
    assert cut.exit_code == 1, cut.output
    assert "1 results are kept" in cut.output
    (place / "tool_response_cache" / "Weather" / "sky_watch_for_Weather" / "wind.json").unlink()
    rest = stable(place, script(place, call("sun", "Oslo"), GIVE_UP, loop=True), *out)
    assert rest.exit_code == 0, rest.output
    again = stable(place, script(place, "nobody asks"), *out, "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["sets"]["all"]["queries"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cache", "nowhere"], "nowhere"),
        (["--ids", "ids.json"], "no query that needs APIs"),
        (["--set", "depth=x"], "depth"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(place)
    (place / "ids.json").write_text('{"99": 0}', "utf-8")
    found = stable(place, script(place, "x"), *words)
    assert found.exit_code == 2, found.output
    assert said in found.output
    assert "Traceback" not in found.output


def test_a_damaged_query_file_is_told(place: Path) -> None:
    (place / "G1_instruction.json").write_text('[{"query": ', "utf-8")
    found = stable(place, script(place, "x"))
    assert found.exit_code == 1
    assert "not JSON" in found.output


@pytest.mark.parametrize(
    ("kind", "source", "use"),
    [
        ("ok", "recorded", "real"),
        ("server_error", "recorded", "real"),
        ("ok", "simulated", "simulated"),
        ("replay_miss", "recorded", "missed"),
        ("bad_arguments", "recorded", "refused"),
    ],
)
def test_what_a_call_came_to(kind: Any, source: Any, use: str) -> None:
    result = CallResult(
        api_id="a/b/c", arguments={}, url="", status=0, response=None, error="", source=source,
        seconds=0.0, kind=kind,
    )  # fmt: skip
    assert use_of(result) == use


def test_a_failed_solve_counts_as_a_query_without_calls(place: Path) -> None:
    query = read_queries(place / "G1_instruction.json")[0]
    good = failed_solve(query, DataError("the model is gone"))
    used = StableResult(solved=good.solved, use=CacheUse(real=1, missed=1), form=good.form)
    found = by_set([good, used])["all"]
    assert (found.queries, found.calls, found.covered.of) == (2, 2, 1)
    assert (found.hits.count, found.covered.count) == (1, 0)
