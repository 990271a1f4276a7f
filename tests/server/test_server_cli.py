"""The command line in this process, its rim included: help, errors, exit codes, JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from toolsrv.cli.main import COMMANDS, cli
from toolsrv.plain import plain
from toolsrv.workbench import Workbench
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint

Run = Callable[..., Result]
ZONES = "Location/world_clock/time_difference"


def commands(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group) and name != "bench":
            yield from commands(command, (*path, name))


ALL = dict(commands())
LEAVES = {path: one for path, one in ALL.items() if not isinstance(one, click.Group)}
SERVERS = {("serve",), ("world", "serve")}
CAPITAL = "Data/country_facts/capital_city"


def example_of(command: click.Command) -> list[str]:
    lines = (command.epilog or "").splitlines()
    return [line.strip() for line in lines if line.strip().startswith(("toolsrv", "TOOLSRV_"))]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_help_with_an_example(run: Run, path: tuple[str, ...]) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    assert "Example:" in result.stdout
    assert f"toolsrv {' '.join(path)}" in " ".join(example_of(ALL[path]))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_command_says(name: str) -> None:
    command = ALL[(name,)]
    own = command.get_short_help_str(200).rstrip(".")
    assert own.split()[0] in COMMANDS[name][1]


@pytest.mark.parametrize("path", [p for p in LEAVES if p not in SERVERS], ids=" ".join)
def test_every_command_offers_json(path: tuple[str, ...]) -> None:
    assert any("--json" in option.opts for option in LEAVES[path].params)


def prepare_example(run: Run, path: tuple[str, ...]) -> None:
    """Make what a command's example names, in the present folder."""
    if path == ("catalog", "import"):
        assert run("catalog", "export", "offline", "toolenv.tar.gz", "--force").exit_code == 0
    if path[0] == "lab" and path != ("lab", "instructions"):
        words = [
            "lab",
            "instructions",
            "--rounds",
            "1",
            "--hold-out",
            "0",
            "--out",
            "instructions.jsonl",
        ]
        assert run(*words).exit_code == 0
    if path == ("lab", "eval", "solve"):
        call = {"api": CAPITAL, "arguments": {"country": "Peru"}, "answer": ["capital"]}
        task = {"id": "t", "kind": "single", "task": "What is the capital of Peru?"}
        Path("tasks.jsonl").write_text(json.dumps({**task, "calls": [call]}))
    if path == ("lab", "eval", "choice"):
        query = {"query": "What is the capital of Peru?", "relevant": [CAPITAL]}
        Path("queries_dev.jsonl").write_text(json.dumps({**query, "candidates": [CAPITAL]}))
    if path == ("lab", "convert"):
        Path("answers").mkdir(exist_ok=True)
        saved = "answers/1_DFS_woFilter_w2.json"
        assert run("solve", "What is the capital of Peru?", "--save-answer", saved).exit_code == 0
    if path in {("run", "show"), ("run", "response")}:
        assert run("solve", "What is the capital of Peru?").exit_code == 0
    if path == ("lab", "curve"):
        Path("run").mkdir(exist_ok=True)
        Path("run/curve.jsonl").write_text('{"step": 200, "seen": 9000, "loss": 1.5}\n')
    if path in {("model", "convert"), ("model", "quantize"), ("model", "remove")}:
        for made in Path().glob("*.gguf"):  # no command replaces it unasked
            made.unlink()
        write_tiny_checkpoint(Path("ToolLLaMA-2-7b-v2"), max_position_embeddings=4096)
        words = ["model", "convert", "ToolLLaMA-2-7b-v2", "--out", "model.f16.gguf"]
        assert run(*words).exit_code == 0
    if path[0] == "recordings":
        assert run("call", CAPITAL, '{"country": "Peru"}', "--mode", "record").exit_code == 0
        assert run("recordings", "export", "calls.pack", "--force").exit_code == 0
    if path == ("catalog", "remove"):
        assert run("catalog", "export", "offline", "my_tools.zip", "--force").exit_code == 0
        assert run("catalog", "import", "my_tools.zip", "--no-index").exit_code == 0


NEEDS_MORE = ("retriever", "matcher", "model", "unseen", "curve")
"""What needs the extra "lab" (torch); tried where that is installed."""
ELSEWHERE = {
    ("model", "pull"),  # at a hub on loopback
    ("catalog", "pull"),
    ("recordings", "pull"),
    ("model", "merge"),  # with adapters
    ("model", "prompts"),  # on ToolBench's files
    ("keys", "set"),  # without the developer's keyring
    ("keys", "remove"),
    ("lab", "samples"),  # a minute of writing
    ("lab", "eval", "models"),  # with real models
    ("lab", "eval", "bfcl"),  # on the data of a package
    ("lab", "export", "encoder"),  # with torch and the package of its source
    ("lab", "report", "requests"),  # on results
    ("lab", "eval", "imports"),  # of documents
    ("catalog", "refresh"),  # of an imported catalog
    ("catalog", "set"),
    ("catalog", "unset"),
    ("recordings", "export"),  # of live calls
    ("recordings", "import"),
    ("setup",),  # asks, at a terminal
    ("lab", "export", "pairs"),  # with the documents of a package
    ("lab", "export", "samples"),  # with torch
    ("lab", "eval", "pass-rate"),  # on answers, with judges
    ("lab", "eval", "win-rate"),
    ("lab", "eval", "agreement"),
    ("lab", "eval", "llift"),
    ("lab", "eval", "apibench"),
    ("lab", "eval", "stable"),
    ("catalog", "compress"),  # with a model that is scripted, and a real one
    ("lab", "eval", "compress"),
    ("lab", "tables"),
}
"""Tried by tests of their own."""
TRIED_HERE = [
    path
    for path in LEAVES
    if path not in {("solve",), *SERVERS, *ELSEWHERE} and path[-1] not in NEEDS_MORE
]


SLOW = {
    ("lab", "export", "examples"),
    ("lab", "train", "ranker"),
    ("lab", "episodes"),
    ("lab", "eval", "unserved"),
    ("lab", "eval", "parts"),
    ("doctor",),
}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.nightly] if path in SLOW else [], id=" ".join(path))
        for path in TRIED_HERE
    ],
)
def test_every_example_works_and_its_json_is_one_document(
    run: Run, path: tuple[str, ...], ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ready_dir.parent)
    words = shlex.split(example_of(LEAVES[path])[0])
    words = words[words.index("toolsrv") + 1 :]
    prepare_example(run, path)
    assert run(*words).exit_code == 0
    prepare_example(run, path)
    result = run(*words, *([] if "--json" in words else ["--json"]))
    assert result.exit_code == 0
    json.loads(result.stdout)


@pytest.mark.parametrize(
    ("words", "must_say"),
    [
        (["nope"], "nope"),
        (["solve"], "TASK"),
        (["solve", "x", "--nope"], "--nope"),
        (["solve", ""], "empty"),
        (["solve", " \x1b[0m\x00 "], "empty"),
        (["solve", "long " * 20_000], "20,000"),
        (["solve", "x", "--width", "99"], "--width"),
        (["solve", "x", "--width", "many"], "--width"),
        (["solve", "x", "--strategy", "guess"], "--strategy"),
        (["solve", "x", "--category", "Nonsense"], "Nonsense"),
        (["solve", "x", "--model", "/no/such/model.gguf"], "/no/such/model.gguf"),
        (["lab", "eval", "unseen"], "held out"),  # only large catalogs are
        (["search", ""], "empty"),
        (["search", "x", "--category", "Nonsense"], "Nonsense"),
        (["search", "x", "--tool", "Nonsense"], "Nonsense"),
        (["search", "x", "--limit", "0"], "--limit"),
        (["describe", "no/such/api"], "no/such/api"),
        (["describe", "Location/world_clock/curent_time"], "current_time"),
        (["call", "no/such/api"], "no/such/api"),
        (["call", ZONES, "{"], "JSON"),
        (["call", ZONES, "[1]"], "a list"),
        (["call", ZONES, '"x"'], "a string"),
        (["call", ZONES, "{}"], "from_city"),
        (["call", ZONES, '{"from_city": "London", "to_city": "Oslo", "nope": 1}'], "nope"),
        (["call", "Events/public_holidays/easter_sunday", '{"year": [1]}'], "year"),
        (["call", "Events/public_holidays/easter_sunday", '{"year": "soon"}'], "year"),
        (["catalog", "show", "nope"], "nope"),
        (["catalog", "inspect", "nope"], "nope"),
        (["catalog", "diff", "nope"], "nope"),
        (["catalog", "accept", "nope"], "nope"),
        (["catalog", "accept", "offline", "no/such/api"], "no/such/api"),
        (["catalog", "enable", "nope"], "nope"),
        (["catalog", "disable", "nope"], "nope"),
        (["catalog", "remove", "nope"], "nope"),
        (["catalog", "remove", "offline", "--yes"], "ships"),
        (["catalog", "export", "nope", "x"], "nope"),
        (["catalog", "export", "offline", "/"], "there already"),
        (["catalog", "import", "/no/such/place"], "/no/such/place"),
        (["catalog", "import", "x.yaml", "--env", "X=Y"], "are for MCP servers"),
        (["catalog", "import", "mcp:sleep 9", "--env", "X=Y"], "no name of a variable"),
        (["catalog", "import", "/tmp", "--name", "offline"], "ships"),
        (["catalog", "import", "/tmp", "--name", "a b"], "a b"),
        (["catalog", "show", "--category", "Nonsense"], "Nonsense"),
        (["model", "info", "/no/such/model.gguf"], "/no/such/model.gguf"),
        (["config", "set", "paralel", "3"], "parallel"),
        (["config", "set", "parallel", "99"], "1 to 16"),
        (["serve", "--port", "70000", "--http"], "'--port'"),
        (["serve", "--port", "8000"], "--http"),
        (["serve", "--http", "--host", "0.0.0.0"], "loopback"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_usage_is_one_clear_line_and_code_2(
    run: Run, ready_dir: Path, words: list[str], must_say: str, as_json: bool
) -> None:
    assert ready_dir.is_dir()
    if as_json and words[0] in ("serve", "nope"):
        return
    result = run(*words, *(["--json"] if as_json else []))
    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert lines[0].startswith("error: ")
    assert must_say in result.stderr
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert "Traceback" not in result.stderr
    if as_json:
        assert json.loads(result.stdout)["exit_code"] == 2
    else:
        assert result.stdout == ""


def test_a_text_that_begins_like_an_option_is_told_how_to_write_it(run: Run) -> None:
    result = run("solve", "-15 F in Celsius")
    assert result.exit_code == 2
    assert 'toolsrv solve -- "-15' in result.stderr
    assert " -- " not in run("solve", "--bogus", "x").stderr


def test_a_damaged_model_is_a_fault_and_another_file_wrong_use(run: Run, tmp_path: Path) -> None:
    damaged = b"GGUF\x03\x00\x00\x00" + b"\xff" * 64
    for content, code in ((b"", 2), (b"GGUF", 1), (b"not a model at all", 2), (damaged, 1)):
        model = tmp_path / "broken.gguf"
        model.write_bytes(content)
        for words in (["model", "info", str(model)], ["solve", "x", "--model", str(model)]):
            result = run(*words)
            assert result.exit_code == code
            assert "broken.gguf" in result.stderr
            assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [["catalog", "list"], ["search", "x"], ["solve", "x"]])
def test_a_data_folder_that_is_none_is_a_fault_that_says_so(
    run: Run, tmp_path: Path, words: list[str]
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    result = run("--data-dir", str(blocked), *words)
    assert result.exit_code in (1, 2)
    assert str(blocked) in result.stderr
    assert "hint: " in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unexpected_fault_is_logged_and_told_in_one_line(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Workbench) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Workbench, "registry", broken)
    result = run("catalog", "list")
    (log,) = (data_dir / "faults").iterdir()
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: unexpected ZeroDivisionError, a fault of toolsrv; details in {log}\n"
    )
    assert "secret detail" in log.read_text()
    assert "Traceback" in run("--debug", "catalog", "list").stderr


def test_fault_logs_do_not_pile_up(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workbench, "registry", lambda _: 1 / 0)
    for _ in range(25):
        run("catalog", "list")
    assert len(list((data_dir / "faults").iterdir())) == 20


def test_config_shows_each_value_with_its_origin(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_KEEP_RUNS", "7")
    monkeypatch.setenv("TOOLSRV_KEPT_RUNS", "7")
    assert run("config", "set", "parallel", "3").exit_code == 0
    shown = run("config", "show", "--json")
    settings = json.loads(shown.stdout)["settings"]
    assert settings["parallel"] == {"value": 3, "origin": str(data_dir / "config.toml")}
    assert settings["keep_runs"] == {"value": 7, "origin": "TOOLSRV_KEEP_RUNS"}
    assert settings["mode"]["origin"] == "default"
    assert settings["data_dir"]["origin"] == "TOOLSRV_DATA_DIR"
    assert "TOOLSRV_KEPT_RUNS" in shown.stderr
    path = run("config", "path")
    assert path.stdout == f"{data_dir / 'config.toml'}\n"


def test_setting_what_a_variable_overrides_is_told(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_PARALLEL", "2")
    result = run("config", "set", "parallel", "3", "--json")
    assert json.loads(result.stdout)["value"] == 3
    assert "TOOLSRV_PARALLEL" in result.stderr


def test_a_call_takes_its_arguments_from_stdin(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    result = run("call", ZONES, "-", "--json", stdin='{"from_city": "London", "to_city": "Oslo"}')
    assert result.exit_code == 0
    assert json.loads(result.stdout)["status"] == 200


def test_json_shows_what_nobody_sees_as_escapes_of_the_same_value(
    run: Run, ready_dir: Path
) -> None:
    assert ready_dir.is_dir()
    odd = "a\x9b31m\x9d0;t\x9c\u202eb\u200bc\x7f\U000e0041\nd é \u4e2d"
    given = {"text": odd, "case": "upper"}
    done = run("call", "Tools/text_case_studio/change_case", json.dumps(given), "--json")
    assert json.loads(done.stdout)["arguments"]["text"] == odd
    assert plain(done.stdout) == done.stdout
    assert "é \u4e2d" in done.stdout


def test_an_api_that_refuses_is_a_fault_whose_answer_is_shown(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    result = run("call", ZONES, '{"from_city": "Nowhere at all", "to_city": "Oslo"}')
    assert result.exit_code == 1
    assert "status 4" in result.stderr
    assert result.stdout


def test_without_benchmarks_the_message_says_how_to_get_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolsrv.cli import bench

    monkeypatch.setattr(bench, "MODULE", "toolsrv_lab.no_such_module")
    assert run("bench", "--help").exit_code == 0
    result = run("bench", "server")
    assert result.exit_code == 2
    assert "'.[lab]'" in result.stderr
