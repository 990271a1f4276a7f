"""Hints as a client's model can use them: tools for commands, and the rest is the user's to do.

Everything below the rim says what to do in the words of the command line. Pure.
"""

from __future__ import annotations

import re

_TOOLS = (
    (re.compile(r'toolsrv search(?: "…")?'), "search_apis"),
    (re.compile(r"toolsrv describe(?: ID)?"), "describe_apis"),
    (re.compile(r"toolsrv run show(?: \S+)?"), "show_run"),
)
_COMMAND_LINE = re.compile(r"\btoolsrv [a-z]|(?<![\w-])--[a-z]")


def for_client(hint: str) -> str:
    """Return a hint without commands that have a tool; what else needs a terminal says who."""
    for command, tool in _TOOLS:
        hint = command.sub(tool, hint)
    return f"for the user, in a terminal: {hint}" if _COMMAND_LINE.search(hint) else hint
