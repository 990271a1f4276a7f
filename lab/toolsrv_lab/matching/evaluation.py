"""Evaluation of a matcher: on held-out samples, and on whole tasks with a search's hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.matching.samples import Sample, Span
from toolsrv_lab.solving import GoldCall, Task
from toolsrv_registry import pairing
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.matcher import Match, Matcher, MatchRequest, Slot
from toolsrv_registry.search.retriever import Hit
from toolsrv_runtime.agent.candidates import rerank
from toolsrv_runtime.agent.coverage import NEEDED_LOG_ODDS, UNSERVED_LOG_ODDS

_MOST = 0.5


class MatcherFigures(BaseModel):
    """Shares over samples (``choice``, ``nothing``, ``clause``, ``whole``) and over parameters.

    ``choice``: the API that serves is the likeliest; ``nothing``: where none serves, none is
    likelier than not; ``clause``: most of the clause is found, where it was to be, and it is most
    of what is found; ``whole``: every parameter of the right API is right.
    """

    model_config = ConfigDict(frozen=True)

    samples: int
    choice: Share
    nothing: Share
    clause: Share
    values: Share
    absent: Share
    whole: Share


def evaluate(
    matcher: Matcher,
    samples: Sequence[Sample],
    apis: Mapping[str, Api],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> MatcherFigures:
    """Return the figures of a matcher. Raises DataError where it cannot be loaded."""
    choice, nothing, clause, values, absent, whole = [], [], [], [], [], []
    for number, sample in enumerate(samples, start=1):
        offered = [one for one in (sample.api, *sample.others) if one]
        asked = MatchRequest(sample.text, None if sample.whole else sample.clause, sample.facts)
        matches = matcher.match(asked, [apis[one] for one in offered])
        serves = [one.serves for one in matches]
        if not sample.api:
            nothing.append(max(serves, default=-1.0) < 0)
            continue
        choice.append(serves[0] >= max(serves))
        if sample.whole:
            clause.append(_is_found(sample.clause, matches[0].clause))
        judged = _judged_sample(sample, matches[0], apis[sample.api])
        values += [right for stated, right in judged if stated]
        absent += [right for stated, right in judged if not stated]
        whole.append(all(right for _, right in judged))
        progress(number, len(samples))
    return MatcherFigures(
        samples=len(samples), choice=share(choice), nothing=share(nothing),
        clause=share(clause), values=share(values), absent=share(absent), whole=share(whole),
    )  # fmt: skip


def _is_found(clause: tuple[int, int], slot: Slot) -> bool:
    best = slot.best(1)
    if not best:
        return False
    both = min(clause[1], best[0].end) - max(clause[0], best[0].begin)
    return both > _MOST * max(clause[1] - clause[0], best[0].end - best[0].begin)


def _judged_sample(sample: Sample, match: Match, api: Api) -> list[tuple[bool, bool]]:
    """Return for each parameter that is known whether it has a value, and whether that is found."""
    found = []
    for one in pairing.parameters(api):
        slot, span = match.parameters[one.name], sample.spans.get(one.name, ...)
        if one.enum and one.name in sample.listed:
            found.append((True, _meant(one, slot) == sample.listed[one.name]))
        elif one.enum and span is None:
            found.append((False, _meant(one, slot) == ""))
        elif not one.enum and span is not ...:
            found.append((span is not None, _is_right(span, slot)))
    return found


def _meant(parameter: Parameter, slot: Slot) -> str:
    best = slot.listed()[:1]
    return parameter.enum[best[0][0]] if best and best[0][1] > slot.none else ""


def _is_right(span: Span | None, wanted: Slot) -> bool:
    best = wanted.best(1)
    if span is None:
        return not best or wanted.none >= best[0].score
    return bool(best) and best[0].score > wanted.none and best[0][:3] == tuple(span)


HITS = 8
"""Hits of the search for a task that the matcher reads, as many as a chat model's candidates."""


class TaskFigures(BaseModel):
    """Shares over tasks; ``values`` over arguments, ``unneeded`` over hits.

    ``found``: every needed hit is above ``NEEDED``; ``unneeded``: so is a hit that no call needs;
    ``kept``: a served task is not given up; ``given_up``: one that nothing serves is
    (``NOTHING``). ``values``: an argument that stands in the task is what the matcher points at;
    those with allowed values do not count.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    found: Share
    unneeded: Share
    kept: Share
    given_up: Share
    values: Share


def evaluate_tasks(
    matcher: Matcher,
    tasks: Sequence[Task],
    search: Callable[[str], Sequence[Hit]],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> TaskFigures:
    """Return the figures of a matcher over tasks.

    ``search`` returns a text's hits, which the matcher reranks as in a solve.

    Raises:
        DataError: the matcher cannot be loaded.
    """
    found: list[bool] = []
    unneeded: list[bool] = []
    kept: list[bool] = []
    given_up: list[bool] = []
    values: list[bool] = []
    for number, task in enumerate(tasks, start=1):
        ranked = rerank(search(task.task), task.task, matcher.match)[:HITS]
        hits = [one.hit for one in ranked]
        apis = [hit.api for hit in hits]
        matches = dict(
            zip((api.id for api in apis), matcher.match(MatchRequest(task.task), apis), strict=True)
        )
        needed = {call.api for call in task.calls}
        best = max((one.serves for one in matches.values()), default=UNSERVED_LOG_ODDS)
        (kept if needed else given_up).append((best >= UNSERVED_LOG_ODDS) == bool(needed))
        scores = [one.serves for api, one in matches.items() if api in needed]
        if needed:
            found.append(len(scores) == len(needed) and min(scores) >= NEEDED_LOG_ODDS)
        unneeded += [
            one.serves >= NEEDED_LOG_ODDS for api, one in matches.items() if api not in needed
        ]
        known = {api.id: api for api in apis}
        for call in task.calls:
            if call.api in matches:
                values += _values(task.task, call, known[call.api], matches[call.api])
        progress(number, len(tasks))
    return TaskFigures(
        tasks=len(tasks), found=share(found), unneeded=share(unneeded), kept=share(kept),
        given_up=share(given_up), values=share(values),
    )  # fmt: skip


def _values(task: str, call: GoldCall, api: Api, match: Match) -> list[bool]:
    """Return for each argument that stands in the task whether it is pointed at."""
    judged = []
    for parameter in api.parameters:
        said = str(call.arguments.get(parameter.name, ""))
        slot = match.parameters.get(parameter.name)
        if slot is None or parameter.enum or not said or said.lower() not in task.lower():
            continue
        best = slot.best(1)
        words = ""
        if best and not best[0].source and best[0].score > slot.none:
            words = task[best[0].begin : best[0].end]
        judged.append(words.lower() == said.lower())
    return judged
