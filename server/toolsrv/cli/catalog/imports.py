"""``toolsrv catalog import`` and ``pull``: catalogs from files, URLs and published sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.catalog.storing import ImportSource, import_catalog
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import (
    accept_option,
    example,
    exclude_option,
    include_option,
    json_option,
    no_index_option,
    published_file_option,
    sha256_option,
    source_argument,
)
from toolsrv.cli.output import Bar, emit_json, listing, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.downloads import Download
    from toolsrv_catalogs.published import Published, What
    from toolsrv_registry.storage.entries import ImportOptions
    from toolsrv_runtime.calls.addresses import AddressResolver


@click.command(
    "pull",
    epilog=example(
        "toolsrv catalog pull toolbench",
        "toolsrv catalog pull toolbench-2023 --file data.zip",
        "toolsrv catalog pull https://example.com/tools.tar.gz --name tools",
    ),
)
@source_argument
@click.option("--list", "listed", is_flag=True, help="List the catalogs that have a short name.")
@published_file_option
@sha256_option
@click.option("--name", metavar="NAME", help="The catalog's name.  [default: after the source]")
@click.option("--category", metavar="NAME", help="Category of what names none.  [default: Other]")
@include_option
@exclude_option
@click.option("--dry-run", is_flag=True, help="Say what would be done; change no catalog.")
@accept_option
@no_index_option
@json_option
@pass_session
def pull(
    session: Session,
    source: str | None,
    listed: bool,
    file: Path | None,
    sha256: str,
    name: str | None,
    category: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    dry_run: bool,
    accept: bool,
    no_index: bool,
    as_json: bool,
) -> None:
    """Bring a published catalog here and import it.

    The file is brought from where it is published, resumed where the connection broke, and checked
    by its SHA-256 before anything in it is read. Licence and origin are kept in the catalog.
    HF_ENDPOINT names another hub, HF_TOKEN opens what its owner restricts.
    """
    if listed:
        show_published("catalog", as_json=as_json)
        return
    if not source:
        raise UsageError("nothing to pull is named", hint="see toolsrv catalog pull --list")
    from toolsrv_registry.storage.entries import ImportOptions

    options = ImportOptions(
        place=source_name(source),
        file=str(file.expanduser().resolve()) if file else "",
        sha256=sha256.lower(),
        category=category,
        include=include,
        exclude=exclude,
    )
    import_catalog(
        session,
        fetch_source(session, options),
        name=name,
        dry_run=dry_run,
        accept=accept,
        no_index=no_index,
        as_json=as_json,
    )


def source_name(source: str) -> str:
    """Return a source as it is kept: a path of this disk whole, else what was named."""
    from toolsrv_catalogs.published import is_published
    from toolsrv_runtime.hub.web import is_web_address

    path = Path(source).expanduser()
    if is_web_address(source) or is_published(source) or not path.is_file():
        return source
    return str(path.resolve())


def fetch_source(session: Session, options: ImportOptions) -> ImportSource:
    """Bring what the options name and return what is imported of it. Raises as ``fetch_published`` does."""
    from toolsrv_runtime.hub.web import is_web_address

    known, brought = fetch_published(
        session,
        options.place,
        "catalog",
        file=Path(options.file) if options.file else None,
        sha256=options.sha256,
    )
    return ImportSource(
        path=brought.path,
        source=origin_line(brought),
        origin=brought.origin,
        options=options.model_copy(update={"within": known.within if known else ""}),
        name=known.name if known else "",
        addresses=_addresses(session) if is_web_address(options.place) else None,
        web_place=brought.place,
    )


def _addresses(session: Session) -> AddressResolver:
    """Return the addresses that files may be brought from: public ones, and the user's own."""
    from toolsrv_runtime.calls.addresses import AddressResolver, parse_own_hosts

    return AddressResolver(own=parse_own_hosts(session.load().settings.own_hosts))


def fetch_published(
    session: Session, source: str, what: What, *, file: Path | None, sha256: str
) -> tuple[Published | None, Download]:
    """Bring what ``source`` names and say where it is from.

    Raises:
        ToolsrvError: it is not there, cannot be brought, or is not the file that was expected.
    """
    from toolsrv.downloads import check_local, fetch_published, fetch_web
    from toolsrv_catalogs.published import is_published, named
    from toolsrv_runtime.hub.web import is_web_address

    settings = session.load().settings
    local = Path(source).expanduser()
    web = is_web_address(source)
    known = None if web or (local.is_file() and not is_published(source)) else named(source, what)
    if file is not None and known is None:
        raise UsageError(
            "--file is for a source that has a short name", hint="name the file alone, or a name"
        )
    if known is not None and sha256:
        known = known.model_copy(update={"sha256": sha256.lower()})
    with Bar(f"pulling {source}", "bytes") as bar, interruptible():
        if web:
            brought = fetch_web(
                source, settings.data_dir, _addresses(session), sha256=sha256, progress=bar.show
            )
        elif known is None or file is not None:
            brought = check_local((file or local).expanduser(), sha256=sha256, source=known)
        else:
            brought = fetch_published(known, settings.data_dir, bar.show)
    note_origin(brought)
    return known, brought


def note_origin(brought: Download) -> None:
    """Say where a file came from, under which licence, and which digest it has."""
    origin = brought.origin
    note(f"{origin.title}")
    note(f"from {origin_line(brought)}, licence: {origin.licence or 'none stated'}")
    note(f"{origin.size_bytes:,} bytes, SHA-256 {origin.sha256}: {brought.path}")


def origin_line(brought: Download) -> str:
    """Return where a file came from in one line: an address, a revision, a name."""
    origin = brought.origin
    if not origin.revision:
        return origin.address
    return f"{origin.address}@{origin.revision}:{origin.file}"


def show_published(what: What, *, as_json: bool) -> None:
    """List the sources that have a short name, with what is known of their files."""
    from toolsrv_catalogs.published import published

    found = [one for one in published() if one.what == what]
    if as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    listing(
        ("name", "from", "revision", "bytes#", "SHA-256", "licence", "what"),
        [
            (
                one.name,
                f"{one.repo}:{one.file}" if one.repo else f"--file, from {one.page}",
                one.revision[:12] if one.repo else "",
                "" if one.size_bytes is None else f"{one.size_bytes:,}",
                one.sha256[:12] or "told when it is brought",
                one.licence or "told when it is brought",
                one.title,
            )
            for one in found
        ],
    )


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

    PATH, or a URL that is brought first, is ToolBench's toolenv (the folder, or its .tar.gz, .tar
    or .zip, which is not unpacked), tool files, or OpenAPI 3 and Swagger 2.0 documents in JSON or
    YAML. Importing again takes what was added and removed; a text that changed is shown and waits
    until it is accepted, with --accept or `toolsrv catalog accept`. What cannot be read is refused,
    with a reason, and the rest taken; what was read of a file before stays while the file is
    refused. A catalog of another source is replaced only where --name names it.

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
        from toolsrv.cli.catalog.mcp import ServerImport, import_servers

        if server is not None or variables:
            raise UsageError("--server is for OpenAPI documents", hint="name the URL: mcp:URL")
        if include or exclude:
            raise UsageError(
                "--include and --exclude are for documents",
                hint="import the server whole; its tools are offered by what a task needs",
            )
        wanted = ServerImport(
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
    from toolsrv_registry.storage.entries import ImportOptions

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
    place = fetch_source(session, options) if web else ImportSource(path, options.place, options)
    import_catalog(
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
