"""Files of the data folder about catalogs: fixed values and imported MCP servers.

Fixed headers and query parameters stay when a catalog is imported again, and go when it is removed.
Neither file holds a secret: those are keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from toolsrv.calls.keys import KeyStore
from toolsrv.config_file import exclusive_lock, write_atomic
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.calls.authenticated import (
    MAX_FIXED_VALUES,
    FixedKind,
    FixedValues,
    fixed_fault,
)
from toolsrv_runtime.mcp_client import McpServer

FIXED_FILE = "catalog_values.json"


class CatalogValues(BaseModel):
    """What is fixed for one catalog, by name."""

    headers: dict[str, str] = {}
    query: dict[str, str] = {}

    def of(self, kind: FixedKind) -> dict[str, str]:
        """Return the values of a kind."""
        return self.headers if kind == "header" else self.query

    def lines(self) -> list[str]:
        """Return each value as it is set: ``header NAME=VALUE``."""
        headers = [f"header {name}={value}" for name, value in self.headers.items()]
        return [*headers, *(f"query {name}={value}" for name, value in self.query.items())]


class FixedFile:
    """The fixed values of one data folder, by catalog."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FIXED_FILE

    def all(self) -> dict[str, CatalogValues]:
        """Return the values of all catalogs that have some.

        Raises:
            DataError: the file cannot be read.
        """
        try:
            value: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            return {name: CatalogValues.model_validate(one) for name, one in value.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, ValidationError) as error:
            raise DataError(
                f"{self.path} cannot be read: {type(error).__name__}",
                hint="remove it, and set the values again with toolsrv catalog set",
            ) from None

    def as_called(self, api: Api, catalog_of: Callable[[str], str]) -> Api:
        """Return an API without the parameters that are fixed for its catalog.

        ``catalog_of`` returns the catalog of an id; it is asked only where something is fixed.

        Raises:
            DataError: the file cannot be read.
        """
        return self.of(catalog_of(api.id)).split(api, {})[0] if self.all() else api

    def of(self, catalog: str) -> FixedValues:
        """Return the values of a catalog; what could not be set is left out.

        Raises:
            DataError: the file cannot be read.
        """
        kept = self.all().get(catalog, CatalogValues())
        return FixedValues(
            {k: v for k, v in kept.headers.items() if not fixed_fault("header", k, v)},
            {k: v for k, v in kept.query.items() if not fixed_fault("query", k, v)},
        )

    def set(self, catalog: str, kind: FixedKind, name: str, value: str) -> None:
        """Fix a value, in place of one of that name.

        Raises:
            UsageError: the name or the value cannot be one, or there are too many.
            DataError: the file cannot be read or written.
        """
        if fault := fixed_fault(kind, name, value):
            raise UsageError(fault, hint="for example: header Notion-Version=2022-06-28")
        with exclusive_lock(self.path.with_suffix(".lock")):
            kept = self.all()
            values = kept.setdefault(catalog, CatalogValues())
            _drop(values, kind, name)
            if len(values.lines()) >= MAX_FIXED_VALUES:
                raise UsageError(
                    f"{catalog} has {MAX_FIXED_VALUES} fixed values, and more are not kept",
                    hint="see toolsrv catalog unset",
                )
            values.of(kind)[name] = value
            self._write(kept)

    def unset(self, catalog: str, kind: FixedKind, name: str) -> None:
        """Forget a value.

        Raises:
            NotFoundError: there is none of that name.
            DataError: the file cannot be read or written.
        """
        with exclusive_lock(self.path.with_suffix(".lock")):
            kept = self.all()
            values = kept.get(catalog, CatalogValues())
            if not _drop(values, kind, name):
                there = ", ".join(line.partition("=")[0] for line in values.lines()) or "none"
                raise NotFoundError(
                    f"no {kind} {name[:80]!r} is fixed for {catalog}", hint=f"there are: {there}"
                )
            self._write(kept)

    def forget(self, catalog: str) -> bool:
        """Forget the values of a catalog; return whether there were any.

        Raises:
            DataError: the file cannot be read or written.
        """
        if catalog not in self.all():
            return False
        with exclusive_lock(self.path.with_suffix(".lock")):
            kept = self.all()
            gone = kept.pop(catalog, None)
            self._write(kept)
        return gone is not None

    def _write(self, kept: dict[str, CatalogValues]) -> None:
        shown = {name: kept[name].model_dump() for name in sorted(kept) if kept[name].lines()}
        write_atomic(self.path, json.dumps(shown, indent=2) + "\n")


def _drop(values: CatalogValues, kind: FixedKind, name: str) -> bool:
    """Take a name out, a header's in any spelling; return whether it was there."""
    kept = values.of(kind)
    alike = [
        one for one in kept if one == name or (kind == "header" and one.lower() == name.lower())
    ]
    for one in alike:
        del kept[one]
    return bool(alike)


SERVERS_FILE = "mcp_servers.json"


class ServerFile:
    """The servers of one data folder, by name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / SERVERS_FILE
        self._folder = folder

    def find(self, name: str) -> McpServer | None:
        """Return a server, None when there is none of that name.

        Raises:
            DataError: the file cannot be read.
        """
        return self.all().get(name)

    def all(self) -> dict[str, McpServer]:
        """Return all servers by name.

        Raises:
            DataError: the file cannot be read.
        """
        try:
            value = json.loads(self.path.read_text(encoding="utf-8"))
            return {one["name"]: McpServer.model_validate(one) for one in value["servers"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise DataError(
                f"{self.path} cannot be read: {type(error).__name__}",
                hint="remove it, and import the MCP servers again",
            ) from None

    def put(self, server: McpServer) -> None:
        """Keep a server, instead of one of that name.

        Raises:
            DataError: the file cannot be read or written.
        """
        self._write(server.name, server)

    def remove(self, name: str) -> bool:
        """Forget a server and its secrets; return whether there was one.

        Raises:
            DataError: the file or the keys cannot be read or written.
        """
        server = self.find(name)
        if server is None:
            return False
        keys = KeyStore(self._folder)
        kept = {one.name for one in keys.entries() if one.place != "environment"}
        for secret in server.secrets:
            if (key := server.key_name(secret)) in kept:
                keys.remove(key)
        self._write(name, None)
        return True

    def _write(self, name: str, server: McpServer | None) -> None:
        with exclusive_lock(self.path.with_suffix(".lock")):
            servers = self.all()
            servers.pop(name, None)
            if server is not None:
                servers[name] = server
            listed = [servers[one].model_dump(mode="json") for one in sorted(servers)]
            write_atomic(self.path, json.dumps({"servers": listed}, indent=2) + "\n")
