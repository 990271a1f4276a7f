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
from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Asked, Match, Matcher, Slot


class MatcherFigures(BaseModel):
    """Shares over samples (``choice``, ``nothing``, ``whole``) and over parameters.

    ``choice``: the API that serves is the likeliest; ``nothing``: where none serves, none is
    likelier than not; ``whole``: every parameter of the right API is right.
    """

    model_config = ConfigDict(frozen=True)

    samples: int
    choice: Share
    nothing: Share
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
    choice, nothing, values, absent, whole = [], [], [], [], []
    for number, sample in enumerate(samples, start=1):
        offered = [one for one in (sample.api, *sample.others) if one]
        asked = Asked(sample.text, sample.clause, sample.facts)
        matches = matcher.match(asked, [apis[one] for one in offered])
        serves = [one.serves for one in matches]
        if not sample.api:
            nothing.append(max(serves, default=-1.0) < 0)
            continue
        choice.append(serves[0] >= max(serves))
        judged = _judged(sample, matches[0], apis[sample.api])
        values += [right for span, right in judged if span is not None]
        absent += [right for span, right in judged if span is None]
        whole.append(all(right for _, right in judged))
        progress(number, len(samples))
    return MatcherFigures(
        samples=len(samples), choice=share(choice), nothing=share(nothing),
        values=share(values), absent=share(absent), whole=share(whole),
    )  # fmt: skip


def _judged(sample: Sample, match: Match, api: Api) -> list[tuple[Span | None, bool]]:
    known = {one.name for one in pairing.parameters(api)}
    return [
        (span, _is_right(span, match.parameters[name]))
        for name, span in sample.spans.items()
        if name in known
    ]


def _is_right(span: Span | None, wanted: Slot) -> bool:
    best = wanted.best(1)
    if span is None:
        return not best or wanted.none >= best[0].score
    return bool(best) and best[0].score > wanted.none and best[0][:3] == tuple(span)
