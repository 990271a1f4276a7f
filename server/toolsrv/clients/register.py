"""Registers toolsrv in a client's configuration file, and takes it out again.

The file is changed as text, so that comments and other entries stay, then parsed: unless exactly
our entry differs nothing is written. The old file is kept beside it as ``*.toolsrv-backup``.

Errors: UsageError for a file that is damaged (it says where), DataError for one that cannot be
read or written or whose form is beyond a safe change.
"""

from __future__ import annotations

import copy
import difflib
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsrv.clients import jsonc, tables
from toolsrv.clients.known import NAME, Client, Form, Machine
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.atomic import fresh_text

BACKUP = ".toolsrv-backup"


@dataclass(frozen=True)
class Change:
    """What would become of a file; nothing where ``before`` equals ``after``."""

    client: Client
    path: Path
    before: str
    after: str

    @property
    def needed(self) -> bool:
        """Whether the file changes at all."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(),
            f"{self.path}", f"{self.path} (new)", lineterm="",
        )  # fmt: skip
        return "\n".join(lines)

    def write(self) -> Path | None:
        """Write the file, atomically; return the backup of the old one, None without one.

        A link is followed: what it names is changed, and it stays a link.
        """
        path, backup, mode = self.path.resolve(), None, 0o600
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                backup, mode = path.with_name(path.name + BACKUP), path.stat().st_mode
                shutil.copy2(path, backup)
        except OSError as error:
            raise DataError(
                f"cannot write into {path.parent}: {error.strerror or error}",
                hint="free some space or check the folder's permissions; nothing was changed",
            ) from error
        with fresh_text(path) as file:
            Path(file.name).chmod(mode)
            file.write(self.after)
        return backup


def connecting(client: Client, machine: Machine, arguments: Sequence[str] = ()) -> Change:
    """Return the change that registers toolsrv in a client."""
    path = client.path(machine)
    before = _read(path)
    keys = (*client.keys, NAME)
    entry = client.entry(command(), ("serve", *arguments))
    wanted = copy.deepcopy(_parsed(client.form, path, before))
    table = wanted
    for key in client.keys:
        table = _table(table, key, path)
    if table.get(NAME) == entry:
        return Change(client, path, before, before)
    table[NAME] = entry
    after = _EDITORS[client.form].put(before, keys, entry)
    return _checked(Change(client, path, before, after), wanted)


def disconnecting(client: Client, machine: Machine) -> Change:
    """Return the change that takes toolsrv out of a client, and nothing else."""
    path = client.path(machine)
    before = _read(path)
    wanted = copy.deepcopy(_parsed(client.form, path, before))
    table: Any = wanted
    for key in client.keys:
        table = table.get(key) if isinstance(table, dict) else None
    if not isinstance(table, dict) or NAME not in table:
        return Change(client, path, before, before)
    del table[NAME]
    after = _EDITORS[client.form].cut(before, (*client.keys, NAME))
    return _checked(Change(client, path, before, after), wanted)


def registered(client: Client, machine: Machine) -> bool:
    """Whether toolsrv stands in the client's file."""
    return disconnecting(client, machine).needed


def command() -> Path:
    """Return the program that a client starts, by its whole path: clients have a bare PATH."""
    folder = Path(sysconfig.get_path("scripts"))
    program = folder / ("toolsrv.exe" if sys.platform == "win32" else "toolsrv")
    if program.is_file():
        return program
    if found := shutil.which("toolsrv"):
        return Path(found).absolute()
    raise DataError(
        "the program toolsrv is not installed as a command",
        hint="install it (pip install toolsrv, or uv tool install toolsrv) and repeat",
    )


@dataclass(frozen=True)
class _Editor:
    put: Callable[[str, Sequence[str], Mapping[str, Any]], str]
    cut: Callable[[str, Sequence[str]], str]


_EDITORS: dict[Form, _Editor] = {
    "json": _Editor(jsonc.with_entry, jsonc.without_entry),
    "toml": _Editor(tables.toml_with, tables.toml_without),
    "yaml": _Editor(tables.yaml_with, tables.yaml_without),
}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 (byte {error.start})", hint="save the file as UTF-8 and repeat"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}", hint="check its permissions"
        ) from error


def _table(table: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    inner = table.setdefault(key, {})
    if inner is None:  # an empty mapping of YAML
        inner = table[key] = {}
    if not isinstance(inner, dict):
        raise UsageError(f"{path}: {key!r} is not a table", hint="correct it, or remove that key")
    return inner


def _checked(change: Change, wanted: dict[str, Any]) -> Change:
    """Return the change if its text holds exactly what is wanted."""
    try:
        got = _parsed(change.client.form, change.path, change.after)
    except UsageError:
        got = None
    if _full(got) != _full(wanted):
        raise DataError(
            f"{change.path}: the entry stands in a form that cannot be changed safely",
            hint=f"edit the file by hand: {'.'.join((*change.client.keys, NAME))}",
        )
    return change


def _full(value: Any) -> Any:
    """Return a document without tables that have become empty, at its top."""
    if not isinstance(value, dict):
        return value
    return {key: inner for key, inner in value.items() if inner not in ({}, None)}


def _parsed(form: Form, path: Path, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = _PARSERS[form](text)
    except _DamageError as error:
        raise UsageError(
            f"{path}, {error}", hint="the file is damaged: correct that place, then repeat"
        ) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{path}: not a table at its top", hint="correct the file, then repeat")
    return value


class _DamageError(Exception):
    """Where and how a text is damaged."""


def _json(text: str) -> Any:
    try:
        return jsonc.parse(text).plain
    except jsonc.JsoncError as error:
        head = text[: error.position]
        place = f"line {head.count(chr(10)) + 1}, column {len(head) - head.rfind(chr(10))}"
        raise _DamageError(f"{place}: {error.message}") from error


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _DamageError(str(error)) from error


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _DamageError(f"{place}{error.problem or 'not YAML'}") from error
    except yaml.YAMLError as error:
        raise _DamageError(f"not YAML: {error}") from error


_PARSERS: dict[Form, Callable[[str], Any]] = {"json": _json, "toml": _toml, "yaml": _yaml}
