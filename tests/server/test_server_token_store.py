"""Access tokens are kept from one command to the next, and only for the same credentials."""

from __future__ import annotations

import importlib.util
import json
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import keyring
import pytest
from click.testing import Result
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, PasswordDeleteError

from toolsrv.calls.keys import MOST_TOKENS, TOKENS_FILE, TokenStore
from toolsrv_runtime.calls.credentials import ClientCredentials

_SPEC = importlib.util.spec_from_file_location(
    "login_host", Path(__file__).parents[1] / "login_host.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)

pytestmark = pytest.mark.usefixtures("no_keyring")
Run = Callable[..., Result]
KEY = "client:se cret+9"
URL = httpx.URL("https://login.test/token")
CLIENT = ClientCredentials(URL, "api.test", KEY, ("read",))
LATER = time.time() + 600


class _Ring(KeyringBackend):
    """A keyring of this test; ``locked`` answers nothing."""

    priority = 9

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.locked = False

    def _open(self) -> None:
        if self.locked:
            raise KeyringError("locked")

    def get_password(self, service: str, username: str) -> str | None:  # noqa: ARG002 - the port
        self._open()
        return self.kept.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:  # noqa: ARG002 - the port
        self._open()
        self.kept[username] = password

    def delete_password(self, service: str, username: str) -> None:  # noqa: ARG002 - the port
        self._open()
        if self.kept.pop(username, None) is None:
            raise PasswordDeleteError(username)


@pytest.fixture
def ring() -> _Ring:
    made = _Ring()
    keyring.set_keyring(made)
    return made


@pytest.fixture
def host(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_keyring: None
) -> Iterator[Any]:
    """A host whose API ``Other/demo/data`` wants a token, with the credentials stored."""
    del no_keyring
    with _MODULE.LoginHost() as one:
        flow = {"clientCredentials": {"tokenUrl": one.url("token"), "scopes": {}}}
        document = {
            "openapi": "3.0.3",
            "info": {"title": "Demo", "version": "1"},
            "servers": [{"url": one.url("").rstrip("/")}],
            "components": {"securitySchemes": {"oa": {"type": "oauth2", "flows": flow}}},
            "paths": {"/data": {"get": {"operationId": "data", "security": [{"oa": []}]}}},
        }
        (tmp_path / "api.json").write_text(json.dumps(document))
        monkeypatch.setenv("TOOLSRV_OWN_HOSTS", f"127.0.0.1:{one.port}")
        told = run("catalog", "import", str(tmp_path / "api.json"), "--name", "demo", "--no-index")
        assert told.exit_code == 0, told.stderr
        assert run("keys", "set", "127.0.0.1", stdin=f"{KEY}\n").exit_code == 0
        yield one


def _call(run: Run) -> Result:
    got = run("--debug", "call", "Other/demo/data")
    assert got.exit_code == 0, got.stderr
    return got


def test_commands_share_a_token_that_is_in_no_output(host: Any, run: Run, data_dir: Path) -> None:
    said = _call(run).output + _call(run).output
    assert host.paths() == ["/token", "/data", "/data"]
    path = data_dir / TOKENS_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert host.tokens[0] in path.read_text()
    assert host.tokens[0] not in said
    assert "cret" not in path.read_text()
    assert host.tokens[0] not in run("keys", "list", "--json").output


def test_a_token_that_is_refused_is_fetched_anew_and_kept(host: Any, run: Run) -> None:
    _call(run)
    host.revoke()
    _call(run)
    _call(run)
    assert host.paths() == ["/token", "/data", "/data", "/token", "/data", "/data"]


def test_a_token_that_has_expired_is_not_used(host: Any, run: Run) -> None:
    host.expires_in = 0
    _call(run)
    _call(run)
    assert host.paths() == ["/token", "/data"] * 2


@pytest.mark.usefixtures("host")
def test_a_key_that_is_set_again_or_removed_takes_its_token_with_it(
    run: Run, data_dir: Path
) -> None:
    _call(run)
    run("keys", "set", "127.0.0.1", stdin=f"{KEY}\n")
    assert json.loads((data_dir / TOKENS_FILE).read_text()) == {}
    _call(run)
    assert run("keys", "remove", "127.0.0.1").exit_code == 0
    assert json.loads((data_dir / TOKENS_FILE).read_text()) == {}
    assert run("call", "Other/demo/data").exit_code == 2


def test_other_credentials_of_the_environment_get_no_token_of_the_stored_ones(
    host: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    _call(run)
    monkeypatch.setenv("TOOLSRV_KEY_127_0_0_1", "client:wrong")
    assert run("call", "Other/demo/data").exit_code == 1
    assert host.paths() == ["/token", "/data", "/token", "/token"]


@pytest.mark.parametrize("damage", ["{", "[]", '{"a": 1}', '{"token:x": {"value": {"token": 1}}}'])
def test_a_damaged_file_costs_a_request(host: Any, run: Run, data_dir: Path, damage: str) -> None:
    _call(run)
    (data_dir / TOKENS_FILE).write_text(damage)
    _call(run)
    _call(run)
    assert host.paths() == ["/token", "/data", "/token", "/data", "/data"]


def test_a_keyring_has_the_token_and_the_file_its_name(ring: _Ring, tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    store.keep(CLIENT, "secret-token", LATER)
    assert "secret-token" not in (tmp_path / TOKENS_FILE).read_text()
    assert store.find(CLIENT) == ("secret-token", LATER)
    store.drop(CLIENT, "another")
    assert store.find(CLIENT) is not None
    store.drop_of("api.test")
    assert (store.find(CLIENT), ring.kept) == (None, {})


def test_a_keyring_that_is_locked_keeps_nothing_and_hinders_nobody(
    ring: _Ring, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = TokenStore(tmp_path)
    store.keep(CLIENT, "secret-token", LATER)
    ring.locked = True
    assert store.find(CLIENT) is None
    store.keep(CLIENT, "secret-token-2", LATER)
    store.drop(CLIENT, "secret-token")
    assert "secret-token" not in caplog.text


@pytest.mark.parametrize(
    "other",
    [
        ClientCredentials(URL, "api.test", "client:other", ("read",)),
        ClientCredentials(URL, "api.test", KEY, ("read", "write")),
        ClientCredentials(URL, "other.test", KEY, ("read",)),
        ClientCredentials(httpx.URL("https://else.test/token"), "api.test", KEY, ("read",)),
    ],
)
def test_a_token_is_of_one_key_one_server_and_one_scope(
    tmp_path: Path, other: ClientCredentials
) -> None:
    store = TokenStore(tmp_path)
    store.keep(CLIENT, "token", LATER)
    assert (store.find(CLIENT), store.find(other)) == (("token", LATER), None)


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    for number in range(MOST_TOKENS + 5):
        one = ClientCredentials(URL, f"api{number}.test", KEY)
        store.keep(one, f"token-{number}", LATER)
    assert len(json.loads((tmp_path / TOKENS_FILE).read_text())) == MOST_TOKENS
    assert store.find(one) == (f"token-{number}", LATER)
