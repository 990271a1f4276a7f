"""Carrying out the model's moves: calls made once, told of, and written into the ledger."""

from __future__ import annotations

import json
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.errors import ArgumentError, PolicyError
from toolsrv_runtime.formats.base import FINISH, Format, Move, Step
from toolsrv_runtime.ledger import code, settled
from toolsrv_runtime.search.dfsdt import Observed
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.state import State
from toolsrv_runtime.waiting import until_stopped


class CallsOverError(Exception):
    """The budget of calls is used up."""


class Calling:
    """The calls of one solve; the same call is made once."""

    def __init__(self, state: State, form: Format, caller: Caller) -> None:
        self._state = state
        self._format = form
        self._caller = caller
        self._known: dict[str, CallResult] = {}

    async def act(self, node: Node) -> Observed:
        """Carry out the move of ``node``.

        Raises:
            CallsOverError: no further call may be made.
            Interrupted: the solve is to end, in the middle of a call.
        """
        move = node.move
        if not isinstance(move, Move):
            raise TypeError(f"not a move of ours: {move!r}")
        state = self._state
        rounds = len(node.calls())
        above = node.calls()[-2].id if rounds > 1 else 0
        state.tell(
            out.ThoughtEvent(
                seconds=state.seconds(),
                node=node.id,
                parent=above,
                depth=rounds,
                text=move.thought or "",
            )
        )
        if move.verdict is not None or move.function == FINISH:
            seen = settled(move)
            state.ledger.steps[node.id] = Step(move, seen.text, seen.code == Code.ANSWER)
            return seen
        return await self._call(node, move, rounds)

    async def _call(self, node: Node, move: Move, depth: int) -> Observed:
        state = self._state
        api = state.offer.all.lookup(move.target or move.function)
        if api is None:
            text = self._format.observation(
                None, f"there is no function {move.function!r}; choose one of the list"
            )
            state.ledger.steps[node.id] = Step(move, text, ok=False)
            return Observed(Code.UNKNOWN_FUNCTION, text)
        if over := state.budget.calls_ended():
            raise CallsOverError(over)
        try:
            arguments = args.parse(move.arguments)
            shown = args.bind(api, arguments)
        except ArgumentError as error:
            shown, problem = {"arguments": move.arguments}, f"{error.message} ({error.hint})"
            result = _refused(api, shown, problem)
        else:
            self._tell_call(node, move, api, shown, depth)
            result = await self._result(api, arguments)
        text = self._format.observation(result.response, result.error)
        state.ledger.results[node.id] = result
        state.ledger.steps[node.id] = Step(move, text, result.ok, result.response)
        state.tell(
            out.ObservationEvent(
                seconds=state.seconds(),
                node=node.id,
                depth=depth,
                status=result.status,
                text=text,
                source=result.source,
            )
        )
        return Observed(code(result), text)

    def _tell_call(
        self, node: Node, move: Move, api: Api, arguments: dict[str, Any], depth: int
    ) -> None:
        state = self._state
        state.tell(
            out.CallEvent(
                seconds=state.seconds(),
                node=node.id,
                depth=depth,
                api_id=api.id,
                function=move.function,
                arguments=arguments,
            )
        )

    async def _result(self, api: Api, arguments: dict[str, Any]) -> CallResult:
        """Call, or repeat what the same call gave before in this solve."""
        key = json.dumps([api.id, arguments], sort_keys=True)
        if key in self._known:
            return self._known[key]
        self._state.budget.calls += 1
        try:
            result = await until_stopped(self._caller.call(api, arguments), self._state.stop)
        except PolicyError as error:
            result = _refused(api, arguments, f"{error.message} ({error.hint})")
        self._known[key] = result
        return result


def _refused(api: Api, arguments: dict[str, Any], problem: str) -> CallResult:
    return CallResult(
        api_id=api.id,
        arguments=arguments,
        url=api.url,
        status=0,
        response=None,
        error=problem,
        source="offline",
        seconds=0.0,
    )
