"""Hints as a client's model can use them: tools for commands, and the rest is the user's to do.

Everything below this boundary says what to do in the words of the command line. Pure.
"""

from __future__ import annotations

import re

_TOOLS = (
    (re.compile(r'toolsrv search(?: "…")?'), "search_apis"),
    (re.compile(r"toolsrv describe(?: ID| [^\s/]+/[^\s/]+/\S+)?"), "describe_apis"),
    (re.compile(r"toolsrv run show(?: \S+)?"), "show_run"),
    (re.compile(r"toolsrv run list"), "list_runs"),
)
_COMMAND_LINE = re.compile(r"\btoolsrv [a-z]|(?<![\w-])--[a-z]")
_ASIDE = re.compile(r"\(([^()]*)\)")
_USER = "for the user, in a terminal: "


def for_client(hint: str) -> str:
    """Return a hint without commands that have a tool; what else needs a terminal says who.

    A command that stands in parentheses is marked there, any other at the beginning. Idempotent.
    """
    for command, tool in _TOOLS:
        hint = command.sub(tool, hint)
    hint = _ASIDE.sub(lambda found: f"({_marked(found[1])})", hint)
    return hint if not _COMMAND_LINE.search(_ASIDE.sub("", hint)) else _marked(hint)


def _marked(text: str) -> str:
    """Return a text, marked as the user's where it names a command and is not marked yet."""
    named = _COMMAND_LINE.search(text) and not text.startswith(_USER)
    return f"{_USER}{text}" if named else text
