"""Claims of a text that can be traced: numbers, dates, times, names and identifiers.

Finds where they stand and what they mean (``12,300``, ``12.3 thousand``; ``3 May 2026``,
``2026-05-03``), in answers and in sources alike. Names are runs of English capitals, or of a script
without case among others; a capital at the start of a sentence may be the sentence's. The sign of a
number may stand in words (``fell by 12``). Pure; one pass over the text, every pattern bounded or
linear.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from toolsrv_runtime.outcome import ClaimKind
from toolsrv_runtime.values import dates, kinds
from toolsrv_runtime.values.lexicon import (
    DAY_ORDINAL_PATTERN,
    DAY_ORDINALS,
    FRACTION_SIGN_PATTERN,
    FRACTION_SIGNS,
    NUMBER_WORDS,
)

_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['\u2019.-][^\W\d_]+)*(?!\w)")
_BETWEEN = re.compile(
    r"[ \u00a0](?:(?:of|de|da|do|del|di|du|la|le|van|von|der|den|al|bin)[ \u00a0]){0,3}"
)
_START = re.compile(r"(?:^|[.!?:;\n\u2022\u201c\"(\[|>]|\n[-*]|\d\))[\s*_'\"\u201c(\[#-]*$")
_BEFORE_VALUE = re.compile(
    r"(?:^|\n)[ \t]*(?:[-*+\u2022>]|[(#]?\d{1,3}[.)])?[ \t]*[*_`\"'\u201c]*$"
    r"|:[\s*_`\"'\u201c]*$|[*_`\"'\u201c]$"
)
_BEHIND_VALUE = re.compile(
    r"[*_`\"'\u201d\u2019)\]]*+[.!?;]?[*_`\"'\u201d\u2019)\]]*+(?=[ \t]*(?:\n|$))"
    r"|[*_`\"'\u201d\u2019]++(?![\w:])|[.;](?=\s)"
)
_TITLES = frozenset({"Mr", "Mrs", "Ms", "Dr", "Prof"})
_TITLE = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(_TITLES))})\.?[ \u00a0]$")
_BARE = (
    r"\u0590-\u109f\u10d0-\u10ff\u1100-\u139f\u1400-\u1c7f\u2e80-\u2fdf\u3005-\u31ff\u3400-\ua63f"
    r"\ua800-\uab2f\uabc0-\ufaff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00011fff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_BARE}]+(?:[ \u00b7\u200c\u200d\u30fb-][{_BARE}]+)*")
_NEAR = 12
"""Characters before a name that tell what place it has."""


@dataclass(frozen=True, slots=True)
class Name:
    """A run of capitalised words. ``opens``: its first capital may only be that of a sentence.

    ``alone``: it fills the place of a value.
    """

    start: int
    text: str
    opens: bool
    alone: bool


def find_names(text: str, taken: bytearray) -> Iterator[Name]:
    """Yield the names of a text that begin where ``taken`` is 0; a title is no part of one."""
    words = [
        match
        for match in _WORD.finditer(text)
        if match[0][0].isupper() and not taken[match.start()] and match[0] not in _TITLES
    ]
    at = 0
    while at < len(words):
        end = at + 1
        while end < len(words) and _BETWEEN.fullmatch(
            text, words[end - 1].end(), words[end].start()
        ):
            end += 1
        first, last = words[at].start(), words[end - 1].end()
        near = max(0, first - _NEAR)
        yield Name(
            first,
            re.sub(r"['\u2019]s?$", "", text[first:last]),
            opens=_START.search(text, near, first) is not None
            and _TITLE.search(text, near, first) is None,
            alone=_BEFORE_VALUE.search(text, near, first) is not None
            and _BEHIND_VALUE.match(text, last, last + 40) is not None,
        )
        at = end


def find_caseless_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield where names in scripts without capitals stand: whole runs, where most letters have case.

    A text mostly in such a script has no word that a reader of its letters alone could call a name.
    """
    if text.isascii():
        return
    runs = [(match.start(), match[0]) for match in _RUN.finditer(text)]
    bare = sum(map(str.isalpha, "".join(run for _, run in runs)))
    if bare * 2 < sum(map(str.isalpha, text)):
        yield from ((start, run) for start, run in runs if any(map(str.isalpha, run)))


_BEFORE, _BEHIND = 48, 32
"""Characters beside a number whose words tell its sign."""

_CLAUSE_END = re.compile(r"[;:!?\n]|[.,](?=\s|$)")

_LOWER = re.compile(
    r"""\b(?:minus|negative|below|beneath|under|less|fewer|lower\w*|smaller|cheaper|colder|cooler
    |slower|f[ae]ll(?:s|en|ing)?|drop\w*|declin\w*|decreas\w*|reduc\w*|los(?:s|ses|t|es?|ing)|down\w*
    |shr[aiu]nk\w*|dip(?:s|ped)?|plung\w*|slid|slip\w*|weaken\w*|cut|behind|deficits?|debts?|owe[sd]?
    |overdrawn|debit\w*|withdr[ae]w\w*|subtract\w*|short|shorter|off|south(?:ern)?|west(?:ern)?
    |bce?|ago|earlier|before|differ\w*|apart|absolute)\b
    |\u00b0\s?[sw]\b|\d\s?[sw]\b""",
    re.VERBOSE,
)
_EITHER = re.compile(r"(?:[-\u2212]\s?[$\u20ac\u00a3\u00a5\u20b9]\s?|\b(?:minus|negative)\s|\d\s)$")


def is_negative(text: str, start: int, end: int) -> bool:
    """Whether the words of its clause put the number at ``start:end`` below zero, or make it a fall.

    A number that is told so may stand for one below zero: "fell by 12", "5.25 degrees below zero",
    "77 degrees west", "the difference is 5 hours".
    """
    before = _CLAUSE_END.split(text[max(0, start - _BEFORE) : start])[-1]
    behind = text[start:end] + _CLAUSE_END.split(text[end : end + _BEHIND])[0]
    return bool(_LOWER.search(before) or _LOWER.search(behind))


def may_be_negated(text: str, start: int) -> bool:
    """Whether a number at ``start`` may as well have the other sign, by what stands before it.

    Its sign stands apart (``-$5``, "minus 5"), or its dash may be one between two numbers (``9
    -17``).
    """
    found = _EITHER.search(text, max(0, start - _NEAR), start)
    if found is None:
        return False
    return text[start] in "-\u2212" or not found[0][0].isdigit()


_DIGITS_LIMIT = 40
"""Digits of a number; more are an identifier."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_UNITS = f"{NUMBER_WORDS}|billion|dozen"
_SCALES = {
    "thousand": 3, "k": 3, "million": 6, "mn": 6, "mio": 6, "m": 6, "billion": 9, "bn": 9, "b": 9,
    "trillion": 12,
}  # fmt: skip
_SHORT = frozenset({"k", "m", "b"})
"""Scales that may as well be units: both readings count."""

_SCAN = re.compile(
    rf"""
    (?P<url>(?<!\w)(?:https?://|www\.)[^\s<>"'`]+)
    |(?P<email>(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,64}}(?:\.[\w-]{{1,64}}){{1,8}})
    |(?P<date>(?<![\w.,/-])(?:
        \d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?=t\d|(?!\w|[-/.]\d))
        |\d{{1,2}}(?P<between>[-/.])\d{{1,2}}(?P=between)\d{{4}}(?!\w)
        |{_DAY}(?:\ of)?[ -]{_MONTH}(?:,?[ -]\d{{4}})?(?!\w)
        |(?:{DAY_ORDINAL_PATTERN})\ of\ {_MONTH}(?:,?\ \d{{4}})?(?!\w)
        |{_MONTH}\ {_DAY}(?!\w|[:.]\d)(?:,?\ \d{{4}}(?!\w))?
        |{_MONTH},?\ \d{{4}}(?!\w)))
    |(?P<time>(?:(?<![\w:.,])|(?<=\dt))(?:
        \d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,9}})?)?(?:\ ?[ap]\.?m\b\.?|z\b|(?![\w:]))
        |\d{{1,2}}\ ?[ap]\.?m\b\.?))
    |(?P<phone>(?<!\w)\+\d[\d ()./-]{{5,18}}\d(?!\w|[.,/-]\d))
    |(?P<groups>(?<![\w.-])(?:\d+(?:-\d+){{2,}}(?:-?x)?|\d{{1,6}}(?:\.\d{{1,6}}){{3,}}(?:/\d+)?
        |\d{{4}}(?:\ \d{{4}}){{2,4}}|[a-z]{{2}}\d{{2}}(?:\ [a-z\d]{{4}}){{2,7}}(?:\ [a-z\d]{{1,4}})?)(?!\w))
    |(?P<share>(?<![\w.,])(?P<sign>(?<![\w)])[-\u2212])?(?P<whole>\d{{1,6}}[ \u00a0\u2009]?)?(?P<part>{FRACTION_SIGN_PATTERN})(?!\w))
    |(?P<number>(?<![\w.])(?:(?<![\w)])[-\u2212])?(?P<digits>
        \d{{1,3}}(?:\.\d{{3}})+,\d+|\d{{1,3}}(?:\.\d{{3}}){{2,}}
        |\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?
        |\d{{1,3}}(?:[ \u00a0\u202f'\u2019]\d{{3}})+(?:[.,]\d+)?
        |\d+,\d{{1,2}}(?![\d,])
        |\d+(?:\.\d+)?(?:e[+-]?\d{{1,3}})?|\.\d+)(?!\d)
        (?:\s?(?P<percent>%|percent\b|per\ cent\b)
        |\s?(?P<scale>thousand|million|mn|mio|billion|bn|trillion|[kmb])(?!\w)
        |[a-z\u00b0\u00b5]{{1,4}}(?!\w))?(?!\w))
    |(?P<code>\#?(?<!\w)(?=[\w.:/+\#-]{{0,60}}[\d_]|[\w.-]{{0,60}}\w\.[a-z]{{2,}})\w+(?:[-_./:+\#=]+\w+)*=*)
    |(?P<words>(?<!\w)(?:{_UNITS})(?:(?:[ -]|\ and\ )(?:{_UNITS})){{0,12}}(?!\w|-\w))
    """,
    re.VERBOSE,
)
_NUMBERING = re.compile(r"(?m)^[ \t]*[(#]?\d{1,3}[.)][ \t]")
_TWELVE = re.compile(
    r"(?<!\w)(?:(?<!solar )(?<!local )(?<!true )(?P<noon>noon|midday)|midnight(?! sun))(?!\w)"
)
_HOURLY = re.compile(r"noon|midday|midnight|clock| (?:past|to|till|in the|at) ")
"""Something that every time of day in words has."""
_BUT_THE_PART_OF_DAY = frozenset({"share", "way", "minutes", "side", "hour", "full", "bare", "at"})
"""What a time in words says besides the part of the day."""
_HALF_A_HUNDREDTH = Decimal("0.005")
"""How far a third may be from what is told of it in decimals."""
_ZERO = re.compile(r"(?:below|above) zero")
_SINGLE = frozenset({"i", "ok", "api", "apis"})
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Number = tuple[Decimal, Decimal]
"""A value and the half of its last place: how far what it was rounded from may be away."""

Day = tuple[int | None, int, int | None]
"""Year, month, day; what is not said is None."""

Clock = tuple[int, int, int | None]
"""Hour of 24, minute, second; None where no second is said."""


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """Something that a text states, with its meaning: ``numbers`` and ``days`` hold every reading.

    ``clocks`` are all readings of a time; ``code`` an identifier without its separators. ``opens``
    is True for a name whose first capital may only be that of a sentence, ``alone`` for one that
    fills the place of a value, ``bare`` for one in a script without capitals. ``below`` is True for
    a number of an answer that its words put below zero.
    """

    kind: ClaimKind
    start: int
    text: str
    numbers: tuple[Number, ...] = ()
    days: tuple[Day, ...] = ()
    clocks: tuple[Clock, ...] = ()
    code: str = ""
    opens: bool = False
    alone: bool = False
    below: bool = False
    bare: bool = False


class _Folds(dict[int, str]):
    """Characters without accent and in lower case, one for one, so that places stay the same."""

    def __missing__(self, key: int) -> str:
        character = chr(key)
        parts = unicodedata.normalize("NFD", character)
        accented = all(map(unicodedata.combining, parts[1:]))
        plain = parts[0] if accented else character
        lower = plain.lower()
        self[key] = folded = lower if len(lower) == 1 else plain
        return folded


_FOLDS = _Folds()


def fold(text: str) -> str:
    """Return text without accents, in lower case, of the same length."""
    return text.lower() if text.isascii() else text.translate(_FOLDS)


def typed_spans(text: str) -> Iterator[ClaimSpan]:
    """Yield the times of day in words of a text, then its numbers, dates, times, identifiers."""
    folded = fold(text)
    spoken = list(_spoken(folded, text))
    yield from spoken
    at = 0
    for match in _SCAN.finditer(folded):
        while at < len(spoken) and _end(spoken[at]) <= match.start():
            at += 1
        if at < len(spoken) and spoken[at].start < match.end():
            continue
        group = match.lastgroup or ""
        said = match[0].rstrip(".,;:!?)]}'\"*_") if group == "url" else match[0]
        span = _READERS[group](match, text[match.start() : match.start() + len(said)])
        if span is not None:
            yield span


def _spoken(folded: str, text: str) -> Iterator[ClaimSpan]:
    """Yield the times of day told in words; "half past two" may be either half of a day's."""
    if not _HOURLY.search(folded):
        return
    found = [
        (match.start("bare" if match["bare"] else 0), match.end(), _clocks(match))
        for match in dates.SPOKEN_TIME.finditer(folded)
    ]
    found.extend(
        (match.start(), match.end(), ((12 if match["noon"] else 0, 0, None),))
        for match in _TWELVE.finditer(folded)
    )
    for start, end, read in sorted(found):
        yield ClaimSpan("time", start, text[start:end], clocks=read)


def _clocks(match: re.Match[str]) -> tuple[Clock, ...]:
    """Return what a time in words may mean: without a part of the day, either half of it."""
    hour, minute = map(int, dates.time_in_figures(match).split()[-1].split(":"))
    told = match.groupdict().keys() - _BUT_THE_PART_OF_DAY
    sure = any(match[name] for name in told)
    return ((hour, minute, None), ((hour + 12) % 24, minute, None))[: 1 if sure else 2]


def _end(span: ClaimSpan) -> int:
    return span.start + len(span.text)


def stated_spans(text: str) -> list[ClaimSpan]:
    """Return all that an answer states, in order: ``typed_spans``, and names.

    List numbering, ordinals in words, a bare "one" and the zero of "below zero" state nothing.
    """
    numbering = {match.end() for match in _NUMBERING.finditer(text)}
    folded = fold(text)
    spans = [
        replace(one, below=is_negative(folded, one.start, one.start + len(one.text)))
        if one.kind == "number"
        else one
        for one in typed_spans(text)
        if not (one.kind == "number" and _is_numbering(one, numbering))
        and one.text.lower() != "one"
        and not _ZERO.fullmatch(folded, max(0, one.start - 6), one.start + len(one.text))
    ]
    return sorted([*spans, *_names(text, spans)], key=lambda one: one.start)


def weekday(day: Day) -> str:
    """Return the name of a whole date's weekday, "" for a part of a date."""
    year, month, number = day
    if year is None or number is None:
        return ""
    return _WEEKDAYS[dt.date(year, month, number).weekday()]


def _is_numbering(span: ClaimSpan, ends: set[int]) -> bool:
    at = span.start + len(span.text)
    return bool({at + 1, at + 2} & ends)


def _names(text: str, taken: list[ClaimSpan]) -> Iterator[ClaimSpan]:
    """Yield runs of capitalised words that stand in no other span."""
    inside = bytearray(len(text))
    for one in taken:
        inside[one.start : one.start + len(one.text)] = b"\1" * len(one.text)
    for name in find_names(text, inside):
        if fold(name.text) not in _SINGLE:
            yield ClaimSpan("name", name.start, name.text, opens=name.opens, alone=name.alone)
    for start, run in find_caseless_names(text):
        if not any(inside[start : start + len(run)]):
            yield ClaimSpan("name", start, run, bare=True)


def _number(match: re.Match[str], text: str) -> ClaimSpan | None:
    digits = match["digits"]
    if sum(map(str.isdigit, digits)) > _DIGITS_LIMIT:
        return _code(match, text)
    value = Decimal(_point(digits))
    place = Decimal(1).scaleb(min(0, int(value.as_tuple().exponent))) / 2
    if match[0][0] in "-\u2212":
        value = -value
    found = [(value, place)]
    if may_be_negated(match.string, match.start()):
        found.append((-value, place))
    if match["percent"]:
        found += [(one / 100, half / 100) for one, half in found]
    if scale := match["scale"]:
        power = _SCALES[scale]
        scaled = [(one.scaleb(power), half.scaleb(power)) for one, half in found]
        found = [*found, *scaled] if scale in _SHORT else scaled
    return ClaimSpan("number", match.start(), text, tuple(found))


def _share(match: re.Match[str], text: str) -> ClaimSpan | None:
    """Read "\u00bd" or "2 \u2153"; what has no end in tenths may be rounded to hundredths."""
    share = int(match["whole"] or 0) + FRACTION_SIGNS[match["part"]]
    value = Decimal(share.numerator) / share.denominator
    if match["sign"]:
        value = -value
    return ClaimSpan("number", match.start(), text, ((value, _half_of(share.denominator)),))


def _half_of(denominator: int) -> Decimal:
    return _HALF_A_HUNDREDTH if denominator % 3 == 0 or denominator == 7 else Decimal(0)


def _point(digits: str) -> str:
    """Return digits as ``Decimal`` reads them: no separators of thousands, a decimal point."""
    plain = re.sub(r"[ \u00a0\u202f'\u2019]", "", digits)
    if re.fullmatch(r"\d+,\d{1,2}|\d{1,3}(?:\.\d{3})+,\d+|\d{4,},\d+", plain):
        return plain.replace(".", "").replace(",", ".")
    plain = plain.replace(",", "")
    return plain.replace(".", "") if plain.count(".") > 1 else plain


def _words(match: re.Match[str], text: str) -> ClaimSpan | None:
    value = _spelled(match[0])
    if value is None:
        return None
    found = [(value, Decimal(0))]
    if may_be_negated(match.string, match.start()):
        found.append((-value, Decimal(0)))
    return ClaimSpan("number", match.start(), text, tuple(found))


@lru_cache(maxsize=4096)
def _spelled(words: str) -> Decimal | None:
    read = kinds.normalise_value("number", words)
    return Decimal(read) if re.fullmatch(r"\d+(?:\.\d+)?", read) else None


def _date(match: re.Match[str], text: str) -> ClaimSpan | None:
    said, ordinal = match[0], re.match(DAY_ORDINAL_PATTERN, match[0])
    if ordinal is not None:
        said = f"{DAY_ORDINALS[ordinal[0].replace('-', ' ')]}{said[ordinal.end() :]}"
    parts = [int(one) for one in re.findall(r"\d+", said)]
    month = re.search(r"[a-z]{3}", said)  # ordinals and "of" are shorter
    days: list[Day] = []
    if month is None:
        year_first = parts[0] > 31
        one, two, three = parts
        days = [(one, two, three)] if year_first else [(three, two, one), (three, one, two)]
    else:
        number = _MONTHS.index(month[0]) + 1
        years = [one for one in parts if one > 31]
        small = [one for one in parts if one <= 31]
        days = [(years[0] if years else None, number, small[0] if small else None)]
    days = [day for day in dict.fromkeys(days) if _exists(day)]
    return ClaimSpan("date", match.start(), text, days=tuple(days)) if days else _code(match, text)


def _exists(day: Day) -> bool:
    year, month, number = day
    try:
        dt.date(2000 if year is None else year, month, 1 if number is None else number)
    except ValueError:
        return False
    return True


def _time(match: re.Match[str], text: str) -> ClaimSpan | None:
    parts = [int(one) for one in re.findall(r"\d+", match[0])]
    hour, minute = parts[0], parts[1] if len(parts) > 1 else 0
    half = re.search(r"([ap])\.?m\.?$", match[0])
    if half is not None and hour <= 12:
        hour = hour % 12 + (12 if half[1] == "p" else 0)
    second = parts[2] if len(parts) > 2 else None
    text = re.sub(r"(?<=[ap]m)\.$", "", text, flags=re.IGNORECASE)  # of the sentence: "at 10 pm."
    return ClaimSpan("time", match.start(), text, clocks=((hour, minute, second),))


def _code(match: re.Match[str], text: str) -> ClaimSpan | None:
    return ClaimSpan("identifier", match.start(), text, code=re.sub(r"[\W_]", "", fold(text)))


_READERS = {
    "url": _code,
    "email": _code,
    "date": _date,
    "time": _time,
    "phone": _code,
    "groups": _code,
    "share": _share,
    "number": _number,
    "code": _code,
    "words": _words,
}
