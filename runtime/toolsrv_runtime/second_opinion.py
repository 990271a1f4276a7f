"""The second opinion: the model reads task, answer and evidence again, and may reject once.

A rejection makes a Finish call come to nothing, so the search goes on below it and the model reads
why. Where no opinion can be had (a budget is over, the prompt does not fit, the engine fails) the
answer stands, and the outcome says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from toolsrv_runtime import events
from toolsrv_runtime import outcome as out
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.formats.base import Interrupted, Judgement, Verifier, View
from toolsrv_runtime.ledger import final_answer
from toolsrv_runtime.search.dfsdt import Observed
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.state import State
from toolsrv_runtime.waiting import off_loop

_REJECTED = (
    "this answer was read again and rejected: {reason} Put that right, with further calls where "
    "they are needed, and call Finish again."
)


class SecondOpinion:
    """The judge of one solve's answers; every one is read until one was rejected."""

    def __init__(self, state: State, form: Verifier, view: Callable[[Node], View]) -> None:
        self._state = state
        self._format = form
        self._view = view

    async def on(self, node: Node, seen: Observed) -> Observed:
        """Return what the answer at ``node`` comes to: ``seen``, or a rejection that says why.

        Raises:
            ModelError, GrammarError: the engine failed, and that is not to be lived with.
        """
        state = self._state
        if state.rejected is not None:
            return seen
        opinion = await self._ask(node)
        state.opinions.append(opinion)
        depth = len(node.calls())
        state.tell(events.OpinionEvent(seconds=state.seconds(), depth=depth, opinion=opinion))
        state.tell_budget()
        if opinion.verdict != "rejected":
            return seen
        state.rejected = node
        told = _REJECTED.format(reason=opinion.reason)
        return Observed(Code.BAD_FINISH, json.dumps({"error": told}, ensure_ascii=False))

    async def _ask(self, node: Node) -> out.Opinion:
        state = self._state
        if over := state.ended():
            return out.Opinion(node=node.id, verdict="none", reason=over)
        try:
            with state.step():
                judged = await off_loop(self._question(node), state.stop)
        except Interrupted:
            judged, reason = None, state.ended() or "the opinion broke off"
        except ContextError as error:
            judged, reason = None, error.message
        except (ModelError, GrammarError) as error:
            if not state.options.keep_on_fault:
                raise
            judged, reason = None, f"the model failed: {error.message}"
        else:
            reason = judged.reason if judged else "the model said nothing usable"
        if judged is None:
            return out.Opinion(node=node.id, verdict="none", reason=reason)
        return out.Opinion(
            node=node.id, verdict="accepted" if judged.accepted else "rejected", reason=reason
        )

    def _question(self, node: Node) -> Callable[[], Judgement | None]:
        """Return the asking, for another thread; it reads nothing that changes meanwhile."""
        state, view = self._state, self._view(node)
        answer, tokens = final_answer(node), state.budget.tokens_left
        evidence = state.ledger.evidence({one.id for one in node.calls()})
        said = [(one.node, {"response": one.response, "error": one.error}) for one in evidence]

        def ask() -> Judgement | None:
            unsupported = trace(answer, state.known, said).unsupported
            untraced = list(dict.fromkeys(claim.text for claim in unsupported))
            return self._format.verify(
                view, answer, untraced, max_tokens=tokens, stop=state.stop, meter=state.meter
            )

        return ask
