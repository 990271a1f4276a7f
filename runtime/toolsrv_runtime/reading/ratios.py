"""Questions for a ratio or a factorial, as the sum that answers them. Pure.

"15 is what percent of 60", "the net price of 119 with 19 % VAT", "the factorial of 9".
"""

from __future__ import annotations

import re

from toolsrv_runtime.reading.money import COMMON

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
    rf"(?<![\w.,])(?:{COMMON}\s?)?(?P<gross>{_N})\s?(?:{COMMON}\s)?,?\s?\(?(?:including|incl\.?|inclusive of|with|gross,? with)"
    rf" (?:the )?(?P<rate>{_N})\s?{_PERCENT} (?:vat|gst|sales tax|tax)\b(?: included)?\)?",
    re.IGNORECASE,
)
_NET = re.compile(
    r"\b(?:net|before (?:the )?(?:vat|gst|tax|sales tax)|without (?:the )?(?:vat|gst|tax|sales tax)|excluding)\b",
    re.IGNORECASE,
)
_FACTORIAL = re.compile(
    r"\b(?:the )?factorial of (?P<of>[2-9]|1\d|20)(?![\w.,]\d|\w)"
    r"|(?<![\w.,-])(?P<number>[2-9]|1\d|20) factorial\b",
    re.IGNORECASE,
)
"""Those whose result is exact in a double and short enough to read."""


def as_sums(task: str) -> str:
    """Return a task with such questions told as sums, which a calculator answers; O(length)."""
    head = task[:TEXT_LIMIT]
    for pattern in (_IS_OF, _OF_IS):
        head = pattern.sub(lambda match: f"{match['part']} / {match['whole']} * 100", head)
    head = _FACTORIAL.sub(_product, head)
    if _NET.search(head) and not re.search(r"\b(?:discount|off)\b", head, re.IGNORECASE):
        head = _GROSS.sub(lambda match: f"{match['gross']} / (1 + {match['rate']} / 100)", head)
    return head + task[TEXT_LIMIT:]


def _product(match: re.Match[str]) -> str:
    number = int(match["of"] or match["number"])
    return " * ".join(map(str, range(1, number + 1)))
