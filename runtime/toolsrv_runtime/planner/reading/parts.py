"""The parts of a task that ask for something, each with the text that leads up to it.

"Ran 10 km in 47:15. What could I hope for in a marathon, and how much would I burn?" has two
needs; the first has a statement before it that holds its values. Finer than the retriever's
clauses, because a need is served by one call. Pure; the
text that is looked at is bounded, because every break is held against every quotation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolsrv_runtime.planner.reading.announced import announced

TEXT_LIMIT = 4_000
"""Characters of a task that are looked at for needs."""

PART_LIMIT = 24
"""Fragments of a task that are looked at."""

_SENTENCE = re.compile(r"(?<=[.?!;:])\s+|\n+|\s+[-–—]\s+")
_BREAK = re.compile(
    r"(?:\s?,\s{1,4}|\s(?=(?:and|then|plus|but|as well as)\b))"
    r"(?:(?:and|then|also|plus|but|so|additionally|finally|next|after that|afterwards|as well as|"
    r"besides|lastly|secondly|first|second)\b[\s,]*)*",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\(?\d{1,2}\)\s+(?=[^\W\d])")
_LISTED = re.compile(r"\(?\d{1,2}[.)]\s+(?=[^\W\d])")
_MARKER = re.compile(r"\s*\(?\d{1,2}[.)]")
_LEAD = re.compile(
    r"(?:\(?\d{1,2}[.)]\s+(?=[^\W\d]))?"
    r"(?:(?:and|then|also|plus|but|so|now|oh|ok|okay|well|finally|lastly|next|after that)\b[\s,]*)*"
    r"(?:(?:hi|hello|hey)(?: there)?\b[,.! ]*)?",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:please|kindly|just|quickly)\s+"
    r"|(?:can|could|would|will) you (?:please |kindly |also |just )*"
    r"|i(?:'d| would)?(?: also)? (?:need|want|like|love)(?: you)? (?:to (?:know )?)?"
    r"|i(?:'m| am) (?:curious|wondering)(?: about)?\s+|help me (?:to )?|let me know\s+|tell me\s+"
    r"|(?:do|does) (?:you|anyone) know\s+",
    re.IGNORECASE,
)
_PLANS = re.compile(
    r"(?:avoid|bake|be|brief|bring|buy|celebrate|convince|cook|cross|decorate|drink|drive|eat|fill in|"
    r"fill out|fly|get (?:him|her|them|my \w+) (?:the right|something)\b|go|impress|inform|invite|join|learn|leave|live|marry|meet|move|paint|persuade|phone|plant|"
    r"prepare|report to|sell|sleep|start|stay|submit|surprise|travel|visit|walk|warn|wear)\b",
    re.IGNORECASE,
)
"""What people want to do themselves: "I want to leave it overland" asks for nothing."""

_ASKS = re.compile(
    r"(?:(?:on|in|at|from|to|by|for|of|with|under|since|until)\s+)?"
    r"(?:what|what's|whats|which|who|who's|whose|whom|when|when's|where|where's|how|how's|why)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"(?:is|are|am|was|were|do|does|did|can|could|will|would|should|has|have|had|isn't|aren't|"
    r"doesn't|any)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"(?:add|average|break|build|calculate|change|check|choose|compare|compute|convert|count|"
    r"create|decipher|decode|decrypt|describe|draw|draft|encode|encrypt|estimate|explain|extract|"
    r"factor\w*|fetch|figure|find|flip|format|generate|get(?! (?:him|her|them|my \w+) (?:the right|something)\b)|give|grab|hash|identify|invent|"
    r"list|look|lower|make|mix|name|order|pick|predict|print|provide|pull|put|read|remind|"
    r"render|return|reverse|roll|round|say|scale|search|see|show|simplify|slugify|solve|sort|"
    r"spell|split|subtract|suggest|tell|throw|track|translate|transpose|turn|uppercase|validate|"
    r"verify|work|write|"
    r"cancel|cite|delete|download|email|paraphrase|plot|proofread|rank|recommend|reserve|rewrite|"
    r"rotate|schedule|send|shift|summari[sz]e|swap|tweet|undo|upload|"
    r"book (?:me|us|a|an|the|him|her|them)|(?:call|message|ring|text) (?:me|my|us|him|her|them|the)|"
    r"pay (?:him|her|them|the|my|for)|play (?:me|us|some|the|a)|set (?:me|a|an|my))\b",
    re.IGNORECASE,
)
_OPEN = re.compile(r"\bbetween\b(?:(?!\band\b).)*$", re.IGNORECASE)
_BARE_NUMBER = re.compile(
    r"#[0-9a-f]{3,6}\b|\d[\d.,:/-]*(?:st|nd|rd|th)?(?: [a-z]+ \d{4})?\s*(?:[,.?!;)]|$|and\b)",
    re.IGNORECASE,
)
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?$")
_YEAR = re.compile(r"[12]\d{3}\b")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|(?<!\w)‘[^’]*’(?!\w)")


_REST = re.compile(
    r"\d|(?:the|an?|its?|their|his|her|my|our|your|current|today's)\b|(?:\w+ ){1,4}(?:of|for|in)\b",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"(?:(?:from|in|of|to) )?(?:which|what) (\w+)\b|(?:what(?:'s| is) )?(?:the )?(result|answer)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A fragment of a task: ``text`` without politeness, ``context`` what led up to it.

    ``asks``: it is put as a question, an order or a wish. ``goes_on``: it reads like one more
    thing in a list of wishes ("and the current time in Tokyo").
    """

    text: str
    context: str
    asks: bool
    goes_on: bool = False

    @property
    def is_polite(self) -> bool:
        """Whether it asks for nothing but politeness ("let me know")."""
        return len(self.text.split()) < 2

    @property
    def head(self) -> str:
        """The noun that is asked for by name: ``country`` in "which country is it in" ("")."""
        match = _HEAD.match(self.text)
        return (match[1] or match[2]).lower() if match else ""


def split(task: str) -> list[Part]:
    """Return the task's fragments in order; what stands in quotation marks is never split.

    Fragments that ask for nothing are kept apart too: a list of wishes may continue without a
    verb ("the weather in Quito and the time in Tokyo"), and only their fit to an API tells.
    """
    task = task[:TEXT_LIMIT]
    found: list[Part] = []
    told = -1  # where the text begins that leads up to the next need
    for begin, end in _pieces(task, 0, len(task), _SENTENCE):
        question = task[begin:end].rstrip(" \"'”)").endswith("?")
        wishes = True  # a relative clause ("which is …") asks only where something asks already
        for start, stop in _pieces(task, begin, end, _BREAK):
            text = task[start:stop].strip(" .?!;:,\n")
            if not re.search(r"\w", text):
                continue
            told = start if told < 0 else told
            bare, wish = _bare(text)
            asks = wish or _asks(bare, question=question, wishes=wishes or question)
            wishes = asks
            found.append(Part(bare, task[told:stop].strip(), asks, bool(_REST.match(bare))))
            told = -1 if asks else told
    return found[:PART_LIMIT]


def _pieces(text: str, begin: int, end: int, breaks: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the spans of ``text[begin:end]`` between breaks outside quotation marks."""
    quoted = [*announced(text), *(match.span() for match in _QUOTED.finditer(text, begin, end))]
    found: list[tuple[int, int]] = []
    start = begin
    for match in breaks.finditer(text, begin, end):
        if any(a < match.end() - 1 and match.start() < b - 1 for a, b in quoted):
            continue
        if _OPEN.search(text, start, match.start()) or _MARKER.fullmatch(
            text, start, match.start()
        ):
            continue
        if _BARE_NUMBER.match(text, match.end()) and not _is_item(text, start, match):
            continue
        if _DAY.search(text, start, match.start()) and _YEAR.match(text, match.end()):
            continue
        found.append((start, match.start()))
        start = match.end()
    return [*found, (start, end)]


def _is_item(text: str, begin: int, gap: re.Match[str]) -> bool:
    """Whether a number behind a break counts the items of a list: "2) what", or "2." on a line."""
    if text.count("(", begin, gap.start()) > text.count(")", begin, gap.start()):
        return False
    ends = "\n" in gap[0] or text[gap.start() - 1 : gap.start()] in {".", "?", "!", ";"}
    return (_LISTED if ends else _NUMBERED).match(text, gap.end()) is not None


def _bare(text: str) -> tuple[str, bool]:
    """Return the text without opening words and politeness, and whether it was a wish."""
    text = text[_opening(text) :]
    wish = False
    while (match := _POLITE.match(text)) and match.end() < len(text):
        text = text[match.end() :]
        wish = not (match[0].lower().endswith(" to ") and _PLANS.match(text))
    return text, wish


def _opening(text: str) -> int:
    match = _LEAD.match(text)
    return match.end() if match and match.end() < len(text) else 0


def _asks(text: str, *, question: bool, wishes: bool) -> bool:
    return bool(
        (wishes and _ASKS.match(text)) or _ORDERS.match(text) or (question and _YES_NO.match(text))
    )
