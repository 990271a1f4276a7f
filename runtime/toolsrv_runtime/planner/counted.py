"""Days counted from a feast that moves: "3 weeks before American Thanksgiving 2027".

When the feast is comes first, as a question in words of our own; then the days are added to what
was answered. Pure but for the model and the matcher.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import NamedTuple

from toolsrv_registry.matcher import MatchRequest
from toolsrv_runtime.contract.format import Action, Reranker
from toolsrv_runtime.planner.bridging import SURE
from toolsrv_runtime.planner.filling import Filling
from toolsrv_runtime.planner.forced import forced
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.scene import Offer, Scene, about, news
from toolsrv_runtime.planner.turn import Turn
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_YEAR = r"(?:19|20)\d\d"
_FEAST = (
    r"(?:(?:the )?(?-i:[A-Z])[\w.’'-]* ){0,3}?"
    r"(?:Thanksgiving(?: Day)?|Easter(?: Sunday| Monday)?|Good Friday|Palm Sunday|Ash Wednesday|Ascension(?: Day)?|"
    r"Pentecost|Whit (?:Sunday|Monday)|Corpus Christi|Carnival|Diwali|Holi|Passover|Hanukkah|Eid(?: al-\w+)?|"
    r"(?-i:[A-Z])[\w’']+ Day)"
)
_COUNTED = re.compile(
    rf"\b(?P<count>\d{{1,3}}|an?|the)(?: full)? (?P<unit>day|week|month|year)s? "
    rf"(?P<side>before|after|following|ahead of|prior to|from) (?P<feast>{_FEAST})"
    rf"(?:,? (?:of |in )?(?P<year>{_YEAR}))?(?!\w)",
    re.IGNORECASE,
)
_IN_YEAR = re.compile(rf"(?<![\d-]){_YEAR}(?![\d-])")
_BACK = frozenset({"before", "ahead of", "prior to"})
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


ADDS = "Add days to a date"
"""What finds the function that does."""


class Counted(NamedTuple):
    """Such words, the feast's, the question for its date, and what is added to that."""

    words: str
    feast: str
    question: str
    amount: int
    unit: str


def find(task: str) -> Counted | None:
    """Return the first such words of a task whose year it tells; None without any."""
    found = _COUNTED.search(task)
    if found is None:
        return None
    years = {found["year"]} if found["year"] else set(_IN_YEAR.findall(task))
    if len(years) != 1:
        return None
    count = int(found["count"]) if found["count"].isdigit() else 1
    amount = -count if found["side"].lower() in _BACK else count
    feast = found["feast"].removeprefix("the ")
    if feast.lower() == "easter monday":  # functions for Easter tell its Sunday
        if found["unit"].lower() != "day":
            return None
        feast, amount = "Easter Sunday", amount + 1
    question = f"When is {feast} in {years.pop()}?"
    return Counted(found[0], found["feast"], question, amount, f"{found['unit'].lower()}s")


def next_call(turn: Turn, scene: Scene, prior: Reranker, *, grounded: bool) -> Action | None:
    """Return the next call towards a day counted from a feast; None where there is none to make."""
    counted = find(scene.task)
    if counted is None or any(about(one) == counted.words for one in scene.attempts):
        return None
    asked = [one for one in scene.attempts if about(one) == counted.feast]
    if not asked:
        return _feast(turn, counted, scene, prior, grounded=grounded)
    adds = _adder(scene)
    days = {
        words(name): value
        for name, value in (news(asked[0]) if asked[0].ok else ())
        if _DAY.fullmatch(value)
    }
    found = _keys(adds) if adds else None
    if adds is None or found is None or not days:
        return None
    day = days.get(counted.feast.lower(), next(iter(days.values())))
    given = dict(zip(found, (day, str(counted.amount), counted.unit), strict=True))
    return forced(turn, counted.words, adds, json.dumps(given))


def _feast(
    turn: Turn, counted: Counted, scene: Scene, prior: Reranker, *, grounded: bool
) -> Action | None:
    """Return the call that tells when the feast is, filled from the question for that."""
    alone = replace(scene, task=counted.question, path=(), attempts=(), seen=())
    matches = prior.match(
        MatchRequest(counted.question), [one.function.api for one in scene.offers]
    )
    ranked = sorted(
        zip(scene.offers, matches, strict=False), key=lambda one: one[1].serves, reverse=True
    )
    if not ranked or ranked[0][1].serves < SURE or _adder(scene) is None:
        return None
    offer, mark = ranked[0][0], turn.mark()
    matched = Matched(alone, counted.question, prior)
    filling = Filling(turn, counted.question, alone, matched, grounded=grounded)
    arguments = filling.arguments(offer.function)
    turn.rewind(mark)
    if arguments is None:
        return None
    return forced(turn, counted.feast, offer, json.dumps(arguments, ensure_ascii=False))


def _adder(scene: Scene) -> Offer | None:
    """Return the function that adds a number of units to a date."""
    return next((one for one in scene.offers if _keys(one)), None)


def _keys(offer: Offer) -> tuple[str, str, str] | None:
    """Return a function's keys for a date, a number and its unit, where it takes no more."""
    api = offer.function.api
    by_kind = {kinds.value_kind(one, api): key for key, one in offer.function.parameters.items()}
    units = [
        key
        for key, one in offer.function.parameters.items()
        if {"days", "weeks", "months"} <= {str(value) for value in one.enum}
    ]
    if len(offer.function.parameters) != 3 or not units or not {"date", "number"} <= set(by_kind):
        return None
    return by_kind["date"], by_kind["number"], units[0]
