"""What ``toolsrv setup`` has done, step by step, with what undoes it: a file in the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv.config_file import write_atomic
from toolsrv_registry.errors import DataError

FILE = "setup.json"
StepName = Literal["machine", "model", "catalog", "keys", "policy", "clients", "task"]


class Undo(BaseModel):
    """One change of setup that can be undone.

    ``before`` and ``after`` are a setting's value in the file, None where it is not set there.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["setting", "catalog", "pulled-model", "key", "client", "file"]
    name: str
    before: Any = None
    after: Any = None


class Done(BaseModel):
    """A step that is done: what came of it, and its changes."""

    model_config = ConfigDict(frozen=True)

    found: str
    undo: tuple[Undo, ...] = ()


class SetupState(BaseModel):
    """The steps that are done, in their order."""

    steps: dict[StepName, Done] = Field(default_factory=dict)

    def undoing(self) -> list[Undo]:
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
