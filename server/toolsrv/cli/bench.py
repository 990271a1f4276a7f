"""``toolsrv bench``: the door to the laboratory's benchmarks, opened only when it is used."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click

from toolsrv.cli.options import example
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

MODULE = "toolsrv_lab.bench"
MODELS = "toolsrv.model_list"
"""Where the laboratory, which knows no list of models, finds what makes a file of a name."""


class BenchGroup(click.Group):
    """A group whose commands are those of ``toolsrv_lab.bench.bench``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the laboratory's commands, none where it is not installed."""
        try:
            return _laboratory().list_commands(ctx)
        except UsageError:
            return []

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one of the laboratory's commands."""
        return _laboratory().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a benchmark; whatever ends it, its temporary folder goes."""
        from toolsrv.cli.interrupt import signals_as_ctrl_c

        with signals_as_ctrl_c():
            return super().invoke(ctx)


@click.group(cls=BenchGroup, epilog=example("toolsrv bench --help"))
@click.pass_context
@pass_session
def bench(session: Session, context: click.Context, /) -> None:
    """Measure this installation: server, search, engine, world."""
    session.public()

    def named(text: str) -> Path:
        from toolsrv.model_list import file_of

        return file_of(text, session.load().settings.data_dir)

    context.meta[MODELS] = named


def _laboratory() -> click.Group:
    """Return the benchmarks' own group.

    Raises:
        UsageError: This installation has none.
    """
    try:
        module = importlib.import_module(MODULE)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"this installation has no benchmarks ({error.name} is missing)",
            hint="install them with: pip install '.[lab]' in toolsrv's sources",
        ) from error
    group = getattr(module, "bench", None)
    if not isinstance(group, click.Group):
        raise UsageError(
            f"{MODULE} offers no command group named 'bench'",
            hint="use a version of the laboratory that fits this toolsrv",
        )
    return group
