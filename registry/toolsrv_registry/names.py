"""Standardised names, exactly as ToolBench makes them (spec: formats 1.3 to 1.5).

Pure string functions; a name is never split again once it is made, it is looked up.
"""

from __future__ import annotations

import re

_OUTSIDE = re.compile(r"[^\u4e00-\u9fa5a-zA-Z0-9_^]")
_RUNS = re.compile(r"_+")
_RESERVED = frozenset({"from", "class", "return", "false", "true", "id", "and"})
FUNCTION_NAME_LIMIT = 64


def standardize(name: str) -> str:
    """Return ToolBench's standard form of a tool, API or parameter name.

    Characters outside CJK U+4E00-U+9FA5, ASCII letters, digits, ``_`` and ``^`` become ``_``
    (the caret survives in the reference, so it does here); runs collapse; lower case; outer
    underscores go; a leading digit gets the prefix ``get_``. Idempotent; may return ``""``.
    """
    text = _RUNS.sub("_", _OUTSIDE.sub("_", name)).lower().strip("_")
    return f"get_{text}" if text[:1].isdigit() else text


def api_name(name: str) -> str:
    """Return the standard form of an API or parameter name: reserved words get ``is_``."""
    text = standardize(name)
    return f"is_{text}" if text in _RESERVED else text


def standardize_category(name: str) -> str:
    """Return the directory form of a category: case, ``&``, ``-`` and ``%`` are kept."""
    return name.replace(" ", "_").replace(",", "_").replace("/", "_").replace("__", "_")


def function_name(api: str, tool: str) -> str:
    """Return ``{api}_for_{tool}``, cut to its last 64 characters as ToolBench does.

    Both arguments may be raw or standardised. The result need not be unique: a function list
    resolves collisions (``functions.FunctionList``).
    """
    return f"{api_name(api)}_for_{standardize(tool)}"[-FUNCTION_NAME_LIMIT:]
