"""Replies as moves: calls that go together, the end of a path, calls not to be made again. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from toolsrv_catalogs.text import clean
from toolsrv_runtime.agent.conversation import call_of, call_of_move
from toolsrv_runtime.agent.coverage import Need
from toolsrv_runtime.agent.tools import NO_FUNCTION_FITS
from toolsrv_runtime.contract.chat import ToolCall
from toolsrv_runtime.formats.base import FINISH, Move, Step, View

_GIVE_UP = "give_up_and_restart"
_GIVE_ANSWER = "give_answer"


def together(
    need: Need, left: Sequence[Need], ready: Callable[[Need], bool], most: int
) -> tuple[Need, ...]:
    """Return ``need`` and the other open needs that one reply may serve with it.

    Only those whose values are known: what waits for a result is called for once it is there.
    """
    others = (one for one in left if one is not need and ready(one)) if most > 1 else ()
    return (need, *others)[:most]


def joined(calls: Sequence[ToolCall], text: str, path: Sequence[Step], most: int) -> Move:
    """Return the first new call of a reply as a move, with at most ``most - 1`` others as ``also``.

    Identical calls count once, and one that stands on the path is left out, unless nothing is left
    then: the reply's first call counts. ``no_function_fits`` beside calls says nothing.
    """
    moves = [_move(one) for one in calls if one.name != NO_FUNCTION_FITS or len(calls) == 1]
    moves = list({_key(one): one for one in reversed(moves or [_move(calls[0])])}.values())[::-1]
    made = {_key(step.move) for step in path}
    fresh = [one for one in moves if _key(one) not in made] or moves[:1]
    thought = clean(text, 2000).strip() or None
    return replace(fresh[0], thought=thought, also=tuple(fresh[1:most]))


def planned(steps: Sequence[Step]) -> list[Move]:
    """Return the further calls of the replies that steps came in, without the steps themselves."""
    made = {_key(step.move) for step in steps}
    also = {_key(one): one for step in steps for one in step.move.also}
    return [one for key, one in also.items() if key not in made]


def answer(text: str) -> Move:
    """Return the end of a path with an answer."""
    arguments = {"return_type": _GIVE_ANSWER, "final_answer": text}
    return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def give_up(reason: str) -> Move:
    """Return the end of a path without one."""
    arguments = {"return_type": _GIVE_UP, "reason": reason}
    return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def made(view: View) -> tuple[ToolCall, ...]:
    """Return the calls of a path and those tried below its end, with all of their replies.

    A call that came too early was not made, and is to be made later.
    """
    steps = (*view.path, *view.tried)
    calls = [
        call_of(step, at)
        for at, step in enumerate(steps)
        if step.move.function != FINISH and not step.early
    ]
    also = enumerate(planned(view.tried), len(steps))
    return (*calls, *(call_of_move(move, at) for at, move in also))


def needlessly_failed(view: View) -> Iterator[str]:
    """Yield the functions of which a call failed whose error names an optional argument of it."""
    optional = {
        function.name: {
            key for key, one in function.parameters.items() if one in function.api.optional
        }
        for function in view.functions
    }
    for step in (*view.path, *view.tried):
        suspects = optional.get(step.move.function, set()) & step.move.parsed.keys()
        if not step.ok and any(key in step.observation for key in suspects):
            yield step.move.function


def _move(call: ToolCall) -> Move:
    return Move(None, call.name, json.dumps(call.arguments, ensure_ascii=False))


def _key(move: Move) -> str:
    """Return the same text for the same call, whatever the order of its arguments."""
    return json.dumps([move.function, move.parsed], sort_keys=True)
