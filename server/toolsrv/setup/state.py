"""State of ``toolsrv setup``: completed steps in a file of the data folder, and their undo.

A change that was changed again since stays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv import config_file
from toolsrv.calls.keys import KeyStore
from toolsrv.clients.known import CLIENTS
from toolsrv.clients.places import Machine
from toolsrv.clients.register import removal_change
from toolsrv.config_file import write_atomic
from toolsrv.model_list import ModelList
from toolsrv_registry.errors import DataError, NotFoundError

FILE = "setup.json"
StepName = Literal["machine", "model", "catalog", "keys", "policy", "clients", "task"]


class UndoAction(BaseModel):
    """One change of setup that can be undone.

    ``before`` and ``after`` are a setting's value in the file, None where it is not set there.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["setting", "catalog", "pulled-model", "key", "client", "file"]
    name: str
    before: Any = None
    after: Any = None


class CompletedStep(BaseModel):
    """A step that is done: what came of it, and its changes."""

    model_config = ConfigDict(frozen=True)

    found: str
    undo: tuple[UndoAction, ...] = ()


class SetupState(BaseModel):
    """The steps that are done, in their order."""

    steps: dict[StepName, CompletedStep] = Field(default_factory=dict)

    def undoing(self) -> list[UndoAction]:
        """Return all changes, the last first."""
        return [one for done in reversed(self.steps.values()) for one in reversed(done.undo)]


def load_state(data_dir: Path) -> SetupState:
    """Return the state of a data folder, an empty one where setup has not run.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        return SetupState.model_validate_json((data_dir / FILE).read_bytes())
    except FileNotFoundError:
        return SetupState()
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise DataError(
            f"{data_dir / FILE} cannot be read: {why}",
            hint="remove it; then setup begins anew, and knows no more how to undo what it did",
        ) from None


def save_state(data_dir: Path, state: SetupState) -> None:
    """Write the state. Raises DataError where it cannot be written."""
    write_atomic(data_dir / FILE, state.model_dump_json(indent=2) + "\n")


class Undoer:
    """Undoes changes in one data folder; ``remove_catalog`` takes a catalog out of its store."""

    def __init__(
        self, data_dir: Path, config: Path, machine: Machine, remove_catalog: Callable[[str], None]
    ) -> None:
        self._data_dir = data_dir
        self._config = config
        self._machine = machine
        self._remove_catalog = remove_catalog

    def undo(self, one: UndoAction) -> str:
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

    def _setting(self, one: UndoAction) -> str:
        now = config_file.read(self._config).get(one.name)
        if now != one.after:
            return f"{one.name} was changed since and stays {now!r}"
        if one.before is None:
            config_file.remove_key(self._config, one.name)
            return f"{one.name} is unset again"
        config_file.write_key(self._config, one.name, one.before)
        return f"{one.name} is again {one.before!r}"

    def _client(self, one: UndoAction) -> str:
        client = CLIENTS.get(one.name)
        if client is None:
            return f"the client {one.name} is not known any more"
        for path in client.paths(self._machine):
            change = removal_change(client, self._machine, path=path)
            if change.needed:
                change.write()
        return f"took toolsrv out of {client.title}"
