"""The user's keys: in the system keyring, else in a file that only the user can read.

A key has the name of whom it belongs to: ``rapidapi``, a host, or ``HOST/SCHEME`` where a host has
several; ``HOST@TOKEN-HOST`` are client credentials that a token for HOST is fetched with at another
host; ``mcp:SERVER/NAME`` is a variable or a header of an MCP server. The environment goes first:
``RAPIDAPI_KEY``, and ``TOOLSRV_KEY_`` with the name in capitals
(``TOOLSRV_KEY_API_EXAMPLE_COM``). Knows nothing of requests; ``calls/auth.py`` decides
which key a call may have.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolsrv.config_file import write_atomic
from toolsrv.file_lock import alone
from toolsrv.system_keyring import SERVICE, system_keyring
from toolsrv.token_store import TokenStore
from toolsrv_catalogs.hosts import host_fault
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

VARIABLE_PREFIX = "TOOLSRV_KEY_"
RAPIDAPI, RAPIDAPI_VARIABLE = "rapidapi", "RAPIDAPI_KEY"
_LENGTH = 8_192
_MCP_KEY = re.compile(r"mcp:[A-Za-z0-9][A-Za-z0-9._-]{0,63}/(\?|[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200})")
_REMEMBERED_S = 5.0
Place = Literal["environment", "keyring", "file"]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """That there is a key, and where; never the key."""

    name: str
    place: Place


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

    def store(self, name: str, secret: str) -> Place:
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
        with alone(self.path.with_suffix(".lock")):
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
