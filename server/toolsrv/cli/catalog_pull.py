"""``toolsrv catalog pull``: a published catalog brought, checked and imported by one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.listing import listing
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
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.storing import Place, take
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.downloads import Brought
    from toolsrv_catalogs.published import Published, What
    from toolsrv_registry.entries import ImportOptions


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
    from toolsrv_registry.entries import ImportOptions

    options = ImportOptions(
        place=place_name(source),
        file=str(file.expanduser().resolve()) if file else "",
        sha256=sha256.lower(),
        category=category,
        include=include,
        exclude=exclude,
    )
    take(
        session,
        place_of(session, options),
        name=name,
        dry_run=dry_run,
        accept=accept,
        no_index=no_index,
        as_json=as_json,
    )


def place_name(source: str) -> str:
    """Return a source as it is kept: a path of this disk whole, else what was named."""
    from toolsrv_catalogs.published import is_published
    from toolsrv_runtime.hub.web import is_web_address

    path = Path(source).expanduser()
    if is_web_address(source) or is_published(source) or not path.is_file():
        return source
    return str(path.resolve())


def place_of(session: Session, options: ImportOptions) -> Place:
    """Bring what the options name and return what is imported of it. Raises as ``bring`` does."""
    known, brought = bring(
        session,
        options.place,
        "catalog",
        file=Path(options.file) if options.file else None,
        sha256=options.sha256,
    )
    return Place(
        path=brought.path,
        source=origin_line(brought),
        origin=brought.origin,
        options=options.model_copy(update={"within": known.within if known else ""}),
        name=known.name if known else "",
    )


def bring(
    session: Session, source: str, what: What, *, file: Path | None, sha256: str
) -> tuple[Published | None, Brought]:
    """Bring what ``source`` names and say where it is from.

    Raises:
        ToolsrvError: it is not there, cannot be brought, or is not the file that was expected.
    """
    from toolsrv.downloads import bring_local, bring_published, bring_web
    from toolsrv_catalogs.published import is_published, named
    from toolsrv_runtime.calls.addresses import Addresses, parse_own
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
            addresses = Addresses(own=parse_own(settings.own_hosts))
            brought = bring_web(
                source, settings.data_dir, addresses, sha256=sha256, progress=bar.show
            )
        elif known is None or file is not None:
            brought = bring_local((file or local).expanduser(), sha256=sha256, source=known)
        else:
            brought = bring_published(known, settings.data_dir, bar.show)
    tell_origin(brought)
    return known, brought


def tell_origin(brought: Brought) -> None:
    """Say where a file came from, under which licence, and which digest it has."""
    origin = brought.origin
    note(f"{origin.title}")
    note(f"from {origin_line(brought)}, licence: {origin.licence or 'none stated'}")
    note(f"{origin.size_bytes:,} bytes, SHA-256 {origin.sha256}: {brought.path}")


def origin_line(brought: Brought) -> str:
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
