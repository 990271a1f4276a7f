"""Which way: from which of two scales to which, up or down a list, there or back (a cipher).

By the words of the task alone. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from text_to_num import alpha2digit

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import viewpoint
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_FROM = re.compile(r"\b(?:from|source|base|input|have)\b")
_FROM_KEY = re.compile(r"(^|.*_)from(_.*|$)")
_TO = re.compile(r"\b(?:to|target|into|output|want)\b")
# What stands before the scale that a value is told in.
_TOLD_IN = re.compile(r"(?:\d,?\s?(?:°|degrees?)?\s?|\bfrom\s+(?:degrees?\s+)?)$", re.IGNORECASE)
_NUMBER_BEFORE = re.compile(r"\d,?\s?(?:°|degrees?)?\s?$", re.IGNORECASE)
_BELOW = re.compile(
    r"\bnegative\b[^.;]{0,20}\b(?:down|lower|back|before|past|earlier)", re.IGNORECASE
)
_GOES_DOWN = re.compile(
    r"\b(?:down|downwards?|lower(?:ed|s)?|drop(?:ped|s)?|flatter|backwards?)\b", re.IGNORECASE
)
_UP = re.compile(
    r"\b(?:abc|a[ -](?:to[ -])?z|alphabetic(?:al(?:ly)?)?|(?:smallest|lowest|least|shortest|earliest|oldest|"
    r"youngest|cheapest|slowest) (?:ones? )?first|increasing|ascending|growing)\b",
    re.IGNORECASE,
)
_ALPHABETIC = re.compile(r"\balphabetic(?:al(?:ly)?)?\b", re.IGNORECASE)
_DOWN = re.compile(
    r"\b(?:z[ -](?:to[ -])?a|(?:from|with|at) (?:the )?z(?: end| first)?|z first|reversed?|backwards?|"
    r"(?:largest|biggest|highest|most|longest|latest|newest|dearest|fastest) (?:ones? )?first|decreasing|descending|falling)\b",
    re.IGNORECASE,
)
# A time of day, and what leads from it to its place: "3 pm in", "noon over in", "15:00".
_CLOCK = (
    r"\b(?:\d{1,2}(?::\d\d)?\s?[ap]\.?m\.?|\d{1,2}:\d\d|noon|midnight|o'clock)\s+"
    r"(?:(?:over |here |there |down |up )?in )?"
)
# What stands before a unit for a number: "how many feet are in a mile".
_ONE = r"(?<![\w'])(?:an?|a couple of|a dozen)\s"
# What another place is measured from.
_BESIDE = r"\b(?:ahead of|behind|than(?: it is)?(?: over| here)?(?: in)?) "
_OFF_UTC = re.compile(
    r"\b(?:off(?:sets?)?|ahead|behind|away|apart|differ\w*|hours?|minutes?|far)\b[^.?!]{0,25}\b(?:utc|gmt)\b"
    r"|\b(?:utc|gmt)[ -]offset\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.?!;])\s+")
_BACK = re.compile(r"\bnegative\b[^.;]{0,20}\b(?:decrypt|decod|deciph|undo|revers)", re.IGNORECASE)
HALF_THE_ALPHABET = 13
"""Letters that are moved by so many are moved back by so many too."""
_UNDOES = re.compile(
    r"\b(?:decrypt|decod|deciph|undo|unscrambl|crack|break the|solve|what does)", re.IGNORECASE
)
_DOES = re.compile(
    r"\b(?:encrypt|encod|enciph)|(?:^|[.,;:]\s+|\b(?:please|then|and) )shift\b", re.IGNORECASE
)


def is_yardstick(said: str, part: str) -> bool:
    """Whether a zone is only what another one is told by: "how far off UTC are the clocks here"."""
    return said.upper() in {"UTC", "GMT"} and bool(_OFF_UTC.search(part))


def turned(parameter: Parameter, value: str, part: str, task: str) -> str:
    """Return a number below zero where that undoes, by the document, what a part wants undone.

    Or the task, if it wants nothing done as well: "... pushed three places forward. Crack it!"
    So is one that goes down, of "take it down by five semitones".
    """
    plain = re.fullmatch(r"\d+(?:\.\d+)?", value)
    if value == str(HALF_THE_ALPHABET) and "shift" in words(parameter.name).split():
        return value
    if plain and _BELOW.search(parameter.description) and _GOES_DOWN.search(part):
        return f"-{value}" if float(value) else value
    text = part if _DOES.search(task) else task
    undone = plain and _BACK.search(parameter.description) and _UNDOES.search(text)
    return f"-{value}" if undone and float(value) else value


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the allowed value that is stated for a parameter by its place, "" for none.

    The value behind a number, or behind "from", is what is converted; the other one what is wanted.
    Only where two parameters share the list, by name one of each, and two of its values are named:
    by the part, else by the task.
    """
    part, _, task = wish
    if order := _order(parameter, part, task):
        return order
    return _scale(parameter, api, part) or _scale(parameter, api, task) or _told_in(parameter, part)


def _told_in(parameter: Parameter, part: str) -> str:
    """Return the one allowed value that a number is told in: "375 fahrenheit, what is that in celsius".

    Only where the part names another one too, and the parameter is not what is wanted.
    """
    name = words(parameter.name)
    if not parameter.enum or _TO.search(name):
        return ""
    text = alpha2digit(part, "en", 0)
    named = {
        option: [
            bool(_NUMBER_BEFORE.search(text, 0, match.start()))
            for match in re.finditer(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE)
        ]
        for option in parameter.enum
    }
    behind = [option for option, places in named.items() if any(places)]
    others = [option for option, places in named.items() if places and not any(places)]
    return behind[0] if len(behind) == 1 and others else ""


def _scale(parameter: Parameter, api: Api, text: str) -> str:
    others = [one for one in api.parameters if one != parameter and one.enum == parameter.enum]
    if not parameter.enum or len(others) != 1:
        return ""
    mine, other = (words(one.name) for one in (parameter, others[0]))
    is_from = bool(_FROM.search(mine) and _TO.search(other))
    if not is_from and not (_TO.search(mine) and _FROM.search(other)):
        return ""
    text = alpha2digit(text, "en", 0)
    named = [
        (option, bool(_TOLD_IN.search(text[: match.start()])))
        for option in parameter.enum
        for match in re.finditer(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.IGNORECASE)
    ]
    if len(named) != 2 or named[0][0] == named[1][0] or named[0][1] == named[1][1]:
        return ""
    return next(option for option, told_in in named if told_in == is_from)


def straight(arguments: Mapping[str, str], text: str, part: str = "") -> dict[str, str]:
    """Return a call's arguments, from and to changed over where the words before one say so.

    In "how many millilitres are 12 fluid ounces" ounces stand behind the number: from those, and so
    from miles in "how many feet are in a mile". So do places behind a time of day, or behind what
    they are compared with ("ahead of Lisbon"). Where neither does, or both do, the people whose
    places they are may say it ("ahead of us").
    """
    turned = dict(arguments)
    for key in arguments:
        other = _FROM_KEY.sub(r"\1to\2", key)
        if other == key or other not in arguments:
            continue
        mine, wanted = arguments[key], arguments[other]
        if mine.isdigit() and wanted.isdigit():
            continue  # bases; "1010" has no 10 behind a 10
        numbers = [n for n in arguments.values() if re.fullmatch(r"[\d.]+", n)]
        told = [one for one in (mine, wanted) if _comes_first(one, numbers, text)]
        if len(told) != 1 and not _is_route(mine, wanted, text):
            beside = [value for name, value in arguments.items() if name not in {key, other}]
            told = [viewpoint.first(mine, wanted, beside, part, text)]
        if told == [wanted]:
            turned[key], turned[other] = wanted, mine
    return turned


def _is_route(one: str, other: str, text: str) -> bool:
    """Whether ``text`` says "from" one "to" the other."""
    route = rf"\bfrom\s+{re.escape(one)}(?!\w)[^.?!]{{0,40}}?\bto\s+{re.escape(other)}(?!\w)"
    return bool(re.search(route, text, re.IGNORECASE))


def _comes_first(value: str, numbers: Sequence[str], text: str) -> bool:
    """Whether ``text`` has a value behind a number or article, a time of day or a comparison."""
    before = [rf"(?<![\w.]){re.escape(number)}\s?" for number in numbers]
    heads = "|".join((*before, _ONE, _CLOCK, _BESIDE))
    return bool(re.search(rf"(?:{heads}){re.escape(value)}(?!\w)", text, re.IGNORECASE))


def _order(parameter: Parameter, part: str, task: str) -> str:
    """Return up or down of two such values, "" where neither or both are said.

    By the part, by the sentence it stands in, and last by "alphabetical", which only names the
    order: "in alphabetical order, but from the Z end".
    """
    ways = {"asc": _UP, "desc": _DOWN}
    found = {
        start: next((one for one in parameter.enum if one.lower().startswith(start)), "")
        for start in ways
    }
    if len(parameter.enum) != 2 or not all(found.values()):
        return ""
    sentence = next((one for one in _SENTENCE.split(task) if part in one), part)
    for text in (_ALPHABETIC.sub("", part), _ALPHABETIC.sub("", sentence), part):
        if said := [start for start, pattern in ways.items() if pattern.search(text)]:
            return found[said[0]] if len(said) == 1 else ""
    return ""
