"""What may change something, through the API world: only by a rule, and a person's word at its start."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result

from toolsrv.settings import load
from toolsrv.workbench import Workbench

HERE = Path(__file__).parent
WORLD = runpy.run_path(str(HERE / "world_server.py"))
HELPERS = runpy.run_path(str(HERE / "writing.py"))


@pytest.fixture
def host(data_dir: Path) -> Iterator[Any]:
    with HELPERS["FaultyHost"]() as one:
        HELPERS["serve"](one, data_dir)
        yield one


def ask(host: Any, data_dir: Path, rules: str, *, changes: bool, path: str = "/rapidapi") -> Any:
    """Have a program write through a world of the settings; return what it is told."""
    own = host.url.removeprefix("http://")
    given = {"data_dir": str(data_dir), "own_hosts": own, "calls": rules}
    bench = Workbench(load(given).settings)
    with bench.registry().store as store:
        apis = store.get_many(["Notes/notes/write"])
        sent = {
            "category": "Notes",
            "tool_name": "notes",
            "api_name": "write",
            "tool_input": {"text": "alpha"},
            "strip": "",
            "toolbench_key": WORLD["TOKEN"],
        }
        with WORLD["world_of"](apis, bench.caller(), changes=changes) as (where, _):
            return httpx.post(where + path, json=sent, timeout=60)


@pytest.mark.parametrize("path", ["/rapidapi", "/virtual"])
def test_a_rule_and_the_word_of_the_person_let_a_call_be_made(
    host: Any, data_dir: Path, path: str
) -> None:
    said = ask(host, data_dir, "allow POST 127.0.0.1", changes=True, path=path)
    assert said.headers["x-toolsrv-source"] == "live"
    assert said.json() == {"error": "", "response": "{'written': 16, 'place': 'page 7'}"}
    assert host.written == ['{"text":"alpha"}']


def test_a_rule_alone_changes_nothing(host: Any, data_dir: Path) -> None:
    said = ask(host, data_dir, "allow POST 127.0.0.1", changes=False)
    assert said.headers["x-toolsrv-kind"] == "needs_consent"
    assert "needs a person's consent" in said.text
    assert host.calls == []


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ("allow POST elsewhere.example", "needs_consent"),
        ("allow PUT", "needs_consent"),
        ("allow POST, ask POST 127.0.0.1", "needs_consent"),
        ("allow POST, deny * 127.0.0.1", "blocked_by_policy"),
    ],
)
def test_the_word_alone_widens_no_rule(host: Any, data_dir: Path, rules: str, kind: str) -> None:
    said = ask(host, data_dir, rules, changes=True)
    assert (said.status_code, said.headers["x-toolsrv-kind"]) == (200, kind)
    assert host.calls == []


def test_changes_are_not_for_everybody_and_never_without_a_rule(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = ("world", "serve", "--port", "0", "--allow-changes")
    without = run(*serve)
    assert (without.exit_code, "allow POST" in without.stderr) == (2, True)
    monkeypatch.setenv("TOOLSRV_CALLS", "allow GET, deny POST")
    assert run(*serve).exit_code == 2
    monkeypatch.setenv("TOOLSRV_CALLS", "allow POST")
    everybody = run(*serve, "--no-token")
    assert (everybody.exit_code, "--no-token" in everybody.stderr) == (2, True)
