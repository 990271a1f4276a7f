"""Files to send, named by their paths: by a person at the command line, or within one folder.

``"@photo.png"`` as the value of an argument that takes bytes stands for the file. A path that a
model or an MCP client names is read in the folder of the setting ``upload_folder`` only, and
nothing else of it is: links that lead out, pipes and devices are refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import UsageError
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.schema_view import alternatives
from toolsrv_runtime.calls.response_body import guess_media_type
from toolsrv_runtime.calls.serialization import FILE_LIMIT, FileArgument, data_url, is_binary_schema

_BINARY = getattr(os, "O_BINARY", 0)

Find = Callable[[str], Path]
"""From a path as it was written to the one that is read; raises UsageError for one that is not."""


def anywhere(text: str) -> Path:
    """Return the path that a person has typed."""
    return Path(text).expanduser()


def within(folder: Path | None) -> Find:
    """Return what finds paths in one folder, for whoever is not trusted with others.

    Raises (the function that is returned):
        UsageError: there is no such folder, or the path leads out of it.
    """

    def find(text: str) -> Path:
        if folder is None:
            raise UsageError(
                f"the file {text[:80]!r} is not read: paths are taken from a person at the command "
                "line only",
                hint="give the bytes as data:TYPE;name=NAME;base64,…; or a person names a folder "
                "with the setting upload_folder",
            )
        root = folder.expanduser().resolve()
        path = Path(os.path.realpath(root / text))
        if not path.is_relative_to(root):
            raise UsageError(
                f"the file {text[:80]!r} is not in the folder of the setting upload_folder",
                hint="name a file in that folder, by its path from there",
            )
        return path

    return find


def with_files(api: Api, arguments: Mapping[str, Any], find: Find) -> dict[str, Any]:
    """Return arguments with the bytes of files where ``@path`` stands for them.

    That is read in arguments that take bytes alone; any other one may begin with an ``@``.

    Raises:
        UsageError: a file cannot be read, is too large, or is not to be read.
    """
    keys = parameter_keys(api)
    named = {one.name: one for one in keys.values()} | keys
    return {
        name: _resolved(value, _schema(named.get(name)), find) for name, value in arguments.items()
    }


def named_paths(given: Sequence[str]) -> dict[str, list[Path]]:
    """Return the paths of arguments that are given as ``NAME=PATH``, by name.

    Raises:
        UsageError: one is no NAME=PATH.
    """
    found: dict[str, list[Path]] = {}
    for one in given:
        name, sign, path = one.partition("=")
        if not name or not sign or not path:
            raise UsageError(f"{one[:80]!r} is no NAME=PATH", hint="write --file photo=a.png")
        found.setdefault(name, []).append(anywhere(path))
    return found


def add_files(
    api: Api, arguments: dict[str, Any], files: Mapping[str, Sequence[Path]]
) -> dict[str, Any]:
    """Return arguments with those that are files; several paths of one argument are a list.

    An argument that takes no bytes gets the text of the file.

    Raises:
        UsageError: the argument is there already, or a file cannot be read.
    """
    if twice := files.keys() & arguments.keys():
        raise UsageError(
            f"the argument {min(twice)[:80]!r} is given twice", hint="leave one of them out"
        )
    keys = parameter_keys(api)
    named = {one.name: one for one in keys.values()} | keys
    found = {
        name: [_value(path, _schema(named.get(name))) for path in paths]
        for name, paths in files.items()
    }
    lists = {name for name, one in keys.items() if one.type == "ARRAY"}
    return arguments | {
        name: values if len(values) > 1 or name in lists else values[0]
        for name, values in found.items()
        if values
    }


def _value(path: Path, schema: Mapping[str, Any]) -> str:
    items = schema.get("items")
    if is_binary_schema(schema) or (isinstance(items, dict) and is_binary_schema(items)):
        return data_url(_file(path))
    try:
        return _file(path).content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data_url(_file(path))


def _schema(parameter: Parameter | None) -> Mapping[str, Any]:
    """Return the schema of an argument; of one that takes bytes without saying so, that it does."""
    if parameter is None:
        return {}
    if parameter.type == "BINARY":
        return {"format": "binary"}
    schema = parameter.json_schema or {}
    if parameter.type == "ARRAY" and "octet-stream" in parameter.media:
        return schema | {"items": {"format": "binary"}}
    return schema


def _resolved(value: Any, schema: Mapping[str, Any], find: Find) -> Any:
    if isinstance(value, str):
        parts = (schema, *alternatives(schema), *schema.get("allOf", ()))
        is_path = value[:1] == "@" and len(value) > 1 and "\n" not in value
        if is_path and any(map(is_binary_schema, parts)):
            return data_url(_file(find(value[1:])))
        return value
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        return [_resolved(one, items, find) for one in value]
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return {name: _resolved(one, inner.get(name, {}), find) for name, one in value.items()}
    return value


def _file(path: Path) -> FileArgument:
    shown = str(path)[:200]
    try:
        # A pipe would be waited for, and a link may have taken the place of what was looked at.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise UsageError(f"{shown} is no ordinary file", hint="name a file")
            content = file.read(FILE_LIMIT + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"cannot read {shown}: {why}", hint="name another file") from None
    if len(content) > FILE_LIMIT:
        raise UsageError(f"{shown} has more than {FILE_LIMIT:,} bytes", hint="send a smaller file")
    return FileArgument(content, clean(path.name, 200), guess_media_type(path.name))
