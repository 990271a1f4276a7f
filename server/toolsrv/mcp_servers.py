"""The MCP servers that were imported: a file in the data folder that holds no secret."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from toolsrv.config_file import write_atomic
from toolsrv.file_lock import alone
from toolsrv.key_store import KeyStore
from toolsrv_registry.errors import DataError
from toolsrv_runtime.mcp_client.servers import McpServer

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
        with alone(self.path.with_suffix(".lock")):
            servers = self.all()
            servers.pop(name, None)
            if server is not None:
                servers[name] = server
            listed = [servers[one].model_dump(mode="json") for one in sorted(servers)]
            write_atomic(self.path, json.dumps({"servers": listed}, indent=2) + "\n")
