"""Who solves the tasks: the oracle, or a model as ToolLLM had ChatGPT do it.

Each builds one ``Run`` of the runtime per task, over the task's own world and list of functions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from toolsrv_catalogs.text import clean
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.environment import Listing, PlayedCaller, Scene
from toolsrv_lab.annotation.oracle import (
    Mistake,
    Oracle,
    draw_mistakes,
    mistake_rounds,
    needed_rounds,
)
from toolsrv_lab.nano.world import World
from toolsrv_lab.twins import twin_of
from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime import TASK_LIMIT
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.agent.run import Run
from toolsrv_runtime.calls.caller import Caller
from toolsrv_runtime.contract.format import Format
from toolsrv_runtime.contract.hints import NO_HINTS, TaskHints
from toolsrv_runtime.contract.models import (
    ChatModel,
    Completion,
    Engine,
    OptionScores,
    Prompt,
    Sampling,
    SpecialTokens,
)
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import build_format, build_hints, ignore
from toolsrv_runtime.stop import Stop

TOO_LONG = "its task is empty or too long"
TOO_DEEP = "it needs more calls than --depth has room for"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all tasks share: the finder, the APIs by id, the real ones' ids, who calls and plays."""

    finder: ApiRetriever
    apis: Mapping[str, Api]
    real: frozenset[str]
    caller: Caller
    world: World


@dataclass(frozen=True, slots=True)
class Solved:
    """How a task ended, and the functions that were on offer in it."""

    outcome: Outcome
    offered: FunctionList


class Annotator(Protocol):
    """Solves tasks."""

    @property
    def name(self) -> str:
        """Who it is, for records."""

    def unfit(self, assignment: Assignment) -> str:
        """Return why it cannot take a task, empty where it can."""

    async def solve(self, assignment: Assignment, around: Surroundings) -> Solved:
        """Solve one task."""


class OracleAnnotator:
    """The oracle: ``mistakes`` is the share of the steps at which it errs."""

    name = "oracle"

    def __init__(self, options: SolveOptions, *, mistakes: float, offered: int) -> None:
        self._options = options
        self._mistakes = mistakes
        self._offered = offered

    def unfit(self, assignment: Assignment) -> str:
        """Return why it cannot take a task, empty where it can."""
        if assignment.unknown:
            return assignment.unknown
        deep = needed_rounds(assignment.steps) > mistake_rounds(self._options.depth)
        return TOO_DEEP if deep else _unfit(assignment)

    async def solve(self, assignment: Assignment, around: Surroundings) -> Solved:
        """Solve one task; what it does depends on the seed and the task alone."""
        options = self._options
        rng = random.Random(f"{options.seed}/{assignment.id}/{assignment.task}")
        slips = draw_mistakes(
            assignment.steps,
            around.apis,
            self._mistakes,
            width=options.width,
            depth=options.depth,
            rng=rng,
        )
        beside = _twins(assignment, slips, around.apis, rng)
        origins = {twin.id: around.apis[one] for one, twin in beside.items()}
        scene = _scene(assignment, slips, origins, options.seed)
        hidden = _of_kind(assignment, slips, "unoffered")
        form = Oracle(assignment, around.apis, slips, rng)
        listing = _listing(assignment, around, hidden=hidden, beside=beside)
        run = _run(assignment, options, listing, _NoModel(), form, around, scene,
                   offered=self._offered, anew=False, draws=False)  # fmt: skip
        return _solved(await run.run(), around, beside)


class EngineAnnotator:
    """A model with its own format; it is offered the APIs that the task needs among others.

    ``name`` stands for the model in records, as where the addresses of its servers may change.
    """

    def __init__(
        self,
        engine: Engine | ChatModel,
        profile: Profile,
        options: SolveOptions,
        *,
        name: str = "",
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._options = options
        self.name = name or engine.name

    def unfit(self, assignment: Assignment) -> str:
        """Return why it cannot take a task, empty where it can."""
        return _unfit(assignment)

    async def solve(self, assignment: Assignment, around: Surroundings) -> Solved:
        """Solve one task.

        Raises:
            ModelError: the engine failed.
        """
        profile, options = self._profile, self._options
        listing = _listing(assignment, around)
        scene = _scene(assignment, {}, {}, options.seed)
        form = build_format(self._engine, profile, prior=around.finder)
        run = _run(assignment, options, listing, self._engine, form, around, scene,
                   offered=options.candidates or profile.candidates,
                   anew=profile.anew_after_give_up, draws=profile.samples,
                   hints=build_hints(profile, around.finder))  # fmt: skip
        return _solved(await run.run(), around, {})


class _NoModel:
    """The engine of a run whose format asks none."""

    name = "oracle"
    context = 0
    special_tokens = SpecialTokens()

    def count(self, prompt: Prompt) -> int:  # noqa: ARG002 - the port
        return 0

    def generate(
        self,
        prompt: Prompt,  # noqa: ARG002
        *,
        grammar: str,  # noqa: ARG002
        max_tokens: int,  # noqa: ARG002
        sampling: Sampling = Sampling(),  # noqa: ARG002, B008 - frozen
        stop: Stop | None = None,  # noqa: ARG002
        excluded: Sequence[str] = (),  # noqa: ARG002
    ) -> Completion:
        self._refuse()

    def score(self, prompt: Prompt, options: object) -> OptionScores:  # noqa: ARG002
        self._refuse()

    def close(self) -> None:
        """Nothing to close."""

    def _refuse(self) -> NoReturn:
        raise ModelError("the oracle has no model", hint="use --teacher engine")


def _unfit(assignment: Assignment) -> str:
    text = clean(assignment.task, TASK_LIMIT + 1).strip()
    return "" if text and len(assignment.task) <= TASK_LIMIT else TOO_LONG


def _of_kind(assignment: Assignment, slips: Mapping[int, Mistake], kind: str) -> frozenset[str]:
    return frozenset(assignment.steps[at].api for at, one in slips.items() if one.kind == kind)


def _twins(
    assignment: Assignment,
    slips: Mapping[int, Mistake],
    apis: Mapping[str, Api],
    rng: random.Random,
) -> dict[str, Api]:
    """Return API id -> another that does the same, for those that fail and have one."""
    wanted = [assignment.steps[at].api for at, one in slips.items() if one.twin]
    failing = _of_kind(assignment, slips, "failing")
    return {one: twin_of(apis[one], rng) for one in dict.fromkeys(wanted) if one in failing}


def _scene(
    assignment: Assignment, slips: Mapping[int, Mistake], origins: Mapping[str, Api], seed: int
) -> Scene:
    """Return the world of a task; a later step finds what it needs in an invented answer."""
    fields: dict[str, str] = {}
    before = ""
    for step in assignment.steps:
        for value in step.arguments.values():
            if value.key and before:
                fields[before] = value.key
        before = step.api or before
    down = _of_kind(assignment, slips, "failing") | set(assignment.fails)
    return Scene(f"{seed}/{assignment.id}", down, origins, fields)


def _listing(
    assignment: Assignment,
    around: Surroundings,
    *,
    hidden: frozenset[str] = frozenset(),
    beside: Mapping[str, Api] | None = None,
) -> Listing:
    wanted = [around.apis[one] for one in assignment.apis if one in around.apis]
    candidates = [around.apis[one] for one in assignment.candidates if one in around.apis]
    return Listing(around.finder, wanted, hidden=hidden, beside=beside or {}, candidates=candidates)


def _run(
    assignment: Assignment,
    options: SolveOptions,
    listing: Listing,
    engine: Engine | ChatModel,
    form: Format,
    around: Surroundings,
    scene: Scene,
    *,
    offered: int,
    anew: bool,
    draws: bool,
    hints: TaskHints = NO_HINTS,
) -> Run:
    task = clean(assignment.task, TASK_LIMIT).strip()
    caller = PlayedCaller(around.caller, around.real, around.world, scene)
    return Run(
        task, options.model_copy(update={"keep_on_fault": False, "look_wider": False}), listing, engine, form, caller,
        ignore, Stop(), offered=offered, anew_after_give_up=anew, draws=draws,
        hints=hints,
    )  # fmt: skip


def _solved(outcome: Outcome, around: Surroundings, beside: Mapping[str, Api]) -> Solved:
    known = {**around.apis, **{one.id: one for one in beside.values()}}
    return Solved(outcome, FunctionList([known[one] for one in outcome.candidates]))
