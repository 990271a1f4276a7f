"""Conclude a solve: verify its answer on request, and derive status, answer and reason.

Verification: the model reads task, answer and evidence again and may reject once. A rejection makes
the Finish call fail, so the search continues below it. Where no judgement can be made (a budget is
over, the prompt does not fit, the engine fails) the answer stands, and the outcome says so.
Concluding is pure, except that the task hints name uncovered parts where the model does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from toolsrv_runtime import outcome
from toolsrv_runtime import outcome as out
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.candidates import Candidates
from toolsrv_runtime.agent.concurrency import run_in_thread
from toolsrv_runtime.agent.state import RunState, final_answer, versions
from toolsrv_runtime.contract.format import (
    FINISH,
    Action,
    History,
    Interrupted,
    Judgement,
    Verifier,
)
from toolsrv_runtime.contract.hints import Question, TaskHints
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.search.dfsdt import Observation
from toolsrv_runtime.search.tree import Code, Node

_ENGLISH_ALONE = "compact"
"""The format whose models were shown no other language."""

_KEY = "{} fits the task too and was left out, because it needs {}"
_ALONE = "no call succeeded: the answer is the model's own"
_BEFORE = "no call was made: the answer is from the run that the task goes on from"

TASK_LIMIT = 200
"""Characters of a task, or of a part of it, that are told where it is missing."""


def conclude(
    state: RunState, reason: str, hints: TaskHints, *, model: str, form: str
) -> out.Outcome:
    """Return the outcome; ``reason`` says why the search was ended from outside, or is empty."""
    end = _ending(state, reason, hints, english=form == _ENGLISH_ALONE)
    ledger, options = state.ledger, state.options
    used = {n.id for n in end.node.calls()} if end.node else set()
    evidence = tuple(ledger.evidence(used))
    results = [(one.node, {"response": one.response, "error": one.error}) for one in evidence]
    if end.status == "answered" and not any(one.ok for one in evidence):
        state.meter.note([_BEFORE if options.earlier else _ALONE])
    end = _with_keys(state, end)
    if end.status == "answered":
        state.meter.note([_KEY.format(*one) for one in state.offer.need_keys.items()])
    end, questions = _with_questions(state, _without_declined(state, end))
    known = state.known
    if end.status == "replied":  # the model is told the date, and may say it
        known = f"{known}\n{prompts.format_date(datetime.now().astimezone())}"
    traced = trace(end.answer, known, results)
    return out.Outcome(
        task=state.task,
        continues=options.earlier[-1].run_id if options.earlier else "",
        status=end.status,
        answer=end.answer,
        reason=end.reason,
        missing=end.missing,
        questions=questions,
        given=tuple(state.given),
        evidence=evidence,
        notes=tuple(state.meter.notes),
        supported=traced.supported,
        unsupported=traced.unsupported,
        unread=traced.unread,
        opinions=tuple(state.opinions),
        need_keys=dict(state.offer.need_keys),
        candidates=tuple(f.api.id for f in state.offer.all),
        searches=tuple(state.offer.searches),
        tree=tuple(ledger.nodes()),
        costs=tuple(ledger.costs),
        usage=state.usage(),
        limits=options.limits,
        strategy=options.strategy,
        width=options.width,
        depth=options.depth,
        chains=options.most_chains,
        switches=tuple(sorted(options.switches or ())),
        model=model,
        format=form,
        seed=options.seed,
        versions=versions(),
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    status: out.Status
    reason: str
    node: Node | None
    answer: str
    missing: tuple[str, ...] = ()


def _ending(state: RunState, reason: str, hints: TaskHints, *, english: bool) -> _Ending:
    """Return how a solve ended; ``english``: its model reads no other language."""
    ledger = state.ledger
    if ledger.findings.answers:
        node = ledger.findings.answers[0]
        if missing := _left_open(node):
            why = "nothing was found for: " + "; ".join(missing)
            return _Ending("partial", why, node, final_answer(node), missing)
        if _without_calls(node):
            return _Ending("replied", "the task needs no call", node, final_answer(node))
        return _Ending("answered", "the model finished", node, final_answer(node))
    if (last := ledger.closing) is not None:
        why = reason or "the search came to its end without an answer"
        return _unfinished(state, "partial", why, last, final_answer(last), hints)
    if (best := state.rejected) is not None:
        answer = final_answer(best)
    else:
        best = ledger.best()
        answer = ledger.partial(best)
    if reason:
        status: out.Status = "cancelled" if state.outer.is_set() else "partial"
        return _unfinished(state, status, reason, best, answer, hints)
    if ledger.findings.give_ups or not state.offer.available:
        return _unfinished(
            state, "gave_up", _why_given_up(state, english=english), best, answer, hints
        )
    return _unfinished(state, "partial", _why_unanswered(state), best, answer, hints)


def _without_declined(state: RunState, end: _Ending) -> _Ending:
    """Return an end as partial where a person declined a call, naming the calls that were not made.

    A stop by the user stays one.
    """
    declined = state.ledger.declined()
    if not declined or end.status in {"cancelled", "replied"}:
        return end
    requests = [one.consent.request if one.consent else one.api_id for one in declined]
    why = f"the person declined {'; '.join(map(_shortened, dict.fromkeys(requests)))}"
    if end.status != "answered":
        why = f"{why}; {end.reason}"
    parts = [step.move.about for step in state.ledger.steps.values() if step.declined]
    missing = (*end.missing, *filter(None, parts)) or requests
    return replace(end, status="partial", reason=why, missing=tuple(dict.fromkeys(missing)))


def _with_keys(state: RunState, end: _Ending) -> _Ending:
    """Return an end without a whole answer with what fits and lacks credentials, which comes first.

    Where no call succeeded, a model's giving up says nothing beside it.
    """
    if not state.offer.need_keys or end.status not in {"gave_up", "partial"}:
        return end
    why = "; ".join(
        f"{api_id} fits this task but needs {lacks}"
        for api_id, lacks in state.offer.need_keys.items()
    )
    succeeded = any(one.ok for one in state.ledger.results.values())
    if succeeded or end.status == "partial":
        why = f"{why}; {end.reason}"
    return replace(end, reason=why)


def _with_questions(state: RunState, end: _Ending) -> tuple[_Ending, tuple[Question, ...]]:
    """Return an end as one that needs input where calls lacked values, and the questions for them.

    A whole answer that was found without them stays one, and so does a stop by the user.
    """
    if end.status in {"answered", "replied", "cancelled"}:
        return end, ()
    asked = {one.api_id for one in state.unanswered}
    served = {one.api_id for one in state.ledger.results.values() if one.ok}
    late = (one for key, one in state.postponed.items() if key not in {*asked, *served})
    questions = (*state.unanswered, *late)
    if not questions:
        return end, ()
    reason = " ".join(dict.fromkeys(one.text for one in questions))
    return replace(end, status="needs_input", reason=reason), questions


def _unfinished(
    state: RunState, status: out.Status, why: str, node: Node | None, answer: str, hints: TaskHints
) -> _Ending:
    """Return an end without a whole answer, which names what of the task is open."""
    known = bool(answer.strip())
    missing = (_left_open(node) if node else ()) or _unserved(state, node, hints, known=known)
    if known and missing and status != "cancelled":
        why = f"{why}; still open: {'; '.join(missing)}"
    elif status == "partial" and not known:
        open_parts = "; ".join(missing)
        why = f"nothing was found before the search ended: {why}; still open: {open_parts}"
    return _Ending(status, why, node, answer, missing)


def _unserved(
    state: RunState, node: Node | None, hints: TaskHints, *, known: bool
) -> tuple[str, ...]:
    """Return what of the task is open where the model did not say it.

    Where calls say what they are for: what none was made for with success. Else: what no call
    above ``node`` serves, on which the answer rests; a stop by the user is not kept waiting for
    that. Where nothing is known it is the task.
    """
    ledger, whole = state.ledger, (_shortened(state.task),)
    if any(step.move.about for step in ledger.steps.values()):
        return tuple(ledger.unserved()) or (() if known else whole)
    if not known:
        return whole
    if node is None or state.outer.is_set():
        return ()
    results = [ledger.results[one.id] for one in node.calls() if one.id in ledger.results]
    found = hints.uncovered(state.task, tuple(state.offer.all), results)
    return tuple(map(_shortened, found))


def _shortened(task: str) -> str:
    line = " ".join(task.split())
    return line if len(line) <= TASK_LIMIT else f"{line[: TASK_LIMIT - 1]}…"


def _left_open(node: Node) -> tuple[str, ...]:
    """Return what an answer says that it leaves open; nothing of a call."""
    move = node.move
    return move.missing if isinstance(move, Action) and move.function == FINISH else ()


def _why_given_up(state: RunState, *, english: bool) -> str:
    offer = state.offer
    if english and offer.language:
        return f"the task is taken for {offer.language}, and this model reads English alone"
    if not state.ledger.results and not offer.fits:
        return _nothing(offer)
    said = _reason(state.ledger.findings.give_ups)
    return f"the model gave up{_all_failed(state)}{f'; it says: {said}' if said else ''}"


def _without_calls(node: Node) -> bool:
    move = node.move
    return isinstance(move, Action) and move.without_calls


def _reason(give_ups: Sequence[Node]) -> str:
    """Return the reason that the last give-up names, "" where none does."""
    for node in reversed(give_ups):
        try:
            value = json.loads(node.description)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(said := value.get("reason"), str) and said:
            return _shortened(said)
    return ""


def _all_failed(state: RunState) -> str:
    """Return that no call succeeded and why the first did not, "" where one did or none was made."""
    results = [one for one in state.ledger.results.values() if one.kind != "declined"]
    if not results or any(one.ok for one in results):
        return ""
    first = results[0]
    why = _shortened(first.error)
    if first.status and first.response is not None:
        why += f", {_shortened(json.dumps(first.response, ensure_ascii=False))}"
    elif first.hint and (not first.refused or first.kind == "unauthorized"):
        # for who set it up, not for a model
        why += f" ({first.hint})"
    return f"; no call succeeded, the first because: {why}"


def _why_unanswered(state: RunState) -> str:
    """Return why a search came to its own end, where the model did not give up."""
    ledger = state.ledger
    if state.rejected is not None:
        return "the answer was read again and rejected, and no other came"
    if (failure := ledger.failure()) and not ledger.results:
        return f"no reply of the model led to a call: {failure}"
    return f"nothing that was tried led to an answer{_all_failed(state)}"


def _nothing(offer: Candidates) -> str:
    """Say that the catalog has nothing for the task, and what is near or left out."""
    why = "no API in the catalog fits this task, read as English"
    if near := ", ".join(offer.nearest):
        why += f"; the nearest categories are {near}"
    if dead := offer.dead_left_out:
        why += f"; {dead} left out that failed when last checked"
    return why


_REJECTED = (
    "this answer was read again and rejected: {reason} Put that right, with further calls where "
    "they are needed, and call Finish again."
)


class AnswerVerifier:
    """The judge of one solve's answers; every one is read until one was rejected."""

    def __init__(self, state: RunState, form: Verifier, view: Callable[[Node], History]) -> None:
        self._state = state
        self._format = form
        self._view = view

    async def verify(self, node: Node, seen: Observation) -> Observation:
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
        state.report(outcome.OpinionEvent(seconds=state.seconds(), depth=depth, opinion=opinion))
        state.report_budget()
        if opinion.verdict != "rejected":
            return seen
        state.rejected = node
        told = _REJECTED.format(reason=opinion.reason)
        return Observation(Code.BAD_FINISH, json.dumps({"error": told}, ensure_ascii=False))

    async def _ask(self, node: Node) -> out.Opinion:
        state = self._state
        if over := state.ended():
            return out.Opinion(node=node.id, verdict="none", reason=over)
        try:
            with state.step():
                judged = await run_in_thread(self._question(node), state.stop)
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
