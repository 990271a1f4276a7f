"""What of an engine's reply becomes instructions, and why the rest does not.

A reply is a JSON list of ``{"query", "relevant APIs"}``; one that broke off still gives its whole
objects. The paper drops what names an API outside the sample; here also goes what repeats a text
or a seed example, spells an API's identifier, or is no sentence of a person. Knows no engine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolsrv_catalogs.text import cleaned
from toolsrv_lab.instructions.prompts import RELEVANT_KEY, TEXT_LIMIT, Seed, label
from toolsrv_lab.instructions.samples import NEEDED, Sample
from toolsrv_registry.api import Api
from toolsrv_registry.words import words

NO_JSON = "the reply is no list of objects"
BROKEN_OFF = "the reply broke off within it"
TOO_MANY = "more than asked for"
NO_TASK = "no text or no APIs"
TOO_LONG = f"longer than {TEXT_LIMIT} characters"
TOO_SHORT = "shorter than a task"
NO_SENTENCE = "repeats itself, or is no sentence"
NOT_OFFERED = "names an API that was not offered"
TOO_FEW = "needs one API where several were asked for"
IDENTIFIER = "spells the identifier of an API"
SEED = "repeats a seed example"
REPEATED = "repeats a text of the file"

LEAST_WORDS = 8
"""Words of the shortest text taken; ToolBench's shortest test query has 14, people use fewer."""

_LONGEST_WORD = 60
_LEAST_DISTINCT = 0.45  # of the words; ToolBench's own development queries have 0.5 and more
_LEAST_LETTERS = 0.6  # of the characters that are no blanks
_SEED_RUN = 8  # words in a row of a seed example

_CODE = re.compile(r"[_/{}()=?&]|[^\W\d]\.[^\W\d]|^[a-z]+[A-Z]|[a-z][A-Z].*[a-z][A-Z]")
_SIGNS = re.compile(r"[{}|]|__")  # of code and of chat templates

_decoder = json.JSONDecoder()


class Taken(NamedTuple):
    """A text and the APIs that it needs, in the order in which they were named."""

    text: str
    apis: tuple[Api, ...]


def items(text: str) -> tuple[list[Any], str]:
    """Return the whole members of the list in a reply, and a reason where it is not complete."""
    at = text.find("[") + 1
    if not at:
        return [], NO_JSON
    found: list[Any] = []
    while True:
        while at < len(text) and text[at] in ", \t\r\n":
            at += 1
        if text[at : at + 1] == "]":
            return found, ""
        try:
            value, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, BROKEN_OFF if text[at : at + 1] in ("{", "") else NO_JSON
        found.append(value)


def judge(item: Any, sample: Sample, shown: Sequence[Seed]) -> Taken | str:
    """Return what an item of a reply tells, or the reason why it is left out."""
    query = item.get("query") if isinstance(item, dict) else None
    named = item.get(RELEVANT_KEY) if isinstance(item, dict) else None
    if not isinstance(query, str) or not isinstance(named, list) or not named:
        return NO_TASK
    whole = cleaned(query, TEXT_LIMIT)
    text = " ".join(whole.text.split())
    fault = TOO_LONG if whole.cut else _fault(text)
    if fault:
        return fault
    apis = _offered(named, sample)
    if apis is None:
        return NOT_OFFERED
    if sample.kind != "tool" and len(apis) < NEEDED[0]:
        return TOO_FEW
    if any(is_identifier(api.name) and _says(text, api.name) for api in sample.apis):
        return IDENTIFIER
    if any(_repeats(text, seed.query) for seed in shown):
        return SEED
    return Taken(text, tuple(apis))


def is_identifier(name: str) -> bool:
    """Whether a name is code rather than words: ``getUser``, ``capital_city``, ``/v1/rates``.

    One capital inside, as in ``YouTube``, makes no code.
    """
    return len(name.split()) == 1 and _CODE.search(name) is not None


def mark(text: str) -> str:
    """Return a short key that texts of the same words share."""
    return hashlib.sha256(" ".join(words(text)).encode()).hexdigest()[:16]


def _fault(text: str) -> str:
    parts = text.split()
    if len(parts) < LEAST_WORDS:
        return TOO_SHORT
    said = words(text)
    letters = sum(character.isalpha() for character in text)
    solid = sum(map(len, parts))
    longest = max((len(part) for part in parts if "://" not in part), default=0)
    if (
        longest > _LONGEST_WORD
        or _SIGNS.search(text)
        or letters < _LEAST_LETTERS * solid
        or len(set(said)) < _LEAST_DISTINCT * len(said)
    ):
        return NO_SENTENCE
    return ""


def _offered(named: Sequence[Any], sample: Sample) -> list[Api] | None:
    """Return the distinct APIs that are named, None where one was not offered."""
    known: dict[Any, Api] = {}
    for api in sample.apis:
        known.setdefault(label(api, sample.kind), api)
    found: dict[str, Api] = {}
    for name in named:
        key = tuple(name) if isinstance(name, list) else name
        try:
            api = known[key]
        except (KeyError, TypeError):  # a list within the list cannot be looked up
            return None
        found[api.id] = api
    return list(found.values())


def _says(text: str, name: str) -> bool:
    pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _repeats(text: str, seed: str) -> bool:
    """Whether eight words in a row stand in both."""
    runs = [_runs(one) for one in (text, seed)]
    return not runs[0].isdisjoint(runs[1])


def _runs(text: str) -> set[tuple[str, ...]]:
    said = words(text)
    return {tuple(said[at : at + _SEED_RUN]) for at in range(len(said) - _SEED_RUN + 1)}
