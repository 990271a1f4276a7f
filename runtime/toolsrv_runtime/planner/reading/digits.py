"""A task with its numbers in digits: "two and a half cups" is "2.5 cups", "half a million" "500000".

Fractions, halves, number words and decimal commas are written as every rule, the matcher and the
model read numbers. What stands in quotation marks, or is announced as a text, stays as it is, and
so do sums, dates and sentences about letters and words. Library: text2num. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from text_to_num import text2num

from toolsrv_runtime.planner.reading import thousands
from toolsrv_runtime.planner.reading.announced import announced
from toolsrv_runtime.values import dates
from toolsrv_runtime.values.lexicon import (
    DAY_ORDINAL_PATTERN,
    DAY_ORDINALS,
    FRACTION_SIGN_PATTERN,
    FRACTION_SIGNS,
    NUMBER_WORDS,
    ONES,
    ORDINALS,
    TEENS,
    TENS,
    UNITS,
)

TEXT_LIMIT = 4_000
"""Characters of a task that are looked at."""

_SHARES = {"half": 1 / 2, "quarter": 1 / 4, "third": 1 / 3}
_POWERS = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_SPANS = {
    "decade": (10, "years"), "fortnight": (2, "weeks"), "centur": (100, "years"),
}  # fmt: skip
_KITCHEN = r"cups?|tsps?|tbsps?|teaspoons?|tablespoons?|pints?|quarts?|sticks?|servings?"
_UNIT = rf"(?:{'|'.join(UNITS.values())}|{_KITCHEN}|percent|%|[€$£])"
QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|(?<!\w)‘[^’]*’(?!\w)|https?://\S+")
_SENTENCE = re.compile(r"[^.?!;\n]+(?:[.?!;](?!\s)[^.?!;\n]*)*")
_OF_TEXT = re.compile(
    r"\b(?:letters?|the words?|characters?|(?:upper|lower|title|camel|snake)[ -]?case|capitals|capitali[sz]e\w*|"
    r"revers\w*|backwards?|slugs?|slugify|acronyms?|morse|nato|palindromes?|anagrams?|encod\w*|decod\w*|hash\w*|md5|"
    r"sha-?\d*|crc32|base64|rot13|caesar|qr|banner|syllables?|alphabetical\w*|similar\w*|readab\w*|spell(?! out)|sentences)\b",
    re.IGNORECASE,
)
"""What sentences say that are about the words of a text, quotation marks or not."""

_WORDS = rf"(?:{NUMBER_WORDS}|billion)"
_SPELLED = rf"(?:an? (?=hundred|thousand|million|billion))?{_WORDS}(?:[ -](?:and )?{_WORDS})*"
_ORDINAL = rf"(?![\s-](?:first|{'|'.join(ORDINALS)}|hundredth)\b)"
_MONTHS = (
    r"(?-i:March|May)|january|february|april|june|july|august|september|october|november|december"
)
"""May may be a word."""
_NOT_A_SUM = r"(?<![\w.,/:$€£^+*=-])(?<![+*=/^-] )"
_TO_THE_HOUR = r"(?! (?:past|to|till) (?:\d|noon|midnight|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)"

_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (dates.SPOKEN_TIME, dates.time_in_figures),
    (  # 2½ cups
        re.compile(rf"{_NOT_A_SUM}(\d{{1,4}})?\s?({FRACTION_SIGN_PATTERN})(?!\w)(?![\s]?[+*/=-])"),
        lambda match: _decimal(float(match[1] or 0) + float(FRACTION_SIGNS[match[2]])),
    ),
    (  # 2 1/2 cups
        re.compile(rf"{_NOT_A_SUM}(\d{{1,4}})[ -](\d)/(2|3|4|5|8|16)(?![\w/.,]\d?)(?!\s?[+*/=-])"),
        lambda match: _decimal(int(match[1]) + int(match[2]) / int(match[3])),
    ),
    (  # 3/4 cup
        re.compile(
            rf"{_NOT_A_SUM}(\d{{1,2}})/(2|3|4|5|8|10|16)(?=[ -]?(?:of an? )?{_UNIT}(?!\w))",
            re.IGNORECASE,
        ),
        lambda match: _decimal(int(match[1]) / int(match[2])),
    ),
    (  # half a million
        re.compile(
            rf"\b(?:(half)(?: an?)?|(?:an? )?(quarter) (?:of )?an?) ({'|'.join(_POWERS)})\b",
            re.IGNORECASE,
        ),
        lambda match: f"{_SHARES[(match[1] or match[2]).lower()] * _POWERS[match[3].lower()]:.10g}",
    ),
    (  # 2 thousand, 1.5 million
        re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?) (thousand|million|billion)\b", re.IGNORECASE),
        lambda match: f"{float(match[1]) * _POWERS[match[2].lower()]:.12g}",
    ),
    (  # a third off, half price
        re.compile(r"\b(?:(half)[ -]price|(?:an? )?(half|third|quarter) off)\b", re.IGNORECASE),
        lambda match: f"{100 * _SHARES[(match[1] or match[2]).lower()]:.4g}% off",
    ),
    (  # thirty-eight point five
        re.compile(
            rf"(?<![\w.,-])(\d+|{_SPELLED}) point ((?:zero|oh|{ONES}|\d)(?: (?:zero|oh|{ONES}|\d))*)\b",
            re.IGNORECASE,
        ),
        lambda match: _point(match[1], match[2]),
    ),
    (  # two and a half
        re.compile(
            rf"(?<![\w.,-])(\d+|{_SPELLED}) and (?:an? )?(half|quarter|third|three[ -]quarters)\b",
            re.IGNORECASE,
        ),
        lambda match: _and_a_share(match[1], match[2]),
    ),
    (  # an hour and a half
        re.compile(
            rf"\b(?:an?|one) ({_UNIT}) and (?:an? )?(half|quarter|three[ -]quarters)\b",
            re.IGNORECASE,
        ),
        lambda match: f"{_decimal(1 + _share(match[2]))} {match[1].rstrip('s')}s",
    ),
    (  # three quarters of an hour
        re.compile(r"\b(?:(three)[ -]quarters|an? quarter) of an hour\b", re.IGNORECASE),
        lambda match: "45 minutes" if match[1] else "15 minutes",
    ),
    (  # half an hour
        re.compile(r"(?<!and )(?<!and a )\bhalf[ -](?:an? |of an )?hour\b", re.IGNORECASE),
        lambda _: "30 minutes",
    ),
    (  # half a kilowatt, a quarter amp: what rules for kitchens do not read
        re.compile(
            r"\b(?:(half) an?|an? (quarter)) ((?:kilo|mega)?watts?|kw|amps?|amperes?|volts?)\b",
            re.IGNORECASE,
        ),
        lambda match: f"{_SHARES[(match[1] or match[2]).lower()]:g} {match[3]}",
    ),
    (  # one metre eighty
        re.compile(
            rf"\b(one|two|[12]) met(?:er|re)s? (\d{{2}}|(?:{TENS})(?:[ -](?:{ONES}))?|{TEENS})\b(?!\s?(?:cm|centi|{_UNIT}))",
            re.IGNORECASE,
        ),
        lambda match: f"{_number(match[1])}.{int(_number(match[2])):02d} m",
    ),
    (  # thirty three, a hundred and twenty
        re.compile(
            rf"(?<![\w-])(?:an? (?=hundred|thousand|million|billion))?{_WORDS}(?:[ -](?:and )?{_WORDS})+\b{_ORDINAL}{_TO_THE_HOUR}(?!-\w)",
            re.IGNORECASE,
        ),
        lambda match: _number(match[0]) or match[0],
    ),
    (  # minus seven
        re.compile(
            rf"(^|\b(?:of|at|is|say|write|about|to|for|from|and|or) )(minus|negative) ({_SPELLED})\b{_ORDINAL}",
            re.IGNORECASE,
        ),
        lambda match: f"{match[1]}{match[2]} {_number(match[3]) or match[3]}",
    ),
    (  # the twenty-second of May
        re.compile(rf"\b({DAY_ORDINAL_PATTERN})(?= (?:of )?(?:{_MONTHS})\b)", re.IGNORECASE),
        lambda match: _day(match[1]),
    ),
    (  # May the twenty-second
        re.compile(rf"\b({_MONTHS}) (?:the )?({DAY_ORDINAL_PATTERN})\b(?! of)", re.IGNORECASE),
        lambda match: f"{match[1]} {_day(match[2])}",
    ),
    (  # five miles, twenty below zero
        re.compile(
            rf"(?<![\w.,-])(?<!below )(?<!per )({_WORDS})(?=[ -](?:(?:degrees )?below (?:zero|freezing)|(?!second\b)(?:degrees?|percent|{_UNIT}))(?![\w-]))",
            re.IGNORECASE,
        ),
        lambda match: _number(match[1]) or match[1],
    ),
    (  # 3 tsp, 2 tbsp
        re.compile(r"(?<=\d)\s?(?:(tbsps?|tblsps?)|(tsps?))\b\.?", re.IGNORECASE),
        lambda match: " tablespoons" if match[1] else " teaspoons",
    ),
    (  # 300 K in Celsius
        re.compile(
            r"(?<=\d) ?K(?= (?:in|to|into|as) (?:degrees )?(?:celsius|fahrenheit|°|[CF]\b))"
        ),
        lambda _: " kelvin",
    ),
    (  # a decade, three fortnights
        re.compile(
            rf"(?<![\w.,-])(an?|\d{{1,2}}(?:\.\d+)?|{ONES}) (decade|fortnight|centur)(?:s|y|ies)?\b(?! and a)",
            re.IGNORECASE,
        ),
        lambda match: _in_shorter(match[1], match[2]),
    ),
    (  # noon in Tokyo
        re.compile(
            r"\b(noon|midnight)(?= (?:over |here |there )?(?:in (?=[A-Z])|(?:my|his|her|their|our) time))",
            re.IGNORECASE,
        ),
        lambda match: "12:00" if match[1].lower() == "noon" else "00:00",
    ),
    (  # 20,000mAh
        re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})+)(?=[A-Za-z])"),
        lambda match: f"{match[1].replace(',', '')} ",
    ),
    (  # 70,5 kg
        re.compile(rf"(?<![\w.,])(\d{{1,3}}),(\d{{1,2}})(?=\s?{_UNIT}(?![\w,]))", re.IGNORECASE),
        lambda match: f"{match[1]}.{match[2]}",
    ),
)


@lru_cache(maxsize=256)
def in_digits(task: str) -> str:
    """Return a task with its numbers in digits; O(length)."""
    head = task[:TEXT_LIMIT]
    if thousands.MAYBE.search(head):
        pieces = list(_pieces(head))
        own = "".join(text for text, kept in pieces if not kept)
        head = "".join(text if kept else thousands.plain(text, own) for text, kept in pieces)
    for pattern, written in _RULES:
        head = "".join(text if kept else pattern.sub(written, text) for text, kept in _pieces(head))
    return head + task[TEXT_LIMIT:]


def outside_texts(text: str, change: Callable[[str], str]) -> str:
    """Return a text changed but where it quotes or announces one, or says something of its words."""
    head = "".join(one if kept else change(one) for one, kept in _pieces(text[:TEXT_LIMIT]))
    return head + text[TEXT_LIMIT:]


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a text, and whether each is to be kept as it is."""
    about = (one.span() for one in _SENTENCE.finditer(text) if _OF_TEXT.search(one[0]))
    quoted = (match.span() for match in QUOTED.finditer(text))
    spans = sorted([*announced(text), *quoted, *about])
    at = 0
    for begin, end in spans:
        if begin >= at:
            yield text[at:begin], False
        if end > at:
            yield text[max(at, begin) : end], True
            at = end
    yield text[at:], False


def _in_shorter(said: str, span: str) -> str:
    """Return a long span of time in shorter ones: 2.5 decades are 25 years."""
    number = {"a": "1", "an": "1"}.get(said.lower()) or _number(said) or said
    times, unit = _SPANS[span.lower()]
    return f"{float(number) * times:g} {unit}"


def _day(said: str) -> str:
    return str(DAY_ORDINALS[said.lower().replace("-", " ")])


def _decimal(value: float) -> str:
    return f"{round(value, 6):.10g}"


def _number(said: str) -> str:
    """Return what number words say in digits, "" where they are no one number: "twenty fifty"."""
    if said.isdecimal():
        return said
    plain = re.sub(r"^an? ", "one ", said.lower()).replace("-", " ")
    try:
        return str(text2num(plain, "en"))
    except ValueError:
        return ""


def _share(said: str) -> float:
    return 3 / 4 if said.lower().startswith("three") else _SHARES[said.lower()]


def _and_a_share(said: str, share: str) -> str:
    number = _number(said)
    return _decimal(float(number) + _share(share)) if number else f"{said} and a {share}"


def _point(said: str, behind: str) -> str:
    number = _number(said)
    digits = "".join(
        "0" if one.lower() in {"zero", "oh"} else _number(one) for one in behind.split()
    )
    return f"{number}.{digits}" if number else f"{said} point {behind}"
