"""Kinds of typed values: recognise a parameter's kind, find its values in a text, normalise them.

A kind follows from a parameter's name and description. Normalisation turns a person's spelling into
what an API accepts: numbers in digits (text2num), dates in ISO 8601 (dateutil), nationalities as
countries or languages (``peoples.txt``: a country a line, its words behind the colon, a hyphen for
a blank). What cannot be read stays as it was. Every pattern is linear in the text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from dateutil import parser
from text_to_num import alpha2digit

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.values import arithmetic, dates, lexicon
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.lexicon import unit_pattern

LOOSE_KINDS = frozenset(
    {"", "name", "country", "text", "currency", "colour", "formula", "zone", "character"}
)
"""Kinds whose values may also be any other words; all others must look right."""

RARE_KINDS = frozenset(
    {"email", "ip", "network", "hex", "isbn", "iban", "vat", "bic", "lei", "card", "morse", "pace"}
)
"""Kinds that hardly occur in a text unless they are meant."""

_SPELLED = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15",
    "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "binary": "2",
    "octal": "8", "decimal": "10", "hexadecimal": "16",
}  # fmt: skip
_PHONE_DIGITS = 15

ValueFinder = Callable[[str], list[str]]

_MONTH_PATTERN = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}"
    rf"|{_DAY}(?: of)? {_MONTH_PATTERN}(?:,? \d{{4}})?|{_MONTH_PATTERN} {_DAY}(?:,? \d{{4}})?"
    rf"|{dates.RELATIVE_DAY_PATTERN}|{dates.HOLIDAY_PATTERN}"
)
_CLOCK_PATTERN = r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?"
_NUMBER_PATTERN = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_CURRENCY = rf"[A-Z]{{3}}|(?i:{lexicon.CURRENCY_NAMES})"
_LANGUAGE = (
    "arabic|bengali|bulgarian|catalan|chinese|croatian|czech|danish|dutch|english|estonian|finnish|"
    "french|german|greek|hebrew|hindi|hungarian|icelandic|indonesian|irish|italian|japanese|"
    "korean|latvian|lithuanian|malay|norwegian|persian|polish|portuguese|romanian|russian|serbian|"
    "slovak|slovenian|spanish|swahili|swedish|tamil|thai|turkish|ukrainian|urdu|vietnamese|welsh|"
    "afrikaans|albanian|amharic|armenian|azerbaijani|basque|belarusian|bosnian|burmese|cantonese|"
    "esperanto|filipino|galician|georgian|gujarati|hausa|igbo|javanese|kannada|kazakh|khmer|"
    "kinyarwanda|kurdish|kyrgyz|lao|latin|luxembourgish|macedonian|malagasy|malayalam|maltese|"
    "mandarin|maori|marathi|mongolian|nepali|pashto|punjabi|samoan|sinhala|somali|tajik|telugu|"
    "tibetan|turkmen|uzbek|xhosa|yiddish|yoruba|zulu|assamese|bambara|bashkir|breton|cebuano|chechen|"
    "cherokee|chuvash|cornish|corsican|dzongkha|faroese|gaelic|guarani|hawaiian|kashmiri|kikuyu|konkani|"
    "lingala|manx|navajo|occitan|odia|oromo|papiamento|quechua|romansh|sanskrit|sardinian|shona|sindhi|"
    "sundanese|tatar|tigrinya|tongan|tsonga|tswana|uyghur|venda|walloon|wolof|yakut|zhuang"
)


_LENGTH = "k|" + unit_pattern(
    "kilometer", "meter", "mile", "centimeter", "millimeter", "foot", "inch", "yard"
)
_MASS = unit_pattern("kilogram", "gram", "pound", "stone", "ounce")
_RGB = r"rgb\(\s?\d{1,3}(?:,\s?\d{1,3}){2}\s?\)"
_COLOUR = (
    r"(?:(?:dark|light|medium|deep|pale|hot|olive|sea|slate|steel|sky|royal|midnight|forest|navy|"
    r"lime|spring|lawn|dodger|cornflower|burnt|antique|ghost|floral|misty|rosy|sandy|saddle) ?)*"
    r"(?:red|green|blue|yellow|orange|purple|pink|brown|black|white|gr[ae]y|teal|cyan|magenta|navy|"
    r"olive|maroon|lime|aqua|silver|gold|ivory|beige|coral|salmon|crimson|turquoise|violet|indigo|"
    r"lavender|khaki|orchid|plum|tan|tomato|chocolate|azure|snow|mint ?cream|smoke|drab)"
)


def _pattern(source: str, *, flags: int = re.IGNORECASE) -> ValueFinder:
    compiled = re.compile(rf"(?<![\w@#/])(?<!\w[.-])(?:{source})(?![\w@]|/\w)", flags)
    return lambda text: [match[0] for match in compiled.finditer(text)]


_SIGNS = _pattern(r"[\d(][\d\s.+*/^()%x×÷-]*[\d)]")
_FINDERS: dict[str, ValueFinder] = {
    "email": _pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "url": _pattern(
        r"https?://[^\s\"'<>]*[\w/=&%-]|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:/\S*)?"
    ),
    "ip": _pattern(
        r"(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:/\d{1,3})?"
    ),
    "phone": _pattern(r"\+?\(?\d[\d ()./-]{5,18}\d"),
    "hex": _pattern(rf"{_RGB}|#?(?=[0-9a-f]*\d)[0-9a-f]{{6}}|#[0-9a-f]{{6}}|#[0-9a-f]{{3}}"),
    "colour": _pattern(rf"{_RGB}|#[0-9a-f]{{6}}|#[0-9a-f]{{3}}|{_COLOUR}"),
    "isbn": _pattern(r"\d[\d -]{7,16}[\dX]"),
    "iban": _pattern(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){10,30}", flags=0),
    "vat": _pattern(r"[A-Z]{2} ?(?=[A-Z]?\d)[A-Z0-9]{6,12}(?: B\d\d)?", flags=0),
    "bic": _pattern(r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?", flags=0),
    "lei": _pattern(r"[A-Z0-9]{20}", flags=0),
    "card": _pattern(r"\d(?:[ -]?\d){11,18}"),
    "date": _pattern(_DATE),
    "time": _pattern(
        rf"(?:{_DATE}),?(?: at|T)? ?(?:{_CLOCK_PATTERN})|(?:{_CLOCK_PATTERN}) (?:on )?(?:{_DATE})|{_CLOCK_PATTERN}"
    ),
    "year": _pattern(rf"(?:1[5-9]|2[0-9])\d{{2}}|{dates.RELATIVE_YEAR_PATTERN}"),
    "number": _pattern(_NUMBER_PATTERN),
    "numbers": _pattern(rf"(?:{_NUMBER_PATTERN})(?:(?:, | and |, and |;|,)(?:{_NUMBER_PATTERN}))+"),
    "currency": _pattern(rf"(?:{_CURRENCY})", flags=0),
    "language": _pattern(_LANGUAGE),
    "zone": _pattern(r"[A-Z][A-Za-z]+/[A-Z][A-Za-z_/]+", flags=0),
    "character": lambda text: re.findall(r"[^\w\s.,;:!?'\"()\-]|(?<=['\"])[^\w\s](?=['\"])", text),
    "coordinate": _pattern(r"-?\d{1,3}\.\d+(?!\.\d)"),
    "formula": _pattern(r"(?:[A-Z][a-z]?\d*|\([A-Za-z0-9]+\)\d*){2,}|[A-Z][a-z]?\d+", flags=0),
    "length": _pattern(
        r"\d\s?(?:ft|feet|foot|m)\s?\d{1,2}(?:\s?(?:in|inch(?:es)?|cm))?"
        rf"|(?:{_NUMBER_PATTERN})\s?(?:{_LENGTH})(?: (?:{_NUMBER_PATTERN})\s?(?:in|inch(?:es)?))?|(?:(?:half|full)[ -])?marathon"
    ),
    "weight": _pattern(
        r"\d{1,2}\s?(?:stone|st)\s?\d{1,2}(?:\s?(?:lbs?|pounds?))?"
        rf"|(?:{_NUMBER_PATTERN})\s?(?:{_MASS})"
    ),
    "pace": _pattern(r"\d{1,2}:\d{2}(?::\d{2})?"),
    "duration": _pattern(
        r"\d{1,2}:\d{2}(?::\d{2})?"
        r"|\d+\s?h(?:ours?|rs?)?(?:\s?(?:and )?\d{1,2}\s?m(?:in(?:ute)?s?)?)?"
        r"|\d+\s?min(?:ute)?s?(?:\s?(?:and )?\d{1,2}\s?s(?:ec(?:ond)?s?)?)?"
    ),
    "note": _pattern(r"[A-G](?:(?: flat| sharp)(?: ?\d(?! ?[\w%]))?|(?:#|b|♯|♭)?\d?)", flags=0),
    "network": _pattern(r"(?:\d{1,3}\.){3}\d{1,3}/\d{1,2}|[0-9a-f:]{2,39}/\d{1,3}"),
    "roman": _pattern(r"[MDCLXVI]{2,}|[MDCLXVI](?=\W)", flags=0),
    "morse": _pattern(r"[.\-–·]{1,7}(?:\s+[.\-–·/]{1,7})+"),
    "expression": lambda text: (
        [text[one.begin : one.end] for one in arithmetic.find_arithmetic(text)] or _SIGNS(text)
    ),
}

_KINDS: tuple[tuple[str, str], ...] = (
    (r"e ?mail", "email"),
    (r"url|link|website|uri|domain|host( ?name)?", "url"),
    (r"ip|ip address|address range", "ip"),
    (r"cidr|subnet", "network"),
    (r"roman( numeral)?", "roman"),
    (r"phone|msisdn|phone number", "phone"),
    (r"(isbn|issn|ean|barcode|gtin)( .*)?", "isbn"),
    (r"iban( .*)?", "iban"),
    (r"vat( .*)?", "vat"),
    (r"(bic|swift)( .*)?", "bic"),
    (r"lei( .*)?", "lei"),
    (r"(.* )?card( .*)?", "card"),
    (r"year", "year"),
    (r"latitude|longitude|lat|lon|lng", "coordinate"),
    (r"formula|compound|molecule", "formula"),
    (r"expression", "expression"),
    (r"numbers|values|data|list", "numbers"),
    (
        r"(.* )?page( (no|num|number|size|index))?|per page|(.* )?(limit|offset|count|radius)|skip",
        "number",
    ),
    (r"(max|maximum|num|number of)? ?(results|rows|items)|width|height px|w|h", "number"),
    (r"hex|hex colou?r", "hex"),
    (r"(.* )?colou?r|foreground|background", "colour"),
    (r"(.* )?currency( code)?|currency .*", "currency"),
    (r"(.* )?(date|day|birthday|birth ?date|born|deadline)", "date"),
    (r"(.* )?(distance|height|length|waist)", "length"),
    (r"(.* )?weight", "weight"),
    (r"(known |finish |race |target )time|pace", "pace"),
    (r"(.* )?(time|clock|moment|hour)", "time"),
    (r"(low |high |root )?note|root", "note"),
    (r"morse( code)?", "morse"),
    (r"(.* )?zone", "zone"),
    (r"character|symbol", "character"),
    (r"(.* )?country", "country"),
    (r"(.* )?(city|place|state|region|airport|holiday|person)", "name"),
    (r"(.* )?language", "language"),
)
_SAYS_TEXT = re.compile(r"\b(?:text|word|phrase|sentence|passage|letters)\b", re.IGNORECASE)
_BY_NAME = tuple((re.compile(rf"(?:{name})", re.IGNORECASE), kind) for name, kind in _KINDS)
_LASTS = re.compile(r"\b(?:time taken|duration|elapsed|how long)\b", re.IGNORECASE)
_FREE_TEXT = re.compile(
    r"text|sentence|phrase|message|string|content|password|passage|paragraph|input|words?|"
    r"title|plaintext|payload|encoded",
    re.IGNORECASE,
)


def is_language(said: str) -> bool:
    """Whether a text is the English name of a well-known language."""
    return re.fullmatch(_LANGUAGE, said.lower()) is not None


def value_kind(parameter: Parameter, api: Api) -> str:
    """Return the kind of a parameter's values, "text" for free text, "" for names and the rest."""
    declared = parameter.type.upper()
    name = words(parameter.name)
    for pattern, found in _BY_NAME:
        if pattern.fullmatch(name):
            if found == "time" and _LASTS.search(parameter.description):
                return "duration"
            return found if declared != "NUMBER" or found in {"year", "coordinate"} else "number"
    if declared == "NUMBER":
        return "number"
    if name in {"network", "address"}:
        about_ip = re.search(r"\bip\b|subnet|network", f"{api.name} {api.description}".lower())
        wifi = "wifi" in f"{api.name} {api.tool}".lower()
        return {"network": "network", "address": "ip"}[name] if about_ip and not wifi else ""
    if name == "number" and "phone" in f"{api.name} {api.tool}".lower():
        return "phone"
    if declared.startswith("DATE"):
        return "date"
    if declared.startswith("TIME"):
        return "time"
    if name in {"from", "to", "base", "target"} and (
        "currenc" in f"{parameter.description} {api.description}".lower()
    ):
        return "currency"
    said = _FREE_TEXT.fullmatch(name) or _SAYS_TEXT.search(parameter.description)
    return "text" if said else ""


def without_typed(text: str) -> str:
    """Return ``text`` with dates, times and addresses blanked out by commas."""
    for typed in ("email", "date", "pace"):
        for span in _FINDERS[typed](text):
            text = text.replace(span, ",")
    return text


def find_values(found: str, text: str) -> list[str]:
    """Return the values of a kind in ``text``, in order, distinct."""
    finder = _FINDERS.get(found)
    if finder is None:
        return []
    if found in {"number", "numbers"}:
        for other in ("date", "pace"):  # their digits are no numbers of their own
            for span in _FINDERS[other](text):
                text = text.replace(span, " ")
    if found == "phone":  # more digits are a card's
        return [
            v for v in dict.fromkeys(finder(text)) if len(re.sub(r"\D", "", v)) <= _PHONE_DIGITS
        ]
    edges = " " if found == "morse" else " ,.;:"
    values = list(dict.fromkeys(match.strip(edges) for match in finder(text)))
    if found == "number":
        spelled = re.findall(rf"\b({'|'.join(_SPELLED)})\b", text, re.IGNORECASE)
        values += [word for word in dict.fromkeys(spelled) if word not in values]
    if found == "date" and len(values) > 1:  # "born on March 9, 1987 today"
        values = [v for v in values if not dates.is_relative(v)] or values
    return values


def country_of_people(said: str) -> str:
    """Return the country that a word for its people means; any other text as it is."""
    word = " ".join(said.lower().split()).removeprefix("the ").removesuffix("'s")
    return _countries().get(word) or _countries().get(word.removesuffix("s")) or said


def countries_in(text: str) -> list[str]:
    """Return the names of countries in a text, distinct, in their order."""
    return list(dict.fromkeys(match[0] for match in _named().finditer(text)))


def language_of_people(said: str) -> str:
    """Return the language that a word for a people means; any other text as it is."""
    if is_language(said):
        return said
    home = country_of_people(said)
    theirs = (word for word, name in _countries().items() if name == home)
    return next((word.capitalize() for word in theirs if is_language(word)), said)


@cache
def _countries() -> Mapping[str, str]:
    found: dict[str, str] = {}
    text = (files("toolsrv_runtime.values") / "peoples.txt").read_text("utf-8")
    for line in text.splitlines():
        name, _, peoples = line.partition(": ")
        found |= {people.lower().replace("-", " "): name for people in peoples.split()}
    return found


@cache
def _named() -> re.Pattern[str]:
    names = sorted(set(_countries().values()), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")


_LENGTH_LIMIT = 64
"""Characters of a spelling that is looked at; no number or date is longer, arithmetic may be."""

_DIGITS = r"\d{1,3}(?:[,\u00a0\u202f' ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"(?P<sign>[-\u2212\u2013]\s?|\b(?:minus|negative)\s+)?(?P<digits>{_DIGITS})"
    r"\s?(?P<scale>k\b|thousand\b|mn\b|mio\b|million\b|bn\b|billion\b)?",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![\d,.])")
_SCALES = {"k": 3, "t": 3, "m": 6, "b": 9}
_WORDS = (
    (re.compile(r"(?<!and a )\bhalf(?: an?)?\b(?![ -]marathon)", re.IGNORECASE), "0.5"),
    (re.compile(r"\b(?:a|one) dozen\b|\bdozen\b", re.IGNORECASE), "12"),
    (re.compile(r"\ba (?:couple|pair)\b", re.IGNORECASE), "2"),
    (re.compile(r"\b(?:once(?! (?:every|each|per)\b)|a single)\b", re.IGNORECASE), "1"),
    (re.compile(r"\btwice\b", re.IGNORECASE), "2"),
    (re.compile(r"\bbinary\b", re.IGNORECASE), "2"),
    (re.compile(r"\boctal\b", re.IGNORECASE), "8"),
    (re.compile(r"\bdecimal\b", re.IGNORECASE), "10"),
    (re.compile(r"\bhex(?:adecimal)?\b", re.IGNORECASE), "16"),
    (re.compile(r"\ba (?=hundred|thousand|million|billion)", re.IGNORECASE), "one "),
)
_ONE = re.compile(r"\s*an?(?:\s+[a-z]+)?\s*", re.IGNORECASE)
"""One of something: "a cup"."""
_AND_A_HALF = re.compile(r"(\d+) and a half\b", re.IGNORECASE)
_DOWN = re.compile(r"\b(?:down|lower|below|before|ago|earlier|back)\b", re.IGNORECASE)
_HAS_WORD = re.compile(r"[a-z]", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE)
_NUMERIC = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}")
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_CLOCK = re.compile(r"\d:\d{2}|\d ?[ap]\.?m\b", re.IGNORECASE)
_SOUTH_OR_WEST = re.compile(r"\d\s*°?\s*(?:south|west|[SW])\b")
_DAYS = re.compile(dates.RELATIVE_DAY_PATTERN, re.IGNORECASE)
_NEVER = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
_FIGURE = re.compile(r"(?<=\S) \([\d.,]+\)$")
"""What lists tell of each name, no part of it: "Dar es Salaam (5,383,728)"."""
_ARTICLE = re.compile(r"^(?:an?|the) (?=/?\d)", re.IGNORECASE)
_UNIT = re.compile(r"(?<=[\d\s])(?:kilos?|kgs)\b", re.IGNORECASE)


def normalise_value(kind: str, said: str) -> str:
    """Return a value of a kind (``value_kind``) as an API reads it."""
    reader = _READERS.get(kind)
    limit = arithmetic.LENGTH_LIMIT if kind == "expression" else _LENGTH_LIMIT
    return said if reader is None or len(said) > limit else reader(said)


def _number(said: str) -> str:
    match = _NUMBER.search(_DECIMAL_COMMA.sub(r"\1.\2", said)) or _NUMBER.search(_digits(said))
    if match is None:
        return "1" if _ONE.fullmatch(said) else said
    digits = re.sub(r"[^\d.]", "", match["digits"])
    digits = f"0{digits}" if digits.startswith(".") else digits
    if match["scale"]:
        scaled = float(digits) * 10 ** _SCALES[match["scale"][0].lower()]
        digits = f"{scaled:.10g}" if scaled < 1e10 else f"{scaled:.0f}"
    # "3 semitones down", "10 days before": an amount that is taken away.
    return f"-{digits}" if match["sign"] or _DOWN.search(said) else digits


def _date(said: str) -> str:
    if dates.is_relative(said):
        return dates.resolve_day(said, dates.today())
    if (named := dates.resolve_holiday(said)) != said:
        return named
    text = _digits(said)
    numeric = _NUMERIC.search(text)
    if not numeric and not (_MONTH.search(text) and _YEAR.search(text)):
        return said
    try:
        iso = bool(numeric) and len(re.split(r"\D", text.strip())[0]) == 4
        found = parser.parse(text, dayfirst=not iso, fuzzy=True, default=_NEVER, ignoretz=True)
    except (ValueError, OverflowError):
        return said
    return found.date().isoformat() if found.year > _NEVER.year else said


def _measure(said: str) -> str:
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", _digits(said))
    return _UNIT.sub("kg", text)


def _coordinate(said: str) -> str:
    match = _NUMBER.search(said)
    if match is None:
        return said
    away = match["sign"] or _SOUTH_OR_WEST.search(said)
    return f"-{match['digits']}" if away else match["digits"]


def _note(said: str) -> str:
    text = re.sub(r"[ -]?flat\b", "b", said, flags=re.IGNORECASE)
    return re.sub(r"[ -]?sharp\b", "#", text, flags=re.IGNORECASE)


def _time(said: str) -> str:
    text = _digits(_DAYS.sub(lambda match: dates.resolve_day(match[0], dates.today()), said))
    if _CLOCK.search(text) and (_NUMERIC.search(text) or (_MONTH.search(text))):
        try:
            iso = re.match(r"\d{4}-", text.strip()) is not None
            found = parser.parse(text, dayfirst=not iso, fuzzy=True, default=_NEVER, ignoretz=True)
        except (ValueError, OverflowError):
            return said
        clock = "%H:%M:%S" if found.second else "%H:%M"
        return f"{found:%Y-%m-%d {clock}}" if found.year > _NEVER.year else said
    if re.fullmatch(r"[0-2]\d[0-5]\d", said):  # as timetables have it
        return f"{said[:2]}:{said[2:]}"
    return re.sub(r"(?<!\d)(\d{1,2})[.h](\d{2})(?!\d)", r"\1:\2", said)


def _digits(said: str) -> str:
    """Return the text with its number words as digits, and a decimal comma as a point."""
    text = said
    if _HAS_WORD.search(text):
        for pattern, digits in _WORDS:
            text = pattern.sub(digits, text)
        text = _AND_A_HALF.sub(r"\1.5", alpha2digit(text, "en", 0))
    return _DECIMAL_COMMA.sub(r"\1.\2", text)


_READERS: dict[str, Callable[[str], str]] = {
    "number": _number,
    "year": lambda said: _number(dates.resolve_year(said, dates.today())),
    "date": _date,
    "name": lambda said: _FIGURE.sub("", said),
    "country": country_of_people,
    "language": language_of_people,
    "coordinate": _coordinate,
    "expression": lambda said: arithmetic.to_expression(said) or said,
    "length": _measure,
    "weight": _measure,
    "note": _note,
    "time": _time,
    "network": lambda said: _ARTICLE.sub("", said),
}
