"""Which function serves a part of a task, or none: what model, retriever and matcher say together.

Pure but for these three.
"""

from __future__ import annotations

from toolsrv_registry.matcher import MatchRequest
from toolsrv_runtime.contract.format import Reranker
from toolsrv_runtime.planner import layout
from toolsrv_runtime.planner.calculating import calculator, is_down
from toolsrv_runtime.planner.filling import has_left
from toolsrv_runtime.planner.inverse import is_shaped_for
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.purposes import may_serve
from toolsrv_runtime.planner.reading import grounding
from toolsrv_runtime.planner.scene import Offer, Scene, about
from toolsrv_runtime.planner.turn import Turn

PRIOR_WEIGHT = 8.3
"""Nats of the model's preference that a difference of one in the prior outweighs.

This and the next were fitted to 1,700 steps of whole tasks (a multinomial logit) before there was a
matcher; what follows them was chosen with it, on the development and open tasks.
"""

LIKE = 2.0
"""What the likeness to requests that people make of a function adds to its prior."""

MATCH_WEIGHT = 0.5
"""What the matcher's log-odds that a function serves some words count; also with their context."""

WHOLE_WEIGHT = 0.5
"""What the matcher's log-odds that the whole task needs a function count."""

PLANNED = 3.0
"""What a function gains that the whole task needs for these words (``planned``)."""

CHOICE_WEIGHT = 0.25
"""What the model's own log-probability counts: one that small hardly tells functions apart."""

NOTHING_PRIOR = 1.0
"""The prior that no function serves some words."""

NEED_SHARE = 0.6
"""Share of the prior that comes from the words of a need; the rest from the whole task."""

TIE = 0.09
"""What a function's prior gains for each parameter that the task speaks of."""

MOST_TIES = 3
"""Parameters that count for that."""

FAR = 0.7
"""Share of its prior a function keeps when a number must come from another part of the task."""

NEAR = 0.6
"""A failed part is tried with another function only if its prior is this share of the best."""


def choose(
    turn: Turn,
    part: str,
    scene: Scene,
    matched: Matched,
    prior: Reranker | None,
    *,
    planned: str = "",
) -> Offer | None:
    """Return the function for a part: the model's log-probability, the prior's, the match's.

    ``planned`` is the name of the one that the whole task needs for it.
    """
    offers = scene.offers
    fits = _fit(part, scene, prior)
    tried = any(about(step) == part for step in scene.attempts)
    least = NEAR * max(fits, default=0.0) if tried else 0.0
    # One clause may ask for two calls, but not of one function.
    served = {step.move.function for step in scene.path if step.ok and about(step) == part}
    open_ = [
        (offer, fit)
        for offer, fit in zip(offers, fits, strict=True)
        if fit >= least
        and offer.function.name not in served
        and not is_down(offer.function, scene)
        and has_left(offer.function, part, scene)
        and may_serve(part, offer.function.api)
        and not any(is_shaped_for(offer.function, one.function, matched) for one in offers)
    ]
    sums = calculator(part, scene)
    if sums in [offer for offer, _ in open_]:
        return sums
    apis = [offer.function.api for offer in offers]
    found = prior.match(MatchRequest(scene.task), apis) if prior else ()
    whole = {api.id: match.serves for api, match in zip(apis, found, strict=False)}
    around = Matched(scene, scene.sources(part).context, prior)
    *scores, nothing = turn.score(
        [*(f"{layout.USE}{offer.number}" for offer, _ in open_), layout.NOTHING]
    )
    best, most = None, CHOICE_WEIGHT * nothing + PRIOR_WEIGHT * NOTHING_PRIOR
    for (offer, fit), score in zip(open_, scores, strict=True):
        api = offer.function.api
        weight = CHOICE_WEIGHT * score + PRIOR_WEIGHT * fit
        weight += MATCH_WEIGHT * (matched.serves(api) + around.serves(api))
        weight += WHOLE_WEIGHT * whole.get(api.id, 0.0)
        weight += PLANNED * (offer.function.name == planned)
        if weight > most:
            best, most = offer, weight
    return best


def _fit(part: str, scene: Scene, prior: Reranker | None) -> list[float]:
    """Return how well each offered function fits a part, about in [0, 1]."""
    apis = [offer.function.api for offer in scene.offers]
    if prior is None:
        return [NOTHING_PRIOR] * len(apis)
    sources = scene.sources(part)
    own, around = prior.scores(part, apis), prior.scores(scene.task, apis)
    like = prior.similarities(part, apis)
    return [
        (NEED_SHARE * o + (1 - NEED_SHARE) * a) * (FAR if grounding.borrows(api, sources) else 1.0)
        + TIE * min(grounding.ties(api, sources), MOST_TIES)
        + LIKE * near
        for o, a, near, api in zip(own, around, like, apis, strict=True)
    ]
