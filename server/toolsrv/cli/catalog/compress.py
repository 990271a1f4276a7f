"""``toolsrv catalog compress``: a model chooses the keys of responses that are kept (ToolLLM, A.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.options import (
    engine_model_option,
    example,
    json_option,
    model_option,
    threads_option,
)
from toolsrv.cli.output import console, emit_json, note, pluralize, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from toolsrv.calls.example_responses import ExampleResponses
    from toolsrv.workbench import Workbench
    from toolsrv_registry.api import Api, Catalog
    from toolsrv_registry.storage.response_schemas import MadeSchema
    from toolsrv_registry.storage.store import Store
    from toolsrv_runtime.calls.response_keys import ResponseKeys
    from toolsrv_runtime.contract.models import ChatModel
    from toolsrv_runtime.stop import Stop

_SHOWN = 20

_HINT = (
    "hint: record calls (--mode record), or keep replies with toolsrv catalog check NAME --mode live "
    "--record FILE and name them here with --file FILE"
)

NO_EXAMPLE = "there is no example response"
FEW_KEYS = "its responses have fewer than four keys that stay the same"
HAS_SCHEMA = "its source has a schema that leaves something out (--replace)"


@dataclass(frozen=True)
class _Task:
    """An API whose keys are to be chosen.

    ``required`` paths are kept whatever the model says; ``documented`` is its source's schema where
    that names all keys.
    """

    api: Api
    content_hash: str
    example: Any
    source: str
    keys: ResponseKeys
    required: frozenset[str]
    documented: Any


@dataclass(frozen=True)
class _Plan:
    """What is to be asked, what this model chose before, and why other APIs are left out, by id."""

    tasks: list[_Task]
    done: list[MadeSchema]
    left_out: dict[str, str]


@dataclass(frozen=True)
class _Provenance:
    """What is kept of how schemas are made."""

    model: str
    identity: str
    prompt: str
    version: str
    seed: int

    def made(self, entry: MadeSchema) -> bool:
        """Whether a result is of the same model, wording and seed."""
        mine = (self.identity, self.prompt, self.seed)
        return (entry.identity, entry.prompt, entry.seed) == mine


@click.command(
    epilog=example(
        "toolsrv catalog compress github --model model.gguf --dry-run",
        "toolsrv catalog compress github --model http://host:8000/v1 --jobs 16",
        "toolsrv catalog compress github --undo",
    )
)
@click.argument("name")
@model_option
@engine_model_option
@click.option("--api", "ids", multiple=True, metavar="ID", help="Only this API; repeatable.")
@click.option("--file", type=click.Path(path_type=Path),
              help="Replies that `toolsrv catalog check --record FILE` kept, as examples too.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), help="Ask about so many APIs at most.")
@click.option("--replace", is_flag=True,
              help="Also APIs whose source has a schema that leaves keys out.")  # fmt: skip
@click.option("--seed", type=int, help="Seed of the replies.")
@click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True,
              help="APIs asked about at the same time.")  # fmt: skip
@threads_option
@click.option("--dry-run", is_flag=True, help="Show what would be asked; ask nothing.")
@click.option("--undo", is_flag=True, help="Remove what was chosen; the source's schemas count.")
@json_option
@pass_session
def compress(
    session: Session,
    /,
    name: str,
    ids: tuple[str, ...],
    file: Path | None,
    limit: int | None,
    replace: bool,
    jobs: int,
    dry_run: bool,
    undo: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Have a model choose which keys of the catalog NAME's responses are worth their place.

    It sees each API's document and an example response: of a check's file, of recorded calls, or of
    the document itself. Calls then leave the other keys out of responses that are too long. The
    schemas are kept beside those of the source; a stopped run goes on with the same command.
    """
    from toolsrv.calls.example_responses import open_examples

    bench = session.workbench(**flags)
    store = bench.registry().store
    for one in ids:
        store.get(one, catalog=name)  # raises NotFoundError, with the nearest ids
    chosen = frozenset(ids) or frozenset(api.id for api in store.apis(catalog=name))
    if undo:
        _undo(store, name, chosen, dry_run=dry_run, as_json=as_json)
        return
    how = _provenance(bench)
    with open_examples(bench.settings.data_dir, file.expanduser() if file else None) as examples:
        plan = _plan(store, store.catalog(name), chosen, examples, how, replace=replace)
    tasks = plan.tasks[:limit]
    if dry_run:
        _show_plan(name, plan, tasks, as_json=as_json)
        return
    made: list[MadeSchema] = []
    failed: dict[str, str] = {}
    if tasks:
        model = evaluation.chat_model_of(bench)
        made, failed = _ask(model, tasks, store, how, jobs)
    _report(name, how, plan, made, failed, len(plan.tasks) - len(tasks), as_json=as_json)


def _provenance(bench: Workbench) -> _Provenance:
    from toolsrv import __version__
    from toolsrv_runtime.calls.key_selection import prompt_digest

    name, identity = evaluation.identity(bench.settings)
    return _Provenance(name, identity, prompt_digest(), __version__, bench.options().seed)


def _plan(
    store: Store,
    catalog: Catalog,
    chosen: frozenset[str],
    examples: ExampleResponses,
    how: _Provenance,
    *,
    replace: bool,
) -> _Plan:
    from toolsrv_registry.documents import content_hash

    known = store.response_schemas.of(chosen)
    tasks, left_out, done = [], {}, []
    for api, extra, required_names in _entries(catalog, chosen):
        content = content_hash(api)
        entry = known.get(api.id)
        if entry is not None and entry.content_hash == content and how.made(entry):
            done.append(entry)
            continue
        task = _task(api, content, extra, required_names, examples, replace=replace)
        if isinstance(task, str):
            left_out[api.id] = task
        else:
            tasks.append(task)
    return _Plan(tasks, done, left_out)


def _entries(
    catalog: Catalog, chosen: frozenset[str]
) -> Iterator[tuple[Api, Mapping[str, Any], Collection[str]]]:
    """Yield each chosen API, what its source says else, and what APIs of its tool require."""
    for tool in catalog.tools:
        extras = tool.api_extras or ({},) * len(tool.apis)
        required = frozenset(one.name for api in tool.apis for one in api.required)
        for api, extra in zip(tool.apis, extras, strict=True):
            if api.id in chosen:
                yield api, extra, required


def _task(
    api: Api,
    content: str,
    extra: Mapping[str, Any],
    required_names: Collection[str],
    examples: ExampleResponses,
    *,
    replace: bool,
) -> _Task | str:
    """Return what is to be asked about an API, or why nothing is."""
    from toolsrv_registry.api import RESPONSE_SCHEMA
    from toolsrv_runtime.calls.compress import filter_response
    from toolsrv_runtime.calls.response_keys import (
        FEWEST_KEYS,
        identifier_paths,
        response_keys,
    )

    found = examples.of(api, extra)
    if found is None:
        return NO_EXAMPLE
    keys = response_keys(found.responses)
    if len(keys.types) < FEWEST_KEYS:
        return FEW_KEYS
    shown = found.responses[0]
    documented = extra.get(RESPONSE_SCHEMA)
    if documented:
        left = filter_response(shown, documented)
        if left != shown:
            if any(left) and not replace:
                return HAS_SCHEMA
            documented = None
    required = identifier_paths(keys, api, required_names)
    return _Task(api, content, shown, found.source, keys, required, documented)


def _ask(
    model: ChatModel, tasks: Sequence[_Task], store: Store, how: _Provenance, jobs: int
) -> tuple[list[MadeSchema], dict[str, str]]:
    """Ask about each API and keep what is chosen; return it, and by id why nothing was.

    Raises:
        ToolsrvError: the model or the store failed; what was kept stays.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    made: list[MadeSchema] = []
    failed: dict[str, str] = {}

    def kept() -> str:
        done = pluralize(len(made), "API that is kept", "APIs that are kept")
        return f"the same command goes on after the {done}"

    try:
        with (
            evaluation.Progress("choosing keys", len(tasks)) as progress,
            evaluation.stop_on_interrupt() as stop,
        ):

            def one(task: _Task) -> None:
                entry = _choose(model, task, how, stop)
                if entry is None:
                    return
                if isinstance(entry, str):
                    failed[task.api.id] = entry
                else:
                    store.response_schemas.put(entry)
                    made.append(entry)
                progress.step(True)

            _in_threads(one, tasks, jobs, stop)
    except KeyboardInterrupt:
        note(kept())
        raise
    except ToolsrvError as error:
        error.hint = f"{error.hint}; {kept()}".lstrip("; ")
        raise
    return made, failed


def _in_threads(
    work: Callable[[_Task], None], tasks: Sequence[_Task], jobs: int, stop: Stop
) -> None:
    """Do all tasks; after a first error, or once ``stop`` is set, none is begun."""
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="compress")
    futures = [
        pool.submit(lambda task: None if stop.is_set() else work(task), one) for one in tasks
    ]
    try:
        wait(futures, return_when=FIRST_EXCEPTION)
        for each in futures:
            if each.done():
                each.result()
    finally:
        if any(not each.done() for each in futures):
            stop.set()
        pool.shutdown(cancel_futures=True)


def _choose(model: ChatModel, task: _Task, how: _Provenance, stop: Stop) -> MadeSchema | str | None:
    """Return the result for one API, why there is none, or None when ``stop`` was set."""
    from toolsrv_registry.storage.response_schemas import MadeSchema
    from toolsrv_runtime.calls.key_selection import savings, select_keys

    chosen = select_keys(
        model, task.api, task.keys, task.example, required=task.required, seed=how.seed, stop=stop
    )
    if chosen is None:
        return None
    if chosen.problem:
        return chosen.problem
    schema = task.keys.schema(chosen.kept, task.documented)
    saved = savings(model, task.example, schema)
    worth = saved.after < saved.before
    return MadeSchema(
        api_id=task.api.id,
        content_hash=task.content_hash,
        response_schema=schema if worth else None,
        model=how.model,
        identity=how.identity,
        prompt=how.prompt,
        version=how.version,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=how.seed,
        source=task.source,
        keys=len(task.keys.types),
        kept=len(chosen.kept),
        tokens_before=saved.before,
        tokens_after=saved.after if worth else saved.before,
        estimated=saved.estimated,
    )


def _undo(store: Store, name: str, chosen: frozenset[str], *, dry_run: bool, as_json: bool) -> None:
    many = (
        len(store.response_schemas.of(chosen)) if dry_run else store.response_schemas.remove(chosen)
    )
    if as_json:
        emit_json({"catalog": name, "removed": many, "dry_run": dry_run})
        return
    done = "would be removed" if dry_run else "removed"
    console().print(f"{done}: {pluralize(many, 'choice of keys', 'choices of keys')} of {name}")


def _show_plan(name: str, plan: _Plan, tasks: Sequence[_Task], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "id": one.api.id,
                "source": one.source,
                "keys": list(one.keys.types),
                "required": sorted(one.required),
            }
            for one in tasks
        ]
        emit_json(
            {"catalog": name, "apis": rows, "done": len(plan.done), "left_out": plan.left_out}
        )
        return
    if tasks:
        table(
            ("API", "example", "keys#", "kept anyway#"),
            [
                (one.api.id, one.source, len(one.keys.types), len(one.required))
                for one in tasks[:_SHOWN]
            ],
        )
    note(f"{pluralize(len(tasks), 'API')} would be asked about; nothing was asked")
    _note_left_out(plan, len(plan.tasks) - len(tasks))


def _report(
    name: str,
    how: _Provenance,
    plan: _Plan,
    made: Sequence[MadeSchema],
    failed: Mapping[str, str],
    beyond: int,
    *,
    as_json: bool,
) -> None:
    every = [*plan.done, *made]
    ordered = sorted(every, key=lambda one: (one.tokens_after - one.tokens_before, one.api_id))
    before = sum(one.tokens_before for one in every)
    after = sum(one.tokens_after for one in every)
    useful = [one for one in ordered if one.response_schema is not None]
    if as_json:
        emit_json(
            {
                "catalog": name,
                "model": how.model,
                "seed": how.seed,
                "asked": len(made) + len(failed),
                "with_schema": len(useful),
                "tokens_before": before,
                "tokens_after": after,
                "estimated": any(one.estimated for one in every),
                "failed": dict(failed),
                "done_before": len(plan.done),
                "left_out": plan.left_out,
                "apis": [one.model_dump(mode="json") for one in ordered],
            }
        )
        return
    if useful:
        table(
            ("API", "keys#", "kept#", "tokens before#", "after#"),
            [
                (one.api_id, one.keys, one.kept, one.tokens_before, one.tokens_after)
                for one in useful[:_SHOWN]
            ],
        )
    about = " (estimated)" if any(one.estimated for one in every) else ""
    share = f", {100 * (before - after) / before:.0f} % less" if before else ""
    note(
        f"{pluralize(len(useful), 'schema')} for {pluralize(len(every), 'API')}; their example "
        f"responses have {before:,} tokens before and {after:,} after{share}{about}"
    )
    for reason, many in Counter(failed.values()).most_common():
        note(f"note: {pluralize(many, 'API')} failed: {reason}")
    _note_left_out(plan, beyond)


def _note_left_out(plan: _Plan, beyond: int) -> None:
    if plan.done:
        note(f"note: {pluralize(len(plan.done), 'API')} done before by this model")
    if beyond:
        note(f"note: {pluralize(beyond, 'API')} left by --limit")
    for reason, many in Counter(plan.left_out.values()).most_common():
        note(f"note: {pluralize(many, 'API')} left out: {reason}")
    if not plan.tasks and not plan.done and NO_EXAMPLE in plan.left_out.values():
        note(_HINT)
