"""Execute the calls of a search: once each, with consent, reported, and recorded in the ledger.

A call that stands on its path already is answered from there; the second such repetition closes the
branch. Calls are equal when their bound arguments are: "15" equals 15 equals 15.0. What an interrupted
run had called, which this one goes on from, is not called again. A declined call is declined again
without a question. An API whose live calls failed ``MOST_FAILED`` times gets no further request in
this solve. The further calls of a reply are started with its first one (``concurrency``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolsrv_registry.api import Api
from toolsrv_runtime import outcome
from toolsrv_runtime.agent.conclusion import AnswerVerifier
from toolsrv_runtime.agent.concurrency import ConcurrentCalls, PlannedCall, run_until_stopped
from toolsrv_runtime.agent.elicitation import Elicitation, NotGivenError
from toolsrv_runtime.agent.state import RunState, call_evidence, result_code, uncalled_result
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.calls.policy import READ_METHODS
from toolsrv_runtime.calls.result import AskConsent, Consent, ResultKind, declined_result
from toolsrv_runtime.contract.format import FINISH, Action, Format, Step
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.options import EarlierRun
from toolsrv_runtime.outcome import Source
from toolsrv_runtime.search.dfsdt import Observation
from toolsrv_runtime.search.tree import Code, Node

MOST_REPEATS = 1
"""Repetitions of a call on one path that the search goes on from."""

MOST_FAILED = 2
"""Failed live calls of one API, on all branches, after which a solve leaves that API alone."""


class ApiCaller(Protocol):
    """Who makes the calls of a solve: ``Caller``, or one that several solves share."""

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
    ) -> CallResult:
        """See ``Caller.call``."""

    def schema(self, api: Api) -> Any:
        """See ``Caller.schema``."""


class CallBudgetError(Exception):
    """The budget of calls is used up."""


class CallExecutor:
    """The calls of one solve; the same call is made once."""

    def __init__(
        self,
        state: RunState,
        form: Format,
        caller: ApiCaller,
        second_opinion: AnswerVerifier | None,
        ask: AskConsent | None = None,
        elicitation: Elicitation | None = None,
    ) -> None:
        """Take the parts; ``ask`` is how a person is asked for consent, None where nobody can be.

        ``elicitation`` asks for values that nobody gave, None where the format does not see them.
        """
        self._state = state
        self._second_opinion = second_opinion
        self._format = form
        self._caller = caller
        self._ask = ask
        self._elicitation = elicitation
        self._known = _known_results(state.options.earlier)
        self._interrupted = frozenset(self._known)
        self._made: dict[int, str] = {}
        self._declined: set[str] = set()
        self._failed: Counter[str] = Counter()
        self._turn = ConcurrentCalls(
            caller.call, state.budget, lambda api: MOST_FAILED - self._failed[api.id]
        )

    async def act(self, node: Node) -> Observation:
        """Execute the action of ``node``.

        Raises:
            CallsOverError: no further call may be made.
            Interrupted: the solve is to end, in the middle of a call.
        """
        move = node.move
        if not isinstance(move, Action):
            raise TypeError(f"not a move of ours: {move!r}")
        state = self._state
        rounds = len(node.calls())
        above = node.calls()[-2].id if rounds > 1 else 0
        state.report(
            outcome.ThoughtEvent(
                seconds=state.seconds(),
                node=node.id,
                parent=above,
                depth=rounds,
                text=move.thought or "",
            )
        )
        if move.verdict is not None or move.function == FINISH:
            seen = uncalled_result(move)
            if seen.code == Code.ANSWER and self._second_opinion is not None:
                seen = await self._second_opinion.verify(node, seen)
            return self._record(node, Step(move, seen.text, seen.code == Code.ANSWER), seen.code)
        return await self._call(node, move, rounds)

    async def close(self) -> None:
        """Cancel the calls that were started and not acted on."""
        await self._turn.close()

    def _record(self, node: Node, step: Step, what: Code) -> Observation:
        """Record the result of an action; close the branch if it repeats itself."""
        made = self._made.setdefault(node.id, call_key(step.move.function, step.move.arguments))
        repeats = sum(self._made.get(above.id) == made for above in node.calls()[:-1])
        self._state.ledger.steps[node.id] = replace(step, repeats=repeats)
        closed = self._state.options.close_repeats and repeats > MOST_REPEATS
        return Observation(what, step.observation, closed)

    async def _call(self, node: Node, move: Action, depth: int) -> Observation:
        state = self._state
        api = state.offer.all.lookup(move.target or move.function)
        if api is None:
            text = self._format.observation(
                None, f"there is no function {move.function!r}; choose one of the list"
            )
            return self._record(node, Step(move, text, ok=False), Code.UNKNOWN_FUNCTION)
        if over := state.budget.calls_ended():
            raise CallBudgetError(over)
        lacking = ""
        try:
            arguments = args.parse(move.arguments)
            asks = self._elicitation
            given = {} if asks is None else await asks.values(node, api, move)
            if given:
                arguments |= given
                move = _with(node, move, arguments)
            shown = args.bind(api, arguments)
        except ArgumentError as error:
            shown, problem = {"arguments": move.arguments}, f"{error.message} ({error.hint})"
            result = _refused(api, shown, "bad_arguments", problem)
        except NotGivenError as error:
            told = arguments if error.why == "doubted" else {}
            lacking, result = error.why, _refused(api, told, error.kind, str(error))
        else:
            key = self._made[node.id] = call_key(api.id, shown)
            if not self._is_known(key) and not self._turn.holds(key) and not self._is_left(api):
                self._check_requests()
            self._report_call(node, move, api, shown, depth)
            result = await self._result(node, PlannedCall(key, api, arguments), move)
        schema = self._caller.schema(api)
        text = self._format.observation(result.response, result.error, schema)
        state.ledger.results[node.id] = result
        state.report(
            outcome.ObservationEvent(
                seconds=state.seconds(),
                node=node.id,
                depth=depth,
                status=result.status,
                text=text,
                source=result.source,
                evidence=call_evidence(node.id, move.function, result),
            )
        )
        step = Step(
            move,
            text,
            result.ok,
            result.response,
            down=not result.ok and (result.unavailable or self._is_left(api)),
            declined=result.kind == "declined",
            unanswered=lacking == "unanswered",
            early=lacking == "early",
            doubted=lacking == "doubted",
        )
        return self._record(node, step, result_code(result))

    def _report_call(
        self, node: Node, move: Action, api: Api, arguments: dict[str, Any], depth: int
    ) -> None:
        state = self._state
        state.report(
            outcome.CallEvent(
                seconds=state.seconds(),
                node=node.id,
                depth=depth,
                api_id=api.id,
                function=move.function,
                arguments=arguments,
            )
        )

    async def _result(self, node: Node, call: PlannedCall, move: Action) -> CallResult:
        """Call, or repeat what the same call gave before in this solve; faithfully, call again."""
        key, api = call.key, call.api
        if self._is_known(key):
            return self._known[key]
        if self._is_left(api):
            return _left(api, args.bind(api, call.arguments))
        if self._turn.holds(key):
            self._turn.start([one async for one in self._planned(node, move, key)])
        result = await self._turn.take(key, self._state.stop)
        if result is None:
            result = await self._send(node, call, move)
        if result.source == "live" and not result.ok and not result.refused:
            self._failed[api.id] += 1
        if result.refused:
            result = result.model_copy(update={"error": f"{result.error} ({result.hint})"})
        self._known[key] = result
        return result

    async def _send(self, node: Node, call: PlannedCall, move: Action) -> CallResult:
        """Make a call, with the further ones of its reply beside it; ask a person if need be."""
        api, arguments = call.api, call.arguments
        self._check_requests()
        self._state.budget.calls += 1
        tainted = self._has_response_text()
        if api.method.upper() in READ_METHODS:
            self._turn.start([one async for one in self._planned(node, move, call.key)], api)
        made = self._caller.call(api, arguments, tainted=tainted)
        result = await run_until_stopped(made, self._state.stop)
        if result.consent is None:
            return result
        allowed = await self._allowed(node, result.consent)
        if allowed:
            made = self._caller.call(api, arguments, tainted=tainted, consent=result.consent)
            return await run_until_stopped(made, self._state.stop)
        return declined_result(result) if allowed is False else result

    async def _planned(self, node: Node, move: Action, made: str) -> AsyncIterator[PlannedCall]:
        """Yield the further calls of a reply that are to be sent, without the one that is made.

        Up to the first that may change something, or lacks a value that a person is to be asked
        for: it is made in its turn, and what follows after.
        """
        asks = self._elicitation
        for one in move.also:
            api = self._state.offer.all.lookup(one.target or one.function)
            if api is None or self._is_left(api):
                continue
            if api.method.upper() not in READ_METHODS:
                return
            try:
                arguments = args.parse(one.arguments)
                key = call_key(api.id, args.bind(api, arguments))
            except ArgumentError:
                continue
            if key == made or self._is_known(key) or self._turn.holds(key):
                continue
            if asks is not None and await asks.lacks_value(node, api, one):
                return
            yield PlannedCall(key, api, arguments)

    def _is_known(self, key: str) -> bool:
        repeats = self._state.options.close_repeats or key in self._interrupted
        return repeats and key in self._known

    def _check_requests(self) -> None:
        if over := self._state.budget.requests_ended():
            raise CallBudgetError(over)

    def _is_left(self, api: Api) -> bool:
        """Whether so many live calls of an API failed that it gets no further one."""
        return self._failed[api.id] >= MOST_FAILED

    async def _allowed(self, node: Node, wanted: Consent) -> bool | None:
        """Ask a person whether exactly this call may be made; None where nobody answers.

        A request that was declined before, of whichever API, is declined without a question.

        Raises:
            Interrupted: the user wants to stop, and nobody waits for the answer any more.
        """
        if self._ask is None:
            return None
        request = call_key(wanted.request, wanted.arguments)
        if request in self._declined:
            return False
        self._report_consent(node, wanted, None)
        with self._state.waiting():
            said = await run_until_stopped(self._ask(wanted), self._state.outer)
        if said is False:
            self._declined.add(request)
        self._report_consent(node, wanted, bool(said))
        return said

    def _report_consent(self, node: Node, wanted: Consent, allowed: bool | None) -> None:
        state = self._state
        state.report(
            outcome.ConsentEvent(
                seconds=state.seconds(),
                node=node.id,
                depth=len(node.calls()),
                method=wanted.method,
                host=wanted.host,
                path=wanted.path,
                allowed=allowed,
            )
        )

    def _has_response_text(self) -> bool:
        """Whether text of a response has entered the run: consent is then asked for more."""
        if any(run.calls for run in self._state.options.earlier):
            return True
        return any(one.response is not None for one in self._state.ledger.results.values())


def _known_results(earlier: Sequence[EarlierRun]) -> dict[str, CallResult]:
    """Return what the interrupted runs at the end of a chain had called, by the key of the call."""
    found: dict[str, CallResult] = {}
    for run in reversed(earlier):
        if not run.interrupted:
            break
        for call in run.calls:
            result = CallResult(
                api_id=call.api_id,
                arguments=call.arguments,
                url="",
                status=call.status,
                response=call.response,
                error="",
                source=call.source,
                seconds=0.0,
            )
            found.setdefault(call_key(call.api_id, call.arguments), result)
    return found


def call_key(name: str, arguments: str | dict[str, Any]) -> str:
    """Return the same text for the same call: keys in order, 15.0 as 15."""
    if isinstance(arguments, dict):
        arguments = {
            key: int(value) if isinstance(value, float) and value.is_integer() else value
            for key, value in arguments.items()
        }
    return json.dumps([name, arguments], sort_keys=True)


def _left(api: Api, arguments: dict[str, Any]) -> CallResult:
    """Return the result of a call of an API that is left alone: nothing was sent."""
    problem = (
        f"{api.id}: {MOST_FAILED} calls of it failed, and it is not called again in this solve "
        "(choose another API, or answer with what is known)"
    )
    return _refused(api, arguments, "blocked_by_policy", problem, "live")


def _with(node: Node, move: Action, arguments: dict[str, Any]) -> Action:
    """Return an action with other arguments, and record them in the tree."""
    text = json.dumps(arguments, ensure_ascii=False)
    changed = replace(move, arguments=text, pieces=())
    node.move, node.description = changed, text
    return changed


def _refused(
    api: Api, arguments: dict[str, Any], kind: ResultKind, problem: str, source: Source = "offline"
) -> CallResult:
    return CallResult(
        api_id=api.id,
        arguments=arguments,
        url=api.url,
        status=0,
        response=None,
        error=problem,
        source=source,
        seconds=0.0,
        kind=kind,
    )
