"""``toolsrv run``: finished runs, their trees and the responses of their calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.listing import listing
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import console, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.wording import counted

if TYPE_CHECKING:
    from toolsrv.response_page import ResponsePage
    from toolsrv.trees.shown import ShownRun


@click.group(epilog=example("toolsrv run list"))
def run() -> None:
    """Look at finished runs: their trees and the responses of their calls."""


@run.command("list", epilog=example("toolsrv run list --limit 5"))
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True,
              help="Most runs to list, the newest first.")  # fmt: skip
@json_option
@pass_session
def list_(session: Session, limit: int, as_json: bool) -> None:
    """List the finished runs that are kept, the newest first."""
    from toolsrv.plain import one_line
    from toolsrv.run_store import RunStore

    with RunStore.open_to_read(session.load().settings.data_dir) as store:
        rows = store.recent(limit)
    if as_json:
        emit_json([row.model_dump(mode="json") for row in rows])
        return
    if not rows:
        note("no run is kept yet; `toolsrv solve TASK` makes one")
        return
    listing(
        ("run", "ended", "status", "calls#", "seconds#", "task"),
        [
            (one.id, one.ended[:19].replace("T", " "), one.status, one.calls,
             f"{one.seconds:.1f}", one_line(one.task, 80))
            for one in rows
        ],
    )  # fmt: skip


@run.command(
    short_help="Show a run, or an answer file, as a tree.",
    epilog=example("toolsrv run show last", "toolsrv run show last --html run.html"),
)
@click.argument("run", metavar="RUN_ID|FILE")
@click.option("--path", "only_path", is_flag=True, help="Only the path of the answer.")
@click.option("--full", is_flag=True, help="Texts whole, not their beginnings.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE",
              help="Write it as one HTML page that needs nothing else.")  # fmt: skip
@json_option
@pass_session
def show(
    session: Session, run: str, only_path: bool, full: bool, html: Path | None, as_json: bool
) -> None:
    """Show a run as a tree: a kept one by its id (its beginning, or "last"), or an answer FILE.

    FILE is an answer file of ToolBench, StableToolBench or `toolsrv solve --save-answer`.
    """
    shown = _shown(session, run)
    if only_path:
        shown = shown.only_path()
    if html is not None:
        from toolsrv.trees.page import page
        from toolsrv_runtime.atomic import fresh_text

        with fresh_text(html.expanduser()) as file:
            file.write(page(shown))
    if as_json:
        emit_json(shown.model_dump(mode="json"))
    elif html is not None:
        click.echo(f"{html}: {counted(len(shown.nodes), 'node')}; open it in a browser")
    else:
        from toolsrv.cli.run_view import show_run

        show_run(shown, full=full)


@run.command(
    short_help="Print the whole response of a call.",
    epilog=example("toolsrv run response last 3 --limit 500"),
)
@click.argument("run_id")
@click.argument("node", type=int)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Characters to pass over.")
@click.option("--limit", type=click.IntRange(min=1), help="Most characters. [default: all]")
@json_option
@pass_session
def response(
    session: Session, run_id: str, node: int, offset: int, limit: int | None, as_json: bool
) -> None:
    """Print the whole response of the call that NODE of a kept run made; on a terminal by pages."""
    from toolsrv.run_store import RunStore

    with RunStore.open_to_read(session.load().settings.data_dir) as store:
        page = store.response(run_id, node, offset=offset, limit=limit)
    if as_json:
        emit_json(page.model_dump(mode="json"))
        return
    _print(page, paged=limit is None)
    if not page.kept_whole and page.next_offset is None:
        note(f"note: the response had {page.total_characters:,} characters; the rest is not kept")
    if page.next_offset is not None:
        note(f"more: --offset {page.next_offset} (of {page.total_characters:,} characters)")


def _print(page: ResponsePage, *, paged: bool) -> None:
    from toolsrv.plain import plain

    text = plain(page.text)
    if page.offset and page.offset >= page.total_characters:
        note(f"the response of {page.api_id} has {page.total_characters:,} characters in all")
    elif not text:
        note(f"the response of {page.api_id} is empty (status {page.status})")
    elif paged and console().is_terminal:
        click.echo_via_pager(text)
    else:
        click.echo(text)


def _shown(session: Session, run: str) -> ShownRun:
    from toolsrv.trees.shown import shown_answer, shown_record

    place = Path(run).expanduser()
    if place.suffix == ".json" or len(place.parts) > 1 or place.is_file():
        from toolsrv_runtime.answers.read import read_answer

        return shown_answer(read_answer(place), place.name)
    from toolsrv.run_store import RunStore

    with RunStore.open_to_read(session.load().settings.data_dir) as store:
        return shown_record(store.get(run))
