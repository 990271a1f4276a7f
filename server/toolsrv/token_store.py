"""Access tokens that are still valid, kept where keys are: the system keyring, else a 0600 file.

A token belongs to the credentials that it was fetched with: with others it is none. What prevents
that one is kept or found costs a request to the token server and nothing else. Knows nothing of
requests.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import math
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv.config_file import write_atomic
from toolsrv.file_lock import alone
from toolsrv.system_keyring import SERVICE, system_keyring
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from toolsrv_runtime.calls.auth import ClientCredentials

TOKENS_FILE = "tokens.json"
MOST_TOKENS = 200
_SALT_BYTES = 16
_PREFIX = "token:"

log = logging.getLogger(__name__)


class TokenStore:
    """The access tokens of one data folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TOKENS_FILE

    def find(self, client: ClientCredentials) -> tuple[str, float] | None:
        """Return a token and the time that it is used until (seconds since 1970), None without one."""
        with _unharmed():
            name = _name(client)
            entry = self._read().get(name)
            value = _value(entry, name)
            if value is not None and hmac.compare_digest(value["of"], _of(client, value["salt"])):
                return value["token"], value["until"]
        return None

    def keep(self, client: ClientCredentials, token: str, until: float) -> None:
        """Keep a token until it expires, instead of the one before."""
        salt = secrets.token_hex(_SALT_BYTES)
        value = {"token": token, "until": until, "salt": salt, "of": _of(client, salt)}
        with _unharmed(), self._changing() as kept:
            name = _name(client)
            entry: dict[str, Any] = {"key": client.key}
            if keyring := system_keyring():
                keyring.set_password(SERVICE, name, json.dumps(value))
            else:
                entry["value"] = value
            kept.pop(name, None)
            kept[name] = entry
            for old in list(kept)[:-MOST_TOKENS]:
                _forget(old, kept)

    def drop(self, client: ClientCredentials, token: str) -> None:
        """Forget a token, unless another has taken its place."""
        found = self.find(client)
        if found is not None and found[0] == token:
            with _unharmed(), self._changing() as kept:
                _forget(_name(client), kept)

    def drop_of(self, key: str) -> None:
        """Forget all tokens that were fetched with the credentials of this name."""
        with _unharmed():
            if not any(entry.get("key") == key for entry in self._read().values()):
                return
            with self._changing() as kept:
                for name in [one for one, entry in kept.items() if entry.get("key") == key]:
                    _forget(name, kept)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return {str(name): dict(entry) for name, entry in dict(found).items()}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Yield what is kept, alone, to change; it is written when the block ends well."""
        with alone(self._path.with_suffix(".lock")):
            try:
                kept = self._read()
            except (ValueError, TypeError):  # damaged: tokens can be fetched again
                kept = {}
            yield kept
            write_atomic(self._path, json.dumps(kept, indent=2) + "\n")  # made with mode 0600


def _name(client: ClientCredentials) -> str:
    """Return the name of a token: the same for the same key, token server and scopes."""
    what = json.dumps([client.key, str(client.url), *client.scopes])
    return _PREFIX + hashlib.sha256(what.encode()).hexdigest()[:32]


def _of(client: ClientCredentials, salt: str) -> str:
    """Return what tells credentials from others without saying what they are."""
    return hmac.new(salt.encode(), client.secret.encode(), hashlib.sha256).hexdigest()


def _value(entry: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    """Return what is kept of a token, from the file or the keyring, None where that is nothing."""
    if entry is None:
        return None
    found = entry.get("value")
    if found is None and (keyring := system_keyring()):
        found = json.loads(keyring.get_password(SERVICE, name) or "null")
    if not isinstance(found, dict):
        return None
    texts = all(isinstance(found.get(one), str) for one in ("token", "salt", "of"))
    until = found.get("until")
    is_time = isinstance(until, (int, float)) and math.isfinite(until)
    return found if texts and is_time else None


def _forget(name: str, kept: dict[str, dict[str, Any]]) -> None:
    entry = kept.pop(name, None)
    if entry is not None and "value" not in entry and (keyring := system_keyring()):
        from keyring import errors

        with contextlib.suppress(errors.PasswordDeleteError):  # removed there already
            keyring.delete_password(SERVICE, name)


@contextlib.contextmanager
def _unharmed() -> Iterator[None]:
    """Go on after whatever prevents that a token is kept or found; nothing secret is logged."""
    from keyring import errors

    try:
        yield
    except (ToolsrvError, OSError, ValueError, TypeError, errors.KeyringError) as error:
        log.debug("access tokens are not kept: %s", type(error).__name__)
