"""A script of replies in a file, played by ``ScriptedChat``: demos and tests without a model.

``{"replies": [...], "seconds": 0.3, "loop": false}`` as JSON or TOML. A reply is a table with
``thought``, ``function`` and ``arguments``, or the text of a reply. ``seconds``
is how long each takes; with ``loop`` the last is repeated for ever.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.file_in import read_file

MOST_BYTES = 16 << 20


class ScriptedCall(BaseModel):
    """One reply as a call; ``Finish`` ends a task as it does for every model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    function: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)
    thought: str = "as the script says"


class Script(BaseModel):
    """A whole script file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    replies: tuple[ScriptedCall | str, ...] = Field(min_length=1)
    seconds: float = Field(default=0.0, ge=0, le=3600, allow_inf_nan=False)
    loop: bool = False


def read_script(path: Path) -> Script:
    """Return the script that a file holds.

    Raises:
        NotFoundError: there is no such file.
        DataError: it is no script; says where.
    """
    hint = 'write {"replies": [{"function": "Finish", "arguments": {…}}]}, as JSON or TOML'
    try:
        text = read_file(path, MOST_BYTES).decode()
        value = tomllib.loads(text) if path.suffix == ".toml" else wellformed.loads(text)
    except FileNotFoundError:
        raise NotFoundError(f"there is no script {str(path)!r}", hint=hint) from None
    except OSError as error:
        raise DataError(
            f"the script {str(path)!r} cannot be read: {error.strerror}", hint=hint
        ) from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError too
        raise DataError(f"the script {str(path)!r} cannot be read: {error}", hint=hint) from None
    try:
        return Script.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise DataError(f"{path}: {place}: {first['msg'][:200]}", hint=hint) from None
