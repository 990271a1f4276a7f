"""The one error tree of toolsrv.

``ToolsrvError`` is the root of everything a user may have caused or can act on. Each has a
message (what went wrong and where) and a hint (what to do next); each room derives its own.

- ``UsageError``: the request itself is off (a wrong argument, an empty task); repeating it
  unchanged cannot help.
- ``NotFoundError``: a named thing (API id, category, catalog, run, file) does not exist.
- ``DataError``: something stored or shipped is unreadable or damaged.
- ``DamagedError``: what a file holds is damaged: no room or permission brings it back.
- ``MemoryShortError``: the program, or a model, needs more memory than there is.
- ``BusyError``: something else holds what is needed; trying again later can help.

Errors are raised once and mapped once per rim: to an exit code by the command line, to a tool
error by the MCP server.
"""

from __future__ import annotations


class ToolsrvError(Exception):
    """Something went wrong that can be told in one line, with what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ToolsrvError):
    """The request is off; repeating it unchanged cannot help."""


class NotFoundError(ToolsrvError):
    """A named thing does not exist."""


class DataError(ToolsrvError):
    """Something stored or shipped cannot be read."""


class DamagedError(DataError):
    """What a file holds is damaged."""


class MemoryShortError(DataError):
    """The program, or a model, needs more memory than there is."""


class BusyError(ToolsrvError):
    """Another process or run holds what is needed; trying again later can help."""
