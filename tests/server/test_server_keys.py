"""Keys and live calls from the command line: where a key goes, and that it shows up nowhere."""

from __future__ import annotations

import importlib.util
import json
import logging
import stat
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import keyring
import pytest
from click.testing import Result
from keyring.backend import KeyringBackend

from toolsrv.calls.keys import KeyStore, key_name, variable_of
from toolsrv_registry.api import Api, Catalog, Parameter, SecurityScheme, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.errors import UsageError
from toolsrv_registry.storage.store import Store

_SPEC = importlib.util.spec_from_file_location(
    "faulty_host", Path(__file__).parents[1] / "faulty_host.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)

pytestmark = pytest.mark.usefixtures("no_keyring")

CANARY = "canary-5f1c/+=42"
Run = Callable[..., Result]


class MemoryKeyring(KeyringBackend):
    """A keyring of this test."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def hosts() -> Iterator[tuple[Any, Any]]:
    with _MODULE.FaultyHost() as one, _MODULE.FaultyHost() as other:
        yield one, other


def catalog(mine: Any, other: Any) -> Catalog:
    scheme = SecurityScheme(name="main", kind="apiKey", place="header", key="X-Key")
    homes = {"mine": mine.url, "other": other.url.replace("127.0.0.1", "localhost")}
    apis = tuple(
        Api(
            id=f"Data/{tool}/{path}",
            category="Data",
            tool=tool,
            name=path,
            url=f"{url}/{path}",
            optional=(Parameter(name="q"),),
            security=((scheme,),),
            method=method,
        )
        for tool, url in homes.items()
        for path, method in (("echo", "GET"), ("500", "GET"), ("fine", "POST"))
    )
    tools = tuple(
        Tool(category="Data", name=name, apis=tuple(api for api in apis if api.tool == name))
        for name in homes
    )
    return Catalog(name="theirs", tools=tools)


@pytest.fixture
def served(
    hosts: tuple[Any, Any], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, Any]:
    data_dir.mkdir()
    with Store.open(data_dir / STORE_FILE) as store:
        store.put_catalog(catalog(*hosts))
    own = ",".join(one.url.removeprefix("http://") for one in hosts)
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", f"{own},{own.replace('127.0.0.1', 'localhost')}")
    return hosts


def test_a_key_reaches_its_host_and_nothing_else(
    served: tuple[Any, Any], run: Run, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    mine, other = served
    written = ""
    for arguments, stdin in (
        (("keys", "set", "127.0.0.1"), f"{CANARY}\n"),
        (("keys", "list"), None),
        (("keys", "list", "--json"), None),
        (("call", "Data/mine/echo", '{"q": "1"}', "--json"), None),
        (("call", "Data/mine/echo"), None),
        (("call", "Data/mine/500"), None),
        (("call", "Data/mine/fine", "--json"), None),
        (("call", "Data/other/echo"), None),
        (("config", "show"), None),
        (("--debug", "call", "Data/mine/echo", '{"nope": 1}'), None),
    ):
        result = run(*arguments, stdin=stdin)
        written += result.output + result.stderr
    echoed = run("call", "Data/mine/echo", "--json")
    assert json.loads(echoed.stdout)["response"]["headers"]["X-Key"] == "[key]"
    written += echoed.output + caplog.text
    written += "".join(f"{call}" for call in other.calls)
    assert "X-Key" in written
    assert "canary" not in written
    for path in data_dir.rglob("*"):
        if path.is_file() and path.name != "keys.json":
            assert b"canary" not in path.read_bytes(), path
    assert stat.S_IMODE((data_dir / "keys.json").stat().st_mode) == 0o600
    assert len(mine.calls) >= 3
    heads = json.loads(run("call", "Data/other/echo", "--json").stdout)["response"]["headers"]
    assert "X-Key" not in heads


def test_a_live_call_tells_its_source_and_a_changing_one_needs_consent(
    served: tuple[Any, Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, _ = served
    got = json.loads(run("call", "Data/mine/echo", "--json").stdout)
    assert (got["kind"], got["source"]) == ("ok", "live")
    before = len(mine.calls)
    refused = run("call", "Data/mine/fine", '{"q": "x"}', "--json")
    document = json.loads(refused.stdout)
    assert (refused.exit_code, document["kind"]) == (2, "needs_consent")
    assert document["consent"]["method"] == "POST"
    assert document["consent"]["arguments"] == {"q": "x"}
    assert run("call", "Data/mine/fine").exit_code == 2
    monkeypatch.setenv("TOOLSRV_CALLS", "deny * catalog:theirs")
    denied = run("call", "Data/mine/echo")
    assert denied.exit_code == 2
    assert "denied by your settings" in denied.stderr
    monkeypatch.setenv("TOOLSRV_MODE", "offline")
    monkeypatch.delenv("TOOLSRV_CALLS")
    assert "not served here" in run("call", "Data/mine/echo").stderr
    assert len(mine.calls) == before


def test_a_private_host_that_nobody_named_is_not_called(
    served: tuple[Any, Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOOLSRV_OWN_HOSTS")
    result = run("call", "Data/mine/echo")
    assert result.exit_code == 2
    assert "loopback" in result.stderr
    assert not served[0].calls


def test_keys_are_stored_listed_and_removed(run: Run, data_dir: Path) -> None:
    stored = run("keys", "set", "RapidAPI", "--json", stdin=CANARY)
    assert json.loads(stored.stdout) == {"name": "rapidapi", "place": "file"}
    assert "0600" in stored.stderr
    run("keys", "set", "api.example.com/main", stdin="x")
    listed = json.loads(run("keys", "list", "--json").stdout)
    assert [one["name"] for one in listed["keys"]] == ["api.example.com/main", "rapidapi"]
    assert KeyStore(data_dir).secret("rapidapi") == CANARY
    assert run("keys", "remove", "rapidapi").exit_code == 0
    assert KeyStore(data_dir).secret("rapidapi") == ""
    gone = run("keys", "remove", "rapidapi")
    assert gone.exit_code == 2
    assert "api.example.com/main" in gone.stderr


def test_keys_stored_and_removed_at_once_are_all_as_they_should_be(data_dir: Path) -> None:
    hosts = [f"api{number}.example.com" for number in range(24)]
    KeyStore(data_dir).store("old.example.com", "x")
    start = threading.Barrier(len(hosts) + 1)

    def at_once(change: Callable[[], object]) -> threading.Thread:
        def work() -> None:
            start.wait()
            change()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    store = KeyStore(data_dir)
    threads = [at_once(partial(KeyStore(data_dir).store, host, "x")) for host in hosts]
    threads.append(at_once(partial(store.remove, "old.example.com")))
    for thread in threads:
        thread.join()
    assert [one.name for one in store.entries()] == sorted(hosts)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_the_keyring_is_taken_where_there_is_one(data_dir: Path) -> None:
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    store = KeyStore(data_dir)
    assert store.store("rapidapi", CANARY) == "keyring"
    assert list(backend.kept.values()) == [CANARY]
    assert "canary" not in store.path.read_text("utf-8")
    assert [(one.name, one.place) for one in store.entries()] == [("rapidapi", "keyring")]
    assert KeyStore(data_dir).secret("rapidapi") == CANARY
    store.remove("rapidapi")
    assert not backend.kept


def test_the_environment_goes_first(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = KeyStore(data_dir)
    store.store("api.example.com", "stored")
    assert variable_of("api.example.com") == "TOOLSRV_KEY_API_EXAMPLE_COM"
    monkeypatch.setenv("TOOLSRV_KEY_API_EXAMPLE_COM", "given")
    monkeypatch.setenv("RAPIDAPI_KEY", "also given")
    assert KeyStore(data_dir).secret("api.example.com") == "given"
    assert KeyStore(data_dir).secret("rapidapi") == "also given"
    assert {one.place for one in store.entries()} == {"environment"}


@pytest.mark.parametrize("secret", ["", " \n", "a\r\nX-Evil: 1", "ü", "x" * 9_000])
def test_a_key_that_is_none_is_refused_without_being_repeated(
    run: Run, secret: str, data_dir: Path
) -> None:
    result = run("keys", "set", "api.example.com", stdin=secret)
    assert result.exit_code == 2
    assert "X-Evil" not in result.output
    assert not (data_dir / "keys.json").exists()


@pytest.mark.parametrize("name", ["", "nobody", "a b.c", "x.p.rapidapi.com", "host.test/", "../x"])
def test_a_name_that_is_no_host_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        key_name(name)


def test_a_damaged_key_file_is_told_without_its_contents(run: Run, data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "keys.json").write_text(f'{{"file": "{CANARY}"', "utf-8")
    result = run("keys", "list")
    assert result.exit_code == 1
    assert "keys.json" in result.stderr
    assert "canary" not in result.output
