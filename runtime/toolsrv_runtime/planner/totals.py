"""Questions for what it comes to, where calls have told prices: "and how much do I pay at the end?".

Pure.
"""

from __future__ import annotations

import re

from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner.scene import news
from toolsrv_runtime.values.facts import words

_SOMEBODY = (
    r"(?:i|we|you|he|she|it|they|one|that|everybody|everyone|each(?: of us)?|(?:the|my|our|a) \w+)"
)
_ASKS = re.compile(
    r"(?:(?:and|but|now|so|then) )*(?:how much|what)(?:['’]?s| is| are| was| will| would| do| does| did| should| must)*"
    rf"(?: {_SOMEBODY})? (?:"
    r"(?:(?:have|has|need|needs|going) to )?(?:be |come to\b|costs?\b|pay\b|owe\b|left\b|the damage\b)"
    r"|(?:(?:after|with|including|incl\.?) (?:the |that |this |all )?(?:discount|rebate|reduction|tax|taxes|vat|tip))"
    r"|(?:the |my |our )?(?:(?:final|end|total|whole|grand|new|reduced|sale) )?"
    r"(?:total|price|cost|costs|amount|sum|bill|damage|result)\b)"
    r"[^\d,;:]{0,60}",
    re.IGNORECASE,
)
_PRICE = re.compile(r"\b(?:price|cost|costs|total|pay|payment|bill|tip|saved?|per person)\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def asks_what_it_comes_to(question: str) -> bool:
    """Whether a question names no value of its own and asks for a price at the end of it all."""
    return _ASKS.fullmatch(question.strip(" ?.!")) is not None


def tells_a_price(step: Step) -> bool:
    """Whether a call answered an amount of money, by its name."""
    return step.ok and any(
        _PRICE.search(words(name)) and _NUMBER.fullmatch(value) for name, value in news(step)
    )
