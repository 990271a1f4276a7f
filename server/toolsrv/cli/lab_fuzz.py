"""``toolsrv lab fuzz``: the readers of text from outside, tried with very much of it.

The work is done by ``toolsrv_lab.fuzzing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import rim
from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.fuzzing.run import Batch
    from toolsrv_lab.fuzzing.target import Target


@click.command(epilog=example("toolsrv lab fuzz --target addresses --count 500 --out fuzz"))
@click.option("--target", "names", multiple=True, metavar="NAME",
              help="Only this one; may be given several times. [default: all]")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=10_000, show_default=True,
              help="Inputs of each target, in whole batches of 500.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the inputs.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("fuzz"), show_default=True,
              help="Folder for what was tried and what failed.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="Show the targets and end.")
@click.option("--replay", type=click.Path(path_type=Path), metavar="FILE",
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
    from toolsrv.cli.lab_fuzz_world import TARGETS as WORLD
    from toolsrv_lab.fuzzing.targets import TARGETS

    return (*TARGETS, *WORLD)


def _chosen(names: Sequence[str], targets: Sequence[Target]) -> list[Target]:
    known = {one.name: one for one in targets}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no target {name!r}", hint=f"one of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] or list(targets)


def _again(path: Path, targets: Sequence[Target], *, as_json: bool) -> int:
    from toolsrv_lab.fuzzing.reproducer import read
    from toolsrv_lab.fuzzing.run import replay

    kept = read(path)
    error = replay(kept, targets)
    if as_json:
        emit_json({"target": kept.target, "seed": kept.seed, "error": error})
    else:
        click.echo(error or f"{kept.target}: it passes")
    return rim.FAULT if error else rim.DONE


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
    return rim.FAULT if failed else rim.DONE


def _figures(name: str, batches: Sequence[Batch], seed: int) -> dict[str, Any]:
    own = [one for one in batches if one.target == name]
    return {
        "target": name,
        "inputs": sum(one.cases for one in own),
        "seed": seed,
        "seconds": round(sum(one.seconds for one in own), 1),
        "failures": sum(bool(one.failure) for one in own),
    }
