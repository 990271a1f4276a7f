"""How old somebody is, as people say it: "I'm 34", "a 61-year-old", "she turns 40". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_UNIT = r"(?!\s?(?:%|°|[.,:/]\d|\w*\d|(?:kg|kilos?|cm|m|km|met|feet|foot|ft|lbs?|pounds?|min|hour|h\b|am|pm|st\b)))"
_SAID = re.compile(
    rf"\b(?:i['’]?m|i am|(?:he|she)['’]?s|(?:he|she) is|aged?|turn(?:s|ed|ing)?)\s+(\d{{1,3}})\b{_UNIT}"
    r"|\b(\d{1,3})[ -]years?[ -]olds?\b|\b(\d{1,3})\s?(?:y/?o|yrs? old)\b",
    re.IGNORECASE,
)


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one age that a part, or else the task, tells, for an age; "" for none or several."""
    if "age" not in words(parameter.name).split():
        return ""
    for text in (wish.part, wish.task):
        found = {next(filter(None, match.groups())) for match in _SAID.finditer(text)}
        if len(found) == 1:
            return str(found.pop())
    return ""
