"""How many people there are, as a text tells them: "my wife and me", "with two friends", "Anna, Ben and Carla". Pure.

Whoever speaks is one of them: "four colleagues and I" are five.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.kinds import normalise_value
from toolsrv_runtime.values.lexicon import TO_TWELVE

_PEOPLE = re.compile(
    r"(?:number of )?(?:people|persons?|guests|diners|friends|participants|heads|ways)"
)
_ME = r"(?:me|myself|i|us)"
_NUMBER = rf"\d{{1,3}}|{TO_TWELVE}"
_KIN = (
    r"(?:wife|husband|partner|boyfriend|girlfriend|spouse|fianc[eé]e?|mum|mom|mother|dad|father|sister|"
    r"brother|son|daughter|friend|buddy|mate|colleague|co-?worker|boss|flatmate|roommate|cousin|neighbou?r|"
    r"date|uncle|aunt|nephew|niece|grandma|grandpa|grandmother|grandfather)"
)
_OTHERS = (
    r"(?:other )?(?:friends|colleagues|co-?workers|mates|buddies|people|guys|others|girls|boys|flatmates|"
    r"roommates|cousins|neighbou?rs|brothers|sisters|kids|children|sons|daughters|clients|guests)"
)
_COUNTED = rf"(?P<count>{_NUMBER}) (?:of )?(?:my |our )?{_OTHERS}"
_ONE = rf"(?:my|a|our|one) (?:[a-z]+ )?{_KIN}"
_ATE = r"(?:ate|dined|went out|had (?:dinner|lunch|brunch|breakfast|drinks)|was out|was)"
_SPEAKER = (
    re.compile(
        rf"\b{_ME},? (?:and|\+|plus|&) (?:(?:my|our) )?(?:{_COUNTED}|{_ONE})\b", re.IGNORECASE
    ),
    re.compile(rf"\b(?:{_COUNTED}|{_ONE}),? (?:and|\+|plus|&) {_ME}\b", re.IGNORECASE),
    re.compile(
        rf"\b(?:i|we) {_ATE}[^.?!;]{{0,30}}? with (?:(?:my|our) )?(?:{_COUNTED}|{_ONE})\b",
        re.IGNORECASE,
    ),
)
_US = re.compile(
    rf"\b(?:the )?(?P<us>{_NUMBER}) of us\b|\b(?:dinner|lunch|brunch|breakfast|meal|table|drinks) for (?P<for>{_NUMBER})\b"
    rf"|\b(?P<ways>{_NUMBER})[ -]ways?\b",
    re.IGNORECASE,
)
_NAME = r"[A-Z][^\W\d_]+"
_NAMES = re.compile(
    rf"\b(?:between|among|amongst)\s+(?P<names>{_NAME}(?:,\s?{_NAME})*,?\s(?:and|&)\s(?:{_NAME}|me|myself))\b"
)


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return how many people a part, or else the task, speaks of; "" for a plain number or none."""
    if not _PEOPLE.fullmatch(words(parameter.name)):
        return ""
    for text in (wish.part, wish.task):
        found = {one for one in (*_with_speaker(text), *_named(text), *_said(text)) if one}
        if found:
            return found.pop() if len(found) == 1 else ""
    return ""


def _with_speaker(text: str) -> list[str]:
    told = (pattern.search(text) for pattern in _SPEAKER)
    return [
        str(int(normalise_value("number", match["count"] or "1")) + 1) for match in told if match
    ]


def _named(text: str) -> list[str]:
    match = _NAMES.search(text)
    return [str(len(re.findall(rf"{_NAME}|\bme\b|\bmyself\b", match["names"])))] if match else []


def _said(text: str) -> list[str]:
    return [
        normalise_value("number", match["us"] or match["for"] or match["ways"])
        for match in _US.finditer(text)
    ]
