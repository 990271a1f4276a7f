"""The oracle: a conversation format that needs no model, since it knows the calls of its task.

It runs inside the product's own search, so trees, backtracking, give-ups and budgets are those of a
solve. Its thoughts are the compact format's (``formats.layout``): the words of the task that are
served and `` use #k``. It errs as ``slips`` says, and afterwards goes on below the mistake or gives
the branch up. One oracle serves one task.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_lab.annotation import attempts
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.attempts import Attempt
from toolsrv_lab.annotation.slips import Slip
from toolsrv_lab.instructions.errands import Step as Wanted
from toolsrv_lab.instructions.errands import sources
from toolsrv_registry.api import Api
from toolsrv_runtime.contract.format import FINISH, Action, History, Interrupted, Step, UsageMeter
from toolsrv_runtime.planner import layout
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.values import facts

OBSERVATION_LIMIT = 320
"""Characters of a response that an answer tells, as in the compact profile."""


class Oracle:
    """Solves ``assignment``; ``apis`` are those of its steps by id, ``slips`` its mistakes by step."""

    name = "oracle"

    def __init__(
        self,
        assignment: Assignment,
        apis: Mapping[str, Api],
        slips: Mapping[int, Slip],
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
                attempts.right(self._apis[step.api], values, view.functions)
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
        found = attempts.wrong(
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
