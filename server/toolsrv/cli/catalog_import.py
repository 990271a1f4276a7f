"""``toolsrv catalog import``: what is named, brought here where it is a URL, and stored."""

from __future__ import annotations

from pathlib import Path

import click

from toolsrv.cli.catalog_pull import place_of
from toolsrv.cli.options import (
    accept_option,
    example,
    exclude_option,
    include_option,
    json_option,
    no_index_option,
)
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.storing import Place, take
from toolsrv_registry.errors import UsageError


@click.command(
    "import",
    epilog=example(
        "toolsrv catalog import toolenv.tar.gz --name toolbench --dry-run",
        "toolsrv catalog import petstore.yaml --category Commerce --server https://pets.example",
        "toolsrv catalog import github.json --include tag:repos --exclude 'path:*/hooks*'",
        'toolsrv catalog import "mcp:uvx mcp-server-time"',
        "toolsrv catalog import --from claude-desktop",
    ),
)
@click.argument("source", metavar="PATH", type=click.Path(), required=False, default="")
@click.option("--name", metavar="NAME", help="The catalog's name.  [default: after PATH]")
@click.option("--from", "client", metavar="CLIENT", help="All MCP servers of an MCP client.")
@click.option("--env", metavar="NAME", multiple=True, help="Variable that an MCP server needs.")
@click.option("--header", metavar="NAME", multiple=True, help="Header that an MCP server needs.")
@click.option("--category", metavar="NAME", help="Category of what names none.  [default: Other]")
@click.option("--server", metavar="URL", help="Where OpenAPI documents are called.")
@click.option(
    "--server-var",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable of OpenAPI servers.",
)
@include_option
@exclude_option
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@accept_option
@no_index_option
@json_option
@pass_session
def import_(
    session: Session,
    source: str,
    name: str | None,
    client: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    category: str | None,
    server: str | None,
    variables: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    dry_run: bool,
    accept: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """Take the APIs at PATH into a catalog, and index them for search.

    PATH, or a URL that is brought first, is ToolBench's toolenv (the folder, or its .tar.gz, .tar or
    .zip, which is not unpacked), tool files, or OpenAPI 3 and Swagger 2.0 documents in JSON or
    YAML. Importing again takes what was added and removed; a text that changed is shown and waits until it is accepted, with --accept
    or `toolsrv catalog accept`. What cannot be read is refused, with a reason, and the rest taken;
    what was read of a file before stays while the file is refused.
    A catalog of another source is replaced only where --name names it.

    --include and --exclude take a part of a document, by tag, path pattern and method; rules of
    one kind add up, those of two kinds hold together. How a catalog was imported is kept for
    `toolsrv catalog refresh`.

    mcp:NAME, "mcp:COMMAND LINE" and mcp:URL take the tools of another MCP server instead; NAME is
    one that was imported before, or stands in an MCP client's file. The server is started or
    connected to, now and for calls. What --env and --header name is asked for, or kept before with
    `toolsrv keys set mcp:SERVER/NAME`. A tool that changed is neither offered nor called until it
    is accepted.
    """
    if client is not None or source.startswith("mcp:"):
        from toolsrv.cli.catalog_mcp import Wanted, import_servers

        if server is not None or variables:
            raise UsageError("--server is for OpenAPI documents", hint="name the URL: mcp:URL")
        if include or exclude:
            raise UsageError(
                "--include and --exclude are for documents",
                hint="import the server whole; its tools are offered by what a task needs",
            )
        wanted = Wanted(
            source=source,
            client=client,
            name=name,
            env=env,
            headers=header,
            category=category,
            dry_run=dry_run,
            accept=accept,
            index=not no_index,
        )
        import_servers(session, wanted, as_json=as_json)
        return
    if env or header:
        raise UsageError("--env and --header are for MCP servers", hint="write mcp:COMMAND")
    if not source.strip():  # Path("") is the present folder
        raise UsageError("PATH names no source", hint="name a folder, archive or file to import")
    from toolsrv_registry.entries import ImportOptions

    web = source.lower().startswith(("http://", "https://"))
    path = Path(source).expanduser()
    options = ImportOptions(
        place=source if web else str(path.resolve()),
        category=category,
        server=server,
        variables=_variables(variables),
        include=include,
        exclude=exclude,
    )
    place = place_of(session, options) if web else Place(path, options.place, options)
    take(
        session,
        place,
        name=name,
        dry_run=dry_run,
        accept=accept,
        no_index=no_index,
        as_json=as_json,
    )


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of servers. Raises UsageError for one without a value."""
    for one in given:
        if not one.partition("=")[2]:
            raise UsageError(
                f"{one!r} gives no value to a variable", hint="write it as tenant=acme"
            )
    return {name: value for name, _, value in (one.partition("=") for one in given)}
