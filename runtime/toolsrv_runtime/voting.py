"""Several solves of one task at the same time, and the answer that most of them support.

They share one engine (whose decodes are shared), one budget, the results of identical calls and a
person's answers to identical questions. Which outcome wins is ``search.vote``'s to say.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime import events
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calling import ApiCaller, call_key
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.result import Ask, CallResult, Consent
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.run import Run
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.search.vote import choose
from toolsrv_runtime.waiting import gathered

Listener = Callable[[events.Event], None]
MakeRun = Callable[[int, SolveOptions, ApiCaller, Listener, Budget, Ask | None], Run]


class SharedCalls:
    """Calls of several solves: identical ones are made once, while they run and after.

    ``made`` counts them. ``ask`` puts the same question to a person once.
    """

    def __init__(self, caller: ApiCaller, ask: Ask | None) -> None:
        self._caller = caller
        self._ask = ask
        self._calls: dict[str, asyncio.Future[CallResult]] = {}
        self._questions: dict[str, asyncio.Future[bool | None]] = {}
        self.made = 0

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
    ) -> CallResult:
        """Return the result of a call, made now, under way or known."""
        try:
            key = call_key(api.id, args.bind(api, arguments))
        except ArgumentError:  # the result says so
            return await self._caller.call(api, arguments, tainted=tainted, consent=consent)
        key = json.dumps([key, tainted, consent is not None])
        if key not in self._calls:
            self.made += 1
            call = self._caller.call(api, arguments, tainted=tainted, consent=consent)
            self._calls[key] = asyncio.ensure_future(call)
        return await asyncio.shield(self._calls[key])

    def schema(self, api: Api) -> Any:
        """Return what is known of the shape of an API's responses."""
        return self._caller.schema(api)

    @property
    def ask(self) -> Ask | None:
        """How a person is asked, None where nobody can be."""
        return None if self._ask is None else self._asked

    async def close(self) -> None:
        """Cancel what nobody waits for any more."""
        pending: list[asyncio.Future[Any]] = [*self._calls.values(), *self._questions.values()]
        for one in pending:
            one.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _asked(self, wanted: Consent) -> bool | None:
        key = call_key(wanted.request, wanted.arguments)
        if key not in self._questions and self._ask is not None:
            self._questions[key] = asyncio.ensure_future(self._ask(wanted))
        return await asyncio.shield(self._questions[key])


async def voted(
    options: SolveOptions, make: MakeRun, caller: ApiCaller, ask: Ask | None, on_event: Listener
) -> out.Outcome:
    """Solve ``options.votes`` times; return the winner, its usage that of all, with a note.

    ``on_event`` gets the events of the first solve, what a person is asked by any, and a note for
    each that ended.

    Raises:
        ToolsrvError: every solve failed; the first one's error.
    """
    shared = SharedCalls(caller, ask)
    budget = Budget(options.limits, time.monotonic())

    def listener(number: int) -> Listener:
        if number == 0:
            return on_event
        return lambda event: on_event(event) if event.kind == "consent" else None

    runs = [
        make(
            number,
            options.model_copy(update={"seed": options.seed + number, "votes": 1}),
            shared,
            listener(number),
            budget,
            shared.ask,
        )
        for number in range(options.votes)
    ]
    try:
        ended = await gathered(run.run() for run in runs)
    finally:
        await shared.close()
    outcomes = [one for one in ended if isinstance(one, out.Outcome)]
    errors = [one for one in ended if isinstance(one, BaseException)]
    unexpected = next((one for one in errors if not isinstance(one, ToolsrvError)), None)
    if unexpected is not None or not outcomes:
        raise unexpected or errors[0]
    choice = choose(outcomes)
    winner = outcomes[choice.index]
    notes = [f"{choice.agreed} of {options.votes} solves support this answer"]
    notes += [f"a solve of the vote failed: {error}" for error in errors]
    usage = _total([run.usage() for run in runs], shared.made)
    for note in notes:
        on_event(events.NoteEvent(seconds=usage.seconds, text=note))
    return winner.model_copy(
        update={
            "notes": tuple(dict.fromkeys((*winner.notes, *notes))),
            "usage": usage,
            "votes": options.votes,
            "agreed": choice.agreed,
        }
    )


def _total(usages: Sequence[out.Usage], calls: int) -> out.Usage:
    """Return what all solves cost together: they ran at the same time, and shared their calls."""
    return out.Usage(
        seconds=max(one.seconds for one in usages),
        calls=calls,
        model_calls=sum(one.model_calls for one in usages),
        prompt_tokens=sum(one.prompt_tokens for one in usages),
        evaluated_tokens=sum(one.evaluated_tokens for one in usages),
        generated_tokens=sum(one.generated_tokens for one in usages),
        forced_tokens=sum(one.forced_tokens for one in usages),
    )
