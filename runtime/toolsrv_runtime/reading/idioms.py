"""Ways of saying a thing that share no word with any document of it, in words that do. Pure.

"What do their web addresses end in" asks for an internet domain, "the bit for the address bar" is a
URL slug. Quotations stay as they are. O(length).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolsrv_runtime.reading.digits import QUOTED, TEXT_LIMIT

_PLACE = r"(?:(?:from|in|of|over) (?:there|[^\W\d_]+(?: [A-Z][^\W\d_]+)?) )?"
_ADDRESS = r"(?:web[- ]?(?:site )?address|address[- ]bar|url|link)"
_TITLED = re.compile(
    r"[\"“'‘]|\b(?:titles?|titled|posts?|pages?|blogs?|articles?|headlines?|products?|recipes?|story|stories)\b",
    re.IGNORECASE,
)
"""What has a slug: a text with a title."""

_KEY = r"(?P<key>[A-G](?:#|b|♯|♭|[ -]?(?:sharp|flat))? ?(?:minor|major))"


def _domain(match: re.Match[str]) -> str:
    whose, where = match["whose"] or "", match["where"] or ""
    return f"what is {whose or 'the '}internet domain {where}".rstrip()


_IDIOMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(
            rf"\bwhat do(?:es)? (?P<whose>(?:its|their|the|his|her|your|[^\W\d_]+['’]s) )?"
            rf"(?:web ?site|web|internet|site|online) ?(?:address(?:es)?|sites?|pages?)? (?P<where>{_PLACE})"
            r"(?:end|finish) (?:in|with|on)\b",
            re.IGNORECASE,
        ),
        _domain,
    ),
    (
        re.compile(
            rf"\b(?:which|what) notes (?:can|may|should|could|do|must) (?:i|we|you) "
            rf"(?:use|play|pick|hit|sing|choose from)(?: (?:if|when|while) (?:i|we|you))?"
            rf"(?:['’]m|['’]re| am| are)?(?: (?:stay|staying|play|playing|jam|jamming|improvise|solo|remain))?"
            rf" in (?:the key of )?{_KEY}",
            re.IGNORECASE,
        ),
        lambda match: f"what are the notes of the {match['key']} scale",
    ),
)
_SLUG = re.compile(
    rf"\b(?:the )?(?:bit|part|piece|end|ending|tail|text) (?:for|of|in|at the end of) (?:the|its|a|my|our|your) {_ADDRESS}\b"
    rf"|\b(?:the )?(?:{_ADDRESS})[- ](?:version|form|bit|ending|part|name)\b",
    re.IGNORECASE,
)


def in_plain_words(task: str) -> str:
    """Return a task with the idioms of its beginning in plain words."""
    head, rest = task[:TEXT_LIMIT], task[TEXT_LIMIT:]
    titled = _TITLED.search(head) is not None
    pieces, at = [], 0
    for match in QUOTED.finditer(head):
        pieces += [_plain(head[at : match.start()], titled=titled), match[0]]
        at = match.end()
    return "".join([*pieces, _plain(head[at:], titled=titled), rest])


def _plain(text: str, *, titled: bool) -> str:
    for pattern, written in _IDIOMS:
        text = pattern.sub(written, text)
    return _SLUG.sub("the URL slug", text) if titled else text
