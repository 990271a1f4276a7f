"""Set or remove one entry of a TOML or YAML file; comments and all else stay as they are.

Our entry is a block of whole lines in both; these lines are found, replaced or cut. Whoever calls
checks that nothing else changed by parsing both texts (``register``). Pure functions of text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any


def toml_with(text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the TOML text with the table ``keys`` as its last one."""
    kept = toml_without(text, keys)
    if not kept.strip():
        kept = ""
    kept += "\n" * (bool(kept) and not kept.endswith("\n"))
    lines = [f"[{'.'.join(keys)}]"]
    lines += [f"{_toml_key(key)} = {_toml(value)}" for key, value in entry.items()]
    return f"{kept}{chr(10) * bool(kept.strip())}{chr(10).join(lines)}\n"


def toml_without(text: str, keys: Sequence[str]) -> str:
    """Return the TOML text without the table ``keys`` and the tables in it."""
    name = r"\s*\.\s*".join(rf"""["']?{re.escape(key)}["']?""" for key in keys)
    ours = re.compile(rf"\s*\[\s*{name}\s*[.\]]")
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = bool(ours.match(line))
            if inside and kept and not kept[-1].strip():
                kept.pop()  # the blank line that we put before it
        if not inside or line.lstrip().startswith("#"):
            kept.append(line)
    return "".join(kept)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _toml(value: Any) -> str:
    """Return a TOML literal; a table as an inline one."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml_key(key)} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


_EMPTY_TABLE = re.compile(r":[ \t]*(?:\{\s*\}|null|Null|NULL|~)(?=[ \t]*(?:#|$))")
_EMPTY_DOCUMENT = re.compile(r"^(--- *)?(?:null|Null|NULL|~|\{\s*\})[ \t]*((?:#.*)?\r?\n?)$")
"""A line that says that the whole document is empty; what else is in it stays."""


def yaml_with(text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the YAML text with ``entry`` in the top-level mapping ``keys[0]``."""
    section, name = keys
    if not text.strip():  # it may hold tabs, which YAML takes for no blanks
        text = ""
    lines = [_EMPTY_DOCUMENT.sub(r"\1\2", one) for one in yaml_without(text, keys).splitlines(True)]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    at = _section(lines, section)
    if at is None:
        at, unit = len(lines), "  "
        lines.append(f"{section}:\n")
    else:
        unit = _indent(lines[at + 1 :]) or "  "
        lines[at] = _EMPTY_TABLE.sub(":", lines[at].rstrip()) + "\n"
    block = [f"{unit}{name}:\n"]
    block += [
        f"{unit * 2}{key}: {json.dumps(value, ensure_ascii=False)}\n"
        for key, value in entry.items()
    ]
    return "".join([*lines[: at + 1], *block, *lines[at + 1 :]])


def yaml_without(text: str, keys: Sequence[str]) -> str:
    """Return the YAML text without the entry; an emptied mapping becomes ``{}``."""
    section, name = keys
    lines = text.splitlines(keepends=True)
    at = _section(lines, section)
    if at is None:
        return text
    unit = _indent(lines[at + 1 :])
    start = _line(lines, at + 1, rf"{re.escape(unit)}[\"']?{re.escape(name)}[\"']?\s*:")
    if not unit or start is None:
        return text
    end = start + 1
    while end < len(lines) and lines[end].startswith(unit + " "):
        end += 1
    kept = lines[:start] + lines[end:]
    if not any(line.startswith(unit) for line in _body(kept[at + 1 :])):
        kept[at] = f"{section}: {{}}\n"
    return "".join(kept)


def _section(lines: Sequence[str], section: str) -> int | None:
    return _line(lines, 0, rf"[\"']?{re.escape(section)}[\"']?\s*:")


def _line(lines: Sequence[str], first: int, pattern: str) -> int | None:
    matches = (index for index in range(first, len(lines)) if re.match(pattern, lines[index]))
    return next(matches, None)


def _body(lines: Sequence[str]) -> list[str]:
    """Return the lines of a mapping: up to the next line without indentation."""
    found = []
    for line in lines:
        if line.strip() and not line[0].isspace() and not line.startswith("#"):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(line)
    return found


def _indent(lines: Sequence[str]) -> str:
    body = _body(lines)
    return body[0][: len(body[0]) - len(body[0].lstrip())] if body else ""
