"""How well a matcher reads samples that it has not learnt from: the API, and the values.

A sample's API stands among ``others`` that do not serve the clause. A value is right when exactly
its words are found; where there is none, when none is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.matching.samples import Sample, Span
from toolsrv_registry import pairing
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.matcher import Asked, Match, Matcher, Slot

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
        asked = Asked(sample.text, None if sample.whole else sample.clause, sample.facts)
        matches = matcher.match(asked, [apis[one] for one in offered])
        serves = [one.serves for one in matches]
        if not sample.api:
            nothing.append(max(serves, default=-1.0) < 0)
            continue
        choice.append(serves[0] >= max(serves))
        if sample.whole:
            clause.append(_is_found(sample.clause, matches[0].clause))
        judged = _judged(sample, matches[0], apis[sample.api])
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


def _judged(sample: Sample, match: Match, api: Api) -> list[tuple[bool, bool]]:
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
