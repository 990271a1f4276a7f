"""``toolsrv lab eval stable``: StableToolBench's queries against its cache.

The work is done by ``toolsrv_lab.evaluation.stable``; here stands the world that replays the cache.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.scale import Scale, scale_options, solve_cells
from toolsrv.cli.laboratory.tooleval import judge_options, open_judge, read_ids
from toolsrv.cli.options import (
    GivenPath,
    adapter_option,
    example,
    faithful_options,
    model_option,
    profile_option,
)
from toolsrv.cli.output import Bar, emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Solver
    from toolsrv_lab.evaluation.stable import StableFigures, StableResult
    from toolsrv_lab.execution import Make, Slots
    from toolsrv_lab.retrieval.queries import Query
    from toolsrv_lab.tooleval.pass_rate import PassFigures
    from toolsrv_runtime.solve import SolveOptions

CACHE, COUNTS, ANSWERS = "cache.sqlite3", "cache.json", "answers"
"""Files of an ``--out`` folder: the cache as recordings, what of it was read, answers by set."""
_START_S, _STEP_S = 30.0, 0.01


@click.command(
    epilog=example(
        "toolsrv lab eval stable --queries G1_instruction.json --cache server_cache.zip "
        "--model model.gguf --out DIR"
    )
)
@click.option("--queries", "files", multiple=True, required=True, metavar="FILE",
              type=GivenPath(),
              help="Solvable queries: StableToolBench's <subset>.json, or JSON lines. May be given "
              "several times.")  # fmt: skip
@click.option("--ids", type=GivenPath(), metavar="FILE",
              help="Only queries with these ids: a JSON object by id, or a list.")  # fmt: skip
@click.option("--cache", type=GivenPath(), metavar="PATH",
              help="StableToolBench's cache: its folder or its zip archive. "
              "[default: the recordings of the data folder]")  # fmt: skip
@click.option("--misses", type=click.Choice(["schema", "error"]), default="schema",
              show_default=True, help="What a call gets that the cache has not: a response "
              "invented in the shape of the API's schema, or an error.")  # fmt: skip
@model_option
@click.option("--strategy", type=click.Choice(["dfsdt", "dfs", "react", "cot"]), default="dfsdt",
              show_default=True, help="Strategy of a solve.")  # fmt: skip
@click.option("--set", "options", multiple=True, metavar="KEY=VALUE",
              help="Any option of a solve: --set width=3 --set limits.seconds=60.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Only so many queries, drawn by set with the seed.")  # fmt: skip
@click.option("--keep-going", is_flag=True,
              help="Count a solve that a fault of the engine ended as failed, and go on.")  # fmt: skip
@click.option("--times", type=click.IntRange(1, 99), default=3, show_default=True,
              help="Evaluations of each answer.")  # fmt: skip
@profile_option
@adapter_option
@faithful_options
@scale_options
@judge_options
@pass_session
def eval_stable(
    session: Session,
    /,
    files: tuple[Path, ...],
    ids: Path | None,
    cache: Path | None,
    misses: str,
    model: str | None,
    strategy: str,
    options: tuple[str, ...],
    limit: int | None,
    keep_going: bool,
    times: int,
    out: Path | None,
    scale: Scale,
    as_json: bool,
    **given: Any,
) -> None:
    """Solve StableToolBench's queries against its cache; pass rate, hits and misses.

    The catalog that the queries were written for has to be imported. Each query is offered the APIs
    that it came with, and calls go to a server on loopback that replays the cache. Answers are
    judged by the solvable pass rate (SoPR).
    """
    from toolsrv_lab.evaluation import stable
    from toolsrv_lab.evaluation.cells import Cell, CellLog, make_options
    from toolsrv_lab.evaluation.result_log import ResultLog

    files = tuple(one.expanduser() for one in files)
    flags = {key: given[key] for key in evaluation.BENCH_OPTIONS}
    bench = session.workbench(model=model, **flags)
    scale.check(bench.settings)
    if scale.address is not None and cache is not None and out is None:
        raise UsageError(
            "the actors of a cluster read the cache from --out",
            hint="name a folder with --out that every node reads",
        )
    queries, left_out = _queries(bench, files, read_ids(ids), limit)
    name, identity = evaluation.identity(bench.settings)
    cell = Cell(name, identity, strategy)
    solve_options = make_options(bench.options(), strategy, given=options)
    folder = evaluation.out_folder(out)
    with contextlib.ExitStack() as stack:
        place = folder or Path(
            stack.enter_context(TemporaryDirectory(prefix="toolsrv-", ignore_cleanup_errors=True))
        )
        recordings, counts = _recordings(bench, cache, place)
        settings = {
            "queries": sorted(evaluation.file_hash(one) for one in files),
            "cache": counts,
            "misses": misses,
            "set": sorted(options),
            "options": bench.options().model_dump(mode="json", exclude={"strategy", "category"}),
        }
        log = stack.enter_context(ResultLog(folder / evaluation.LOG if folder else None, settings))
        kept = CellLog(log, stable.StableResult)
        try:
            with evaluation.Progress("solving", len(queries)) as progress:
                solve_cells(
                    bench, scale, queries, {cell: solve_options}, kept,
                    partial(_solver, recordings.absolute(), misses, strategy),
                    on_fault=stable.failed_solve if keep_going else None, progress=progress.step,
                )  # fmt: skip
        except KeyboardInterrupt:
            note(log.kept())
            raise
        finally:
            results = kept.of(cell, list(queries))
            if folder is not None:
                _write_answers(results, folder, strategy)
    found = stable.by_set(results)
    judge_name, rates = _judged(session, folder, given, results, name, times)
    document = {
        "model": name,
        "strategy": strategy,
        "settings": settings,
        "left_out": left_out,
        "judge": judge_name,
        "times": times,
        "sets": {
            key: one.model_dump() | {"pass_rate": rates[key].model_dump()}
            for key, one in found.items()
        },
    }
    evaluation.write_report(folder, document)
    evaluation.plot(folder, _shares(found, rates), f"StableToolBench, {name}, {strategy}")
    if as_json:
        emit_json(document)
    else:
        _show(name, judge_name, found, rates)


def _queries(
    bench: Workbench, files: Sequence[Path], ids: frozenset[str] | None, limit: int | None
) -> tuple[dict[str, Query], dict[str, int]]:
    """Return the queries by name, and why other queries are left out."""
    from toolsrv_lab.evaluation.stable import name_of
    from toolsrv_lab.evaluation.statistics import draw_by_stratum
    from toolsrv_lab.retrieval.queries import read_queries

    every = [one for path in files for one in read_queries(path)]
    if ids is not None:
        every = [one for one in every if one.query_id in ids]
    apis = {api.id: api for api in bench.registry().store.apis()}
    found, left_out = evaluation.usable_queries(every, apis)
    drawn = draw_by_stratum(
        found, limit, seed=bench.options().seed, key=name_of, stratum=lambda one: one.set
    )
    named = {name_of(one): one for one in drawn}
    if len(named) < len(drawn):
        raise UsageError("two queries of one set have the same id", hint="name each file once")
    return named, left_out


def _recordings(bench: Workbench, cache: Path | None, folder: Path) -> tuple[Path, Any]:
    """Return the file of the recordings, and what identifies them among the settings.

    A cache is read once for an ``--out`` folder.
    """
    from toolsrv_lab.evaluation.stable import import_cache
    from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore
    from toolsrv_runtime.files import open_atomic

    if cache is None:
        path = bench.settings.data_dir / RECORDINGS_FILE
        RecordingStore.open(path).close()  # where there are none, all calls miss
        return path, "recordings of the data folder"
    path, marker = folder / CACHE, folder / COUNTS
    key = str(cache.expanduser().resolve())
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(marker.read_text("utf-8"))
        if isinstance(known, dict) and known.get("path") == key and path.exists():
            return path, known["counts"]
    apis = bench.registry().store
    with closing(RecordingStore.open(path)) as store, Bar("reading the cache", "files") as bar:
        counts = import_cache(
            cache.expanduser(), lambda one: apis.get_many([one]).get(one), store, bar.show
        )
    if counts["unknown_apis"]:
        note(f"note: {counts['unknown_apis']:,} APIs of the cache are in no enabled catalog")
    with open_atomic(marker) as file:
        file.write(json.dumps({"path": key, "counts": counts}).encode())
    return path, counts


def _solver(
    recordings: Path, misses: str, method: str, bench: Workbench
) -> Solver[Query, SolveOptions, StableResult]:
    """Return what solves queries against a world that this process serves."""
    from toolsrv.calls.callable_apis import CallableRetriever
    from toolsrv_lab.evaluation import stable
    from toolsrv_lab.evaluation.stable_world import QueryRetriever, WorldCaller
    from toolsrv_runtime import solve
    from toolsrv_runtime.calls.simulation import SchemaSimulator

    if not recordings.exists():
        raise DataError(
            f"there are no recordings {recordings}", hint="let every node read the same folders"
        )
    apis = {api.id: api for api in bench.registry().store.apis()}
    simulator = SchemaSimulator(bench.options().seed) if misses == "schema" else None
    engine, profile = bench.model()
    prompts = bench.prompts() if profile.format == "toolllama" else None

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Slots[tuple[Query, SolveOptions], StableResult]]:
        with _world(bench, recordings) as (where, token, schema):

            @contextlib.asynccontextmanager
            async def slot() -> AsyncIterator[Make[tuple[Query, SolveOptions], StableResult]]:
                caller = WorldCaller(where, token, simulator=simulator, schemas=schema)
                retriever = QueryRetriever(CallableRetriever(bench.searchable(), lambda _api: True))
                solver = solve.Solver(
                    retriever=retriever, engine=engine, profile=profile, caller=caller,
                    prompts=prompts, fidelity=bench.fidelity(),
                )  # fmt: skip

                async def solve_one(item: tuple[Query, SolveOptions]) -> StableResult:
                    query, options = item
                    found, file = await stable.solve_query(
                        query, options, solver=solver, caller=caller, retriever=retriever,
                        apis=apis, answer=partial(evaluation.answer_of_solve, bench, apis),
                        method=method,
                    )  # fmt: skip
                    return found.model_copy(update={"answer": file.document()})

                try:
                    yield solve_one
                finally:
                    await caller.aclose()

            yield slot

    return opened


def _write_answers(results: Iterable[StableResult], folder: Path, method: str) -> None:
    """Write ``answers/SET/ID_STRATEGY.json`` of all results that have an answer."""
    from toolsrv_registry.file_names import portable_name
    from toolsrv_runtime.toolbench.answer_files import parse_answer

    for one in results:
        if one.answer is not None:
            place = folder / ANSWERS / portable_name(one.set)
            answer = parse_answer(one.answer, f"the answer to {one.id}")
            evaluation.write_answer_file(place, one.id, method, answer)


@contextlib.contextmanager
def _world(bench: Workbench, recordings: Path) -> Iterator[tuple[str, str, Any]]:
    """Serve the recordings on loopback; give address, token and the schemas of responses.

    Raises:
        DataError: the recordings cannot be read, or the server does not start.
    """
    from toolsrv.api_server.serve import make_server
    from toolsrv.loopback import listen, origin
    from toolsrv_runtime.calls.caller import ApiOrigin
    from toolsrv_runtime.calls.recordings.callers import ReplayingCaller
    from toolsrv_runtime.calls.recordings.storage import RecordingStore

    store, token = bench.registry().store, secrets.token_urlsafe(24)
    caller = ReplayingCaller(
        RecordingStore.open(recordings), home=lambda api: ApiOrigin(*store.home(api.id))
    )
    host = "127.0.0.1"
    listener = listen(host, 0)
    server = make_server(store.get_many, caller, token, caller.aclose)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="world")
    thread.start()
    try:
        begun = time.monotonic()
        while not server.started:
            if not thread.is_alive() or time.monotonic() > begun + _START_S:
                raise DataError("the API server does not start", hint="try again")
            time.sleep(_STEP_S)
        yield origin(host, listener), token, caller.schema
    finally:
        server.should_exit = True
        thread.join()


def _judged(
    session: Session,
    folder: Path | None,
    given: Mapping[str, Any],
    results: Sequence[StableResult],
    model: str,
    times: int,
) -> tuple[str, dict[str, PassFigures]]:
    """Return the judge's name, and the solvable pass rate of each set, ``all`` last."""
    from toolsrv_lab.evaluation.stable import ALL, answer_sets
    from toolsrv_lab.tooleval import pass_rate
    from toolsrv_lab.tooleval.answer_sets import AnswerSet

    sets = answer_sets(results, model)
    with (
        open_judge(session, folder, given) as (judge, _votes, seed),
        evaluation.Progress("judging", len(results)) as progress,
    ):
        labels = pass_rate.label_sets(
            judge, sets, times, seed=seed, solvable=True, jobs=given["jobs"],
            progress=lambda: progress.step(True),
        )  # fmt: skip
    pairs = list(zip(sets, labels, strict=True))
    whole = AnswerSet(
        model, ALL, {f"{one.subset}/{key}": value for one in sets for key, value in one.answers.items()}
    )  # fmt: skip
    every = {f"{one.subset}/{key}": value for one, of in pairs for key, value in of.items()}
    return judge.name, {
        group.subset: pass_rate.figures(group, of, times, solvable=True)
        for group, of in [*pairs, (whole, every)]
    }


def _shares(found: Mapping[str, StableFigures], rates: Mapping[str, PassFigures]) -> dict[str, Any]:
    return {
        name: {
            "solved": rates[name].passed,
            "needed APIs called": one.needed_called,
            "cache hits": one.hits,
            "cache misses": one.misses,
        }
        for name, one in found.items()
    }


def _show(
    name: str, judge: str, found: Mapping[str, StableFigures], rates: Mapping[str, PassFigures]
) -> None:
    share = evaluation.share_text
    table(
        ("set", "queries#", "SoPR %#", "solved#", "finished#", "needed APIs called#", "s#"),
        [
            (
                key,
                one.queries,
                f"{rates[key].sopr_percent:.1f} ± {rates[key].sopr_deviation:.1f}",
                share(rates[key].passed),
                share(one.finished),
                share(one.needed_called),
                evaluation.mean_text(one.seconds),
            )
            for key, one in found.items()
        ],
        title=f"StableToolBench, {name}, judged by {judge}: of the queries, % (95 % interval)",
    )
    table(
        ("set", "calls#", "hits#", "real#", "simulated#", "misses#", "refused#", "no miss#"),
        [
            (
                key,
                one.calls,
                *map(share, (one.hits, one.real_hits, one.simulated_hits, one.misses)),
                one.refused,
                share(one.covered),
            )
            for key, one in found.items()
        ],
        title="calls that the cache was asked for, % (95 % interval); queries without a miss",
    )
