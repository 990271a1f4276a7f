"""Questions for a ratio, a total or a factorial, as the sum that answers them. Pure.

"15 is what percent of 60", "the net price of 119 with 19 % VAT", "the factorial of 9".
"""

from __future__ import annotations

import re

from toolsrv_runtime.planner.reading import fractions, raises
from toolsrv_runtime.planner.reading.digits import outside_texts
from toolsrv_runtime.planner.reading.whole_numbers import as_calls
from toolsrv_runtime.values.lexicon import CURRENCY_MARKS

TEXT_LIMIT = 4_000
"""Characters of a text that are looked at."""

_N = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_PERCENT = r"(?:percent(?:age)?|per cent|%)"
_IS_OF = re.compile(
    rf"(?<![\w.,])(?P<part>{_N}) (?:is|are|makes?|was|would be) (?:what|which|how many) {_PERCENT} of (?P<whole>{_N})(?![\w%])",
    re.IGNORECASE,
)
_OF_IS = re.compile(
    rf"\b(?:what|which|how many) {_PERCENT} of (?P<whole>{_N}) (?:is|are|does|do|would be) (?P<part>{_N})(?: make)?(?![\w%])",
    re.IGNORECASE,
)
_GROSS = re.compile(
    rf"(?<![\w.,])(?:{CURRENCY_MARKS}\s?)?(?P<gross>{_N})\s?(?:{CURRENCY_MARKS}\s)?,?\s?\(?(?:including|incl\.?|inclusive of|with|gross,? with)"
    rf" (?:the )?(?P<rate>{_N})\s?{_PERCENT} (?:vat|gst|sales tax|tax)\b(?: included)?\)?",
    re.IGNORECASE,
)
_NET = re.compile(
    r"\b(?:net|before (?:the )?(?:vat|gst|tax|sales tax)|without (?:the )?(?:vat|gst|tax|sales tax)|excluding)\b",
    re.IGNORECASE,
)
_OUT_OF = re.compile(
    rf"\b(?:what|which|how many) {_PERCENT} (?:is|are) (?P<part>{_N}) (?:out of|of) (?P<whole>{_N})(?![\w%])",
    re.IGNORECASE,
)
_AS_PERCENT = re.compile(
    rf"(?<![\w.,/])(?P<part>{_N}) ?/ ?(?P<whole>{_N}) (?:as|in|into) (?:an? )?{_PERCENT}(?!\w)",
    re.IGNORECASE,
)
_LIST = rf"(?:{_N})(?:, (?:{_N}))*,? (?:and|plus) (?:{_N})(?=[?!;)]|[.,](?!\d)|$| (?:and|then|together|up|in|please)\b)"
_TOTAL = re.compile(
    rf"\b(?:add(?: up| together)?|sum up|(?:the )?(?:sum|total) of) (?P<list>{_LIST})"
    r"(?: together| up)?"
    rf"(?:,? (?:and|then)(?: then)? (?:split|divide|share) (?:it|that|the (?:sum|total|lot))"
    rf" (?:between|among|by|for)(?: the)? (?P<by>{_N}|two|three|four|five|six)\b(?: of us| people)?)?",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"(?:(?<=^)|(?<=[.?!;]\s))[^.?!;]{0,80}?"
    rf"(?<![\w.,])(?P<count>{_N}) for (?:{CURRENCY_MARKS}\s?)?(?P<price>{_N})(?:\s?{CURRENCY_MARKS}(?!\w))?[,;:.?!]? (?:and )?"
    r"(?:what(?:['’]s| is| does)|how much(?:['’]s| is| does)) (?:the price of )?(?:just )?"
    r"(?:a single one|one|each)(?: of them)?(?: cost)?(?=\W|$)",
    re.IGNORECASE,
)
"""From the beginning of its sentence: what is sold there only misleads."""

_FEW = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6"}
_FACTORIAL = re.compile(
    r"\b(?:the )?factorial of (?P<of>[2-9]|1\d|20)(?![\w.,]\d|\w)"
    r"|(?<![\w.,-])(?P<number>[2-9]|1\d|20) factorial\b",
    re.IGNORECASE,
)
"""Those whose result is exact in a double and short enough to read."""


def as_sums(task: str) -> str:
    """Return a task with such questions told as sums, which a calculator answers; O(length)."""
    for plain in (fractions.as_sums, raises.as_sums, as_calls):
        task = outside_texts(task, plain)
    head = task[:TEXT_LIMIT]
    for pattern in (_IS_OF, _OF_IS, _OUT_OF, _AS_PERCENT):
        head = pattern.sub(lambda match: f"{match['part']} / {match['whole']} * 100", head)
    head = _EACH.sub(lambda match: f"calculate {match['price']} / {match['count']}", head)
    head = _FACTORIAL.sub(_product, _TOTAL.sub(_sum, head))
    if _NET.search(head) and not re.search(r"\b(?:discount|off)\b", head, re.IGNORECASE):
        head = _GROSS.sub(lambda match: f"{match['gross']} / (1 + {match['rate']} / 100)", head)
    return head + task[TEXT_LIMIT:]


def _sum(match: re.Match[str]) -> str:
    told = " + ".join(re.findall(_N, match["list"]))
    by = (match["by"] or "").lower()
    return f"calculate ({told}) / {_FEW.get(by, by)}" if by else f"calculate {told}"


def _product(match: re.Match[str]) -> str:
    number = int(match["of"] or match["number"])
    return " * ".join(map(str, range(1, number + 1)))
