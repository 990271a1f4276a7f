"""The command ``toolsrv lab tables``: what it makes, keeps, goes on with and refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.model_server import GIVE_UP as SERVER_GIVES_UP
from tests.model_server import ModelServer

from toolsrv.cli.main import cli
from toolsrv_registry.encoder import SHIPPED_ENCODER


def api(name: str) -> dict[str, Any]:
    return {"category_name": "Weather", "tool_name": "Sky Watch", "api_name": name}


def instruction(number: int, text: str, *names: str) -> dict[str, Any]:
    return {
        "query": text,
        "query_id": number,
        "api_list": [api("Wind"), api("Sun")],
        "relevant APIs": [["Sky Watch", name] for name in names],
    }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog, imported, and two subsets of queries."""
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    parameter = {"name": "city", "type": "STRING", "description": "a city", "default": ""}
    tool = {
        "tool_name": "Sky Watch",
        "tool_description": "Weather of cities",
        "api_list": [
            {
                "name": name,
                "description": f"{name} in a city",
                "url": f"https://sky.example/{name}",
                "method": "GET",
                "required_parameters": [parameter],
                "optional_parameters": [],
            }
            for name in ("Wind", "Sun")
        ],
    }
    folder = tmp_path / "toolenv" / "tools" / "Weather"
    folder.mkdir(parents=True)
    (folder / "sky_watch.json").write_text(json.dumps(tool), "utf-8")
    one = [instruction(7, "What is the wind in Lima?", "Wind")]
    two = [instruction(8, "When does the sun rise in Oslo, and is there wind?", "Sun", "Wind")]
    (tmp_path / "G1_tool.json").write_text(json.dumps(one), "utf-8")
    (tmp_path / "G2_category.json").write_text(json.dumps(two), "utf-8")
    done = invoke("catalog", "import", str(tmp_path / "toolenv"), "--name", "sky")
    assert done.exit_code == 0, done.output
    return tmp_path


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


WIND = {"function": "wind_for_sky_watch", "arguments": {"city": "Lima"}}
GIVE_UP = {"function": "Finish", "arguments": {"return_type": "give_up_and_restart"}}


def script(place: Path, name: str, *replies: Any, loop: bool = True) -> str:
    path = place / f"{name}.json"
    path.write_text(json.dumps({"replies": list(replies), "loop": loop}), "utf-8")
    return f"scripted:{path}"


def tables(place: Path, *words: str) -> Result:
    queries = [word for name in ("G1_tool", "G2_category") for word in ("--queries", str(place / f"{name}.json"))]  # fmt: skip
    shared = ["--out", str(place / "out"), "--set", "aids=[]"]
    return invoke("lab", "tables", *queries, *shared, *words)


def found(place: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((place / "out" / "tables.json").read_text("utf-8"))
    return value


def rows(place: Path, number: str, measure: str = "") -> dict[str, dict[str, Any]]:
    for one in found(place)["tables"]:
        if (one["number"], one["measure"]) == (number, measure):
            return {row["name"]: row["cells"] for row in one["rows"] if row["source"] == "here"}
    raise AssertionError(number)


def solved(place: Path) -> list[dict[str, Any]]:
    """Return the solves of the log, its settings left out."""
    lines = (place / "out" / "solves.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def solver(place: Path, name: str = "model") -> str:
    return script(place, name, WIND, "The wind in Lima is strong.")


def test_strategies_and_api_sets_become_rows_that_say_how_they_were_made(place: Path) -> None:
    model = solver(place)
    done = tables(place, "--models", model, "--tables", "3,4,6,1")
    assert done.exit_code == 0, done.output
    names = [f"{model}, {one}" for one in ("ReACT, oracle APIs", "DFSDT, oracle APIs")]
    strategies = rows(place, "3")
    assert list(strategies) == [*names, f"{model}, ReACT@N, oracle APIs"]
    assert strategies[names[0]]["I1"]["of"] == strategies[names[0]]["I2"]["of"] == 1
    passed, won = rows(place, "4", "pass"), rows(place, "4", "win")
    assert set(passed) == {f"{model}, {one}, {some}" for one in ("ReACT", "DFSDT") for some in ("oracle APIs", "top 5 APIs")}  # fmt: skip
    cell = passed[names[1]]["I2-Cat"]
    assert (cell["of"], cell["made"]["world"]) == (1, "simulated by response schema")
    simulated = [row["average"]["made"]["simulated"] for row in passed.values()]
    assert all(one["count"] == one["of"] for one in simulated)
    assert any(one["of"] for one in simulated)
    command = cell["made"]["command"]
    assert "--tables 4 " in command
    assert "--strategies dfsdt --apis oracle" in command
    assert won[names[0]] == {}, "the reference is not compared with itself"
    assert won[names[1]]["average"]["of"] == 2
    wins, ties = (rows(place, "6", one)[names[1]]["average"] for one in ("wins", "ties"))
    assert won[names[1]]["average"]["value"] == wins["value"] + ties["value"] / 2
    assert found(place)["left_out"] == {"1": "needs --answers"}
    text = (place / "out" / "tables.md").read_text("utf-8")
    assert "| *paper* | *ToolLLaMA, DFSDT* | *57.0* |" in text
    assert "Table 1 is left out: it needs --answers." in text


def test_a_row_s_command_makes_the_row_again(place: Path) -> None:
    model = solver(place)
    done = tables(place, "--models", model, "--tables", "4", "--limit", "1", "--seed", "5")
    assert done.exit_code == 0, done.output
    name = f"{model}, DFSDT, top 5 APIs"
    before = rows(place, "4", "win")[name]["average"]
    words = shlex.split(before["made"]["command"])[1:]
    again = invoke(*(str(place / "out") if one == "DIR" else one for one in words))
    assert again.exit_code == 0, again.output
    after = rows(place, "4", "win")[name]["average"]
    assert after["value"] == before["value"]
    assert after["made"]["command"] == before["made"]["command"]


def test_a_run_that_stopped_goes_on_and_asks_for_nothing_twice(place: Path) -> None:
    words = ("--tables", "3,4", "--strategies", "react", "--apis", "oracle")
    model = script(place, "model", WIND, "The wind is strong.", WIND, loop=False)
    cut = tables(place, "--models", model, *words)
    assert cut.exit_code == 1, cut.output
    assert "1 results are kept" in cut.output
    log = place / "out" / "solves.jsonl"
    with log.open("a", encoding="utf-8") as file:
        file.write('{"model": "cut off by a ki')
    rest = tables(place, "--models", solver(place), *words)
    assert rest.exit_code == 0, rest.output
    kept = log.read_text("utf-8")
    model = script(place, "model", "nobody asks", loop=False)
    again = tables(place, "--models", model, *words, "--json")
    assert again.exit_code == 0, again.output
    assert log.read_text("utf-8") == kept
    assert len(json.loads(again.stdout)["tables"]) == 3
    other = tables(place, "--models", model, *words, "--world", "live")
    assert other.exit_code == 1
    assert "other settings: world" in other.output


def test_servers_solve_several_queries_at_once(place: Path) -> None:
    words = ("--tables", "3,4", "--set", "limits.model_calls=3", "--keep-going")
    with ModelServer([SERVER_GIVES_UP]) as server:
        done = tables(place, "--models", server.url, *words, "--workers", "4")
        assert done.exit_code == 0, done.output
        asked = len(server.requests)
        kept = solved(place)
        again = tables(place, "--models", server.url, *words)
        assert again.exit_code == 0, again.output
        assert len(server.requests) == asked
    assert len({(one["strategy"], one["task"]) for one in kept}) == len(kept) == 10
    assert {one["result"]["form"]["query"] for one in kept} == {
        "What is the wind in Lima?", "When does the sun rise in Oslo, and is there wind?"
    }  # fmt: skip


def test_a_model_of_this_machine_solves_one_query_at_a_time(place: Path) -> None:
    refused = tables(place, "--models", solver(place), "--tables", "4", "--workers", "2")
    assert refused.exit_code == 2, refused.output
    assert "one task at a time" in refused.output


def test_an_untuned_base_is_a_row_that_says_so(place: Path) -> None:
    base = script(place, "base", GIVE_UP)
    words = ("--tables", "4", "--apis", "oracle", "--strategies", "react")
    done = tables(place, "--models", solver(place), "--base", base, *words)
    assert done.exit_code == 0, done.output
    name = f"{base} (untuned base), ReACT, oracle APIs"
    assert rows(place, "4", "pass")[name]["average"]["count"] == 0
    command = rows(place, "4", "win")[name]["average"]["made"]["command"]
    assert f"--base {base}" in command
    assert "--models scripted:" in command


def test_a_model_s_fault_stops_or_counts_as_failed(place: Path) -> None:
    model = script(place, "model", WIND, loop=False)
    words = ("--models", model, "--tables", "4", "--apis", "oracle", "--strategies", "react")
    stopped = tables(place, *words)
    assert stopped.exit_code == 1
    assert "the evaluation stopped" in stopped.output
    assert "Traceback" not in stopped.output
    done = tables(place, *words, "--keep-going")
    assert done.exit_code == 0, done.output
    (cells,) = rows(place, "4", "pass").values()
    assert (cells["average"]["count"], cells["average"]["of"]) == (0, 2)


def test_answers_that_were_written_are_data_of_table_1(place: Path) -> None:
    words = ("--tables", "4", "--apis", "oracle", "--strategies", "dfsdt")
    done = tables(place, "--models", solver(place), *words)
    assert done.exit_code == 0, done.output
    answers = str(place / "out" / "answers")
    unsaid = tables(place, "--tables", "1", "--answers", answers)
    assert unsaid.exit_code == 0, unsaid.output
    cells = rows(place, "1")["out/answers"]
    assert (cells["tools"]["value"], cells["APIs"]["value"]) == (1, 2)
    results = [one["result"]["solved"] for one in solved(place)]
    made = sum(one["usage"]["calls"] for one in results)
    assert cells["instances"]["value"] == sum(one["status"] == "answered" for one in results) > 0
    assert cells["calls"]["value"] == made > 0
    assert 1 <= cells["reasoning length"]["value"] <= 2
    assert "real calls" not in cells
    said = tables(place, "--tables", "1", "--simulated-answers", answers)
    assert said.exit_code == 0, said.output
    cells = rows(place, "1")["out/answers"]
    assert cells["real calls"]["value"] == 0
    assert cells["calls"]["made"]["simulated"]["count"] == made


def test_retrievers_are_ranked_once_and_by_type(place: Path) -> None:
    words = ("--tables", "2", "--encoder", str(SHIPPED_ENCODER))
    done = tables(place, *words)
    assert done.exit_code == 0, done.output
    cells = rows(place, "2")
    assert [name for name in cells if "zero-shot" not in name] == [
        "our retriever",
        "our retriever with the matcher",
        "BM25",
    ]
    assert all(row["I1 @5"]["value"] > 50 for row in cells.values()), cells
    assert all(row["average @5"]["of"] == 2 for row in cells.values())
    assert {"I1 @1", "I1 @5", "I2 @1", "I2 @5", "average @1", "average @5"} == set(cells["BM25"])
    log = place / "out" / "rankings.jsonl"
    whole = log.read_text("utf-8")
    log.write_text(whole[: whole.index("BM25") + 4], "utf-8")  # a kill in the third method
    again = tables(place, *words)
    assert again.exit_code == 0, again.output
    assert log.read_text("utf-8") == whole
    assert rows(place, "2") == cells


def entry(final: str) -> dict[str, Any]:
    call = {"name": "wind", "arguments": "{}", "response": "31 km/h"}
    end = {"name": "Finish", "arguments": "{}", "response": ""}
    nodes: list[dict[str, Any]] = []
    for step in (end, call):
        nodes = [{"role": "tool", "message": step, "next": nodes}]
    return {
        "query": "How strong is the wind?",
        "available_tools": [{"name": "wind", "description": "The wind"}],
        "answer": {"method": "DFS", "total_steps": 4, "final_answer": final, "answer_details": nodes},
    }  # fmt: skip


def test_lora_stands_beside_full_fine_tuning(place: Path) -> None:
    for side, final in (("full", "It is 31 km/h."), ("lora", "")):
        (place / side).mkdir()
        value = {str(at): entry(final) for at in range(3)}
        (place / side / "G1_tool.json").write_text(json.dumps(value), "utf-8")
    solved = {"function": "check_answer_status", "arguments": {"answer_status": "Solved"}}
    solvable = {"function": "check_task_solvable", "arguments": {"task_status": "Solvable"}}
    judge = script(place, "judge", solved, solved, solvable, solvable)
    words = ("--full", str(place / "full"), "--lora", str(place / "lora"), "--jobs", "1")
    done = tables(place, "--tables", "lora", "--judge", judge, "--times", "2", *words)
    assert done.exit_code == 0, done.output
    passed, won = rows(place, "lora", "pass"), rows(place, "lora", "win")
    assert list(passed) == ["full", "LoRA"]
    assert passed["full"]["I1-Tool"]["of"] == 3
    assert passed["full"]["I1-Tool"]["made"]["judge"] == "scripted"
    assert set(won["LoRA"]) == {"I1-Tool", "average"}
    assert won["full"] == {}
    assert "README of August 2023" in (place / "out" / "tables.md").read_text("utf-8")


def test_folders_with_names_of_their_own_are_a_pair(place: Path) -> None:
    for side, final in (("full", "It is 31 km/h."), ("lora", "")):
        (place / side).mkdir()
        value = {"1": entry(final)}
        (place / side / f"{side}.json").write_text(json.dumps(value), "utf-8")
    words = ("--full", str(place / "full"), "--lora", str(place / "lora"))
    done = tables(place, "--tables", "lora", *words)
    assert done.exit_code == 0, done.output
    passed, won = rows(place, "lora", "pass"), rows(place, "lora", "win")
    assert set(passed["full"]) == set(passed["LoRA"])
    assert won["LoRA"]["average"]["value"] == 0.0


def test_sides_about_other_queries_are_no_comparison(place: Path) -> None:
    for side in ("full", "lora"):
        (place / side).mkdir()
        value = {side: entry("It is 31 km/h.")}
        (place / side / "G1_tool.json").write_text(json.dumps(value), "utf-8")
    words = ("--full", str(place / "full"), "--lora", str(place / "lora"))
    done = tables(place, "--tables", "lora", *words)
    assert done.exit_code == 1
    assert "no query in common" in done.output


def test_apibench_leaves_out_domains_without_questions(place: Path) -> None:
    data = place / "apibench"
    data.mkdir()
    known = {
        "domain": "Image Classification", "framework": "PyTorch", "functionality": "birds",
        "api_name": "sparrow", "api_call": "torch.hub.load(repo_or_dir='birds/nets', model='sparrow')",
        "api_arguments": {}, "description": "Tells birds apart.",
    }  # fmt: skip
    (data / "torchhub_api.jsonl").write_text(json.dumps(known), "utf-8")
    question = {"instruction": "Which bird is this?", "api_call": known["api_call"]}
    (data / "torchhub_eval.json").write_text(json.dumps(question), "utf-8")
    right = {"function": "pick_api", "arguments": {"api_call": known["api_call"]}}
    model = script(place, "model", right)
    done = tables(place, "--tables", "5", "--models", model, "--apibench", str(data))
    assert done.exit_code == 0, done.output
    cells = rows(place, "5")
    assert set(cells) == {f"{model}, our retriever", f"{model}, oracle"}
    for row in cells.values():
        assert (row["TorchHub AST"]["count"], row["TorchHub hallucination"]["count"]) == (1, 0)
    text = (place / "out" / "tables.md").read_text("utf-8")
    assert "HuggingFace is left out" in text
    nothing = tables(place, "--tables", "5", "--models", model, "--apibench", str(place))
    assert nothing.exit_code == 2
    assert "TensorHub is left out" in nothing.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tables", "7"], "there is no '7'"),
        (["--tables", ""], "names nothing"),
        (["--tables", "4"], "4 needs --models and --queries"),
        (["--tables", "1", "--answers", "nowhere"], "nowhere"),
        (["--tables", "4", "--strategies", "cot", "--models", "nano"], "there is no 'cot'"),
        (["--tables", "4", "--models", "nano", "--base", "nano"], "a model twice"),
        (["--tables", "4", "--models", "nano", "--set", "depth=x"], "depth"),
    ],
)
def test_what_cannot_be_made_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(place)
    done = tables(place, *words)
    assert done.exit_code in (1, 2)
    assert said in done.output
    assert "Traceback" not in done.output


def test_the_tables_need_a_folder(place: Path) -> None:
    done = invoke("lab", "tables", "--tables", "2", "--queries", str(place / "G1_tool.json"))
    assert done.exit_code == 2
    assert "--out DIR" in done.output
