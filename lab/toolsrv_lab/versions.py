"""The versions of the libraries that something was made with."""

from __future__ import annotations

import importlib.metadata
import platform


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of toolsrv, Python and ``packages``; "unknown" where not installed."""
    return {"toolsrv": _version("toolsrv"), "python": platform.python_version()} | {
        name: _version(name) for name in packages
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
