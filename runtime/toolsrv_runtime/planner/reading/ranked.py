"""One of a ranked list: "the biggest city of Kazakhstan" asks for the first alone. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_RANKS = (
    "biggest|largest|greatest|most populous|most populated|most people|most inhabitants",
    "smallest|tiniest|least populous|least populated",
    "highest|tallest",
    "lowest",
    "longest",
    "shortest",
    "oldest|earliest",
    "newest|latest|most recent",
    "cheapest|least expensive",
    "dearest|most expensive",
    "fastest|quickest",
    "slowest",
    "nearest|closest",
    "most frequent|most common|commonest|most used",
    "most popular",
    "best|best rated|top rated",
    "strongest|most powerful",
)
"""What each ranks by, as people put it."""

_BY = tuple(re.compile(rf"\b(?:{said})\b", re.IGNORECASE) for said in _RANKS)
_LIMIT = re.compile(
    r"(?:limit|count|top)(?: [nk])?|(?:max|maximum|num|number of) (?:results|items)"
)
_ANOTHER = re.compile(
    r"\b(?:after|besides?|except|excluding|apart|aside|other|others|another|next|second|third|runner|"
    r"one of|some|few|several)\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"[a-z]{3,}s\b")


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return "1" for how many to list where a part, or what leads up to it, asks for the first alone.

    Of what the function lists, by the function's own rank, and only in the singular.
    """
    document = f"{words(api.name)} {api.description}".lower()
    ranks = [by for by in _BY if by.search(document)]
    things = _PLURAL.findall(document)
    if len(ranks) != 1 or not things or not _counts(parameter, api, "|".join(things)):
        return ""
    ones = (re.sub("ies$", "y", one).removesuffix("s") for one in things)
    text = next((one for one in (wish.part, wish.context) if ranks[0].search(one)), "")
    return "1" if _asks_for_one(text, ranks[0].pattern, "|".join(ones)) else ""


def _counts(parameter: Parameter, api: Api, things: str) -> bool:
    """Whether an optional parameter says how many of some things to list."""
    if parameter in api.required or kinds.value_kind(parameter, api) != "number":
        return False
    said = re.compile(rf"\b(?:how many|number of) (?:results|items|{things})\b", re.IGNORECASE)
    return bool(_LIMIT.fullmatch(words(parameter.name)) or said.search(parameter.description))


def _asks_for_one(text: str, ranked: str, thing: str) -> bool:
    """Whether a text asks for the first of some things alone."""
    if _ANOTHER.search(text) or kinds.find_values("number", text):
        return False
    one = rf"(?:the|['’]s|its|their|what|which) {ranked} (?:[\w-]+ )?(?:{thing})\b"
    which = (
        rf"\b(?:what|which) (?:[\w-]+ )?(?:{thing}) (?:[\w-]+ ){{1,6}}?{ranked}"
        r"(?=\s*(?:[.,;?!]|$)|\s(?:of|in|by)\b)"
    )
    return re.search(rf"{one}|{which}", text, re.IGNORECASE) is not None
