"""What typed values look like in running text: e-mail addresses, dates, codes and numbers.

A kind is recognised from a parameter's name and description, and finds its values in a text.
Pure tables and regular expressions; every pattern is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.values import arithmetic, days, feasts, money
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.units import written

LOOSE = frozenset(
    {"", "name", "country", "text", "currency", "colour", "formula", "zone", "character"}
)
"""Kinds whose values may also be any other words; all others must look right."""

RARE = frozenset(
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

Finder = Callable[[str], list[str]]

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}"
    rf"|{_DAY}(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH} {_DAY}(?:,? \d{{4}})?"
    rf"|{days.PATTERN}|{feasts.PATTERN}"
)
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?"
_NUMBER = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_CURRENCY = rf"[A-Z]{{3}}|(?i:{money.NAMES})"
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


_LENGTH = "k|" + written(
    "kilometer", "meter", "mile", "centimeter", "millimeter", "foot", "inch", "yard"
)
_MASS = written("kilogram", "gram", "pound", "stone", "ounce")
_RGB = r"rgb\(\s?\d{1,3}(?:,\s?\d{1,3}){2}\s?\)"
_COLOUR = (
    r"(?:(?:dark|light|medium|deep|pale|hot|olive|sea|slate|steel|sky|royal|midnight|forest|navy|"
    r"lime|spring|lawn|dodger|cornflower|burnt|antique|ghost|floral|misty|rosy|sandy|saddle) ?)*"
    r"(?:red|green|blue|yellow|orange|purple|pink|brown|black|white|gr[ae]y|teal|cyan|magenta|navy|"
    r"olive|maroon|lime|aqua|silver|gold|ivory|beige|coral|salmon|crimson|turquoise|violet|indigo|"
    r"lavender|khaki|orchid|plum|tan|tomato|chocolate|azure|snow|mint ?cream|smoke|drab)"
)


def _pattern(source: str, *, flags: int = re.IGNORECASE) -> Finder:
    compiled = re.compile(rf"(?<![\w@#/])(?<!\w[.-])(?:{source})(?![\w@]|/\w)", flags)
    return lambda text: [match[0] for match in compiled.finditer(text)]


_SIGNS = _pattern(r"[\d(][\d\s.+*/^()%x×÷-]*[\d)]")
_FINDERS: dict[str, Finder] = {
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
        rf"(?:{_DATE}),?(?: at|T)? ?(?:{_CLOCK})|(?:{_CLOCK}) (?:on )?(?:{_DATE})|{_CLOCK}"
    ),
    "year": _pattern(rf"(?:1[5-9]|2[0-9])\d{{2}}|{days.YEARS}"),
    "number": _pattern(_NUMBER),
    "numbers": _pattern(rf"(?:{_NUMBER})(?:(?:, | and |, and |;|,)(?:{_NUMBER}))+"),
    "currency": _pattern(rf"(?:{_CURRENCY})", flags=0),
    "language": _pattern(_LANGUAGE),
    "zone": _pattern(r"[A-Z][A-Za-z]+/[A-Z][A-Za-z_/]+", flags=0),
    "character": lambda text: re.findall(r"[^\w\s.,;:!?'\"()\-]|(?<=['\"])[^\w\s](?=['\"])", text),
    "coordinate": _pattern(r"-?\d{1,3}\.\d+(?!\.\d)"),
    "formula": _pattern(r"(?:[A-Z][a-z]?\d*|\([A-Za-z0-9]+\)\d*){2,}|[A-Z][a-z]?\d+", flags=0),
    "length": _pattern(
        r"\d\s?(?:ft|feet|foot|m)\s?\d{1,2}(?:\s?(?:in|inch(?:es)?|cm))?"
        rf"|(?:{_NUMBER})\s?(?:{_LENGTH})(?: (?:{_NUMBER})\s?(?:in|inch(?:es)?))?|(?:(?:half|full)[ -])?marathon"
    ),
    "weight": _pattern(
        r"\d{1,2}\s?(?:stone|st)\s?\d{1,2}(?:\s?(?:lbs?|pounds?))?"
        rf"|(?:{_NUMBER})\s?(?:{_MASS})"
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
        [text[one.begin : one.end] for one in arithmetic.find(text)] or _SIGNS(text)
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


def kind(parameter: Parameter, api: Api) -> str:
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


def find(found: str, text: str) -> list[str]:
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
        values = [v for v in values if not days.is_relative(v)] or values
    return values
