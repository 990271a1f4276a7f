"""``toolsrv lab fuzz`` and ``lab eval imports``: readers of outside text under load.

``fuzz`` searches for inputs that break what readers promise. ``imports`` measures how whole
documents import. The work is done by ``toolsrv_lab.fuzzing`` and
``toolsrv_lab.evaluation.imports``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import error_handler
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import GivenPath, example, json_option
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.plain import one_line
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.evaluation.imports import Document, Totals
    from toolsrv_lab.fuzzing.run import Batch
    from toolsrv_lab.fuzzing.strategies import Target


@click.command(epilog=example("toolsrv lab fuzz --target addresses --count 500 --out fuzz"))
@click.option("--target", "names", multiple=True, metavar="NAME",
              help="Only this one; may be given several times. [default: all]")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=10_000, show_default=True,
              help="Inputs of each target, in whole batches of 500.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the inputs.")
@click.option("--out", type=GivenPath(), default=Path("fuzz"), show_default=True,
              help="Folder for what was tried and what failed.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="Show the targets and end.")
@click.option("--replay", type=GivenPath(), metavar="FILE",
              help="Try one failed input again and end.")  # fmt: skip
@json_option
@click.pass_context
def fuzz(
    context: click.Context,
    names: tuple[str, ...],
    count: int,
    seed: int,
    out: Path,
    listed: bool,
    replay: Path | None,
    as_json: bool,
) -> None:
    """Look for inputs that break what calls, importers and readers promise.

    Run it again after a stop and it goes on; another seed makes other inputs. An input that fails
    is made as small as it can be and kept as a file, and the exit code is 1.
    """
    from toolsrv_lab.extras import load

    load("hypothesis").configuration.set_hypothesis_home_dir(out / ".hypothesis")
    targets = _targets()
    if listed:
        table(("target", "what is tried"), [(one.name, one.about) for one in targets])
    elif replay is not None:
        context.exit(_again(replay, targets, as_json=as_json))
    else:
        chosen = _chosen(names, targets)
        context.exit(_run(chosen, out, {"count": count, "seed": seed}, as_json=as_json))


def _targets() -> tuple[Target, ...]:
    from toolsrv.cli.laboratory.fuzz_api_server import TARGETS as WORLD
    from toolsrv_lab.fuzzing.targets import TARGETS

    return (*TARGETS, *WORLD)


def _chosen(names: Sequence[str], targets: Sequence[Target]) -> list[Target]:
    known = {one.name: one for one in targets}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no target {name!r}", hint=f"one of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] or list(targets)


def _again(path: Path, targets: Sequence[Target], *, as_json: bool) -> int:
    from toolsrv_lab.fuzzing.run import read_reproducer, replay

    kept = read_reproducer(path)
    error = replay(kept, targets)
    if as_json:
        emit_json({"target": kept.target, "seed": kept.seed, "error": error})
    else:
        click.echo(error or f"{kept.target}: it passes")
    return error_handler.FAULT if error else error_handler.DONE


def _run(targets: Sequence[Target], out: Path, given: dict[str, int], *, as_json: bool) -> int:
    from toolsrv_lab.fuzzing.run import fuzz as run

    with Bar("fuzzing", "inputs") as bar, interruptible():
        batches = run(targets, out, progress=bar.show, **given)
    rows = [_figures(target.name, batches, given["seed"]) for target in targets]
    failed = [str(out / one.failure) for one in batches if one.failure]
    if as_json:
        emit_json({**given, "targets": rows, "failures": failed})
    else:
        keys = ("target", "inputs", "seed", "seconds", "failures")
        table(("target", "inputs#", "seed#", "seconds#", "failures#"),
              [[row[key] for key in keys] for row in rows])  # fmt: skip
        note(f"{sum(row['inputs'] for row in rows):,} inputs, {len(failed)} failures")
        for path in failed:
            note(f"next: toolsrv lab fuzz --replay {path}")
    return error_handler.FAULT if failed else error_handler.DONE


def _figures(name: str, batches: Sequence[Batch], seed: int) -> dict[str, Any]:
    own = [one for one in batches if one.target == name]
    return {
        "target": name,
        "inputs": sum(one.cases for one in own),
        "seed": seed,
        "seconds": round(sum(one.seconds for one in own), 1),
        "failures": sum(bool(one.failure) for one in own),
    }


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
    from toolsrv_lab.evaluation.imports import large_document

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
