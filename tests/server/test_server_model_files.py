"""``toolsrv model pull``, ``list``, ``use``, ``remove`` and ``info``, as a person meets them."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from toolsrv.model_list import ModelList
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint
from toolsrv_runtime.gguf_models import SHIPPED_MODEL, SHIPPED_MODELS

HubHost = runpy.run_path(str(Path(__file__).parents[1] / "hub_host.py"))["HubHost"]
REPO = "maker/tiny-GGUF"
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp("made") / "tiny")
    return Path(convert(folder).path).read_bytes()


@pytest.fixture
def hub(tiny: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with HubHost() as host:
        host.files[REPO] = {"tiny.f16.gguf": tiny}
        monkeypatch.setenv("HF_ENDPOINT", host.url)
        yield host


def listed(run: Run) -> dict[str, Any]:
    rows = json.loads(run("model", "list", "--json").stdout)["models"]
    return {row["name"]: row for row in rows}


def test_a_pulled_model_is_on_the_list_used_by_name_and_removed(
    run: Run, hub: Any, data_dir: Path
) -> None:
    pulled = run("model", "pull", REPO, "--json")
    assert pulled.exit_code == 0, pulled.stderr
    said = json.loads(pulled.stdout)
    assert said["name"] == "tiny.f16"
    assert said["source"].startswith(f"{REPO}:tiny.f16.gguf@")
    assert Path(said["path"]).is_relative_to(data_dir / "models" / REPO)
    assert listed(run)["nano"]["in_use"]

    assert run("model", "use", "tiny.f16").exit_code == 0
    assert listed(run)["tiny.f16"]["in_use"]
    assert json.loads(run("model", "info", "--json").stdout)["path"] == said["path"]
    assert (
        json.loads(run("config", "show", "--json").stdout)["settings"]["model"]["value"]
        == (said["path"])
    )

    kept = run("model", "remove", "tiny.f16", "--yes")
    assert (kept.exit_code, "is in use" in kept.stderr) == (2, True)
    assert run("model", "use", "nano").exit_code == 0
    asked = run("model", "remove", "tiny.f16")
    assert (asked.exit_code, "say --yes" in asked.stderr) == (2, True)
    gone = run("model", "remove", "tiny.f16", "--yes")
    assert "its file is deleted" in gone.stdout
    assert not Path(said["path"]).exists()
    assert set(listed(run)) == {"nano", "small"}
    assert len(hub.ranges) == 1


def test_a_name_is_taken_wherever_a_model_is(run: Run, hub: Any) -> None:
    assert run("model", "pull", REPO, "--name", "little").exit_code == 0
    info = json.loads(run("model", "info", "little", "--json").stdout)
    assert info["architecture"] == "llama"
    unknown = run("solve", "x", "--model", "smell")
    assert unknown.exit_code == 2
    assert "toolsrv model list" in unknown.stderr
    missing = run("model", "use", "smell")
    assert missing.exit_code == 2
    assert "there are: nano, small, little" in missing.stderr
    hub.files["maker/other"] = {"x.gguf": hub.files[REPO]["tiny.f16.gguf"]}
    taken = run("model", "pull", "maker/other", "--name", "little")
    assert (taken.exit_code, "another model" in taken.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("pull", "maker/none"), 2, "has no maker/none"),
        (("pull", f"{REPO}:x.gguf"), 2, "holds no file 'x.gguf'"),
        (("pull", "maker/not a repo"), 2, "not the name of a repository"),
        (("pull", "nope"), 2, "toolsrv model pull --list"),
        (("pull", "nope:x.gguf"), 2, "no short name 'nope'"),
        (("pull", ""), 2, "--list"),
        (("remove", "nano", "--yes"), 2, "'nano' ships with toolsrv"),
        (("remove", "small", "--yes"), 2, "'small' ships with toolsrv"),
        (("remove", "none", "--yes"), 2, "there are: nano, small"),
        (("use", "/no/such.gguf"), 2, "there is no model file"),
        (("use", "{folder}"), 2, "is a folder"),
        (("use", "{text}"), 2, "is not a GGUF file"),
        (("use", "{empty}"), 2, "is empty"),
        (("use", ""), 2, "it is empty"),
        (("info", ""), 2, "it is empty"),
        (("info", "{folder}"), 2, "is a folder"),
        (("info", "{text}/x.gguf"), 2, "does not exist"),
        (("convert", ""), 2, "it is empty"),
        (("convert", "/no/such"), 2, "does not exist"),
        (("convert", "{folder}"), 2, "holds no config.json"),
        (("convert", "{text}"), 2, "is no folder"),
        (("quantize", "{text}"), 2, "is not a GGUF file"),
        (("quantize", "{folder}"), 2, "is a folder"),
        pytest.param(
            ("merge", "small", "/no/such"),
            2,
            "there is no adapter file '/no/such'",
            marks=pytest.mark.nightly,
        ),
        pytest.param(("merge", "small", "{text}"), 2, "PEFT", marks=pytest.mark.nightly),
        (("merge", "small", "{folder}"), 2, "is no adapter: there is no adapter_config.json"),
        (("merge", "small", ""), 2, "it is empty"),
        (("merge", "/no/such", "{text}"), 2, "there is no model file '/no/such'"),
    ],
)
def test_a_wrong_request_is_told_in_one_line(
    run: Run, hub: Any, words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    del hub
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    places = {name: tmp_path / name for name in ("folder", "text", "empty")}
    done = run("model", *(one.format(**places) for one in words))
    assert done.exit_code == code
    assert done.stderr.count("error: ") == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "name",
    ["nano", "small", "sampling", "../x", "x.gguf", "", " x", "a\nb", "scripted:x", "x" * 65],
)
def test_what_is_no_name_is_refused_before_anything_is_brought(
    run: Run, hub: Any, name: str, data_dir: Path
) -> None:
    done = run("model", "pull", REPO, "--name", name)
    assert done.exit_code == 2
    assert done.stderr.count("hint: ") == 1
    assert not hub.ranges
    assert not list(data_dir.rglob("*.gguf*"))
    assert run("model", "pull", REPO, "--name", "x" * 64).exit_code == 0


def test_names_made_of_long_file_names_are_cut(tmp_path: Path) -> None:
    models = ModelList(tmp_path)
    names = []
    for folder in ("a", "b"):
        path = tmp_path / folder / f"{'m' * 200}.gguf"
        path.parent.mkdir()
        path.write_bytes(b"GGUF")
        names.append(models.add(path, source="test").name)
    assert names == ["m" * 64, "m" * 62 + "-2"]


def test_a_name_is_taken_where_a_model_is_quantised_or_measured(
    run: Run, hub: Any, tmp_path: Path
) -> None:
    assert run("model", "pull", REPO, "--name", "little").exit_code == 0
    made = tmp_path / "made.gguf"
    done = run("model", "quantize", "little", "--out", str(made))
    assert done.exit_code == 0, done.stderr
    assert made.is_file()
    assert "quantised already" in run("model", "quantize", "nano").stderr
    hub.files["maker/broken"] = {"broken.gguf": b"no model"}
    assert run("model", "pull", "maker/broken").exit_code == 0
    measured = run("bench", "engine", "--model", "broken")
    assert measured.exit_code == 2
    assert "/models/maker/broken/broken.gguf' is not a GGUF file" in measured.stderr


def test_several_files_are_listed_with_their_sizes(run: Run, hub: Any) -> None:
    hub.files[REPO]["tiny.q8_0.gguf"] = b"GGUF" * 1000
    done = run("model", "pull", REPO)
    assert done.exit_code == 2
    assert "tiny.q8_0.gguf (4 kB)" in done.stderr
    assert f"toolsrv model pull {REPO}:tiny.f16.gguf" in done.stderr


def test_a_wrong_checksum_leaves_no_file_and_no_entry(run: Run, hub: Any, data_dir: Path) -> None:
    hub.wrong = {"tiny.f16.gguf"}
    done = run("model", "pull", REPO)
    assert done.exit_code == 1
    assert "is not what the hub lists" in done.stderr
    assert set(listed(run)) == {"nano", "small"}
    assert not list(data_dir.rglob("*.gguf*"))


def test_offline_mode_says_what_to_do_instead(hub: Any, data_dir: Path) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOOLSRV_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        [sys.executable, "-m", "toolsrv", "model", "pull", REPO],
        env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "HF_HUB_OFFLINE is set" in done.stderr
    assert "toolsrv model use" in done.stderr
    assert not hub.ranges


def test_made_models_are_put_on_the_list_and_their_files_stay(run: Run, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "mine")
    made = run("model", "convert", str(folder))
    assert "on the list as mine.f16" in made.stderr
    assert (
        run("model", "quantize", "--type", "q8_0", str(tmp_path / "mine.f16.gguf")).exit_code == 0
    )
    assert set(listed(run)) == {"nano", "small", "mine.f16", "mine.q8_0"}
    gone = run("model", "remove", "mine.f16", "--yes")
    assert "its file stays" in gone.stdout
    assert (tmp_path / "mine.f16.gguf").is_file()


def test_a_model_in_use_without_a_name_has_a_row(
    run: Run, tiny: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").mkdir()
    file = tmp_path / "f" / "mine.gguf"
    file.write_bytes(tiny)
    monkeypatch.chdir(tmp_path)
    assert run("model", "use", "f/mine.gguf").exit_code == 0
    row = listed(run)[""]
    assert (row["path"], row["in_use"], row["missing"]) == (str(file), True, False)
    assert row["size_bytes"] == len(tiny)
    assert "config.toml" in row["source"]
    assert run("model", "list").stdout.count("*") == 2  # the title has one
    file.unlink()
    assert listed(run)[""]["missing"]
    monkeypatch.setenv("TOOLSRV_MODEL", "http://127.0.0.1:9/v1")
    row = listed(run)[""]
    assert (row["path"], row["in_use"], row["missing"]) == ("http://127.0.0.1:9/v1", True, False)
    assert "TOOLSRV_MODEL" in row["source"]
    monkeypatch.delenv("TOOLSRV_MODEL")
    assert run("model", "use", "nano").exit_code == 0
    assert set(listed(run)) == {"nano", "small"}


def test_the_small_model_that_ships_has_a_name(run: Run) -> None:
    small = SHIPPED_MODELS["small"]
    rows = listed(run)
    assert list(rows) == ["nano", "small"]
    assert [rows[one]["path"] for one in rows] == [str(SHIPPED_MODEL), str(small)]
    assert (rows["small"]["source"], rows["small"]["in_use"]) == ("ships with toolsrv", False)
    assert rows["small"]["size_bytes"] == small.stat().st_size
    assert run("model", "use", "small").exit_code == 0
    used = listed(run)
    assert [one["in_use"] for one in used.values()] == [False, True]
    info = json.loads(run("model", "info", "--json").stdout)
    assert (info["path"], info["profile"]["name"]) == (str(small), "small")
    assert run("model", "remove", "small", "--yes").exit_code == 2
    assert small.is_file()


def test_a_damaged_list_says_which_file(run: Run, data_dir: Path) -> None:
    file = data_dir / "models" / "models.json"
    file.parent.mkdir(parents=True)
    file.write_text("[{")
    done = run("model", "list")
    assert done.exit_code == 1
    assert str(file) in done.stderr


def test_a_second_file_of_one_name_gets_a_number(tmp_path: Path) -> None:
    models = ModelList(tmp_path)
    names = []
    for folder in ("a", "b", "a"):
        path = tmp_path / folder / "m.gguf"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"GGUF")
        names.append(models.add(path, source="test").name)
    assert names == ["m", "m-2", "m"]
    assert [one.name for one in models.entries()] == ["m", "m-2"]


def test_profiles_beside_the_settings_file_are_used_and_shown(run: Run, data_dir: Path) -> None:
    own = data_dir / "profiles" / "mine.toml"
    own.parent.mkdir(parents=True)
    own.write_text('base = "compact"\nmatch = ["toolsrv-nano"]\ncontext = 2048\n')
    shown = run("model", "info")
    assert str(own) in shown.stdout.replace("\n", "")
    assert json.loads(run("model", "info", "--json").stdout)["profile"]["context"] == 2048
    asked = json.loads(run("model", "info", "--profile", "compact", "--json").stdout)
    assert (asked["profile"]["name"], asked["reasons"]["name"]) == ("compact", "asked for")
    unknown = run("model", "info", "--profile", "none")
    assert unknown.exit_code == 2
    assert "mine, compact, chat" in unknown.stderr


def test_a_context_too_long_for_the_positions_is_refused_with_the_fix(
    run: Run, tmp_path: Path
) -> None:
    profile = tmp_path / "long.toml"
    profile.write_text('base = "compact"\ncontext = 16384\n')
    info = run("model", "info", "--profile", str(profile))
    assert info.exit_code == 2
    assert "problem: " in info.stderr
    told = run("model", "info", "--profile", str(profile), "--json")
    assert (told.exit_code, "problem: " in told.stderr) == (2, True)
    assert "4096" in json.loads(told.stdout)["remedy"]
    for words in (
        ("solve", "x", "--profile", str(profile)),
        ("solve", "x", "--model", str(SHIPPED_MODEL), "--profile", str(profile)),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert "rope_freq_scale = 0.25 or context = 4096" in done.stderr


def test_a_chat_template_that_does_not_work_is_told_before_any_work(
    run: Run, tmp_path: Path
) -> None:
    made = write_tiny_checkpoint(tmp_path / "broken")
    config = made / "tokenizer_config.json"
    told = json.loads(config.read_text()) if config.is_file() else {}
    config.write_text(json.dumps({**told, "chat_template": "{{ 'a' * 10**10 }}"}))
    model = convert(made).path
    profile = tmp_path / "mine.toml"
    profile.write_text('base = "chat"\nchat_template = "{{ 1 + messages }}"\n')
    for words, said, hint in (
        ((model,), "the model's chat template does not work: it makes too much", "another GGUF"),
        (
            (model, "--profile", str(profile)),
            f"the chat template in {profile} does",
            "leave it out",
        ),
    ):
        info = run("model", "info", *words)
        assert info.exit_code == 2
        assert f"problem: {said}" in info.stderr
        assert hint in info.stderr
    used = run("model", "use", model)
    assert (used.exit_code, "does not work" in used.stderr) == (2, True)


@pytest.mark.parametrize("command", ["use", "quantize", "info"])
def test_hints_name_only_options_that_the_command_has(
    run: Run, tmp_path: Path, command: str
) -> None:
    text = tmp_path / "r.gguf"
    text.write_text("no model")
    done = run("model", command, str(text))
    assert done.exit_code == 2
    assert "is not a GGUF file" in done.stderr
    assert "--model" not in done.stderr


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "socks4://127.0.0.1:1", "://"])
def test_a_pull_through_a_proxy_that_cannot_be_used_is_one_clear_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setitem(sys.modules, "socksio", None)
    result = run("model", "pull", "maker/model:file.gguf")
    assert result.exit_code == 1
    assert "ALL_PROXY" in result.stderr
    assert "unexpected" not in result.stderr
    assert result.stderr.count("\n") == 2  # the error and its hint
