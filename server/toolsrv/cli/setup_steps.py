"""The steps of ``toolsrv setup``: each asks, or takes what is proposed, and says what it did.

The last step solves one task through a registered entry: the server is started as the client starts
it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolsrv import config_file
from toolsrv.cli.output import note
from toolsrv.clients.handshake import session
from toolsrv.clients.known import ServerCommand
from toolsrv.plain import plain
from toolsrv.setup.state import CompletedStep, StepName, UndoAction
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError

if TYPE_CHECKING:
    from toolsrv.cli.session import Session
    from toolsrv.clients.known import ServerCommand
    from toolsrv.clients.places import Machine
    from toolsrv.setup.machine import FoundModel, MachineCapacity
    from toolsrv_registry.storage.entries import CatalogEntry

T = TypeVar("T")
NONE = "none"
CATALOG = "toolbench"
KEYS_ASKED = 5
SAMPLE = 300
"""APIs of a catalog that are looked at for the keys that they need."""
MODES = ("live", "replay", "offline")


@dataclass(frozen=True)
class SetupAnswers:
    """What the command line says beforehand; None and () leave the question open."""

    yes: bool = False
    model: str | None = None
    catalog: str | None = None
    mode: str | None = None
    clients: tuple[str, ...] = ()
    no_clients: bool = False
    task: str | None = None


@dataclass
class Setup:
    """What the steps share."""

    session: Session
    context: click.Context
    machine: Machine
    answers: SetupAnswers
    run_id: str = ""
    _power: list[MachineCapacity] = field(default_factory=list)

    @property
    def data_dir(self) -> Path:
        """The data folder."""
        return self.session.load().settings.data_dir

    @property
    def config(self) -> Path:
        """The settings file."""
        return config_file.config_path(self.session.flags)

    def power(self) -> MachineCapacity:
        """Return what this machine has, looked at once."""
        from toolsrv.setup.machine import measure_capacity

        if not self._power:
            self._power.append(measure_capacity(self.data_dir))
        return self._power[0]

    def choose(self, title: str, options: Sequence[tuple[T, str]]) -> T:
        """Return one of several values; the first is proposed, and taken with ``--yes``."""
        if self.answers.yes or len(options) == 1:
            return options[0][0]
        click.echo(title, err=True)
        for number, (_, words) in enumerate(options, 1):
            click.echo(plain(f"  {number}. {words}"), err=True)
        numbers = click.IntRange(1, len(options))
        return options[click.prompt("number", default=1, type=numbers, err=True) - 1][0]

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Return the person's yes or no; with ``--yes`` what is proposed."""
        return default if self.answers.yes else click.confirm(question, default=default, err=True)

    def text(self, question: str) -> str:
        """Return what the person types."""
        return str(click.prompt(question, err=True)).strip()

    def setting(self, key: str, change: Callable[[], object]) -> tuple[UndoAction, ...]:
        """Run a change of a setting in the file and return what undoes it."""
        before = config_file.read(self.config).get(key)
        change()
        after = config_file.read(self.config).get(key)
        return (UndoAction(kind="setting", name=key, before=before, after=after),) * (
            before != after
        )


def machine_step(setup: Setup) -> CompletedStep:
    """Say what this machine has, and how fast the model that ships writes here."""
    from toolsrv.health import measure_model

    power = setup.power()
    pace = measure_model(setup.session.workbench(model="nano"))
    suggested = power.suggested()
    more = f"; suggests {suggested.name}" if suggested else "; the model that ships suits it"
    return CompletedStep(found=f"{power.words}; {pace.found}{more}")


def model_step(setup: Setup) -> CompletedStep:
    """Choose a model: one that is here already, a recommended one to bring, or the one that ships."""
    from toolsrv.model_list import SHIPPED

    wanted = setup.answers.model
    if wanted is not None:
        return _use_model(setup, wanted)
    options = _model_options(setup)
    if not setup.answers.yes:
        return _use_model(setup, setup.choose("Which model?", options))
    for value, _ in options:  # the best that can be used, without a download
        try:
            return _use_model(setup, value)
        except ToolsrvError as error:
            note(f"note: {value}: {error.message}")
    return _use_model(setup, SHIPPED)


def _model_options(setup: Setup) -> list[tuple[str, str]]:
    """Return what can be chosen, the best first; with ``--yes`` only what is here already."""
    from toolsrv.model_list import SHIPPED
    from toolsrv.setup.machine import best_model, environment, found_files, found_servers
    from toolsrv_runtime.requirements import format_bytes

    power = setup.power()
    files = found_files(
        setup.machine.home, environment(), power.room, 0 if power.gpu else power.cores
    )
    found = [*files, *found_servers()]
    for one in found:
        if one.why_not:
            note(f"note: {one.title} does not suit: {one.why_not}")
    proposed: FoundModel | None = best_model(found)
    fitting = [one for one in found if not one.why_not and one != proposed]
    ordered = [proposed, *fitting] if proposed else fitting
    options = [
        (
            one.value,
            f"{one.title}{f', {format_bytes(one.size)}' if one.size else ''}, is here already",
        )
        for one in ordered
    ]
    options.append((SHIPPED, "the one that ships: small, answers from results only"))
    if (suggested := power.suggested()) and not setup.answers.yes:
        options.append((suggested.name, f"bring {suggested.name} ({suggested.note})"))
    return options


def _use_model(setup: Setup, value: str) -> CompletedStep:
    from toolsrv.cli.model import use
    from toolsrv.cli.model_create import pull
    from toolsrv.model_list import SHIPPED, ModelList
    from toolsrv_runtime.hub import find_recommended

    if value == SHIPPED and setup.session.load().settings.model is None:
        return CompletedStep(found=f"model {value}")
    listed = {one.name for one in ModelList(setup.data_dir).entries()}
    known = find_recommended(value)
    pulled: tuple[UndoAction, ...] = ()
    if known is not None and known.name not in listed:
        value = known.name
        setup.context.invoke(pull, repo=value)
        pulled = (UndoAction(kind="pulled-model", name=value),)
    undo = setup.setting("model", lambda: setup.context.invoke(use, model=value))
    return CompletedStep(found=f"model {value}", undo=(*pulled, *undo))


def catalog_step(setup: Setup) -> CompletedStep:
    """Bring the published catalog, or import the person's own document."""
    from toolsrv.cli.catalog.imports import import_, pull
    from toolsrv_catalogs.published import is_published

    before = {one.name: one for one in _catalogs(setup)}
    source = setup.answers.catalog
    if source is None:
        if CATALOG in before:
            return CompletedStep(found=f"{CATALOG} is here ({before[CATALOG].apis:,} APIs)")
        source = setup.choose(
            "Which catalog besides the one that ships?",
            [
                (CATALOG, "16,464 APIs of RapidAPI, as ToolBench has them (12 MB to bring)"),
                ("", "my own OpenAPI document: a file or an address"),
                (NONE, "none"),
            ],
        )
        source = source or setup.text("file or address")
    if source == NONE:
        return CompletedStep(found="only the catalog that ships")
    if is_published(source):
        setup.context.invoke(pull, source=source)
    else:
        setup.context.invoke(import_, source=source)
    after = _catalogs(setup)
    new = [one for one in after if one.name not in before]
    words = ", ".join(f"{one.name} ({one.apis:,} APIs)" for one in new) or "nothing new"
    return CompletedStep(
        found=words, undo=tuple(UndoAction(kind="catalog", name=one.name) for one in new)
    )


def _catalogs(setup: Setup) -> list[CatalogEntry]:
    return setup.session.workbench().registry().store.catalogs()


def keys_step(setup: Setup) -> CompletedStep:
    """Ask for the keys that most APIs of the enabled catalogs need; none is shown or passed on."""
    from toolsrv.calls.keys import KeyStore

    store = KeyStore(setup.data_dir)
    missing = [name for name in _keys_needed(setup) if not store.known(name)]
    if not missing:
        return CompletedStep(found="no key is missing")
    if setup.answers.yes:
        return CompletedStep(
            found="later: " + ", ".join(f"toolsrv keys set {name}" for name in missing)
        )
    undo = []
    for name in missing[:KEYS_ASKED]:
        secret = click.prompt(
            f"key for {name} (Enter: later)",
            hide_input=True,
            default="",
            show_default=False,
            err=True,
        )
        if secret.strip():
            store.store(name, secret)
            undo.append(UndoAction(kind="key", name=name))
    kept = ", ".join(one.name for one in undo)
    return CompletedStep(found=f"kept for {kept}" if kept else "none given", undo=tuple(undo))


def _keys_needed(setup: Setup) -> list[str]:
    """Return the names of keys by how many APIs need them, those that most need first."""
    from collections import Counter

    from toolsrv.views.apis import key_views

    store = setup.session.workbench().registry().store
    counts: Counter[str] = Counter()
    for catalog in store.catalogs():
        if catalog.enabled:
            for api in store.apis(catalog=catalog.name, limit=SAMPLE):
                groups = key_views(api)
                if groups and all(groups):  # an empty group is a call without a key
                    counts.update(one.name for one in groups[0] if one.name)
    return [name for name, _ in counts.most_common()]


def policy_step(setup: Setup) -> CompletedStep:
    """Say how calls are made: over the network, from recordings, or not at all."""
    from toolsrv.cli.config import set_

    now = setup.session.load().settings.mode
    wanted = setup.answers.mode
    if wanted is None:
        words = {
            "live": "reads over the network; whatever changes something asks first",
            "replay": "only from recordings",
            "offline": "only the catalog that ships, no network",
        }
        first = now if now in MODES else "live"
        ordered = [first, *(one for one in MODES if one != first)]
        wanted = setup.choose(
            "How may calls be made?", [(one, f"{one}: {words[one]}") for one in ordered]
        )
    mode = wanted
    undo: tuple[UndoAction, ...] = ()
    if mode != now:
        undo = setup.setting("mode", lambda: setup.context.invoke(set_, key="mode", value=mode))
    return CompletedStep(found=f"calls are {mode}", undo=undo)


def clients_step(setup: Setup) -> CompletedStep:
    """Register in the clients that are found here, or in those that were named."""
    from toolsrv.cli.connect import chosen_client, own_start
    from toolsrv.clients.known import CLIENTS
    from toolsrv.clients.register import registered, registration_change

    if setup.answers.no_clients:
        return CompletedStep(found="none wanted")
    named = [chosen_client(name) for name in setup.answers.clients]
    own = own_start(setup.session)
    done, undo = [], []
    for client in named or [one for one in CLIENTS.values() if one.found(setup.machine)]:
        try:
            was = registered(client, setup.machine)
            if not named and not was and not setup.confirm(f"Register in {client.title}?"):
                continue
            for path in client.paths(setup.machine):
                change = registration_change(
                    client, setup.machine, own.arguments, env=own.env, path=path
                )
                if change.needed:
                    change.write()
        except ToolsrvError as error:
            if named:
                raise
            note(f"note: {client.title}: {error.message}; {error.hint}")
            continue
        done.append(f"{client.title} ({client.then})")
        if not was:
            undo.append(UndoAction(kind="client", name=client.id))
    if not done:
        return CompletedStep(
            found="none was found here; toolsrv connect --list shows those that are known"
        )
    return CompletedStep(found="registered in " + ", ".join(done), undo=tuple(undo))


def task_step(setup: Setup) -> CompletedStep:
    """Solve one real task through a registered entry, and draw its tree."""
    from toolsrv.cli.run import show
    from toolsrv.clients.handshake import warm_handshake_cache
    from toolsrv.clients.registrations import handshake_status

    start = _registered_start(setup)
    note(f"starting {start.line}")
    heard = warm_handshake_cache(start)
    task = setup.answers.task or TASK
    note(f"{handshake_status(heard)}; the task: {task}")
    run = solve_over_stdio(start, task, note)
    status, run_id = str(run.get("status", "")), str(run.get("run_id", ""))
    answer = str(run.get("answer") or run.get("reason") or "")
    if status not in ("answered", "replied"):
        raise DataError(
            f"the task ended as {status or 'nothing'}: {answer}",
            hint="try another model: toolsrv setup --again model",
        )
    setup.run_id = run_id
    page = setup.data_dir / "setup-run.html"
    setup.context.invoke(show, run=run_id)
    setup.context.invoke(show, run=run_id, html=page)
    undo = UndoAction(kind="file", name=str(page))
    return CompletedStep(found=f"{answer} (run {run_id}, its picture: {page})", undo=(undo,))


def _registered_start(setup: Setup) -> ServerCommand:
    """Return what the first registered client starts, without one what it would start."""
    from toolsrv.cli.connect import own_start
    from toolsrv.clients.registrations import Registration, registrations

    for one in registrations(setup.machine):
        if isinstance(one, Registration) and one.start is not None and not one.is_stale:
            return one.start
    return own_start(setup.session)


STEPS: dict[StepName, tuple[str, Callable[[Setup], CompletedStep]]] = {
    "machine": ("this machine", machine_step),
    "model": ("the model", model_step),
    "catalog": ("the catalog", catalog_step),
    "keys": ("keys", keys_step),
    "policy": ("calls", policy_step),
    "clients": ("clients", clients_step),
    "task": ("a first task", task_step),
}
"""The steps in their order: what they are about, and what they do."""


def named_steps(answers: SetupAnswers) -> set[StepName]:
    """Return the steps that the command line says something about: they are done again."""
    said: dict[StepName, object] = {
        "model": answers.model,
        "catalog": answers.catalog,
        "policy": answers.mode,
        "clients": answers.clients or answers.no_clients,
        "task": answers.task,
    }
    return {name for name, value in said.items() if value}


def refuse_without_person(answers: SetupAnswers) -> None:
    """Raise UsageError where questions would be asked and nobody sits there."""
    import sys

    if not answers.yes and not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError(
            "setup asks questions, and nobody is there to answer",
            hint="say --yes to take what is proposed, with --model, --catalog, --client as wanted",
        )


TASK = "What is the complementary color of teal?"
"""Answered by the catalog that ships, without the network."""
CALL_S = 60.0
TASK_S = 300.0
WAIT_S = 20
_GOING = ("queued", "working")


def solve_over_stdio(start: ServerCommand, task: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the ended run of a task: what ``solve_task`` or ``get_run`` said last. Blocks.

    Raises:
        DataError: the server fails, or the run does not end within ``TASK_S``.
    """
    end = time.monotonic() + TASK_S
    with session(start) as server:
        server.open("2025-11-25")
        run = server.call("solve_task", {"task": task, "wait_s": WAIT_S}, CALL_S)
        while run.get("status") in _GOING:
            if time.monotonic() > end:
                raise DataError(
                    f"the task is not done after {TASK_S:g} seconds",
                    hint="choose a smaller model: toolsrv setup --again model",
                )
            say(f"{run.get('status')}: {run.get('phase') or 'begun'}")
            asked = {"run_id": run.get("run_id"), "wait_s": WAIT_S}
            run = server.call("get_run", asked, CALL_S)
    return run
