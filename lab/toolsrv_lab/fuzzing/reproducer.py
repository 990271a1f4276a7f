"""A case that failed, as a file: enough to try it again, and to find where it came from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.files import open_atomic_text


class Reproducer(BaseModel):
    """The smallest case found that breaks ``target``; ``seed`` is that of its batch."""

    model_config = ConfigDict(frozen=True)

    target: str
    seed: int
    error: str
    case: Any


def save(reproducer: Reproducer, folder: Path) -> Path:
    """Write a reproducer into ``folder``, named after what it holds; return its path."""
    case = json.dumps(reproducer.case, sort_keys=True)
    mark = hashlib.sha256(case.encode()).hexdigest()[:12]
    path = folder / f"{reproducer.target}-{mark}.json"
    with open_atomic_text(path) as file:
        file.write(json.dumps(reproducer.model_dump(), indent=1) + "\n")
    return path


def read(path: Path) -> Reproducer:
    """Return the reproducer at ``path``.

    Raises:
        NotFoundError: there is no such file.
        DataError: it is none.
    """
    try:
        return Reproducer.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{path} does not exist", hint="give a file that lab fuzz wrote"
        ) from error
    except (OSError, ValueError, RecursionError, ValidationError) as error:
        why = str(error).splitlines()[0]
        raise DataError(
            f"{path} is no reproducer: {why}", hint="give a file that lab fuzz wrote"
        ) from error
