"""``toolsrv bench``: what this installation costs and how well it solves.

Each command is a module that is imported when it is called or described; importing this package
loads click alone. Knows nothing of the server's code: where the server is measured, it is a
process like any other.
"""

from __future__ import annotations

import importlib

import click

_COMMANDS = ("server", "search", "engine", "solve", "catalog", "growth", "world")


class _Commands(click.Group):
    """A group whose commands are the modules beside this one, each with a command of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, ``None`` when there is none of that name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(f"{__name__}.{cmd_name}"), cmd_name
        )
        return command


@click.group(cls=_Commands)
def bench() -> None:
    """Measure this installation."""
