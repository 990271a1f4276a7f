"""API keys and access tokens: in the system keyring, else in a file of mode 0600.

A key has the name of its owner: ``rapidapi``, a host, or ``HOST/SCHEME`` where a host has several.
``HOST@TOKEN-HOST`` are client credentials that a token for HOST is fetched with at another host.
``mcp:SERVER/NAME`` is a variable or a header of an MCP server. The environment goes first:
``RAPIDAPI_KEY`` and ``TOOLSRV_KEY_…``. A token belongs to the credentials it was fetched with. A
fault of the token store costs a request to the token server and nothing else. Knows nothing of
requests.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import math
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolsrv.config_file import exclusive_lock, write_atomic
from toolsrv_catalogs.hosts import host_fault
from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.calls.credentials import ClientCredentials

SERVICE = "toolsrv"
"""The service that secrets are kept under."""


def system_keyring() -> Any:
    """Return the ``keyring`` module where the system has a keyring, else None."""
    import keyring

    return keyring if keyring.get_keyring().priority > 0 else None


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
        with _ignoring_faults():
            name = _token_name(client)
            entry = self._read().get(name)
            value = _stored_token(entry, name)
            if value is not None and hmac.compare_digest(
                value["of"], _fingerprint(client, value["salt"])
            ):
                return value["token"], value["until"]
        return None

    def keep(self, client: ClientCredentials, token: str, until: float) -> None:
        """Keep a token until it expires, instead of the one before."""
        salt = secrets.token_hex(_SALT_BYTES)
        value = {"token": token, "until": until, "salt": salt, "of": _fingerprint(client, salt)}
        with _ignoring_faults(), self._changing() as kept:
            name = _token_name(client)
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
            with _ignoring_faults(), self._changing() as kept:
                _forget(_token_name(client), kept)

    def drop_of(self, key: str) -> None:
        """Forget all tokens that were fetched with the credentials of this name."""
        with _ignoring_faults():
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
        with exclusive_lock(self._path.with_suffix(".lock")):
            try:
                kept = self._read()
            except (ValueError, TypeError):  # damaged: tokens can be fetched again
                kept = {}
            yield kept
            write_atomic(self._path, json.dumps(kept, indent=2) + "\n")  # made with mode 0600


def _token_name(client: ClientCredentials) -> str:
    """Return the name of a token: the same for the same key, token server and scopes."""
    what = json.dumps([client.key, str(client.url), *client.scopes])
    return _PREFIX + hashlib.sha256(what.encode()).hexdigest()[:32]


def _fingerprint(client: ClientCredentials, salt: str) -> str:
    """Return what tells credentials from others without saying what they are."""
    return hmac.new(salt.encode(), client.secret.encode(), hashlib.sha256).hexdigest()


def _stored_token(entry: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
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
def _ignoring_faults() -> Iterator[None]:
    """Go on after whatever prevents that a token is kept or found; nothing secret is logged."""
    from keyring import errors

    try:
        yield
    except (ToolsrvError, OSError, ValueError, TypeError, errors.KeyringError) as error:
        log.debug("access tokens are not kept: %s", type(error).__name__)


VARIABLE_PREFIX = "TOOLSRV_KEY_"
RAPIDAPI, RAPIDAPI_VARIABLE = "rapidapi", "RAPIDAPI_KEY"
_LENGTH = 8_192
_MCP_KEY = re.compile(r"mcp:[A-Za-z0-9][A-Za-z0-9._-]{0,63}/(\?|[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200})")
_REMEMBERED_S = 5.0
KeyLocation = Literal["environment", "keyring", "file"]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """That there is a key, and where; never the key."""

    name: str
    place: KeyLocation


class KeyStore:
    """The keys of one data folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys.json"
        self._seen: dict[str, tuple[float, str]] = {}

    def secret(self, name: str) -> str:
        """Return a key, ``""`` when there is none; remembered for some seconds."""
        now = time.monotonic()
        seen = self._seen.get(name)
        if seen is None or seen[0] < now:
            seen = self._seen[name] = (now + _REMEMBERED_S, self._find(name))
        return seen[1]

    def known(self, name: str) -> bool:
        """Return whether there is a key, without looking at it: no keyring asks a person."""
        if os.environ.get(variable_of(name), "").strip():
            return True
        kept = self._read()
        return name in kept["file"] or name in kept["keyring"]

    def store(self, name: str, secret: str) -> KeyLocation:
        """Keep a key, instead of one of that name; return where it is kept.

        Raises:
            UsageError: the name or the key cannot be one.
            DataError: it cannot be written.
        """
        name = key_name(name)
        secret = checked_secret(secret, ascii_only=not name.startswith("mcp:"))
        with self._changing() as kept:
            if keyring := system_keyring():
                from keyring import errors

                try:
                    keyring.set_password(SERVICE, name, secret)
                except errors.KeyringError as error:
                    raise DataError(
                        f"the system keyring did not take the key: {type(error).__name__}",
                        hint=f"unlock it, or set the variable {variable_of(name)}",
                    ) from None
                kept["file"].pop(name, None)
                kept["keyring"] = sorted({*kept["keyring"], name})
            else:
                kept["file"][name] = secret
                kept["keyring"] = [one for one in kept["keyring"] if one != name]
        self._drop_tokens(name)
        return "keyring" if keyring else "file"

    def remove(self, name: str) -> KeyEntry:
        """Forget a stored key.

        Raises:
            NotFoundError: there is none of that name.
            DataError: it cannot be removed.
        """
        name = key_name(name)
        self._drop_tokens(name)
        with self._changing() as kept:
            if name in kept["file"]:
                del kept["file"][name]
                return KeyEntry(name, "file")
            if name in kept["keyring"]:
                self._forget(name)
                kept["keyring"].remove(name)
                return KeyEntry(name, "keyring")
            known = ", ".join(one.name for one in self.entries()) or "none"
            raise NotFoundError(f"no key is stored for {name!r}", hint=f"there are: {known}")

    def entries(self) -> list[KeyEntry]:
        """Return which keys there are, in the order of their names."""
        kept = self._read()
        found = {name: KeyEntry(name, "keyring") for name in kept["keyring"]}
        found |= {name: KeyEntry(name, "file") for name in kept["file"]}
        if os.environ.get(RAPIDAPI_VARIABLE, "").strip():
            found[RAPIDAPI] = KeyEntry(RAPIDAPI, "environment")
        for variable in os.environ:
            if variable.startswith(VARIABLE_PREFIX) and os.environ[variable].strip():
                named = next((one for one in found if variable_of(one) == variable), variable)
                found[named] = KeyEntry(named, "environment")
        return [found[name] for name in sorted(found)]

    def _find(self, name: str) -> str:
        if given := os.environ.get(variable_of(name), "").strip():
            return given
        kept = self._read()
        if name in kept["file"]:
            return str(kept["file"][name])
        if name in kept["keyring"] and (keyring := system_keyring()):
            from keyring import errors

            try:
                return keyring.get_password(SERVICE, name) or ""
            except errors.KeyringError:
                return ""  # a locked keyring is like none; the call then says which key it needs
        return ""

    def _drop_tokens(self, name: str) -> None:
        """Forget what was fetched with a key that is no more."""
        TokenStore(self.path.parent).drop_of(name)

    def _forget(self, name: str) -> None:
        if keyring := system_keyring():
            from keyring import errors

            try:
                keyring.delete_password(SERVICE, name)
            except errors.PasswordDeleteError:
                return  # somebody has removed it there
            except errors.KeyringError as error:
                raise DataError(
                    f"the system keyring did not give the key up: {type(error).__name__}",
                    hint="unlock it and try again",
                ) from None

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self.path.read_text(encoding="utf-8"))
            return {"file": dict(value["file"]), "keyring": list(value["keyring"])}
        except FileNotFoundError:
            return {"file": {}, "keyring": []}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"the key file {self.path} cannot be read: {type(error).__name__}",
                hint="remove it, and store the keys again with toolsrv keys set",
            ) from None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Yield what is kept, alone, to change; it is written when the block ends well."""
        with exclusive_lock(self.path.with_suffix(".lock")):
            kept = self._read()
            yield kept
            write_atomic(self.path, json.dumps(kept, indent=2) + "\n")  # made with mode 0600
        self._seen.clear()


def key_name(text: str) -> str:
    """Return a key's name as it is looked up.

    Raises:
        UsageError: it names neither a provider nor a host.
    """
    if text.strip().startswith("mcp:"):
        return _mcp_key_name(text.strip())
    host, slash, scheme = text.strip().partition("/")
    host, at, other = host.partition("@")
    if host.lower() == RAPIDAPI and not slash and not at:
        return RAPIDAPI
    host = _host_of_key(host, text)
    if at:
        if slash:
            raise UsageError(
                f"{text[:80]!r} names a scheme and a token server", hint=f"write {host}@{other}"
            )
        return f"{host}@{_host_of_key(other, text)}"
    if slash and not scheme:
        raise _no_host(text)
    return f"{host}{slash}{scheme}"


def _host_of_key(host: str, text: str) -> str:
    """Return a host as requests name it; ``text`` is what a person wrote."""
    host = host.lower().rstrip(".")
    if host.endswith(".rapidapi.com"):
        raise UsageError("all hosts of RapidAPI share one key", hint="toolsrv keys set rapidapi")
    bare = host.removeprefix("[").removesuffix("]")
    if ":" in bare and not host_fault(bare) and not host_fault(f"[{bare}]"):
        return bare  # an IPv6 address
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal() and not host_fault(name):
        raise UsageError(
            f"{text[:80]!r} names a port, and a key is its host's at any port",
            hint=f"toolsrv keys set {name.removeprefix('[').removesuffix(']')}",
        )
    if host_fault(host) or ("." not in host and host != "localhost"):
        raise _no_host(text)
    return host


def _no_host(text: str) -> UsageError:
    return UsageError(f"{text[:80]!r} is no host", hint="for example rapidapi, or api.example.com")


def _mcp_key_name(text: str) -> str:
    """Return the name of a value of an MCP server: ``mcp:SERVER/VARIABLE-OR-HEADER``."""
    if not _MCP_KEY.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} names no value of an MCP server",
            hint="for example mcp:github/GITHUB_TOKEN, or mcp:example/Authorization",
        )
    return text


def checked_secret(text: str, *, ascii_only: bool = True) -> str:
    """Return a key without the blanks around it.

    Raises:
        UsageError: it is empty, too long, or holds what no header may hold. Never repeats it.
    """
    secret = text.strip()
    if not secret:
        raise UsageError("the key is empty", hint="paste it at the prompt, or pipe it to stdin")
    if len(secret) > _LENGTH or not secret.isprintable() or (ascii_only and not secret.isascii()):
        raise UsageError(
            "the key holds a line end or a character that no key has",
            hint="copy it again, in one line",
        )
    return secret


def variable_of(name: str) -> str:
    """Return the environment variable of a key."""
    if name == RAPIDAPI:
        return RAPIDAPI_VARIABLE
    return VARIABLE_PREFIX + re.sub(r"[^A-Z0-9]+", "_", name.upper())
