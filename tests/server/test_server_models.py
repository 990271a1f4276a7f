"""The setting ``model`` beyond files: servers, scripts; solved and told on the command line."""

from __future__ import annotations

import json
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolsrv import settings
from toolsrv.model_loading import load_model
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.profiles import REMOTE

_FAKE = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, Call = _FAKE["ModelServer"], _FAKE["Call"]
Run = Callable[..., Any]
PERU = Call("capital_city_for_country_facts", {"country": "Peru"}, "look it up")
TASK = "capital of Peru"
KEY = "a-key-of-the-test"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    assert data_dir
    monkeypatch.setenv("TOOLSRV_ENGINE_KEY", KEY)


def test_a_task_is_solved_at_two_servers(run: Run, ready_dir: Path) -> None:
    assert ready_dir
    with ModelServer([PERU]) as one, ModelServer(["It is Lima."]) as other:
        done = run("solve", "--model", f"{one.url},{other.url}", "--json", TASK)
    outcome = json.loads(done.stdout)
    assert (done.exit_code, outcome["status"], outcome["answer"]) == (0, "answered", "It is Lima.")
    assert outcome["format"] == "chat (tools)"
    assert KEY not in done.output


def test_the_model_at_the_server_may_be_named(run: Run, ready_dir: Path) -> None:
    assert ready_dir
    with ModelServer([PERU, "Lima"], models=("tiny", "mine")) as server:
        done = run("solve", "--model", server.url, "--engine-model", "mine", "--json", TASK)
        assert {body["model"] for body in server.requests} == {"mine"}
    assert json.loads(done.stdout)["model"].startswith("mine at 127.0.0.1")


def test_a_model_that_the_server_does_not_list_is_refused_with_those_it_has(
    run: Run, ready_dir: Path
) -> None:
    assert ready_dir
    with ModelServer([PERU], models=("tiny", "large")) as server:
        done = run("solve", "--model", server.url, "--engine-model", "nope", TASK)
        assert server.requests == []
    assert done.exit_code == 1
    assert "has no model 'nope'; it has tiny, large" in done.stderr
    assert f"{server.url}#tiny" in done.stderr


def test_a_server_that_is_gone_is_one_clear_error(run: Run, ready_dir: Path) -> None:
    assert ready_dir
    done = run("solve", "--model", "http://127.0.0.1:9/v1", TASK)
    assert done.exit_code == 1
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize("offers", [("tools",), ("grammar",), ()])
def test_model_info_tells_what_a_server_offers(run: Run, offers: tuple[str, ...]) -> None:
    with ModelServer([], offers=offers) as server:
        done = run("model", "info", server.url, "--json")
        shown = run("model", "info", server.url)
    (found,) = json.loads(done.stdout)["servers"]
    assert (found["models"], found["mode"]) == (["tiny"], offers[0] if offers else "none")
    assert found["mode"] in shown.stdout


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://127.0.0.1:1", "://"])
def test_a_model_server_is_reached_whatever_proxy_the_environment_names(
    run: Run, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, proxy)
    with ModelServer([], offers=("tools",)) as server:
        done = run("model", "info", server.url, "--json")
    assert json.loads(done.stdout)["servers"][0]["models"] == ["tiny"]


def test_model_info_of_servers_that_are_gone_says_so_and_fails(run: Run) -> None:
    gone = run("model", "info", "http://127.0.0.1:9/v1")
    told = run("model", "info", "http://127.0.0.1:9/v1", "--json")
    for done in (gone, told):
        assert done.exit_code == 1
        assert "cannot be reached" in done.stderr
        assert "hint: " in done.stderr
    assert "cannot be reached" in json.loads(told.stdout)["servers"][0]["error"]
    with ModelServer([]) as server:
        one = run("model", "info", f"{server.url},http://127.0.0.1:9/v1")
    assert (one.exit_code, "cannot be reached" in one.stderr) == (0, True)


def test_work_that_needs_tokens_refuses_a_server(data_dir: Path) -> None:
    from toolsrv.workbench import Workbench

    with ModelServer([]) as server:
        bench = Workbench(settings.load({"data_dir": data_dir, "model": server.url}).settings)
        with pytest.raises(UsageError) as caught:
            bench.engine()
    assert caught.value.hint


def test_a_script_stands_in_for_a_model(run: Run, ready_dir: Path, tmp_path: Path) -> None:
    assert ready_dir
    finish = {"return_type": "give_answer", "final_answer": "Lima."}
    replies = [
        {"function": PERU.function, "arguments": PERU.arguments},
        {"function": "Finish", "arguments": finish},
    ]
    script = tmp_path / "demo.json"
    script.write_text(json.dumps({"replies": replies}), encoding="utf-8")
    done = run("solve", "--model", f"scripted:{script}", "--json", TASK)
    outcome = json.loads(done.stdout)
    assert (outcome["status"], outcome["answer"]) == ("answered", "Lima.")
    assert outcome["model"] == "scripted"
    assert outcome["evidence"][0]["status"] == 200


@pytest.mark.parametrize(
    "text", ["http://h:1/v1", "http://h:1,https://g/v1", "scripted:demo.toml", "sampling"]
)
def test_special_models_stand_in_the_file_as_they_are(text: str, data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "config.toml").write_text(f'model = "{text}"\n', encoding="utf-8")
    assert settings.load().settings.model == text
    assert settings.parse_value("model", text, "test") == text


def test_an_address_with_a_password_is_refused_unsaid() -> None:
    with pytest.raises(UsageError) as caught:
        settings.load({"model": "http://me:secret-4711@host/v1"})
    assert "secret-4711" not in caught.value.message + caught.value.hint


def test_the_key_is_no_unknown_variable() -> None:
    assert settings.unknown_variables() == ()


def test_a_server_that_names_no_models_is_left_within_the_time_of_the_solve(
    run: Run, ready_dir: Path
) -> None:
    assert ready_dir
    with ModelServer([PERU], models_after_s=8) as silent:
        started = time.monotonic()
        done = run("solve", "--model", silent.url, "--max-seconds", "1", TASK)
        took = time.monotonic() - started
    assert done.exit_code == 1
    assert "said nothing for 1 s" in done.stderr
    assert took < 6


def test_what_a_server_is_asked_is_said_while_it_is_waited_for(run: Run) -> None:
    with ModelServer([]) as server:
        done = run("model", "info", server.url)
    name = server.url.split("/")[2]
    assert f"asking {name} for its models, 10 s at most" in done.stderr
    assert f"asking {name} for a short reply, 30 s at most" in done.stderr


def test_a_server_or_script_is_looked_at_before_it_is_the_model_in_use(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = run("model", "use", "http://127.0.0.1:9/v1")
    assert (gone.exit_code, settings.load().settings.model) == (1, None)
    assert "cannot be reached" in gone.stderr
    assert "toolsrv config set model http://127.0.0.1:9/v1" in gone.stderr
    monkeypatch.chdir(tmp_path)
    missing = run("model", "use", "scripted:demo.json")
    assert (missing.exit_code, "demo.json" in missing.stderr) == (2, True)
    Path("demo.json").write_text('{"replies": ["Hello"]}', encoding="utf-8")
    assert run("model", "use", "scripted:demo.json").exit_code == 0
    assert settings.load().settings.model == f"scripted:{tmp_path / 'demo.json'}"
    with ModelServer([]) as server:
        used = run("model", "use", f"{server.url},http://127.0.0.1:9/v1")
        assert (used.exit_code, "cannot be reached" in used.stderr) == (0, True)
        assert settings.load().settings.model == f"{server.url},http://127.0.0.1:9/v1"


def test_a_server_gets_the_profile_that_matches_its_model(data_dir: Path) -> None:
    folder = settings.profiles_folder(data_dir)
    folder.mkdir(parents=True)
    own = 'base = "remote"\nmatch = ["tiny at *"]\ncalls_per_turn = 1\nswitches = ["plan"]\n'
    (folder / "mine.toml").write_text(own, encoding="utf-8")
    with ModelServer([]) as server:
        loaded = settings.load({"data_dir": data_dir, "model": f"{server.url}#tiny"})
        _, profile = load_model(loaded.settings)
        assert (profile.calls_per_turn, profile.switches) == (1, frozenset({"plan"}))
        assert profile.format == "remote"
        (folder / "mine.toml").write_text(own.replace("tiny", "other"), encoding="utf-8")
        assert load_model(loaded.settings)[1] == REMOTE
    with pytest.raises(ProfileError, match="for models at servers"):
        load_model(settings.load({"data_dir": data_dir, "profile": "mine"}).settings)


def test_options_that_do_nothing_are_noted(data_dir: Path, run: Run) -> None:
    script = data_dir / "none.json"
    done = run("solve", "--model", f"scripted:{script}", "--chains", "3", TASK)
    assert done.stderr.count("note: --chains does nothing") == 1
