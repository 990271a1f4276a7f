"""Where the settings file and the data folder are, before any setting is read.

Imports no pydantic: ``toolsrv serve`` needs this first (``greeting``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from toolsrv import config_file
from toolsrv_registry.errors import UsageError

PREFIX = "TOOLSRV_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
_DATA_VARIABLE = f"{PREFIX}DATA_DIR"


def config_path(flags: Mapping[str, Any] | None = None) -> Path:
    """Return the TOML file's place; it need not exist.

    Raises:
        UsageError: the data folder, in which it would be, has a blank name or is a file.
    """
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named).expanduser().absolute()
    moved = _moved(flags)
    if moved and not str(moved).strip():
        raise UsageError(f"{_DATA_VARIABLE} names no folder", hint="name one, or unset it")
    place = moved or platformdirs.user_config_dir("toolsrv", appauthor=False)
    folder = Path(place).expanduser().absolute()
    if moved and folder.is_file():
        raise UsageError(
            f"the data folder {folder} is a file",
            hint=f"name a folder with --data-dir or {_DATA_VARIABLE}",
        )
    return folder / "config.toml"


def data_folder(flags: Mapping[str, Any] | None = None) -> Path:
    """Return the data folder of a flag, the environment or the settings file; it need not exist.

    Raises:
        UsageError: as ``config_path``, or the settings file is not TOML.
        DataError: the settings file cannot be read.
    """
    if moved := _moved(flags):
        return Path(moved).expanduser().absolute()
    file = config_path(flags)
    if named := config_file.read(file).get("data_dir"):
        return file.parent / Path(str(named)).expanduser()
    return Path(platformdirs.user_data_dir("toolsrv", appauthor=False)).absolute()


def _moved(flags: Mapping[str, Any] | None) -> Any:
    return (flags or {}).get("data_dir") or os.environ.get(_DATA_VARIABLE)
