"""``toolsrv run``: finished runs, their trees and the responses of their calls.

A tree is printed with one way down as a list; a fork indents its branches. What a node is stands in
words; colours only help.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import console, emit_json, listing, note, pluralize
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import one_line
from toolsrv.trees.shown import ShownNode, ShownRun
from toolsrv.trees.svg import badge

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from toolsrv.runs.records import ResponsePage
    from toolsrv.trees.shown import ShownRun


@click.group(epilog=example("toolsrv run list"))
def run() -> None:
    """Show finished runs: their trees and the responses of their calls."""


@run.command("list", epilog=example("toolsrv run list --limit 5"))
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True,
              help="Most runs to list, the newest first.")  # fmt: skip
@json_option
@pass_session
def list_(session: Session, limit: int, as_json: bool) -> None:
    """List the finished runs that are kept, the newest first."""
    from toolsrv.plain import one_line
    from toolsrv.runs.journal import open_runs

    with open_runs(session.load().settings.data_dir) as store:
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
        from toolsrv_runtime.files import open_atomic_text

        with open_atomic_text(html.expanduser()) as file:
            file.write(page(shown))
    if as_json:
        emit_json(shown.model_dump(mode="json"))
    elif html is not None:
        click.echo(f"{html}: {pluralize(len(shown.nodes), 'node')}; open it in a browser")
    else:
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
    from toolsrv.runs.journal import open_runs

    with open_runs(session.load().settings.data_dir) as store:
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
        from toolsrv_runtime.toolbench.answer_files import read_answer

        return shown_answer(read_answer(place), place.name)
    from toolsrv.runs.journal import open_runs

    with open_runs(session.load().settings.data_dir) as store:
        return shown_record(store.get(run))


TEXT_LIMIT = 160
ANSWER_LIMIT = 2_000
_WITH = {"answer": "answers:"}
STYLES = {"answer": "bold green", "give_up": "yellow", "failed": "red", "call": "cyan"}


def show_run(run: ShownRun, *, full: bool) -> None:
    """Print a run: its task, its tree, its end; long texts are cut unless ``full``."""
    from rich.text import Text
    from rich.tree import Tree

    out = console()
    tree = Tree(Text(run.task, style="bold"), guide_style="dim")
    _Branches(run, full=full).grow(tree)
    out.print(tree)
    out.print()
    end = run.answer or run.reason
    out.print(Text.assemble((run.status.replace("_", " "), "bold"), ": ", end or "no answer"))
    if run.answer and run.reason and run.status not in {"answered", "replied"}:
        out.print(Text(run.reason))
    facts = "; ".join(f"{name} {value}" for name, value in run.facts.items())
    out.print(Text(facts, style="dim"))
    if any(node.winning for node in run.nodes):
        note("* on the path of the answer; pruned: the search turned back")
    if run.status == "interrupted" and any(node.has_response and node.ok for node in run.nodes):
        note(f"to go on: toolsrv solve --continue {run.name}")
    if not full and any(_is_cut(node) for node in run.nodes):
        kept = any(node.has_response for node in run.nodes)
        whole = f"; whole responses: toolsrv run response {run.name} NODE" if kept else ""
        note(f"long texts are cut: --full shows them{whole}")


class _Branches:
    """Hangs the nodes below each other."""

    def __init__(self, run: ShownRun, *, full: bool) -> None:
        self._below = run.below()
        self._root = run.nodes[0]
        self._full = full

    def grow(self, tree: Tree) -> None:
        """Add everything below the root, without recursion."""
        stack: list[tuple[Tree, Sequence[ShownNode]]] = [(tree, self._after(self._root))]
        while stack:
            branch, nodes = stack.pop()
            forked = len(nodes) > 1
            for number, node in enumerate(nodes, 1):
                ways = f"way {number} of {len(nodes)}" if forked else ""
                hung = branch.add(self._label(node, ways))
                below = self._after(node)
                stack.append((hung if forked or len(below) > 1 else branch, below))

    def _after(self, node: ShownNode) -> Sequence[ShownNode]:
        return self._below.get(node.id, ())

    def _label(self, node: ShownNode, way: str) -> Text:
        from rich.text import Text

        style = "dim" if node.pruned else ""
        label = Text(style=style)
        label.append("* " if node.winning else "", style="bold green")
        label.append(f"{way}: " if way else "", style="italic")
        label.append(node.title, style="red" if not node.ok else STYLES.get(node.kind, ""))
        status = f" · HTTP {node.status}" * bool(node.status) + " · pruned" * node.pruned
        label.append(f"  {badge(node)}{status}", style="dim")
        for name, text in _texts(node):
            label.append(f"\n{name} ", style="dim")
            label.append(text if self._full else one_line(text, _limit(name)))
        return label


def _texts(node: ShownNode) -> list[tuple[str, str]]:
    told = [("thinks:", node.thought), (_WITH.get(node.kind, "with:"), node.arguments)]
    if node.kind == "call":
        told.append(("returned:", node.observation))
    return [(name, text) for name, text in told if text]


def _limit(name: str) -> int:
    return ANSWER_LIMIT if name == _WITH["answer"] else TEXT_LIMIT


def _is_cut(node: ShownNode) -> bool:
    return any(len(text) > _limit(name) for name, text in _texts(node))
