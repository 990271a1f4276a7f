"""The settings file and the data folder: where they are, how their files are written.

Reads the TOML settings file, changes one line of it and keeps the rest. Writes files atomically and
holds lock files in the data folder. ``settings`` knows what the keys mean. Imports no pydantic:
``toolsrv serve`` needs this before the first setting is read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.file_lock import acquire_lock


def read(path: Path) -> dict[str, Any]:
    """Return the file's table, empty when there is no file.

    Raises:
        UsageError: The file is not TOML in UTF-8.
        DataError: The file exists and cannot be read.
    """
    return _parse(path, _text(path))


def write_key(path: Path, key: str, value: Any) -> None:
    """Set one top-level ``key`` in the file, atomically; comments and other keys stay.

    ``value`` is a str, bool, int or float.

    Raises:
        UsageError: The file is not TOML.
        DataError: The file cannot be read or written, or its form is beyond a one-line change.
    """
    text = _text(path)
    wanted = _parse(path, text) | {key: value}
    changed = _with_line(text, key, f"{key} = {_literal(value)}")
    if _table(changed) != wanted:
        raise DataError(
            f"{path}: {key!r} stands in a form that cannot be changed safely",
            hint=f"edit the file by hand: {key} = {_literal(value)}",
        )
    write_atomic(path, changed)


def remove_key(path: Path, key: str) -> None:
    """Take one top-level ``key`` out of the file, atomically; without it nothing happens.

    Raises:
        UsageError: The file is not TOML.
        DataError: The file cannot be read or written, or its form is beyond a one-line change.
    """
    text = _text(path)
    wanted = _parse(path, text)
    if wanted.pop(key, None) is None:
        return
    lines, at = _line_of(text, key)
    if at is not None:
        del lines[at]
    changed = "\n".join(lines) + "\n" * bool(lines)
    if _table(changed) != wanted:
        raise DataError(
            f"{path}: {key!r} stands in a form that cannot be changed safely",
            hint=f"edit the file by hand: remove {key}",
        )
    write_atomic(path, changed)


def write_atomic(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old or the new content, never a part.

    A link to a file stays one; its file is written.

    Raises:
        DataError: The file cannot be written; the old one is untouched.
    """
    temporary = ""
    try:
        path = path.resolve()
        _check_ordinary(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise DataError(
            f"cannot write {path}: {error.strerror or error}",
            hint="check the folder's permissions and free space, or set TOOLSRV_CONFIG",
        ) from error


def _check_ordinary(path: Path) -> None:
    """Raise OSError for a device or a folder: what takes its place would be in the way of others."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no ordinary file")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 (byte {error.start})", hint="save the file as UTF-8"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}",
            hint="check its permissions, or name another file with TOOLSRV_CONFIG",
        ) from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path}: not valid TOML: {error}", hint="correct that line, or remove the file"
        ) from error


def _table(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _literal(value: Any) -> str:
    """Return a TOML literal (JSON's strings, numbers and booleans are TOML's too)."""
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def _with_line(text: str, key: str, line: str) -> str:
    """Replace the key's line, or add one before the first table."""
    lines, at = _line_of(text, key)
    if at is None:
        lines.insert(_first_table(lines), line)
    else:
        lines[at] = line
    return "\n".join(lines) + "\n"


def _line_of(text: str, key: str) -> tuple[list[str], int | None]:
    """Return the lines, and which of them before the first table sets the key."""
    lines = text.removesuffix("\n").split("\n") if text else []
    pattern = re.compile(rf"""\s*(?:{re.escape(key)}|"{re.escape(key)}")\s*=""")
    found = (at for at, old in enumerate(lines[: _first_table(lines)]) if pattern.match(old))
    return lines, next(found, None)


def _first_table(lines: list[str]) -> int:
    return next((at for at, old in enumerate(lines) if old.lstrip().startswith("[")), len(lines))


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
    if named := read(file).get("data_dir"):
        return file.parent / Path(str(named)).expanduser()
    return Path(platformdirs.user_data_dir("toolsrv", appauthor=False)).absolute()


def _moved(flags: Mapping[str, Any] | None) -> Any:
    return (flags or {}).get("data_dir") or os.environ.get(_DATA_VARIABLE)


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` in the block; wait for whoever holds it.

    Raises:
        DataError: Its folder cannot be used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        held = acquire_lock(path)
    except OSError as error:
        raise DataError(
            f"cannot use the folder {path.parent}: {error.strerror}",
            hint="name another data folder with --data-dir",
        ) from None
    with held:
        yield
