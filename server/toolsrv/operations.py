"""Search, describe, call and solve over one workbench.

``Toolbox``, the command line and the MCP server share these functions, so that one request means
the same through every door. They return typed data; they print nothing and know no client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv.calls import files as call_files
from toolsrv.calls.consent import worth_asking
from toolsrv.calls.files import save
from toolsrv.calls.uploads import add_files, anywhere, with_files, within
from toolsrv.model_loading import check_model
from toolsrv.plain import clean_task, plain
from toolsrv.runs.journal import open_journal, open_runs
from toolsrv.runs.queue import Journal, new_run_id
from toolsrv.runs.records import RunRecord, continued_task, earlier_runs, interrupted_task
from toolsrv.runs.store import keep_run
from toolsrv.threads import in_thread
from toolsrv.views.apis import ApiView, Detail, api_view
from toolsrv.views.search import SearchView, search_view
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.result import CallResult, declined_result
from toolsrv_runtime.outcome import NoteEvent, is_followed

if TYPE_CHECKING:  # httpx, numpy and the model's libraries come along
    from toolsrv.workbench import Workbench
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.caller import Caller
    from toolsrv_runtime.calls.result import AskConsent
    from toolsrv_runtime.contract.hints import AskValue
    from toolsrv_runtime.contract.models import ChatModel, Engine
    from toolsrv_runtime.options import SolveOptions
    from toolsrv_runtime.outcome import Event, Outcome
    from toolsrv_runtime.profiles import Profile
    from toolsrv_runtime.solve import Solver
    from toolsrv_runtime.stop import Stop

MOST_HITS = 100
"""Of one page of a search."""
MOST_SKIPPED = 1_000
"""Hits before a page."""
Files = Mapping[str, Path | str | Sequence[Path | str]]
"""Arguments that are files: name -> path, or paths where the argument is a list."""


def search(
    bench: Workbench,
    text: str,
    *,
    limit: int = 5,
    offset: int = 0,
    category: str | None = None,
    tool: str | None = None,
    catalog: str | None = None,
    detail: Detail = "full",
    include_dead: bool = False,
    callable_only: bool = False,
    without_vectors: str = "",
    without_matcher: str = "",
) -> SearchView:
    """Return the APIs that fit a text, best first, with what each has for a call now. Blocks.

    ``without_vectors``: see ``Workbench.search``. ``without_matcher``: a reason to leave the matcher
    out, which becomes a note.

    Raises:
        UsageError: the text is empty, ``limit`` or ``offset`` is out of range, or the catalog is
            disabled.
        NotFoundError: no such category, tool or catalog.
        DataError: the data folder cannot be used, or memory does not suffice.
    """
    query = plain(text).strip()
    if not query:
        raise UsageError("the text to search for is empty", hint="say what the API should do")
    _check_range("limit", limit, 1, MOST_HITS)
    _check_range("offset", offset, 0, MOST_SKIPPED)
    result = bench.search(
        query,
        limit,
        offset=offset,
        category=category,
        tool=tool,
        catalog=catalog,
        include_dead=include_dead,
        without_vectors=without_vectors,
        without_matcher=bool(without_matcher),
        callable_only=callable_only,
    )
    view = search_view(result, detail, bench.readiness([hit.api for hit in result.hits]))
    if not without_matcher or result.degraded:
        return view
    return view.model_copy(update={"notes": (*view.notes, without_matcher)})


def _check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UsageError(f"{name} is {value}", hint=f"a number from {least} to {most:,} is taken")


def describe(
    bench: Workbench, api_id: str, *, catalog: str | None = None, schema: bool = False
) -> ApiView:
    """Return one API with its parameters, its last check and what a call of it has now. Blocks.

    ``catalog``: as this catalog has it, hidden or not. ``schema``: with the JSON Schema of its
    arguments.

    Raises:
        NotFoundError: no such API or catalog; the hint names similar ids.
        DataError: the data folder cannot be used.
    """
    store = bench.registry().store
    api = store.get(api_id, catalog=catalog)
    check = store.checks([api]).get(api.id)
    now = bench.readiness_of(api, catalog)
    view = api_view(bench.as_called(api), check, now, schema=schema)
    served = store.home(api.id)[0] if catalog is not None else ""
    return view if served in ("", catalog) else view.model_copy(update={"hidden_behind": served})


async def call(
    bench: Workbench,
    api_id: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    files: Files | None = None,
    any_path: bool = False,
    save_to: str | Path | None = None,
    force: bool = False,
    confirm: AskConsent | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> CallResult:
    """Call one API and save what it brings as bytes; see ``AsyncToolbox.call``.

    ``any_path``: ``"@PATH"`` in the arguments names any file, as a person types it, and not only
    one below the setting ``upload_folder``. ``progress`` is called with (bytes here, bytes in all
    or None) while a large response is written to disk.

    Raises:
        NotFoundError: no such API.
        UsageError: a file cannot be read, or nothing can be saved at ``save_to``.
        DataError: the data folder cannot be used.
        UnsavedError: the call was made, and its response cannot be saved.
    """
    settings = bench.settings
    place = None if save_to is None else anywhere(str(save_to))

    def opened() -> tuple[Api, Caller, dict[str, Any]]:
        if place is not None:
            call_files.check_save(place, force=force)
        api = bench.api(api_id)
        given = add_files(api, dict(arguments or {}), _paths(files))
        find = anywhere if any_path else within(settings.upload_folder)
        return api, bench.caller(), with_files(api, given, find)

    api, caller, given = await in_thread(opened)
    spool = call_files.response_spool(settings.data_dir, settings.download_bytes, place)
    if progress is not None:
        spool = replace(spool, progress=progress)
    result = await caller.call(api, given, spool=spool)
    if result.consent is not None and confirm is not None:
        allowed = await confirm(result.consent)
        if allowed:
            result = await caller.call(api, given, consent=result.consent, spool=spool)
        elif allowed is False:
            result = declined_result(result)
    return await in_thread(lambda: save(result, settings.data_dir, place, force=force))


def _paths(files: Files | None) -> dict[str, list[Path]]:
    return {
        name: [anywhere(str(one)) for one in ([given] if isinstance(given, str | Path) else given)]
        for name, given in (files or {}).items()
    }


async def solve(
    bench: Workbench,
    task: str,
    options: SolveOptions,
    *,
    on_event: Callable[[Event], None],
    stop: Stop,
    model: tuple[Engine | ChatModel, Profile] | None = None,
    confirm: AskConsent | None = None,
    ask_value: AskValue | None = None,
) -> Outcome:
    """Solve a task with the model of the settings, or with ``model``; see ``Solver.solve``.

    ``on_event`` gets the events of every vote, for a journal; ``is_followed`` says which are shown.
    ``confirm`` asks a person for consent to a call. It is not used where calls reach no host
    (recordings, simulation).

    Raises:
        NotFoundError: no such category or model.
        UsageError: the options are not for this model.
        DataError: the model or the data folder cannot be used, or memory does not suffice.
    """

    def prepared() -> Solver:
        bench.check_category(options.category)
        return bench.solver(model=model, asks=confirm is not None)

    solver = await in_thread(prepared)
    return await solver.solve(
        task,
        options,
        on_event=on_event,
        stop=stop,
        ask=confirm if worth_asking(bench.settings) else None,
        ask_value=ask_value,
        every_vote=True,
    )


def prepare(
    bench: Workbench,
    task: str,
    given: Mapping[str, Any],
    answer_to: str = "",
    continues: str = "",
) -> tuple[str, SolveOptions]:
    """Return the whole task of a solve and its options, as far as both are known without a model.

    ``given`` goes before the settings. ``answer_to`` is a kept run whose question ``task`` answers,
    ``continues`` one whose answer and results are known to this one; where that was interrupted and
    no task is given, its own is solved. Blocks.

    Raises:
        UsageError: the task is empty or too long, or the run asks or found nothing.
        NotFoundError: no such run, or no such model.
        DataError: the model's file or the kept runs cannot be read.
    """
    if task or not continues:
        task = clean_task(task)
    check_model(bench.settings)  # before an index is built for nothing
    options = bench.options(**given)
    if not (answer_to or continues):
        return task, options
    with open_runs(bench.settings.data_dir) as store:
        if answer_to:
            record = store.get(answer_to)
            task = continued_task(record, task)
            continues = continues or (record.outcome.continues if record.outcome else "")
        if continues:
            task = task or interrupted_task(store.get(continues))
            earlier = earlier_runs(store.whole, continues)
            options = options.model_copy(update={"earlier": earlier})
    return task, options


async def solve_and_keep(
    bench: Workbench,
    task: str,
    options: SolveOptions,
    *,
    places: asyncio.Semaphore,
    on_event: Callable[[Event], None],
    stop: Stop,
    confirm: AskConsent | None = None,
    ask_value: AskValue | None = None,
) -> Outcome:
    """Solve a task once ``places`` has one free, and keep the run, whatever ends this process.

    Raises as ``solve`` does; nothing is kept then. What is cancelled is kept as interrupted.
    """
    run_id = new_run_id()

    def report(why: str) -> None:
        on_event(NoteEvent(seconds=0.0, text=f"warning: {why}"))

    journal = open_journal(bench.settings, run_id, task, options, report)

    def listen(event: Event) -> None:
        journal.add(event)
        if is_followed(event):
            on_event(event)

    try:
        try:
            async with places:
                outcome = await solve(
                    bench, task, options, on_event=listen, stop=stop,
                    confirm=confirm, ask_value=ask_value,
                )  # fmt: skip
        except Exception:
            journal.discard()
            raise
        return await in_thread(lambda: _kept(bench, outcome, run_id, journal))
    finally:
        journal.leave()


def _kept(bench: Workbench, outcome: Outcome, run_id: str, journal: Journal) -> Outcome:
    """Keep a run in place of its journal and return its outcome with its ``run_id``. Blocks.

    What prevents it never loses the answer: it is the last of ``notes`` then.
    """
    settings = bench.settings
    if not settings.keep_runs:
        return outcome
    kept = outcome.model_copy(update={"run_id": run_id})
    record = RunRecord(id=run_id, task=kept.task, status=kept.status, outcome=kept)
    if warning := keep_run(settings.data_dir, record, settings.keep_runs):
        notes = (*outcome.notes, f"warning: {warning}")
        return outcome.model_copy(update={"notes": notes})
    journal.discard()
    return kept
