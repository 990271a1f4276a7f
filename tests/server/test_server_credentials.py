"""Credentials and fixed values from the command line, against a server that checks them."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from toolsrv.calls.catalog_files import FIXED_FILE
from toolsrv.calls.keys import key_name
from toolsrv.mcp_server.results import success
from toolsrv.mcp_server.texts import render
from toolsrv.runs.records import RunRecord
from toolsrv.views.apis import api_view
from toolsrv.views.readiness import Readiness
from toolsrv.views.runs import RunView, record_view
from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.outcome import Limits, Outcome, Usage

_SPEC = importlib.util.spec_from_file_location(
    "login_host", Path(__file__).parents[1] / "login_host.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)

pytestmark = pytest.mark.usefixtures("no_keyring")

Run = Callable[..., Result]


@pytest.fixture
def host() -> Iterator[Any]:
    with _MODULE.LoginHost() as one:
        yield one


def document(host: Any) -> dict[str, Any]:
    flow = {"clientCredentials": {"tokenUrl": host.url("token"), "scopes": {}}}
    version = {"name": "Api-Version", "in": "header", "required": True}
    query = {"name": "v", "in": "query", "schema": {"type": "integer"}}
    paths: dict[str, Any] = {
        "/digest": {"get": {"operationId": "digest", "security": [{"dig": []}]}},
        "/data": {"get": {"operationId": "data", "security": [{"oa": []}]}},
        "/signed": {"get": {"operationId": "signed", "security": [{"hm": []}]}},
        "/echo": {
            "get": {
                "operationId": "echo",
                "parameters": [{**version, "schema": {"type": "string"}}, query],
            }
        },
        "/keyed": {
            "get": {
                "operationId": "keyed",
                "summary": "Show the status of a droplet",
                "security": [{"bea": []}],
            }
        },
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "Demo", "version": "1"},
        "servers": [{"url": host.url("").rstrip("/")}],
        "components": {
            "securitySchemes": {
                "dig": {"type": "http", "scheme": "Digest"},
                "hm": {"type": "http", "scheme": "hmac"},
                "bea": {"type": "http", "scheme": "bearer"},
                "oa": {"type": "oauth2", "flows": flow},
            }
        },
        "paths": paths,
    }


@pytest.fixture
def imported(host: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The document, imported as the catalog ``demo``."""
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", f"127.0.0.1:{host.port}")
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document(host)))
    got = run("catalog", "import", str(path), "--name", "demo", "--no-index", "--json")
    assert got.exit_code == 0, got.stderr
    notes = [note for one in json.loads(got.stdout)["files"] for note in one["notes"]]
    assert any("'hm'" in note and "hmac" in note for note in notes)
    return path


def called(run: Run, name: str, arguments: str = "{}") -> tuple[int, dict[str, Any]]:
    got = run("call", f"Other/demo/{name}", arguments, "--json")
    return got.exit_code, json.loads(got.stdout or "{}")


def test_digest_and_client_credentials_are_served_and_the_rest_refused(
    host: Any, imported: Path, run: Run
) -> None:
    del imported
    for name in ("digest", "data"):
        refused = run("call", f"Other/demo/{name}")
        assert refused.exit_code == 2
        assert "toolsrv keys set 127.0.0.1" in refused.stderr
    signed = run("call", "Other/demo/signed")
    assert signed.exit_code == 2
    assert "hmac" in signed.stderr
    assert host.requests == []
    told = run("describe", "Other/demo/signed").stdout
    assert "which is not supported" in told
    secrets = {"dig": f"{_MODULE.USER}:{_MODULE.PASSWORD}", "oa": "client:se cret+9"}
    for scheme, secret in secrets.items():
        stored = run("keys", "set", f"127.0.0.1/{scheme}", stdin=f"{secret}\n")
        assert stored.exit_code == 0
    assert [called(run, name)[0] for name in ("digest", "data")] == [0, 0]
    assert run("call", "Other/demo/signed").exit_code == 2


def test_search_and_describe_say_which_key_is_not_set(imported: Path, run: Run) -> None:
    del imported
    lack = "a key that is not set (toolsrv keys set 127.0.0.1)"
    told = json.loads(run("describe", "Other/demo/keyed", "--json").stdout)
    assert (told["now"]["callable"], told["now"]["lacks"]) == (False, lack)
    for shown in (
        run("describe", "Other/demo/keyed"),
        run("search", "keyed", "--detail", "names", "--limit", "1"),
    ):
        assert shown.stdout.count(f"needs {lack}") == 1
    run("keys", "set", "127.0.0.1", stdin="token\n")
    now = json.loads(run("describe", "Other/demo/keyed", "--json").stdout)["now"]
    assert (now["callable"], now["key"]) == (True, "set")
    assert "lacks" not in now


def test_a_client_is_told_that_the_key_is_the_users_to_set() -> None:
    scheme = SecurityScheme(name="k", kind="http", scheme="bearer")
    api = Api(
        id="C/t/a", category="C", tool="t", name="a", url="https://a.test/x", security=((scheme,),)
    )
    lack = "a key that is not set (toolsrv keys set a.test)"
    said = "a key that is not set (for the user, in a terminal: toolsrv keys set a.test)"
    outcome = Outcome(
        task="t", status="gave_up", answer="", reason=f"C/t/a fits this task but needs {lack}",
        evidence=(), need_keys={"C/t/a": lack}, candidates=(), searches=(), tree=(), usage=Usage(),
        limits=Limits(), strategy="dfs", model="m", format="f", seed=0, versions={},
    )  # fmt: skip
    view = record_view(RunRecord(id="run_1", task="t", status="gave_up", outcome=outcome))
    assert isinstance(view, RunView)
    assert "C/t/a" in view.next_step
    for shown in (view, api_view(api, None, Readiness(callable=False, key="missing", lacks=lack))):
        result = success(shown)
        assert said in json.dumps(result.structured_content)
        assert result.content[0].text != render(shown)  # type: ignore[union-attr]
        assert said in result.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("API.example.com@Login.example.com", "api.example.com@login.example.com"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("localhost/dig", "localhost/dig"),
    ],
)
def test_a_key_has_the_name_of_whom_it_goes_to(text: str, name: str) -> None:
    assert key_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "api.test:8080",
        "127.0.0.1:80/x",
        "[::1]:80",
        "a.test@",
        "@a.test",
        "a.test@b",
        "a.test@b.c/d",
    ],
)
def test_a_key_name_that_no_call_looks_for_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        key_name(text)


# --- values fixed per catalog ---------------------------------------------------------------------


def test_fixed_values_go_with_each_call_and_stay_over_imports(
    host: Any, imported: Path, run: Run, data_dir: Path
) -> None:
    assert called(run, "echo")[0] == 2
    for kind, value in (
        ("header", "Api-Version=2022-06-28"),
        ("header", "X-Team=a=b"),
        ("query", "v=7"),
        ("query", "api-key[x]=one & two"),
    ):
        got = run("catalog", "set", "demo", kind, value)
        assert got.exit_code == 0, got.stderr
    again = run("catalog", "import", str(imported), "--name", "demo", "--no-index")
    assert again.exit_code == 0
    code, echoed = called(run, "echo")
    assert (code, echoed["arguments"]) == (0, {})
    sent = echoed["response"]
    assert (sent["headers"]["Api-Version"], sent["headers"]["X-Team"]) == ("2022-06-28", "a=b")
    assert sent["path"] == "/echo?v=7&api-key%5Bx%5D=one%20%26%20two"
    described = json.loads(run("describe", "Other/demo/echo", "--json").stdout)
    assert described["parameters"] == []
    for listing in ("list", "inspect"):
        names = () if listing == "list" else ("demo",)
        told = run("catalog", listing, *names)
        assert "Api-Version=2022-06-28" in " ".join((told.stdout + told.stderr).split())
        assert "2022-06-28" in run("catalog", listing, *names, "--json").stdout
    path = data_dir / FIXED_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or os.name == "nt"
    assert run("catalog", "unset", "demo", "header", "x-team").exit_code == 0
    assert "X-Team" not in called(run, "echo")[1]["response"]["headers"]
    assert run("catalog", "unset", "demo", "header", "x-team").exit_code != 0
    assert run("catalog", "remove", "demo", "--yes").exit_code == 0
    assert "2022" not in path.read_text()
    assert len(host.requests) == 2


def test_an_argument_does_not_replace_a_fixed_value(host: Any, imported: Path, run: Run) -> None:
    del imported
    run("catalog", "set", "demo", "header", "api-version=1")
    run("catalog", "set", "demo", "query", "v=7")
    refused = run("call", "Other/demo/echo", '{"api_version": "2", "v": 7}')
    assert refused.exit_code == 2
    assert "is fixed for its catalog" in " ".join(refused.stderr.split())
    assert host.requests == []
    code, got = called(run, "echo", '{"api_version": "1", "v": 7}')
    assert code == 0
    assert got["response"]["path"] == "/echo?v=7"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("header", "Authorization=Bearer x"),
        ("header", "authorization=Bearer x"),
        ("header", "Cookie=a=b"),
        ("header", "Host=evil.test"),
        ("header", "Content-Length=1"),
        ("header", "Transfer-Encoding=chunked"),
        ("header", "Proxy-Authorization=x"),
        ("header", "Content-Type=text/plain"),
        ("header", "X-RapidAPI-Key=x"),
        ("header", "X-A=1\r\nHost: evil.test"),
        ("header", "X\r\nA=1"),
        ("header", "X A=1"),
        ("header", "X-A=ü"),
        ("header", "X-A="),
        ("header", "X-A"),
        ("query", "=1"),
        ("query", "a=1\n2"),
        ("body", "a=1"),
    ],
)
def test_what_would_move_or_split_a_request_cannot_be_fixed(
    imported: Path, run: Run, data_dir: Path, kind: str, value: str
) -> None:
    del imported
    got = run("catalog", "set", "demo", kind, value)
    assert got.exit_code == 2
    assert not (data_dir / FIXED_FILE).exists()


def test_a_file_that_somebody_wrote_moves_nothing_and_a_damaged_one_sends_nothing(
    host: Any, imported: Path, run: Run, data_dir: Path
) -> None:
    del imported
    values = {"headers": {"Host": "evil.test", "Api-Version": "1", "X": "a\r\nB: c"}, "query": {}}
    (data_dir / FIXED_FILE).write_text(json.dumps({"demo": values}))
    code, got = called(run, "echo")
    assert code == 0
    assert got["response"]["headers"]["Host"] == f"127.0.0.1:{host.port}"
    assert "X" not in got["response"]["headers"]
    (data_dir / FIXED_FILE).write_text("[1]")
    code, got = called(run, "echo")
    assert code == 2
    assert len(host.requests) == 1


def test_a_catalog_that_is_not_there_or_ships_has_no_fixed_values(run: Run) -> None:
    assert run("catalog", "set", "nowhere", "query", "a=1").exit_code != 0
    assert run("catalog", "set", "offline", "query", "a=1").exit_code == 2
