"""Settings: which layer wins, where a value came from, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from toolsrv import config_file, settings
from toolsrv.cli.session import Session
from toolsrv.solve_options import solve_options
from toolsrv.workbench import Workbench
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.solve import SolveOptions
from toolsrv_runtime.toolbench.reference import REFERENCE


@pytest.fixture
def file(data_dir: Path) -> Path:
    data_dir.mkdir()
    return data_dir / "config.toml"


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("parallel = 3\nmax_calls = 30\nmax_tokens = 7\n")
    monkeypatch.setenv("TOOLSRV_PARALLEL", "4")
    monkeypatch.setenv("TOOLSRV_MAX_CALLS", "40")
    loaded = settings.load({"parallel": 5, "keep_runs": None})
    assert (loaded.settings.parallel, loaded.settings.max_calls) == (5, 40)
    assert (loaded.settings.max_tokens, loaded.settings.keep_runs) == (7, 200)
    keys = ("parallel", "max_calls", "max_tokens", "keep_runs")
    assert [loaded.origins[key] for key in keys] == [
        "--parallel",
        "TOOLSRV_MAX_CALLS",
        str(file),
        "default",
    ]


def test_the_defaults_are_those_of_the_solver() -> None:
    assert solve_options(settings.load().settings, {}) == SolveOptions()


def test_at_most_twenty_settings_are_kept_and_none_that_was_removed() -> None:
    assert len(settings.Settings.model_fields) <= 20
    assert not settings.Settings.model_fields.keys() & settings.REMOVED.keys()


def test_a_file_of_an_earlier_release_starts_with_one_line_and_stays_as_it_is(
    run: Callable[..., Result], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {key: f"{key} = 1" for key in settings.REMOVED}
    text = "\n".join(["# mine", "max_calls = 9", *values.values()]) + "\n"
    file.write_text(text)
    monkeypatch.setenv("TOOLSRV_SEED", "7")
    shown = run("config", "show", "--json")
    assert shown.exit_code == 0
    (told,) = shown.stderr.splitlines()
    assert all(f"{key} (" in told and use in told for key, use in settings.REMOVED.items())
    assert "seed (TOOLSRV_SEED)" in told
    found = json.loads(shown.stdout)["settings"]
    assert found["max_calls"] == {"value": 9, "origin": str(file)}
    assert found.keys() == settings.Settings.model_fields.keys()
    assert run("config", "set", "max_calls", "8").exit_code == 0
    assert file.read_text() == text.replace("max_calls = 9", "max_calls = 8")


@pytest.mark.parametrize("key", settings.REMOVED)
def test_a_removed_setting_cannot_be_set_and_says_what_to_use(
    run: Callable[..., Result], data_dir: Path, key: str
) -> None:
    told = run("config", "set", key, "1")
    assert told.exit_code == 2
    assert settings.REMOVED[key] in told.stderr
    assert not (data_dir / "config.toml").exists()


def test_moving_the_data_folder_moves_the_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config_file.config_path() == tmp_path / "data" / "config.toml"
    assert config_file.config_path({"data_dir": tmp_path / "x"}) == tmp_path / "x" / "config.toml"
    monkeypatch.setenv("TOOLSRV_CONFIG", str(tmp_path / "own.toml"))
    assert config_file.config_path() == tmp_path / "own.toml"


def test_paths_in_the_file_are_relative_to_the_file(file: Path) -> None:
    file.write_text('model = "m.gguf"\n')
    assert settings.load().settings.model == file.parent / "m.gguf"
    file.write_text('model = ""\n')
    assert settings.load().settings.model is None


@pytest.mark.parametrize(
    ("text", "must_say"),
    [
        ("paralel = 3", ["config.toml", "paralel", "parallel"]),
        ("parallel = 99", ["config.toml", "parallel", "99", "1 to 16"]),
        ('strategy = "guess"', ["config.toml", "strategy", "dfs, react"]),
        ("parallel = ", ["config.toml", "not valid TOML"]),
        ("max_seconds = nan", ["config.toml", "max_seconds"]),
        ('chroma_url = "ftp://x"', ["config.toml", "chroma_url", "http://"]),
        ('own_hosts = "http://127.0.0.1:80"', ["config.toml", "own_hosts", "without http://"]),
        ("[parallel]\na = 1", ["config.toml", "parallel"]),
        ('simulate = "shema"', ["config.toml", "simulate", "off, schema, model"]),
    ],
)
def test_a_bad_file_is_refused_naming_file_key_and_what_is_accepted(
    file: Path, text: str, must_say: list[str]
) -> None:
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        settings.load()
    said = caught.value.message + " " + caught.value.hint
    assert all(one in said for one in must_say), said
    assert "\n" not in said


def test_a_bad_variable_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_MAX_CALLS", "many")
    with pytest.raises(UsageError, match="TOOLSRV_MAX_CALLS"):
        settings.load()


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_PARALLEL", "")
    assert settings.load().origins["parallel"] == "default"


def test_misspelt_variables_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_WIDHT", "3")
    monkeypatch.setenv("TOOLSRV_TOKEN", "secret")
    assert settings.unknown_variables() == ("TOOLSRV_WIDHT",)


def test_a_file_that_is_not_utf8_or_not_a_file_is_told(file: Path) -> None:
    file.write_bytes(b"model = '\xff'")
    with pytest.raises(UsageError, match="UTF-8"):
        settings.load()
    file.unlink()
    file.mkdir()
    with pytest.raises(DataError, match=r"config\.toml"):
        settings.load()


def test_setting_a_key_keeps_comments_and_other_keys(file: Path) -> None:
    file.write_text("# mine\nwidth = 3  # wide\ndepth = 30\n")
    config_file.write_key(file, "width", 4)
    config_file.write_key(file, "seed", 9)
    assert file.read_text() == "# mine\nwidth = 4\ndepth = 30\nseed = 9\n"
    assert list(file.parent.iterdir()) == [file]


def test_a_form_that_one_line_cannot_change_is_left_alone(file: Path) -> None:
    file.write_text('model = """\nwidth = 3\n"""\n')
    before = file.read_text()
    with pytest.raises(DataError, match="safely"):
        config_file.write_key(file, "model", "x")
    assert file.read_text() == before


def test_a_linked_file_is_written_behind_its_link_and_a_pipe_never(tmp_path: Path) -> None:
    kept, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    kept.write_text("width = 2\n")
    link.symlink_to(kept)
    config_file.write_key(link, "width", 4)
    assert link.is_symlink()
    assert config_file.read(kept) == {"width": 4}
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="no ordinary file"):
        config_file.write_atomic(pipe, "width = 4\n")
    assert pipe.is_fifo()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    with pytest.raises(DataError, match=r"blocked/config\.toml"):
        config_file.write_key(blocked / "config.toml", "width", 3)
    assert blocked.read_text() == "a file, not a folder"


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "width": st.integers(1, 8),
    "max_seconds": st.floats(0.001, 86_400),
    "strategy": st.sampled_from(["dfsdt", "react"]),
    "model": st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=40),
}


@given(
    st.lists(st.sampled_from(sorted(VALUES)).flatmap(lambda k: st.tuples(st.just(k), VALUES[k])))
)
def test_what_was_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    expected: dict[str, Any] = {}
    for key, value in changes:
        config_file.write_key(path, key, value)
        expected[key] = value
    assert config_file.read(path) == expected


def test_differences_from_toolbench_are_given_up_by_name() -> None:
    fidelity = Workbench(settings.load({"faithful": "depth, open_end"}).settings).fidelity()
    assert (fidelity.depth, fidelity.open_end, fidelity.match_suffix) == (12, True, False)
    both = settings.load({"faithful": "all, assistant_turns=reply"}).settings
    assert Workbench(both).fidelity() == REFERENCE.model_copy(update={"assistant_turns": "reply"})
    with pytest.raises(UsageError, match="no difference from ToolBench is named 'deep'"):
        settings.load({"faithful": "deep"})


def test_options_in_two_parts_and_earlier_ones_become_one_value() -> None:
    session = Session()
    assert session.load(faithful=True, faithful_in="depth=9").settings.faithful == "all,depth=9"
    assert session.load(faithful=False, faithful_in=None).settings.faithful == ""
    servers = session.load(model="http://a:1,http://b:1", engine_model="qwen3:8b").settings.model
    assert servers == "http://a:1#qwen3:8b,http://b:1#qwen3:8b"


IMPOSSIBLE = "deny * http://localhost:9011"


def test_a_rule_that_no_call_can_fit_is_refused_wherever_it_is_set(
    run: Callable[..., Result], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = run("config", "set", "calls", IMPOSSIBLE)
    assert refused.exit_code == 2
    assert "write the host: localhost:9011" in refused.output
    assert not (data_dir / "config.toml").exists()
    monkeypatch.setenv("TOOLSRV_CALLS", IMPOSSIBLE)
    shown = run("catalog", "list")
    assert shown.exit_code == 2
    assert "TOOLSRV_CALLS" in shown.output
    assert "write the host" in shown.output
    monkeypatch.delenv("TOOLSRV_CALLS")
    data_dir.mkdir(exist_ok=True)
    (data_dir / "config.toml").write_text(f'calls = "{IMPOSSIBLE}"\n')
    served = run("serve")
    assert served.exit_code == 2
    assert "config.toml" in served.output


def test_a_rule_for_a_catalog_that_is_not_there_is_noted(run: Callable[..., Result]) -> None:
    set_ = run("config", "set", "calls", "deny * catalog:nowhere; allow GET offline")
    assert set_.exit_code == 0
    assert "'deny * catalog:nowhere' fits nothing now" in set_.stderr
    assert "write catalog:offline" in set_.stderr
    assert "catalog:nowhere" in run("config", "show").stderr
    fine = run("config", "set", "calls", "deny * catalog:Offline; allow POST localhost:9011")
    assert "note: the rule" not in fine.stderr
