"""``toolsrv lab conversations``: solved tasks as data, for ``lab convert --format chat``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

SOURCES = ("services-a", "services-b", "corners", "talk", "needs")


@click.command(
    epilog=example(
        "toolsrv lab conversations services-a --count 100 --out a.jsonl",
        "toolsrv lab conversations needs --toolenv toolenv.tar.gz --out needs.jsonl",
    )
)
@click.argument("source", type=click.Choice(SOURCES))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True,
              help="The file, JSON lines.")  # fmt: skip
@click.option("--count", type=click.IntRange(1, 10_000_000), default=9_000, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--toolenv", type=click.Path(path_type=Path), metavar="FILE",
              help="With needs: ToolBench's archive of tool files and schemas.")  # fmt: skip
@json_option
def conversations(
    source: str, out: Path, count: int, seed: int, toolenv: Path | None, as_json: bool
) -> None:
    """Write solved tasks with their functions, calls, responses and answers, one a line.

    services-a and services-b are hand-written services with invented responses, corners what goes
    wrong in use, talk replies without a call, needs tasks over ToolBench's tools.
    """
    if (toolenv is not None) != (source == "needs"):
        raise UsageError(
            "needs are written over ToolBench's tools, the others without",
            hint="name their archive: --toolenv toolenv.tar.gz"
            if source == "needs"
            else "leave --toolenv out",
        )
    if toolenv is not None and not toolenv.expanduser().is_file():
        raise NotFoundError(
            f"there is no archive {str(toolenv)!r}", hint="bring it: toolsrv catalog pull toolbench"
        )
    out = out.expanduser()
    made = itertools.islice(_made(source, seed, count, toolenv and toolenv.expanduser()), count)
    with Bar("writing", "conversations") as bar, interruptible():
        written = _write(made, out, count, bar)
    if as_json:
        emit_json({"file": str(out), "conversations": written, "source": source, "seed": seed})
        return
    click.echo(f"{written} conversations in {out}")
    note(f"next: toolsrv lab convert {out} --format chat --base BASE.gguf --out rows.xz")


def _made(source: str, seed: int, count: int, toolenv: Path | None) -> Iterator[dict[str, Any]]:
    match source:
        case "services-a":
            from toolsrv_lab.conversations.services_a.generator import episodes as a

            yield from map(asdict, a(seed, count))
        case "services-b":
            from toolsrv_lab.conversations.services_b.generator import episodes as b

            yield from map(asdict, b(seed, count))
        case "corners":
            from toolsrv_lab.conversations.corners.generator import episodes as c

            yield from map(asdict, c(seed, count))
        case "talk":
            from toolsrv_lab.conversations.corners.talk import talk

            yield from talk(seed, count)
        case _:
            from toolsrv_lab.conversations.needs_episodes.generator import episodes as needs

            yield from map(asdict, needs(seed, count, toolenv or Path()))


def _write(made: Iterable[dict[str, Any]], out: Path, count: int, bar: Bar) -> int:
    written = 0
    try:
        with out.open("w", encoding="utf-8") as file:
            for one in made:
                file.write(json.dumps(one, ensure_ascii=False) + "\n")
                written += 1
                bar.show(written, count)
    except OSError as error:
        raise DataError(
            f"cannot write {out}: {error.strerror}", hint="name another file with --out"
        ) from None
    return written
