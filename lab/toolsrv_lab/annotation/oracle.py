"""Oracle: a conversation format that solves a task by its known calls, with deliberate mistakes.

It needs no model. Mistakes are drawn so that the tree search has room to correct them.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.instructions.errands import ErrandStep, sources
from toolsrv_lab.instructions.errands import ErrandStep as Wanted
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import Function
from toolsrv_runtime.contract.format import FINISH, Action, History, Interrupted, Step, UsageMeter
from toolsrv_runtime.planner import layout
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.values import facts

Kind = Literal["function", "missing", "argument", "failing", "unoffered"]

NODES_OF_A_CALL = 3
"""A reply with a thought and a call is three nodes of the tree."""

_KINDS: tuple[tuple[Kind, float], ...] = (
    ("function", 0.3), ("missing", 0.15), ("argument", 0.2), ("failing", 0.27), ("unoffered", 0.08),
)  # fmt: skip
_QUITS, _TWIN = 0.5, 0.65


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake. ``twin``: an API that does the same is offered beside the one that fails."""

    kind: Kind
    quits: bool = False
    twin: bool = False


def mistake_rounds(depth: int) -> int:
    """Return how many replies with a call a path of ``depth`` nodes has room for."""
    return -(-depth // NODES_OF_A_CALL)


def needed_rounds(steps: Sequence[ErrandStep]) -> int:
    """Return how many replies solve a task without a mistake, Finish included."""
    return sum(bool(step.api) for step in steps) + 1


def draw_mistakes(
    steps: Sequence[ErrandStep],
    apis: Mapping[str, Api],
    share: float,
    *,
    width: int,
    depth: int,
    rng: random.Random,
) -> dict[int, Mistake]:
    """Return step -> mistake for about this share of the steps, where the search can mend it."""
    found: dict[int, Mistake] = {}
    spare = mistake_rounds(depth) - needed_rounds(steps)
    before = 0  # replies on the path above the step
    for at, step in enumerate(steps):
        if not step.api:
            continue
        slip = _draw_mistake(step, apis[step.api], rng) if rng.random() < share else None
        room = before + 2 <= mistake_rounds(depth)  # the mistake and the give-up
        if slip is not None and not _is_silent(slip):
            if slip.quits and (width < 2 or not room):
                slip = Mistake(slip.kind, twin=slip.twin)
            if not slip.quits and spare < 1:
                slip = (
                    Mistake(slip.kind, quits=True, twin=slip.twin) if room and width > 1 else None
                )
            if slip is not None and not slip.quits:
                spare -= 1
                before += 1
        if slip is not None:
            found[at] = slip
        before += 1
    # An API that fails, fails for each step that calls it: a mistake of another kind would come on top.
    failing = {steps[at].api for at, slip in found.items() if slip.kind == "failing"}
    return {
        at: slip
        for at, slip in found.items()
        if slip.kind == "failing" or steps[at].api not in failing
    }


def _draw_mistake(step: ErrandStep, api: Api, rng: random.Random) -> Mistake:
    kinds, weights = zip(*_KINDS, strict=True)
    kind: Kind = rng.choices(kinds, weights)[0]
    given = {name for name in step.arguments if name in {one.name for one in api.required}}
    if (kind == "missing" and not given) or (kind == "argument" and not step.arguments):
        kind = "function"
    return Mistake(kind, quits=rng.random() < _QUITS, twin=rng.random() < _TWIN)


def _is_silent(slip: Mistake) -> bool:
    """Whether the mistake is the catalog's and costs no reply."""
    return slip.kind == "unoffered"


_WORD = re.compile(r"\w{3,}")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call: the function's name and its arguments as JSON text."""

    function: str
    arguments: str


def correct_call(
    api: Api, values: Mapping[str, str], functions: Sequence[Function]
) -> list[Attempt]:
    """Return the call of ``api`` (parameter name -> value), then those of APIs that do the same."""
    same = [one for one in functions if does_the_same(one.api, api)]
    same.sort(key=lambda one: one.api.id != api.id)
    return [Attempt(one.name, written(one, values)) for one in same]


def wrong_call(
    kind: Kind,
    api: Api,
    values: Mapping[str, str],
    functions: Sequence[Function],
    needed: Collection[str],
    words: str,
    rng: random.Random,
) -> Attempt | None:
    """Return a mistaken call instead of ``api``'s, None where there is none to make.

    ``needed`` are the ids of all APIs that the task needs, ``words`` those of the step.
    """
    if kind == "function":
        return _other_function(api, values, functions, needed)
    function = next((one for one in functions if one.api.id == api.id), None)
    if function is None:
        return None
    changed = dict(values)
    if kind == "missing":
        given = [one.name for one in api.required if one.name in values]
        if not given:
            return None
        del changed[rng.choice(given)]
    elif not _spoil(changed, words, rng):
        return None
    return Attempt(function.name, written(function, changed))


def written(function: Function, values: Mapping[str, str]) -> str:
    """Return values (parameter name -> text) as the JSON arguments of a function."""
    found = {
        key: _typed(parameter, values[parameter.name])
        for key, parameter in function.parameters.items()
        if parameter.name in values
    }
    return json.dumps(found, ensure_ascii=False)


def _other_function(
    api: Api, values: Mapping[str, str], functions: Sequence[Function], needed: Collection[str]
) -> Attempt | None:
    """Return a call of the nearest function that the task does not need."""
    others = [
        one for one in functions if one.api.id not in needed and not does_the_same(one.api, api)
    ]
    others.sort(key=lambda one: (one.api.category != api.category, one.api.tool != api.tool))
    if not others:
        return None
    left = list(values.values())
    taken: dict[str, str] = {}
    for parameter in others[0].parameters.values():
        if parameter.name in values:
            taken[parameter.name] = values[parameter.name]
        elif parameter in others[0].api.required and left:
            taken[parameter.name] = left.pop(0)
    return Attempt(others[0].name, written(others[0], taken))


def _spoil(values: dict[str, str], words: str, rng: random.Random) -> bool:
    """Give one argument another value: another argument's, or other words of the step."""
    if not values:
        return False
    name = rng.choice(sorted(values))
    right_one = values[name]
    others = sorted({value for value in values.values() if value != right_one})
    said = [word for word in _WORD.findall(words) if word.lower() not in right_one.lower()]
    pool = others or said
    if not pool:
        return False
    values[name] = rng.choice(pool)
    return True


def _typed(parameter: Parameter, value: str) -> Any:
    kind = parameter.type.strip().upper()
    if kind == "BOOLEAN" and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if kind == "NUMBER" and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value


OBSERVATION_LIMIT = 320
"""Characters of a response that an answer tells, as in the compact profile."""


class Oracle:
    """Solves ``assignment``; ``apis`` are those of its steps by id, ``slips`` its mistakes by step."""

    name = "oracle"

    def __init__(
        self,
        assignment: Assignment,
        apis: Mapping[str, Api],
        slips: Mapping[int, Mistake],
        rng: random.Random,
    ) -> None:
        self._steps = assignment.steps
        self._needed = frozenset(assignment.apis)
        self._apis = apis
        self._slips = slips
        self._rng = rng
        self._wrong: dict[int, Attempt | None] = {}
        self._serves: dict[Attempt, set[int]] = defaultdict(set)

    def observation(self, response: Any, error: str, schema: Any = None) -> str:  # noqa: ARG002 - the port
        """Return the response's first facts as a flat JSON object."""
        found = facts.facts(response, limit=OBSERVATION_LIMIT)
        if error and not any(name == "error" for name, _ in found):
            found.insert(0, ("error", facts.plain(error)[: facts.VALUE_LIMIT]))
        return json.dumps(dict(found), ensure_ascii=False)

    def propose(
        self,
        view: History,
        *,
        max_tokens: int,  # noqa: ARG002 - the port
        stop: Stop,
        meter: UsageMeter,
    ) -> Action | str:
        """Return the next move; see ``Format.propose``."""
        if stop.is_set():
            raise Interrupted
        meter.replies += 1
        served = self._served(view.path)
        missing: list[str] = []
        for at, step in enumerate(self._steps):
            if at in served:
                continue
            values = self._values(step, served)
            options = (
                correct_call(self._apis[step.api], values, view.functions)
                if (step.api and values is not None)
                else []
            )
            if values is None or not options:
                missing.append(step.words)
                continue
            return self._serve(at, values, options, view, missing)
        return self._finish(view, served, missing) if served else self._spent(view, missing)

    def finish(
        self,
        view: History,  # noqa: ARG002 - the port
        *,
        max_tokens: int,  # noqa: ARG002
        stop: Stop,  # noqa: ARG002
        meter: UsageMeter,  # noqa: ARG002
    ) -> Action | None:
        """Return nothing: what the plan does not answer is no example."""
        return None

    def prefers(
        self,
        view: History,  # noqa: ARG002 - the port
        first: Step,  # noqa: ARG002
        second: Step,  # noqa: ARG002
        *,
        stop: Stop,  # noqa: ARG002
        meter: UsageMeter,  # noqa: ARG002
    ) -> bool:
        """Prefer what the plan has first."""
        return True

    def _serve(
        self,
        at: int,
        values: Mapping[str, str],
        options: Sequence[Attempt],
        view: History,
        missing: Sequence[str],
    ) -> Action:
        """Return a call for a step that was not made before, or the end of the branch."""
        step, slip = self._steps[at], self._slips.get(at)
        for option in options:
            self._serves[option].add(at)
        if at not in self._wrong:
            self._wrong[at] = self._mistake(at, values, view)
        mistake = self._wrong[at]
        made = {_made(one) for one in (*view.path, *view.tried, *view.failed)}
        open_ = [one for one in ([mistake] if mistake else []) + [*options] if one not in made]
        if not open_:
            return self._spent(view, missing)
        last = _made(view.path[-1]) if view.path else None
        if slip is not None and slip.quits and last in {mistake, *options} - {None}:
            thought = f"#{_number(view, view.path[-1].move.function)} failed. give up"
            return _quit(thought, missing)
        told = {words for one in view.path for words in one.move.missing}
        before = "".join(f"{one}{layout.NOTHING}. " for one in missing if one not in told)
        thought = f"{_failed(view)}{before}{step.words}{_use(view, open_[0].function)}"
        return Action(
            thought, open_[0].function, open_[0].arguments, about=step.words, missing=tuple(missing)
        )

    def _mistake(self, at: int, values: Mapping[str, str], view: History) -> Attempt | None:
        slip, step = self._slips.get(at), self._steps[at]
        if slip is None or slip.kind not in {"function", "missing", "argument"}:
            return None
        api = self._apis[step.api]
        found = wrong_call(
            slip.kind, api, values, view.functions, self._needed, step.words, self._rng
        )
        return None if found in self._serves else found

    def _served(self, path: Sequence[Step]) -> dict[int, Any]:
        """Return the steps that a path has served, with what the API answered."""
        found: dict[int, Any] = {}
        for one in path:
            if one.ok and one.move.function != FINISH:
                found |= dict.fromkeys(self._serves.get(_made(one), ()), one.response)
        return found

    def _values(self, step: Wanted, served: Mapping[int, Any]) -> dict[str, str] | None:
        """Return parameter name -> value, None where an earlier answer lacks what is needed."""
        last_first = sorted(served, reverse=True)
        seen = [fact for at in last_first for fact in facts.whole(served[at]).items()]
        taken = sources(step.arguments, [name for name, _ in seen])
        values = {name: one.value for name, one in step.arguments.items() if not one.key}
        values |= {name: seen[at][1] for name, at in taken.items()}
        return values if len(values) == len(step.arguments) else None

    def _spent(self, view: History, missing: Sequence[str]) -> Action:
        """Return a give-up where nothing is left to try, with the call that could not be mended."""
        failed = [one for one in view.failed if _made(one) in self._serves]
        number = _number(view, failed[-1].move.function) if failed else 0
        if number:
            return _quit(f"#{number}{layout.GIVE_UP}", missing)
        thought = "; ".join(f"{words}{layout.NOTHING}" for words in missing)
        return _quit(thought or "nothing is left to try", missing)

    def _finish(self, view: History, served: Mapping[int, Any], missing: Sequence[str]) -> Action:
        told = {words for one in view.path for words in one.move.missing}
        before = "".join(f"{one}{layout.NOTHING}. " for one in missing if one not in told)
        found = [facts.facts(served[at], limit=OBSERVATION_LIMIT) for at in sorted(served)]
        text = "; ".join(facts.sentence(one) for one in found if one)
        answer = {"return_type": "give_answer", "final_answer": text}
        arguments = json.dumps(answer, ensure_ascii=False)
        return Action(before + layout.DONE, FINISH, arguments, missing=tuple(missing))


def _quit(thought: str, missing: Sequence[str]) -> Action:
    return Action(thought, FINISH, layout.QUIT, missing=tuple(missing))


def _failed(view: History) -> str:
    """Return how a thought begins after a call that did not succeed."""
    last = view.path[-1] if view.path else None
    number = _number(view, last.move.function) if last is not None and not last.ok else 0
    return f"#{number} failed. " if number else ""


def _use(view: History, function: str) -> str:
    return f"{layout.USE}{_number(view, function)}"


def _number(view: History, function: str) -> int:
    """Return a function's number on the list, 0 where it is not on it any more."""
    names = [one.name for one in view.functions]
    return names.index(function) + 1 if function in names else 0


def _made(step: Step) -> Attempt:
    return Attempt(step.move.function, step.move.arguments)
