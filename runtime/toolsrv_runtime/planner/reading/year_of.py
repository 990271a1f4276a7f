"""The year of a day that was told: "born Oct 2nd 1998 … the year in Roman letters". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds

_THE_YEAR = re.compile(
    r"\b(?:the|that|this|his|her|its|their|my|our)(?: (?:birth|wedding|founding|very))? ?year\b(?! (?:\d|before|after))",
    re.IGNORECASE,
)
_OWN = re.compile(r"\d")
_DAY = re.compile(r"([1-9]\d{3})-\d\d-\d\d")


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the year of the task's one full date for a number that "the year" stands for, else ""."""
    if kinds.value_kind(parameter, api) not in {"number", "year"} or len(api.required) != 1:
        return ""
    if not _THE_YEAR.search(wish.part) or _OWN.search(wish.part):
        return ""
    days = (kinds.normalise_value("date", one) for one in kinds.find_values("date", wish.task))
    years = {day[1] for one in days if (day := _DAY.fullmatch(one))}
    years &= set(re.findall(r"(?<!\d)[1-9]\d{3}(?!\d)", wish.task))
    return years.pop() if len(years) == 1 else ""
