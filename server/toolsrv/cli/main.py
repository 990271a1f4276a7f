"""``toolsrv``: the root of the command line.

Importing this module imports click and nothing heavier.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

import toolsrv
from toolsrv.cli import error_handler
from toolsrv.cli.lazy import LazyGroup
from toolsrv.cli.options import example
from toolsrv.cli.session import Session
from toolsrv_registry.errors import UsageError

COMMANDS = {
    "solve": ("toolsrv.cli.solve:solve", "Work on a task until it has an answer with evidence."),
    "search": ("toolsrv.cli.apis:search", "Find the APIs that fit a text."),
    "describe": ("toolsrv.cli.apis:describe", "Show one API with its parameters."),
    "call": ("toolsrv.cli.apis:call", "Call one API."),
    "serve": ("toolsrv.cli.serve:serve", "Run the MCP server, on stdio or HTTP."),
    "world": ("toolsrv.cli.world:world", "Serve APIs to programs written for ToolBench."),
    "setup": ("toolsrv.cli.setup:setup", "Set up model, catalog, clients; solve a first task."),
    "connect": ("toolsrv.cli.connect:connect", "Register toolsrv in a desktop client."),
    "disconnect": ("toolsrv.cli.connect:disconnect", "Take toolsrv out of a desktop client."),
    "catalog": (
        "toolsrv.cli.catalog.commands:catalog",
        "Import, inspect and refresh catalogs of APIs.",
    ),
    "index": ("toolsrv.cli.catalog.index:index", "Build or inspect the search index."),
    "run": ("toolsrv.cli.run:run", "Show finished runs, their trees and responses."),
    "model": ("toolsrv.cli.model:model", "Download, choose, convert and quantise models."),
    "recordings": ("toolsrv.cli.recordings:recordings", "Manage recorded calls."),
    "keys": ("toolsrv.cli.config:keys", "Manage the keys of live calls."),
    "config": ("toolsrv.cli.config:config", "Show and change settings."),
    "doctor": ("toolsrv.cli.doctor:doctor", "Check the installation and registered clients."),
    "lab": ("toolsrv.cli.laboratory.commands:lab", "Train and evaluate models and search."),
    "bench": ("toolsrv.cli.bench:bench", "Measure this installation."),
}


class Root(LazyGroup):
    """The root group; its ``main`` is the error handler."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; in stand-alone mode end the process with its exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode, **extra)
        arguments = list(sys.argv[1:] if args is None else args)
        session = extra.setdefault("obj", Session())
        run = super().main
        with session.private():
            code = error_handler.run_guarded(
                lambda: run(arguments, prog_name, complete_var, standalone_mode=False, **extra),
                session,
                arguments,
            )
        sys.exit(code)


@click.group(
    cls=Root,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example('toolsrv solve "What is the complementary color of teal?"'),
)
@click.option(
    "--data-dir",
    metavar="PATH",
    help="Folder for everything the program writes. [env: TOOLSRV_DATA_DIR]",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error on stderr.")
@click.version_option(toolsrv.__version__, prog_name="toolsrv")
@click.pass_obj
def cli(session: Session, data_dir: str | None, debug: bool) -> None:
    """Find APIs in a catalog and solve whole tasks with a local model, offline."""
    session.debug = debug
    if data_dir is not None:
        if not data_dir.strip():  # an unset variable of a shell
            raise UsageError("--data-dir names no folder", hint="name one, or leave the option out")
        session.flags["data_dir"] = data_dir


def main() -> None:
    """Run the program."""
    cli.main(prog_name="toolsrv")
