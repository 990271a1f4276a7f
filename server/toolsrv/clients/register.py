"""Add toolsrv to a client's configuration file, or remove it.

The file is changed as text, so that comments and other entries stay, then parsed: unless exactly
our entry differs nothing is written. The old file is kept beside it as ``*.toolsrv-backup``, as it
was before our entry came: what that replaced is put back from there.

Errors: UsageError for a file that is damaged (it says where) or whose entry of our name is another
program's, DataError for one that cannot be read or written or whose form is beyond a safe change.
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
from pathlib import Path, PurePath
from typing import Any, Concatenate, ParamSpec

from toolsrv.clients import jsonc, tables
from toolsrv.clients.known import NAME, Client, Form, is_toolsrv_entry, server_command, server_url
from toolsrv.clients.places import Machine
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.files import open_atomic_text

BACKUP = ".toolsrv-backup"


@dataclass(frozen=True)
class Change:
    """What would become of a file; nothing where ``before`` equals ``after``.

    ``ours``: an entry of our own stands in ``before``. ``restores``: what our entry had replaced
    comes back. ``deletes``: there was no file before our entry, and there is to be none.
    """

    client: Client
    path: Path
    before: str
    after: str
    ours: bool = False
    restores: bool = False
    deletes: bool = False

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
        """Write the file, atomically, or delete it; return the backup of the old one, None without one.

        A link is followed: what it names is changed, and it stays a link. A backup stays when the
        old file has our own entry: it holds the file of before that.
        """
        path, backup, mode = self.path.resolve(), None, 0o600
        try:
            if self.deletes:
                path.unlink()
                return None
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                backup, mode = _backup(path), path.stat().st_mode
                if not (self.ours and backup.exists()):
                    shutil.copy2(path, backup)
            else:  # of a file that is gone
                _backup(path).unlink(missing_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot write into {path.parent}: {error.strerror or error}",
                hint="free some space or check the folder's permissions; nothing was changed",
            ) from error
        with open_atomic_text(path) as file:
            Path(file.name).chmod(mode)
            file.write(self.after)
        return backup


def registration_change(
    client: Client,
    machine: Machine,
    arguments: Sequence[str] = ("serve",),
    *,
    env: Mapping[str, str] | None = None,
    replace: bool = False,
    path: Path | None = None,
    program: PurePath | None = None,
    entry: Mapping[str, Any] | None = None,
) -> Change:
    """Return the change that registers ``toolsrv ARGUMENTS`` in a client.

    ``path`` is one of the client's ``paths``, its first by default; ``program`` is what the client
    starts, ``command()`` by default, and ``env`` the variables that the entry sets. ``entry``
    stands in for the entry that these make.

    Raises:
        UsageError: another program's entry has our name, and it is not to be replaced.
    """
    path = path or client.path(machine)
    before = _read(path)
    keys = (*client.keys, NAME)
    if entry is None:
        entry = client.entry(program or command(), tuple(arguments), env, machine.home)
    wanted = copy.deepcopy(_parsed(client.form, path, before))
    table = wanted
    for key in client.keys:
        table = _table(table, key, path)
    there = table.get(NAME)
    if there == entry:
        return Change(client, path, before, before, ours=True)
    if there is not None and not is_toolsrv_entry(there, named=True) and not replace:
        raise UsageError(
            f"{path} has an entry {NAME!r} of another program already: {_entry_summary(there)}",
            hint="rename it there, or replace it with --replace; disconnect puts it back",
        )
    table[NAME] = dict(entry)
    after = _EDITORS[client.form].put(before, keys, entry)
    return _checked(
        Change(client, path, before, after, ours=is_toolsrv_entry(there, named=True)), wanted
    )


def removal_change(client: Client, machine: Machine, *, path: Path | None = None) -> Change:
    """Return the change that takes toolsrv out of a client, and nothing else.

    Where nothing but our entry has come since, the file is again as it was, byte for byte: it is
    gone where there was none. What our entry had replaced comes back. An entry of our name that is
    not ours stays. For ``path`` see ``registration_change``.
    """
    path = path or client.path(machine)
    before = _read(path)
    keys = (*client.keys, NAME)
    wanted = copy.deepcopy(_parsed(client.form, path, before))
    table = _servers(wanted, client.keys)
    entry = table.get(NAME)
    if entry is None or not is_toolsrv_entry(entry, named=True):
        return Change(client, path, before, before)
    put, cut = _EDITORS[client.form].put, _EDITORS[client.form].cut
    former, text = _replaced_entry(client, path)
    if text is not None and _is_put(put, text, keys, entry, before):
        return Change(client, path, before, text, ours=True, restores=former is not None)
    if text is None and _is_put(put, "", keys, entry, before):
        return Change(client, path, before, "", ours=True, deletes=True)
    if former is None:
        del table[NAME]
        return _checked(Change(client, path, before, cut(before, keys), ours=True), wanted)
    table[NAME] = former
    after = put(before, keys, former)
    return _checked(Change(client, path, before, after, ours=True, restores=True), wanted)


def _is_put(
    put: Callable[[str, Sequence[str], Mapping[str, Any]], str],
    text: str,
    keys: Sequence[str],
    entry: Mapping[str, Any],
    now: str,
) -> bool:
    """Whether a text is what an old one becomes with our entry, however that is laid out.

    The entry is put once more into both, as one that was renewed may be indented otherwise.
    """
    try:
        return put(put(text, keys, entry), keys, entry) == put(now, keys, entry)
    except ValueError:  # the old one is damaged
        return False


def registered(client: Client, machine: Machine) -> bool:
    """Whether toolsrv stands in all of the client's files."""
    return all(
        is_toolsrv_entry(
            _servers(_parsed(client.form, path, _read(path)), client.keys).get(NAME), named=True
        )
        for path in client.paths(machine)
    )


def servers_of(client: Client, path: Path) -> dict[str, Any]:
    """Return the entries of servers in a client's file by name; none where there is no file.

    Raises:
        UsageError: the file is damaged.
        DataError: it cannot be read.
    """
    return dict(_servers(_parsed(client.form, path, _read(path)), client.keys))


def _servers(document: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the table of a client's servers, an empty one where there is none."""
    table: Any = document
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _replaced_entry(client: Client, path: Path) -> tuple[Any, str | None]:
    """Return another program's entry that ours replaced, and the file of before ours; None without."""
    backup = _backup(path.resolve())
    if not backup.is_file():
        return None, None
    try:
        text = _read(backup)
        entry = _servers(_parsed(client.form, backup, text), client.keys).get(NAME)
    except (UsageError, DataError):
        return None, None
    return (None, None) if is_toolsrv_entry(entry, named=True) else (entry, text)


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _entry_summary(entry: Any) -> str:
    """Say in some words what an entry starts."""
    start = server_command(entry)
    told = server_url(entry) or (start.command if start else str(entry))
    return repr(told[:80])


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


_BOM = "\ufeff"
_P = ParamSpec("_P")


def _after_bom(edit: Callable[Concatenate[str, _P], str]) -> Callable[Concatenate[str, _P], str]:
    """Return an edit of a text that leaves the byte order mark before it alone."""

    def edited(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> str:
        mark = _BOM * text.startswith(_BOM)
        return mark + edit(text.removeprefix(mark), *args, **kwargs)

    return edited


_EDITORS: dict[Form, _Editor] = {
    "json": _Editor(_after_bom(jsonc.with_entry), _after_bom(jsonc.without_entry)),
    "toml": _Editor(_after_bom(tables.toml_with), _after_bom(tables.toml_without)),
    "yaml": _Editor(_after_bom(tables.yaml_with), _after_bom(tables.yaml_without)),
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
    if inner is None:  # null in JSON, an empty mapping in YAML
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
    if _without_empty_tables(got) != _without_empty_tables(wanted):
        raise DataError(
            f"{change.path}: the entry stands in a form that cannot be changed safely",
            hint=f"edit the file by hand: {'.'.join((*change.client.keys, NAME))}",
        )
    return change


def _without_empty_tables(value: Any) -> Any:
    """Return a document without tables that have become empty, at its top."""
    if not isinstance(value, dict):
        return value
    return {key: inner for key, inner in value.items() if inner not in ({}, None)}


def _parsed(form: Form, path: Path, text: str) -> dict[str, Any]:
    text = text.removeprefix(_BOM)
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
