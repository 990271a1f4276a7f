"""The compound that a share of an element is asked of: "water's mass percent of oxygen". Pure.

Oxygen is a formula too, of a gas; the whole is what stands behind "in", or owns the share.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds

_ELEMENT = (
    r"(?:hydrogen|carbon|nitrogen|oxygen|fluorine|sodium|magnesium|alumini?um|silicon|phosphorus|"
    r"sul(?:f|ph)ur|chlorine|potassium|calcium|titanium|chromium|manganese|iron|cobalt|nickel|copper|"
    r"zinc|arsenic|bromine|silver|tin|iodine|barium|gold|mercury|lead)"
)
_NO_NAME = r"(?!(?:by|and|or|is|are|as|in|of|what|which|find|the|an?|me|my|its?)\b)"
_WHOLE = rf"(?P<whole>{_NO_NAME}[\w()]+(?: {_NO_NAME}[\w()]+){{0,2}}?)"
_SHARE = r"(?:mass |weight |molar )?(?:percent(?:age)?s?|per cent|%|share|fraction|proportion|content|part)"
_BY_MASS = r"(?: (?:by|in) (?:mass|weight))?"
_END = r"(?= by (?:mass|weight)\b|[?.,;!]|$| (?:and|or)\b)"
_FORMS = (
    re.compile(
        rf"\b{_SHARE}{_BY_MASS} of {_ELEMENT}{_BY_MASS} (?:in|of) (?:an? |the )?{_WHOLE}{_END}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b{_ELEMENT}(?: content| {_SHARE})?{_BY_MASS} (?:is |is there )?(?:in|of) {_WHOLE}{_END}",
        re.IGNORECASE,
    ),
    re.compile(rf"(?<![\w'’]){_WHOLE}['’]s {_SHARE}{_BY_MASS} of {_ELEMENT}\b", re.IGNORECASE),
    re.compile(
        rf"\b{_SHARE} of (?:the (?:mass|weight) of )?{_WHOLE}(?:['’]s (?:mass|weight))? is {_ELEMENT}\b",
        re.IGNORECASE,
    ),
)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the compound for the one formula of a function, "" where no share is asked for."""
    formulas = [one for one in api.parameters if kinds.value_kind(one, api) == "formula"]
    if formulas != [parameter]:
        return ""
    said = {match["whole"] for form in _FORMS for match in form.finditer(wish.part)}
    found = {next(iter(kinds.find_values("formula", one)), one) for one in said}
    found = {one for one in found if not re.fullmatch(_ELEMENT, one, re.IGNORECASE)}
    return found.pop() if len(found) == 1 else ""
