"""Ways of saying a thing that share no word with any document of it, in words that do. Pure.

"What do their web addresses end in" asks for an internet domain, "the bit for the address bar" is a
URL slug. Quotations stay as they are. O(length).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolsrv_runtime.planner.reading import fractions
from toolsrv_runtime.planner.reading.digits import QUOTED, TEXT_LIMIT, outside_texts
from toolsrv_runtime.planner.reading.multiples import in_arithmetic
from toolsrv_runtime.values.kinds import countries_in

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
            r"\b(?:the )?(?P<kind>city|town)(?P<where> there| in [A-Z][^\W\d_]+(?: [A-Z][^\W\d_]+)?)? "
            r"with (?:the )?(?:most|highest number of|largest number of) "
            r"(?:people|inhabitants|residents)\b",
            re.IGNORECASE,
        ),
        lambda match: f"the biggest {match['kind']}{match['where'] or ''}",
    ),
    (
        re.compile(
            r"\bif (?:the )?prices (?:(?:will )?(?:rise|climb|grow|increase|go up|creep up)|rose|went up|keep (?:rising|climbing|going up))"
            r"(?: (?:at|by))? (?P<rate>[\w.,]+ ?(?:%|percent|per cent))(?= (?:an?|per|each|every) year\b| yearly\b| annually\b)",
            re.IGNORECASE,
        ),
        lambda match: f"with inflation of {match['rate']}",
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
    (  # "he says 83 can't be divided by anything"
        re.compile(
            r"\b(?:can(?:no|['’])t|cannot|can not) be (?:evenly )?(?:divided|split)(?: evenly)? "
            r"by (?:anything|any (?:other )?number)(?: else| (?:but|except) (?:1|one|itself)(?: (?:and|or) (?:itself|1|one))?)?",
            re.IGNORECASE,
        ),
        lambda _: "is a prime number",
    ),
    (  # "below what temperature will the glass start sweating"
        re.compile(
            r"\b(?:(?:below|at|under|from) )?(?:what|which) (?:temp|temperature) (?:on )?"
            r"(?:will|do|does|would|is|are|might|should|could) (?:[\w'’-]+ ){1,7}?"
            r"(?:sweat\w*|fog(?:ging)?(?: up| over)?|mist(?:ing)? (?:up|over)|steam(?:ing)? up)\b",
            re.IGNORECASE,
        ),
        lambda _: "what is the dew point",
    ),
    (  # "Labor Day here in the States"
        re.compile(r"(?i:\b(?P<in>in|to|from|for|of|across) the) (?:US of A|States)\b(?! of\b)"),
        lambda match: f"{match['in']} the United States",
    ),
    (  # "what is 0b1011": what its notation already says is not asked for
        re.compile(
            r"\b(?P<asks>(?:what|which number)(?:['’]s| is)|convert) "
            r"(?P<number>0(?:b[01]+|o[0-7]+|x[\da-f]+))(?=\s*(?:[?.!]|$))",
            re.IGNORECASE,
        ),
        lambda match: f"{match['asks']} {match['number']} in decimal",
    ),
    (  # "how late is it", as speakers of Dutch and German say it
        re.compile(r"\bhow late (?P<is>is|will) (?=it|that)", re.IGNORECASE),
        lambda match: f"what time {match['is']} ",
    ),
)
_SLUG = re.compile(
    rf"\b(?:the )?(?:bit|part|piece|end|ending|tail|text) (?:for|of|in|at the end of) (?:the|its|a|my|our|your) {_ADDRESS}\b"
    rf"|\b(?:the )?(?:{_ADDRESS})[- ](?:version|form|bit|ending|part|name)\b",
    re.IGNORECASE,
)


_CITY_THERE = re.compile(
    r"(?P<city>\b(?:biggest|largest|smallest|most populous) (?:city|town)) there\b", re.IGNORECASE
)


_HOW_MANY = re.compile(
    r"\bhow many (?:times )?(?:(?:of (?:them|those) )?are (?:there )?in (?:there|here|it|this|that)"
    r"|(?:is it|did i (?:use|write|say) it|does it (?:come|occur|appear)) in (?:there|here|it|this|that))\b",
    re.IGNORECASE,
)
_WORD, _LINE = re.compile(r"[\"“'‘]([^\W\d_]+)[\"”'’]"), 3
"""A word in quotation marks; and how many words more than so many make a text of another quotation."""


def in_plain_words(task: str) -> str:
    """Return a task with the idioms of its beginning in plain words."""
    task = outside_texts(in_arithmetic(task), fractions.as_sums)
    head, rest = task[:TEXT_LIMIT], task[TEXT_LIMIT:]
    titled = _TITLED.search(head) is not None
    head = _counted(head)
    pieces, at = [], 0
    for match in QUOTED.finditer(head):
        pieces += [_plain(head[at : match.start()], titled=titled), match[0]]
        at = match.end()
    return _city_there("".join([*pieces, _plain(head[at:], titled=titled)])) + rest


def _plain(text: str, *, titled: bool) -> str:
    for pattern, written in _IDIOMS:
        text = pattern.sub(written, text)
    return _SLUG.sub("the URL slug", text) if titled else text


def _city_there(text: str) -> str:
    """Return a text with "the biggest city there" as that of the one country told before."""
    bare = QUOTED.sub(lambda match: " " * len(match[0]), text)
    asked = _CITY_THERE.search(bare)
    named = set(countries_in(bare[: asked.start()])) if asked else set()
    if asked is None or len(named) != 1:
        return text
    return f"{text[: asked.start()]}{asked['city']} of {named.pop()}{text[asked.end() :]}"


def _counted(text: str) -> str:
    """Return a text with the question how many there are, where it quotes one word and one line.

    "I overdo 'really'. Here's the line: '...'. How many are in there?"
    """
    quoted = [one[0] for one in QUOTED.finditer(text)]
    single = [match[1] for one in quoted if (match := _WORD.fullmatch(one))]
    lines = [one for one in quoted if len(one.split()) > _LINE]
    if len(single) != 1 or len(lines) != 1:
        return text
    return _HOW_MANY.sub(f"how often does the word {single[0]} occur in there", text)
