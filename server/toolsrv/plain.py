"""Sanitise untrusted text for display: control characters, terminal escapes, bidi marks.

Whatever comes from a catalog, an API or a model passes through here before a terminal sees it;
a task passes through here before anything works on it. Pure string functions; which characters
are hidden ones is decided in ``toolsrv_catalogs.text``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import UsageError
from toolsrv_runtime import TASK_LIMIT

_ESCAPES = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?"  # OSC, DCS, APC …: titles, hyperlinks
    "|\x1b[@-Z\\\\-_]?"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """Return the text without escape sequences, control, bidi and zero-width characters.

    Line feeds and tabs stay; bytes that were not UTF-8 (lone surrogates) become U+FFFD.
    """
    visible = _SURROGATES.sub("\ufffd", _ESCAPES.sub("", text))
    return clean(visible, len(visible))


def one_line(text: str, limit: int = 200) -> str:
    """Return ``plain`` text on one line, cut to ``limit`` characters with an ellipsis."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def compact_json(value: Any) -> str:
    """Return a value as JSON text on one line; text stays readable in any language."""
    return plain(json.dumps(value, ensure_ascii=False, default=str))


def clean_task(text: str) -> str:
    """Return the task as it is worked on: ``plain`` and trimmed.

    Raises:
        UsageError: Nothing is left, or it is longer than ``TASK_LIMIT`` characters.
    """
    task = plain(text).strip()
    if not task:
        raise UsageError(
            "the task is empty", hint="say what you want to know, in one or more sentences"
        )
    if len(task) > TASK_LIMIT:
        raise UsageError(
            f"the task has {len(task):,} characters; at most {TASK_LIMIT:,} are taken",
            hint="shorten it, or split it into several tasks",
        )
    return task
