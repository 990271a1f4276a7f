"""``toolsrv catalog export``: a catalog in ToolBench's layout, to a folder or an archive."""

from __future__ import annotations

from pathlib import Path

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import console, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.wording import counted


@click.command(epilog=example("toolsrv catalog export offline tools-of-mine.tar.gz --force"))
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an earlier export.")
@json_option
@pass_session
def export(session: Session, name: str, path: Path, force: bool, as_json: bool) -> None:
    """Write the catalog NAME to PATH, as `toolsrv catalog import` reads it.

    An archive where PATH ends in .tar.gz, .tgz, .tar or .zip, else a folder. What is served is
    written: a changed text that waits to be accepted is not.
    """
    from toolsrv_catalogs.export import export_catalog

    store = session.workbench().registry().store
    catalog = store.catalog(name)
    session.public()
    files = export_catalog(catalog, path.expanduser(), overwrite=force)
    if waiting := len(store.changed(name)):
        waits = counted(waiting, "changed text waits", "changed texts wait")
        note(f"note: {waits} to be accepted, and what is served is in it")
    if as_json:
        document = {"catalog": name, "path": str(path), "files": files, "apis": len(catalog.apis)}
        emit_json(document | {"waiting": waiting})
        return
    wrote = f"{counted(len(catalog.apis), 'API')} in {counted(files, 'file')}"
    console().print(f"wrote {wrote} to {path}")
