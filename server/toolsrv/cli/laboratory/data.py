"""``toolsrv lab convert`` and ``conversations``: training data of solved tasks.

The work is done by ``toolsrv_lab.training_data`` and ``toolsrv_lab.conversations``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import GivenPath, example, json_option
from toolsrv.cli.output import Bar, emit_json, note
from toolsrv.plain import one_line
from toolsrv_registry.errors import DataError, NotFoundError, UsageError

if TYPE_CHECKING:
    from toolsrv_lab.training_data.convert import LeftOut, Report

LINES = 20
"""Files left out that are shown; all are in the JSON."""


@click.command(
    epilog=example(
        "toolsrv lab convert answers --out training.json",
        "toolsrv lab convert answers --format compact --vocabulary rows/vocabulary.json --out more",
        "toolsrv lab convert answers --format chat --base SmolLM2.gguf --out rows.xz",
    )
)
@click.argument("answers", type=GivenPath())
@click.option("--out", type=GivenPath(), required=True,
              help="The training file, as ToolBench's toolllama_G123_dfs_train.json; with"
              " --format compact a folder of rows.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["toolbench", "compact", "chat"]),
              default="toolbench", show_default=True,
              help="From answers of lab annotate, compact: rows for a model from nothing; chat: "
              "conversations for a chat model, as token ids.")  # fmt: skip
@click.option("--vocabulary", type=GivenPath(), metavar="FILE",
              help="With compact: a vocabulary of lab episodes; without, one is made.")  # fmt: skip
@click.option("--base", type=GivenPath(), metavar="FILE",
              help="With chat: the GGUF file that is to be trained, SmolLM2 for now.")  # fmt: skip
@click.option("--judged", type=GivenPath(), metavar="FILE", multiple=True,
              help="With chat: JSON lines whose tasks are kept out.")  # fmt: skip
@click.option("--longest", type=click.IntRange(64), metavar="N",
              help="With chat: leave out longer rows. [default: 1600 tokens]")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 256), help="With chat. [default: 1]")
@click.option("--method", default="", metavar="TEXT",
              help="Only files whose name holds this, such as DFS_woFilter_w2.")  # fmt: skip
@click.option("--without-give-ups", is_flag=True,
              help="Leave out searches that gave up; ToolBench takes them too.")  # fmt: skip
@click.option("--keep-thoughts", is_flag=True,
              help="Keep the thoughts of calls; ToolBench's program loses them.")  # fmt: skip
@json_option
def convert(
    answers: Path,
    out: Path,
    form: str,
    vocabulary: Path | None,
    base: Path | None,
    judged: tuple[Path, ...],
    longest: int | None,
    workers: int | None,
    method: str,
    without_give_ups: bool,
    keep_thoughts: bool,
    as_json: bool,
) -> None:
    """Turn answer files into the text that ToolLLaMA is trained on.

    ANSWERS is a folder, searched with all below it, or one file: made by `toolsrv solve
    --save-answer`, `toolsrv lab annotate` or ToolBench. What is no answer file is left out and
    named. With --format chat it may be a .jsonl file of episodes (toolsrv_lab.conversations) too.
    """
    from toolsrv_lab.training_data.convert import convert as work

    source, out = answers.expanduser(), out.expanduser()
    if form != "toolbench" and (method or without_give_ups or keep_thoughts):
        raise UsageError(
            "--method, --without-give-ups and --keep-thoughts are of ToolBench's format",
            hint=f"leave them out with --format {form}",
        )
    if form == "chat":
        if vocabulary is not None:
            raise UsageError("--vocabulary is of the compact format", hint="leave it out")
        if base is None:
            raise UsageError("--format chat needs a base", hint="name its GGUF file with --base")
        _chat(source, out, base.expanduser(), judged, longest, workers or 1, as_json=as_json)
        return
    if base is not None or judged or longest is not None or workers is not None:
        raise UsageError(
            "--base, --judged, --longest and --workers are of the chat format",
            hint="add --format chat, or leave them out",
        )
    if form == "compact":
        _compact(source, out, vocabulary.expanduser() if vocabulary else None, as_json=as_json)
        return
    if vocabulary is not None:
        raise UsageError("--vocabulary is of the compact format", hint="add --format compact")
    with Bar("converting", "files") as bar:
        report = work(
            source,
            out,
            method=method,
            give_ups=not without_give_ups,
            thoughts=keep_thoughts,
            progress=bar.show,
        )
    if as_json:
        emit_json({"file": str(out)} | report.model_dump(mode="json"))
        return
    _show(report, out)


def _compact(source: Path, out: Path, vocabulary: Path | None, *, as_json: bool) -> None:
    from toolsrv_lab.training_data.compact import write_compact

    with Bar("converting", "files") as bar:
        report = write_compact(source, out, vocabulary=vocabulary, progress=bar.show)
    if as_json:
        emit_json({"folder": str(out)} | report.model_dump(mode="json"))
        return
    click.echo(
        f"{report.rows} rows from {report.files} answer files in {out}, {report.held_out} held out"
    )
    _left_out(report.left_out)


def _chat(
    source: Path,
    out: Path,
    base: Path,
    judged: Sequence[Path],
    longest: int | None,
    workers: int,
    *,
    as_json: bool,
) -> None:
    from toolsrv_lab.conversations.build import LONGEST, Builder
    from toolsrv_lab.training_data.chat_rows import write_chat

    builder = Builder(base, [one.expanduser() for one in judged], longest or LONGEST, seed=1)
    with Bar("converting", "files") as bar:
        report = write_chat(source, out, builder, workers=workers, progress=bar.show)
    if as_json:
        emit_json({"file": str(out)} | report.model_dump(mode="json"))
        return
    click.echo(
        f"{report.rows} rows from {report.episodes} conversations in {out}: {report.tokens:,} "
        f"tokens, {report.learnt:,} learnt"
    )
    _left_out(report.left_out)


def _show(report: Report, out: Path) -> None:
    """Print the count on stdout, and on stderr what was left out and why."""
    click.echo(f"{report.instances} instances from {report.taken} answer files in {out}")
    if report.give_ups:
        note(f"note: {report.give_ups} of the files end with a give-up")
    for reason, count in report.skipped.items():
        note(f"note: {count} conversations give no instance: {reason}")
    _left_out(report.left_out)


def _left_out(files: Sequence[LeftOut]) -> None:
    for one in files[:LINES]:
        note(f"left out: {one_line(one.file, 200)}: {one_line(one.reason, 500)}")
    if len(files) > LINES:
        note(f"note: {len(files) - LINES} more files were left out; --json lists all")


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
@click.option("--toolenv", type=GivenPath(), metavar="FILE",
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
            from toolsrv_lab.conversations.services_a import episodes as a

            yield from map(asdict, a(seed, count))
        case "services-b":
            from toolsrv_lab.conversations.services_b import episodes as b

            yield from map(asdict, b(seed, count))
        case "corners":
            from toolsrv_lab.conversations.corners import episodes as c

            yield from map(asdict, c(seed, count))
        case "talk":
            from toolsrv_lab.conversations.corners.talk import talk

            yield from talk(seed, count)
        case _:
            from toolsrv_lab.conversations.needs_episodes import episodes as needs

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
