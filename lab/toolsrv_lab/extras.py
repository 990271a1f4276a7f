"""Libraries of the extra ``lab``: loaded when they are used, and missed in plain words."""

from __future__ import annotations

import importlib
from typing import Any

from toolsrv_registry.errors import UsageError


def load(name: str) -> Any:
    """Return the module of that name; raises UsageError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        raise UsageError(
            f"this needs {name.partition('.')[0]}, which is not installed",
            hint="pip install 'toolsrv[lab]'",
        ) from error
