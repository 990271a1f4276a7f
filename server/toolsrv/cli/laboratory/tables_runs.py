"""What ``toolsrv lab tables`` is asked for, and its tables 2 and 5: rankings and picks on result logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import Scale, solve_cells
from toolsrv.cli.output import note
from toolsrv.cli.session import Session
from toolsrv_registry.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.apibench import PickFigures
    from toolsrv_lab.paper_tables.retrieval import Method
    from toolsrv_lab.paper_tables.table import PaperTable
    from toolsrv_lab.retrieval.queries import Query
    from toolsrv_registry.encoder import Encoder, Vectors

WORLDS: Mapping[str, dict[str, str]] = {
    "simulated": {"simulate": "schema", "mode": "live"},
    "recordings": {"simulate": "schema", "mode": "replay"},
    "live": {"simulate": "off", "mode": "live"},
}
"""Settings of each world; what recordings do not have is simulated."""
WORLD_TEXTS = {
    "simulated": "simulated by response schema",
    "recordings": "recordings, misses simulated by response schema",
    "live": "live",
}
RANKINGS, VECTORS = "rankings.jsonl", "vectors.jsonl"
"""Files of an ``--out`` folder; APIBench's are ``apibench-DOMAIN.jsonl``."""
BASE = "untuned base"
_PICKERS = {"ours": "our retriever", "oracle": "oracle"}
_DOCUMENTS = 5
ANSWER_FOLDERS = ("answers", "real_answers", "simulated_answers")
FOR_DATA = (*ANSWER_FOLDERS, "apibench", "lora", "full")
FOR_MODELS = ("models", "base", "strategies", "apis", "world", "given", "limit")
"""Options that only some tables take, to be left out of the commands of others."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. ``judge`` are the options of ``open_judge``, ``bench`` those of a model.

    ``command`` returns the command that makes a part of the tables: options by name, None leaves one out.
    """

    tables: tuple[str, ...]
    folder: Path
    queries: tuple[Path, ...]
    limit: int
    models: tuple[str, ...]
    base: tuple[str, ...]
    strategies: tuple[str, ...]
    apis: tuple[str, ...]
    world: str
    given: tuple[str, ...]
    times: int
    rounds: int
    keep_going: bool
    judge: dict[str, Any]
    bench: dict[str, Any]
    scale: Scale
    command: Callable[..., str]

    def read_queries(self) -> list[Query]:
        """Return the queries of all files. Raises DataError, NotFoundError."""
        from toolsrv_lab.retrieval.queries import read_queries

        return [one for path in self.queries for one in read_queries(path.expanduser())]


def without(*names: str) -> dict[str, None]:
    """Return options to leave out of a command (``Request.command``)."""
    return dict.fromkeys(names)


# Table 2


def retrieval(session: Session, request: Request, corpus: Any, encoder: str | None) -> PaperTable:
    """Rank what the log lacks and return Table 2.

    Raises:
        DataError: an index or an encoder cannot be used.
    """
    from toolsrv_lab.evaluation.cells import CellLog
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.paper_tables.retrieval import by_type, retrieval_table, run_methods
    from toolsrv_lab.retrieval.evaluation import SetFigures

    bench = session.workbench()
    seed = request.judge["seed"] or 0
    every = request.read_queries()
    known = frozenset(api.id for api in bench.registry().store.apis())
    queries = [one for one in every if known.intersection(one.relevant_ids)]
    if len(queries) < len(every):
        note(f"note: {len(every) - len(queries)} queries need no API of the catalogs: left out")
    if not queries:
        raise UsageError(
            "there is no query that needs APIs of the enabled catalogs",
            hint="import the catalog that they were written for: toolsrv catalog import PATH",
        )
    methods = _methods(bench, request, encoder)
    groups = by_type(queries)
    settings = {
        "queries": sorted(evaluation.file_hash(one.expanduser()) for one in request.queries),
        "catalogs": sorted(one.name for one in bench.registry().store.catalogs() if one.enabled),
        "seed": seed,
    }
    with ResultLog(request.folder / RANKINGS, settings) as log:
        kept = CellLog(log, SetFigures)
        with evaluation.Progress(
            "ranking", len(methods) * sum(map(len, groups.values()))
        ) as progress:
            run_methods(
                methods, groups, known, kept, corpus=corpus, seed=seed, progress=progress.step
            )
        command = request.command(numbers="2", **without(*FOR_DATA, *FOR_MODELS))
        return retrieval_table(methods, groups, kept, corpus=corpus, seed=seed, command=command)


def _methods(bench: Workbench, request: Request, encoder: str | None) -> list[Method]:
    """Return the ways to rank; the zero-shot encoder is left out where it is not installed."""
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.paper_tables.retrieval import Method, scored_rank
    from toolsrv_lab.retrieval.baselines import bm25, cosines
    from toolsrv_lab.retrieval.evaluation import Rank, with_matcher
    from toolsrv_registry.documents import document_text
    from toolsrv_registry.encoder import encoder_named

    def ours() -> Rank:
        rank = bench.searchable().retriever.rank
        return lambda text, pool: rank(text, among=pool)

    def matched() -> Rank:
        rank = with_matcher(bench.searchable())
        return lambda text, pool: rank(text, among=pool)

    def documents() -> tuple[list[str], list[str]]:
        apis = list(bench.registry().store.apis())
        return [one.id for one in apis], [document_text(one) for one in apis]

    def by_words() -> Rank:
        ids, texts = documents()
        return scored_rank(ids, bm25(texts))

    digest = bench.registry().index.encoder.digest
    found = [
        Method("our retriever", digest, ours),
        Method("our retriever with the matcher", digest, matched),
        Method("BM25", "bm25", by_words),
    ]
    try:
        source = encoder or str(find_source())
        named = encoder_named(source)
        name = f"{named.name} (zero-shot)"
    except UsageError as error:
        note(f"note: no zero-shot encoder: {error.message} ({error.hint})")
        return found

    def by_meaning() -> Rank:
        ids, texts = documents()
        return scored_rank(ids, cosines(_encoded(bench, request, texts, source, named), named))

    return [*found, Method(name, named.digest, by_meaning)]


def _encoded(
    bench: Workbench, request: Request, texts: Sequence[str], source: str, encoder: Encoder
) -> Vectors:
    """Return the texts' vectors, of which only those that the log lacks are made.

    ``source`` is where ``encoder`` is from; an actor opens it by that.
    """
    from toolsrv_lab.evaluation.cells import CellLog
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.retrieval import encoding

    parts = encoding.Parts.of(texts)
    with ResultLog(request.folder / VECTORS, {}) as log:
        kept = CellLog(log, encoding.Encoded)
        with evaluation.Progress("encoding", len(parts.texts)) as progress:
            solve_cells(
                bench, request.scale, parts.texts, {encoding.cell_of(parts, encoder): None}, kept,
                partial(_encoding, source, encoder.digest), progress=progress.step,
            )  # fmt: skip
        return encoding.vectors_of(parts, encoder, kept)


def _encoding(source: str, digest: str, _bench: Workbench) -> Any:
    from toolsrv_lab.retrieval.encoding import encoding
    from toolsrv_registry.encoder import encoder_named

    return encoding(encoder_named(source), digest)


# Table 5


def apibench(
    session: Session, request: Request, place: Path, left_out: dict[str, str]
) -> list[PaperTable]:
    """Ask what the logs lack and return Table 5; notes name domains and models left out."""
    from toolsrv_lab.evaluation.apibench_data import corpus_file, questions_file
    from toolsrv_lab.paper_tables.apibench import apibench_table
    from toolsrv_lab.paper_tables.published import HUBS

    found: dict[str, dict[str, PickFigures]] = {}
    commands: dict[str, str] = {}
    missing: list[str] = []
    for domain, hub in HUBS.items():
        try:
            files = corpus_file(place, domain), questions_file(place, domain)  # type: ignore[arg-type]
        except NotFoundError:
            missing.append(f"{hub} is left out: {place} has no corpus or no questions of it.")
            continue
        for name, figures in _picks(session, request, domain, files, commands, missing).items():
            found.setdefault(name, {})[domain] = figures
    if not found:
        left_out["5"] = " ".join(["has nothing:", *missing])
        return []
    return [apibench_table(found, commands, request.judge["seed"] or 0, missing)]


def _picks(
    session: Session,
    request: Request,
    domain: Any,
    files: tuple[Path, Path],
    commands: dict[str, str],
    missing: list[str],
) -> dict[str, PickFigures]:
    """Return figures by row; adds the rows' commands, and why a model has none."""
    from toolsrv.cli.laboratory.apibench import ask, figures_of, log_settings
    from toolsrv_lab.evaluation.apibench import PickResult
    from toolsrv_lab.evaluation.apibench_data import read_corpus, read_questions
    from toolsrv_lab.evaluation.cells import Cell, CellLog
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.evaluation.statistics import draw

    corpus = read_corpus(files[0], domain)
    every = read_questions(files[1], corpus)
    found: dict[str, PickFigures] = {}
    settings = log_settings(domain, *files, _DOCUMENTS)
    with ResultLog(request.folder / f"apibench-{domain}.jsonl", settings) as log:
        kept = CellLog(log, PickResult)
        named = [("models", one) for one in request.models] + [
            ("base", one) for one in request.base
        ]
        for option, given in named:
            bench = session.workbench(model=given, **request.bench)
            request.scale.check(bench.settings)
            name, identity = evaluation.identity(bench.settings)
            label = f"{name} ({BASE})" if option == "base" else name
            questions = draw(
                every, request.limit, seed=bench.options().seed, key=lambda one: one.id
            )
            cells: dict[Any, Cell] = {kind: Cell(name, identity, kind) for kind in _PICKERS}
            try:
                ask(bench, questions, cells, corpus, kept, _DOCUMENTS, request.scale)
            except UsageError as error:
                missing.append(f"{label} is left out: {error.message}.")
                continue
            except KeyboardInterrupt:
                note(log.kept())
                raise
            figures = figures_of(cells, questions, kept)
            rows = {f"{label}, {_PICKERS[kind]}": one for kind, one in figures.items()}
            model: dict[str, Any] = without("models", "base") | {option: given}
            others = without("queries", *ANSWER_FOLDERS, "lora", "full")
            commands |= dict.fromkeys(rows, request.command(numbers="5", **model, **others))
            found |= rows
    return found
