"""Amounts that a text says there are none of: "no tip" is a tip of 0. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_RATES = frozenset({"rate", "interest", "interest rate"})
_FREE = re.compile(r"\b(?:interest[- ]free|(?:no|zero|without(?: any)?) interest)\b", re.IGNORECASE)
_A_RATE = re.compile(r"\d\s?(?:%|percent\b|per cent\b)", re.IGNORECASE)
_MEASURES = frozenset({"percent", "percentage", "rate", "amount", "value", "number", "of", "count"})


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return "0" for a number that the part, or else the task, says there is none of; else ""."""
    if (
        parameter.type.upper() == "NUMBER"
        and words(parameter.name) in _RATES
        and _FREE.search(wish.task)
        and not _A_RATE.search(wish.part)
    ):
        return "0"
    named = [one for one in words(parameter.name).split() if one not in _MEASURES]
    if parameter.type.upper() != "NUMBER" or len(named) != 1 or len(named[0]) < 3:
        return ""
    none = re.compile(
        rf"\b(?:no|without(?: an?| any)?|zero|0|not? any) {re.escape(named[0])}\b"
        rf"|\b{re.escape(named[0])} (?:is |was |already )*included\b",
        re.IGNORECASE,
    )
    return "0" if none.search(wish.part) or none.search(wish.task) else ""
