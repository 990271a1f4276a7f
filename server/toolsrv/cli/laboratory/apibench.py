"""``toolsrv lab eval apibench``: a chat model picks APIs of APIBench's corpora.

The work is done by ``toolsrv_lab.evaluation.apibench``.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import HERE, Scale, scale_options, solve_cells
from toolsrv.cli.options import GivenPath, engine_model_option, example, json_option, model_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.apibench import PickFigures, PickResult
    from toolsrv_lab.evaluation.apibench_calls import Domain
    from toolsrv_lab.evaluation.apibench_data import Corpus, Question
    from toolsrv_lab.evaluation.cells import Cell, CellLog, Solver
    from toolsrv_lab.execution import Slots

FOLDER = "apibench"
"""Where the data lie in the data folder, unless ``--data`` says otherwise."""


@click.command(
    epilog=example(
        "toolsrv lab eval apibench --domain torchhub --model model.gguf --retriever ours,bm25 "
        "--data DIR"
    )
)
@click.option("--domain", type=click.Choice(["torchhub", "tensorflowhub", "huggingface"]),
              required=True, help="Which corpus.")  # fmt: skip
@model_option
@engine_model_option
@click.option("--retriever", "retrievers", multiple=True, default=("ours",), show_default=True,
              metavar="NAME,…", help="Where the documents come from: ours (the search of solves), "
              "bm25, oracle (the API that is needed), none.")  # fmt: skip
@click.option("--documents", type=click.IntRange(1, 50), default=5, show_default=True,
              help="Most documents that ours and bm25 give.")  # fmt: skip
@click.option("--data", type=GivenPath(), metavar="DIR",
              help="Gorilla's files DOMAIN_api.jsonl and DOMAIN_eval.json. "
              "[default: apibench in the data folder]")  # fmt: skip
@click.option("--questions", "path", type=GivenPath(), metavar="FILE",
              help="The evaluation set. [default: DOMAIN_eval.json in --data]")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Only so many questions, drawn with the seed.")  # fmt: skip
@evaluation.bench_options
@click.option("--out", type=GivenPath(), metavar="DIR",
              help="Keep results, report and plot here; the same command goes on there.")  # fmt: skip
@scale_options
@json_option
@pass_session
def eval_apibench(
    session: Session,
    /,
    domain: Domain,
    retrievers: tuple[str, ...],
    documents: int,
    data: Path | None,
    path: Path | None,
    limit: int | None,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Have a chat model pick APIs of APIBench, and check its calls by their AST sub-trees.

    Its reply is held to one call of a function that picks an API, with the documents that the
    retriever finds. A call that matches no API of the corpus is a hallucination; one that matches
    an API for the question's domain is right. Nothing is executed.
    """
    from toolsrv_lab.evaluation.apibench import PickResult
    from toolsrv_lab.evaluation.apibench_data import (
        corpus_file,
        questions_file,
        read_corpus,
        read_questions,
    )
    from toolsrv_lab.evaluation.cells import Cell, CellLog
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.evaluation.statistics import draw

    kinds = _kinds(retrievers)
    place = (data or session.load().settings.data_dir / FOLDER).expanduser()
    corpus_path = corpus_file(place, domain)
    corpus = read_corpus(corpus_path, domain)
    path = path.expanduser() if path else questions_file(place, domain)
    every = read_questions(path, corpus)
    bench = session.workbench(**flags)
    scale.check(bench.settings)
    questions = draw(every, limit, seed=bench.options().seed, key=lambda one: one.id)
    name, identity = evaluation.identity(bench.settings)
    cells = {kind: Cell(name, identity, kind) for kind in kinds}
    settings = log_settings(domain, corpus_path, path, documents)
    folder = evaluation.out_folder(out)
    with ResultLog(folder / evaluation.LOG if folder else None, settings) as log:
        kept = CellLog(log, PickResult)
        try:
            ask(bench, questions, cells, corpus, kept, documents, scale)
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError:
            if len(log) and not as_json:
                _show(domain, name, figures_of(cells, questions, kept))
            raise
        found = figures_of(cells, questions, kept)
    document = {
        "model": name,
        "settings": settings,
        "apis": len(corpus.apis),
        "questions": len(questions),
        "retrievers": {kind: one.model_dump() for kind, one in found.items()},
    }
    evaluation.write_report(folder, document)
    evaluation.plot(folder, _shares(found), f"APIBench, {domain}, {name}")
    if as_json:
        emit_json(document)
    else:
        _show(domain, name, found)


def log_settings(domain: Domain, corpus: Path, questions: Path, documents: int) -> dict[str, Any]:
    """Return what results depend on besides model and retriever."""
    from toolsrv_lab.evaluation.apibench import MAX_TOKENS

    return {
        "domain": domain,
        "corpus": evaluation.file_hash(corpus),
        "questions": evaluation.file_hash(questions),
        "documents": documents,
        "max_tokens": MAX_TOKENS,
    }


def _kinds(given: Sequence[str]) -> list[Any]:
    from toolsrv_lab.evaluation.apibench_retrieval import KINDS

    found = evaluation.listed(given)
    for one in found:
        if one not in KINDS:
            raise UsageError(f"--retriever: there is no {one!r}", hint=f"one of {', '.join(KINDS)}")
    return found


def ask(
    bench: Workbench,
    questions: Sequence[Question],
    cells: Mapping[Any, Cell],
    corpus: Corpus,
    log: CellLog[PickResult],
    documents: int,
    scale: Scale = HERE,
) -> None:
    """Ask what the log lacks; what it has opens no model and builds no index.

    Raises:
        UsageError: the bench's model is no chat model.
        DataError: it failed; says what is kept.
    """
    named = {one.id: one for one in questions}
    kinds = {cell: kind for kind, cell in cells.items()}
    solver = partial(_solver, corpus, documents, tuple(cells))
    with evaluation.Progress("asking", len(named) * len(cells)) as progress:
        solve_cells(bench, scale, named, kinds, log, solver, progress=progress.step)


def _solver(
    corpus: Corpus, documents: int, kinds: Sequence[Any], bench: Workbench
) -> Solver[Question, Any, PickResult]:
    """Return what picks APIs with the model of a bench; the setting of a cell is its retriever."""
    from toolsrv_lab.evaluation.apibench import pick
    from toolsrv_lab.evaluation.apibench_retrieval import retriever
    from toolsrv_lab.evaluation.cells import in_thread

    model = evaluation.chat_model_of(bench)

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Slots[tuple[Question, Any], PickResult]]:
        with contextlib.ExitStack() as stack:
            retrieve = {
                kind: stack.enter_context(retriever(kind, corpus, documents)) for kind in kinds
            }

            async def ask(item: tuple[Question, Any]) -> PickResult:
                question, kind = item
                return await in_thread(
                    lambda stop: pick(model, question, retrieve[kind](question), corpus, stop=stop)
                )

            yield lambda: contextlib.nullcontext(ask)

    return opened


def figures_of(
    cells: Mapping[Any, Cell], questions: Sequence[Question], log: CellLog[PickResult]
) -> dict[str, PickFigures]:
    """Return the figures of each retriever that the log has results of."""
    from toolsrv_lab.evaluation.apibench import figures

    ids = [one.id for one in questions]
    found = {kind: log.of(cell, ids) for kind, cell in cells.items()}
    return {kind: figures(results) for kind, results in found.items() if results}


def _shares(found: Mapping[str, PickFigures]) -> dict[str, Any]:
    return {
        kind: {
            "AST accuracy": one.accuracy,
            "hallucination": one.hallucination,
            "the very API": one.same_api,
        }
        for kind, one in found.items()
    }


def _show(domain: str, name: str, found: Mapping[str, PickFigures]) -> None:
    share, mean = evaluation.share_text, evaluation.mean_text
    table(
        ("retriever", "AST accuracy#", "hallucination#", "other use#", "no call#"),
        [
            (kind, *map(share, (one.accuracy, one.hallucination, one.wrong, one.no_call)))
            for kind, one in found.items()
        ],
        title=f"APIBench, {domain}, {name}: of the questions, % (95 % interval)",
    )
    table(
        ("retriever", "the very API#", "it was shown#", "s#", "prompt#", "generated#"),
        [
            (
                kind,
                share(one.same_api),
                share(one.shown),
                *map(mean, (one.seconds, one.prompt_tokens, one.generated)),
            )
            for kind, one in found.items()
        ],
        title="of the questions; means per question: seconds and tokens",
    )
