"""``toolsrv catalog set|unset``: headers and query parameters of all live calls of a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import console, emit_json
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.fixed_values import FixedFile
    from toolsrv_runtime.calls.fixed import Kind

_KIND = click.Choice(["header", "query"])


@click.command("set", epilog=example("toolsrv catalog set notion header Notion-Version=2022-06-28"))
@click.argument("name")
@click.argument("kind", type=_KIND)
@click.argument("value", metavar="NAME=VALUE")
@json_option
@pass_session
def set_(session: Session, name: str, kind: Kind, value: str, as_json: bool) -> None:
    """Send a header or a query parameter with each live call of the catalog NAME.

    It stays when the catalog is imported again. An API that has this parameter gets the value, and
    no argument replaces it. Keys are no such values: toolsrv keys set.
    """
    from toolsrv.cli.catalog_change import refuse_shipped

    refuse_shipped(name, "changed", "its APIs are not called over the network")
    key, equals, text = value.partition("=")
    if not equals:
        raise UsageError(
            f"{value[:80]!r} has no =", hint="write NAME=VALUE: Notion-Version=2022-06-28"
        )
    kept = _file(session, name)
    kept.set(name, kind, key.strip(), text.strip())
    _tell(kept, name, as_json)


@click.command(epilog=example("toolsrv catalog unset notion header Notion-Version"))
@click.argument("name")
@click.argument("kind", type=_KIND)
@click.argument("key", metavar="NAME")
@json_option
@pass_session
def unset(session: Session, name: str, kind: Kind, key: str, as_json: bool) -> None:
    """No longer send a header or a query parameter with the calls of the catalog NAME."""
    kept = _file(session, name)
    kept.unset(name, kind, key)
    _tell(kept, name, as_json)


def _file(session: Session, name: str) -> FixedFile:
    """Return the file, once there is such a catalog and its calls have headers."""
    from toolsrv.fixed_values import FixedFile
    from toolsrv.mcp_servers import ServerFile

    bench = session.workbench()
    bench.registry().store.changed(name)  # raises NotFoundError, with the names there are
    folder = bench.settings.data_dir
    if ServerFile(folder).find(name) is not None:
        raise UsageError(
            f"{name} is an MCP server, whose calls are not HTTP requests of their own",
            hint=f"a header of its connection: toolsrv keys set mcp:{name}/HEADER",
        )
    return FixedFile(folder)


def _tell(kept: FixedFile, name: str, as_json: bool) -> None:
    from toolsrv.fixed_values import CatalogValues

    values = kept.all().get(name, CatalogValues())
    if as_json:
        emit_json({"catalog": name, "fixed": values.model_dump()})
        return
    lines = values.lines()
    console().print(
        f"sent with each live call of {name}: {'; '.join(lines) or 'nothing'}", soft_wrap=True
    )
