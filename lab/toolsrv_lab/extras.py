"""Libraries of the extra ``lab``: loaded when they are used, and missed in plain words."""

from __future__ import annotations

import importlib
from typing import Any

from toolsrv_registry.errors import UsageError

_ALONE = ("matplotlib",)
"""Libraries that need nothing else of the extra, torch least of all."""


def load(name: str) -> Any:
    """Return the module of that name; raises UsageError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        library, whole = name.partition(".")[0], "pip install '.[lab]' in toolsrv's sources"
        raise UsageError(
            f"this needs {library}, which is not installed",
            hint=f"pip install {library}; for all of the laboratory {whole}"
            if library in _ALONE
            else whole,
        ) from error
