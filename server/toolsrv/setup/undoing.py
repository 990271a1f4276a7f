"""Undoes what setup did, one change after the other; what was changed again since stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolsrv import config_file
from toolsrv.clients.known import CLIENTS
from toolsrv.clients.machine import Machine
from toolsrv.clients.register import disconnecting
from toolsrv.key_store import KeyStore
from toolsrv.model_list import ModelList
from toolsrv.setup.state import Undo
from toolsrv_registry.errors import NotFoundError


class Undoer:
    """Undoes changes in one data folder; ``remove_catalog`` takes a catalog out of its store."""

    def __init__(
        self, data_dir: Path, config: Path, machine: Machine, remove_catalog: Callable[[str], None]
    ) -> None:
        self._data_dir = data_dir
        self._config = config
        self._machine = machine
        self._remove_catalog = remove_catalog

    def undo(self, one: Undo) -> str:
        """Undo a change and say what was done.

        Raises:
            ToolsrvError: it cannot be undone.
        """
        try:
            match one.kind:
                case "setting":
                    return self._setting(one)
                case "catalog":
                    self._remove_catalog(one.name)
                    return f"removed the catalog {one.name}"
                case "pulled-model":
                    ModelList(self._data_dir).remove(one.name)
                    return f"removed the model {one.name} and its file"
                case "key":
                    KeyStore(self._data_dir).remove(one.name)
                    return f"removed the key for {one.name}"
                case "client":
                    return self._client(one)
                case "file":
                    Path(one.name).unlink(missing_ok=True)
                    return f"removed {one.name}"
        except NotFoundError:
            return f"{one.kind} {one.name} is gone already"

    def _setting(self, one: Undo) -> str:
        now = config_file.read(self._config).get(one.name)
        if now != one.after:
            return f"{one.name} was changed since and stays {now!r}"
        if one.before is None:
            config_file.remove_key(self._config, one.name)
            return f"{one.name} is unset again"
        config_file.write_key(self._config, one.name, one.before)
        return f"{one.name} is again {one.before!r}"

    def _client(self, one: Undo) -> str:
        client = CLIENTS.get(one.name)
        if client is None:
            return f"the client {one.name} is not known any more"
        for path in client.paths(self._machine):
            change = disconnecting(client, self._machine, path=path)
            if change.needed:
                change.write()
        return f"took toolsrv out of {client.title}"
