"""``toolsrv lab eval imports``: how whole documents import, in figures.

The work is done by ``toolsrv_lab.evaluation.imports``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.plain import one_line
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.evaluation.imports import Document, Totals

_ROWS, _REASONS = 40, 20


@click.command(epilog=example("toolsrv lab eval imports DOCUMENTS --json"))
@click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, exists=True), required=False
)
@click.option("--made", type=click.IntRange(1), help="A made document of so many operations.")
@click.option("--limit", type=click.IntRange(1), help="Only so many documents, evenly picked.")
@click.option(
    "--seconds",
    type=click.IntRange(1),
    default=600,
    show_default=True,
    help="Time for one document.",
)
@json_option
def eval_imports(
    folder: Path | None, made: int | None, limit: int | None, seconds: int, as_json: bool
) -> None:
    """Import every OpenAPI and Swagger document below DIR, each in a process of its own.

    Tells operations read, refused and lost, with reasons, seconds and memory. The stores are
    temporary; nothing is kept and nothing is called.
    """
    from toolsrv_lab.evaluation.imports import totals

    if (folder is None) == (made is None):
        raise UsageError(
            "name a folder of documents, or --made", hint="toolsrv lab eval imports DIR"
        )
    with tempfile.TemporaryDirectory() as scratch, interruptible():
        found = _evaluated(folder or _made(Path(scratch), made or 0), limit, seconds)
    whole = totals(found)
    if as_json:
        emit_json(
            {
                "totals": whole.model_dump(mode="json"),
                "documents": [one.model_dump(mode="json") for one in found],
            }
        )
        return
    _show(found, whole)


def _evaluated(folder: Path, limit: int | None, seconds: int) -> list[Document]:
    from toolsrv_lab.evaluation.imports import documents_in, evaluate

    paths = documents_in(folder, limit)
    with Bar("importing", "documents") as bar:
        return list(evaluate(paths, folder, seconds=seconds, progress=bar.show))


def _made(folder: Path, operations: int) -> Path:
    from toolsrv_lab.evaluation.large_document import large_document

    path = folder / "made.json"
    path.write_text(json.dumps(large_document(operations)), encoding="utf-8")
    return path


def _show(found: list[Document], whole: Totals) -> None:
    worst = sorted(found, key=lambda one: (-one.lost, -sum(one.refused.values()), -one.seconds))
    table(
        ("document", "version", "operations#", "read#", "refused#", "lost#", "s#", "MiB#"),
        [
            (
                one_line(one.path, 60),
                one.version,
                one.declared,
                one.read,
                one.fault or sum(one.refused.values()),
                one.lost,
                f"{one.seconds:.2f}",
                f"{one.peak:.0f}" if one.peak else "",
            )
            for one in worst[:_ROWS]
        ],
    )
    if len(worst) > _ROWS:
        note(f"note: {len(worst) - _ROWS} more documents; --json lists all")
    reasons = [("operation", reason, count) for reason, count in whole.reasons.items()]
    reasons += [("part", reason, count) for reason, count in whole.parts.items()]
    if reasons:
        table(("refused", "because", "times#"), reasons[:_REASONS])
    table(
        ("totals", "value"),
        [
            ("documents", f"{whole.documents} ({whole.failed} not read)"),
            ("MB", f"{whole.bytes / 1e6:,.0f}"),
            ("operations", f"{whole.declared:,}"),
            ("read", f"{whole.read:,}"),
            ("refused", f"{whole.refused:,}"),
            ("lost", f"{whole.lost:,}"),
            ("seconds", f"{whole.seconds:,.1f}"),
            ("seconds of the processor", f"{whole.cpu_seconds:,.1f}"),
            ("operations in one of them", f"{whole.per_second:,.0f}"),
            ("memory peak, MiB", f"{whole.peak:,.0f}" if whole.peak else "unknown"),
        ],
    )
