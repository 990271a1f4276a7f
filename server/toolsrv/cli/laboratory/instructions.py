"""``toolsrv lab instructions`` and ``lab report instructions``: tasks over the catalogs, written.

The work is done by ``toolsrv_lab.instructions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.laboratory.scale import Scale, scale_options
from toolsrv.cli.options import FiniteRange, GivenPath, example, json_option, threads_option
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.execution import Backend
    from toolsrv_lab.instructions.engine_writer import Options, WriterReply
    from toolsrv_lab.instructions.report import Comparison, Figures
    from toolsrv_lab.instructions.samples import Kind
    from toolsrv_registry.api import Api

_IN = click.Path(exists=True, path_type=Path)
_OUT = GivenPath()
_TASKS = 10
_TEMPERATURE = 0.8
_NAME = 18  # characters of a file's name in the table


@click.command(
    epilog=example(
        "toolsrv lab instructions --rounds 1 --out instructions.jsonl",
        "toolsrv lab instructions --engine model.gguf --calls 50 --out instructions.jsonl",
    )
)
@click.option("--out", type=_OUT, required=True, help="JSON lines, as query files are read.")
@click.option("--rounds", type=click.IntRange(1, 1000),
              help="Tasks that each API leads [default: 5]; sampled by --kind or with --engine,"
              " how often each tool leads [default: 1].")  # fmt: skip
@click.option("--kind", "kinds", type=click.Choice(["tool", "category", "collection"]),
              multiple=True, help="Sample as ToolLLM does: the APIs of one tool, tools of one"
              " category, related tools across categories.")  # fmt: skip
@click.option("--seed", type=int, default=17, show_default=True)
@click.option("--catalog", metavar="NAME", help="Only this catalog.")
@click.option("--hold-out", type=FiniteRange(0, 0.9), default=0.1, show_default=True,
              help="Share of the tools to keep unseen.")  # fmt: skip
@click.option("--held-out", is_flag=True, help="Write about the unseen tools instead.")
@click.option("--written", is_flag=True, help="Only APIs that needs were written for by hand.")
@click.option(
    "--requests",
    "whole",
    is_flag=True,
    help="The requests that were written whole, for several APIs at once.",
)
@click.option("--engine", metavar="MODEL",
              help="Let this model write, prompted as in the paper: a GGUF file, its name on the "
              "list, or scripted:FILE. Goes on after a stop.")  # fmt: skip
@click.option("--calls", type=click.IntRange(1), help="With --engine: at most so many prompts.")
@click.option("--tasks", type=click.IntRange(1, 20),
              help=f"With --engine: tasks asked for in one prompt. [default: {_TASKS}]")  # fmt: skip
@click.option("--temperature", type=FiniteRange(0, 5),
              help=f"With --engine: of the sampling. [default: {_TEMPERATURE}]")  # fmt: skip
@threads_option
@scale_options
@json_option
@pass_session
def instructions(
    session: Session,
    out: Path,
    rounds: int | None,
    kinds: tuple[Kind, ...],
    seed: int,
    catalog: str | None,
    hold_out: float,
    held_out: bool,
    written: bool,
    whole: bool,
    engine: str | None,
    calls: int | None,
    tasks: int | None,
    temperature: float | None,
    threads: int | None,
    scale: Scale,
    as_json: bool,
) -> None:
    """Write tasks in a person's words over the enabled catalogs, no model needed.

    With --engine a model writes them, from the documents of sampled APIs and three examples.
    """
    chosen = _Chosen(catalog, hold_out, held_out, written)
    bench = session.workbench(model=engine, threads=threads) if engine else session.workbench()
    apis = chosen.apis(bench)
    name = "held out" if held_out else "instructions"
    told: dict[str, Any]
    if whole:
        if engine is not None or kinds or rounds is not None:
            raise UsageError(
                "--requests takes the requests as they were written",
                hint="leave --engine, --kind and --rounds out",
            )
        from toolsrv_lab.instructions.requests import write_requests

        told = {"instructions": write_requests({api.id: api for api in apis}, out)}
    elif engine is not None:
        from toolsrv_lab.instructions.engine_writer import Options
        from toolsrv_lab.instructions.samples import KINDS

        options = Options(
            kinds=kinds or KINDS,
            rounds=rounds or 1,
            calls=calls,
            tasks=tasks or _TASKS,
            temperature=_TEMPERATURE if temperature is None else temperature,
            seed=seed,
            name=name,
        )
        scale.check(bench.settings)
        told = _asked(bench, scale, chosen, apis, out, options)
    elif any(one is not None for one in (calls, tasks, temperature, scale.workers, scale.address)):
        raise UsageError(
            "--calls, --tasks, --temperature, --workers and --ray are of a model that writes",
            hint="name it with --engine, or leave them out",
        )
    else:
        told = _composed(apis, out, kinds, rounds, seed, name)
    if as_json:
        emit_json(told | {"apis": len(apis), "seed": seed, "file": str(out)})
        return
    prompts = f" from {told['calls']} prompts" if "calls" in told else ""
    click.echo(f"{told['instructions']} instructions over {len(apis)} APIs{prompts} in {out}")
    for reason, count in told.get("left_out", {}).items():
        note(f"left out: {count}: {reason}")


def _composed(
    apis: Sequence[Api],
    out: Path,
    kinds: tuple[Kind, ...],
    rounds: int | None,
    seed: int,
    name: str,
) -> dict[str, Any]:
    from toolsrv_lab.instructions.writer import write_instructions, write_sampled

    with Bar("writing", "instructions") as bar:
        show = bar.show
        if kinds:
            total = write_sampled(
                apis, out, kinds=kinds, rounds=rounds or 1, seed=seed, name=name, progress=show
            )
        else:
            total = write_instructions(
                apis, out, rounds=rounds or 5, seed=seed, name=name, progress=show
            )
    return {"instructions": total}


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which APIs instructions are written for."""

    catalog: str | None
    hold_out: float
    held_out: bool
    written: bool

    def apis(self, bench: Workbench) -> list[Api]:
        from toolsrv_lab.instructions.errands import written
        from toolsrv_lab.instructions.writer import is_held_out

        apis = bench.registry().store.apis(catalog=self.catalog)
        apis = [api for api in apis if is_held_out(api, self.hold_out) == self.held_out]
        return [api for api in apis if not self.written or api.id in written()]


def _asked(
    bench: Workbench,
    scale: Scale,
    chosen: _Chosen,
    apis: Sequence[Api],
    out: Path,
    options: Options,
) -> dict[str, Any]:
    from toolsrv_lab.instructions.engine_writer import CODEC, write_with_engine

    engine, profile = bench.engine()
    backend = partial(_backend, chosen, _digest(apis), options)
    pool = scale.pool(bench, backend, CODEC) if scale.address is not None else None
    try:
        with Bar("asking", "prompts") as bar, interruptible():
            run = write_with_engine(
                apis,
                out,
                engine,
                options,
                template=profile.chat_template,
                pool=pool,
                progress=bar.show,
            )
    finally:
        engine.close()
    return run.model_dump(mode="json")


def _backend(
    chosen: _Chosen,
    digest: str,
    options: Options,
    bench: Workbench,
) -> Backend[int, WriterReply]:
    """Return what asks the model in an actor of a cluster."""
    from toolsrv_lab.instructions.engine_writer import writer_backend

    apis = chosen.apis(bench)
    if _digest(apis) != digest:
        raise DataError(
            f"a worker of the cluster has other catalogs in {bench.settings.data_dir}",
            hint="let every node read the same data folder",
        )
    engine, profile = bench.engine()
    return writer_backend(apis, engine, options, profile.chat_template)


def _digest(apis: Sequence[Api]) -> str:
    from toolsrv_registry.documents import content_hash, contents_hash

    return contents_hash(content_hash(api) for api in apis)


@click.command(
    epilog=example(
        "toolsrv lab report instructions instructions.jsonl",
        "toolsrv lab report instructions instructions.jsonl --beside queries_dev.jsonl",
    )
)
@click.argument("file", type=_IN)
@click.option("--beside", type=_IN, multiple=True,
              help="Files of queries to compare with; may be given several times.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the samples.")
@json_option
@pass_session
def report_instructions(
    session: Session, file: Path, beside: tuple[Path, ...], seed: int, as_json: bool
) -> None:
    """Show how long, how varied and how near to API documents the texts of FILE are.

    FILE and what is set beside it are JSON lines or ToolBench's instruction files. Documents are
    those of the enabled catalogs.
    """
    from toolsrv_lab.instructions.report import compare
    from toolsrv_lab.retrieval.queries import read_queries

    paths = list(dict.fromkeys((file, *beside)))
    short = [path.stem for path in paths]
    keys = short if len(set(short)) == len(short) else [str(path) for path in paths]
    files = {key: read_queries(path) for key, path in zip(keys, paths, strict=True)}
    found = compare(files, session.workbench().registry().store.apis(), seed=seed)
    if as_json:
        emit_json(found.model_dump(mode="json"))
        return
    _show_figures(found)


_LINES: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("texts", lambda one: str(one.texts)),
    ("words: min, 10 %", lambda one: f"{one.words.min:.0f}, {one.words.p10:.0f}"),
    ("words: median", lambda one: f"{one.words.median:.0f}"),
    ("words: 90 %, max", lambda one: f"{one.words.p90:.0f}, {one.words.max:.0f}"),
    *((f"distinct-{n}", lambda one, n=n: f"{one.distinct[n]:.3f}") for n in (1, 2, 3, 4)),
    ("first 4 words as another's", lambda one: f"{one.same_start:.1%}"),
    ("last 4 words as another's", lambda one: f"{one.same_end:.1%}"),
    ("5-grams in the text most alike: mean", lambda one: f"{one.overlap_mean:.1%}"),
    ("5-grams in the text most alike: 90 %", lambda one: f"{one.overlap_p90:.1%}"),
    ("content words in the APIs' documents", lambda one: _share(one.in_document)),
    ("needs in a text: mean", lambda one: f"{one.needs_mean:.2f}"),
    ("one need, two needs", lambda one: _needs(one.needs, 1, 2)),
    ("three needs, four needs", lambda one: _needs(one.needs, 3, 4)),
    ("five needs and more", lambda one: _needs(one.needs, 5)),
    ("all lower case", lambda one: f"{one.lower_case:.1%}"),
    ("with digits", lambda one: f"{one.with_digits:.1%}"),
)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _needs(shares: dict[int, float], *numbers: int) -> str:
    return ", ".join(f"{shares.get(number, 0):.0%}" for number in numbers)


def _header(name: str) -> str:
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _show_figures(found: Comparison) -> None:
    rows = [(label, *(pick(one) for one in found.files.values())) for label, pick in _LINES]
    table(("", *(f"{_header(name)}#" for name in found.files)), rows)
    note(
        f"distinct n-grams over {found.tokens} tokens of each file, same words over {found.sampled}"
        f" texts, overlap over {found.overlap_sampled}; seed {found.seed}"
    )
    for name, figures in found.files.items():
        if figures.judged < figures.texts:
            note(f"{name}: {figures.judged} of {figures.texts} texts have APIs that are enabled")
