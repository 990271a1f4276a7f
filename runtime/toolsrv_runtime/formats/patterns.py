"""What typed values look like in running text: e-mail addresses, dates, codes and numbers.

A kind is recognised from a parameter's name and description, and finds its values in a text.
Pure tables and regular expressions; every pattern is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats.facts import words

LOOSE = frozenset({"", "name", "text", "currency", "colour", "formula"})
"""Kinds whose values may also be any other words; all others must look right."""

Finder = Callable[[str], list[str]]

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}"
    rf"|{_DAY}(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH} {_DAY}(?:,? \d{{4}})?"
    r"|today|tomorrow|yesterday"
)
_NUMBER = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_CURRENCY = (
    r"[A-Z]{3}|(?i:(?:(?:us|american|canadian|australian|hong kong|new zealand|singapore) )?dollars?"
    r"|euros?|(?:british )?pounds?(?: sterling)?|(?:japanese )?yen|(?:swiss )?francs?"
    r"|(?:indian )?rupees?|(?:chinese )?yuan|(?:mexican )?pesos?"
    r"|(?:swedish |norwegian |danish )?(?:krona|kronor|krone|kroner)|zloty|(?:south korean )?won)"
)
_LANGUAGE = (
    "arabic|bengali|bulgarian|catalan|chinese|croatian|czech|danish|dutch|english|estonian|finnish|"
    "french|german|greek|hebrew|hindi|hungarian|icelandic|indonesian|irish|italian|japanese|"
    "korean|latvian|lithuanian|malay|norwegian|persian|polish|portuguese|romanian|russian|serbian|"
    "slovak|slovenian|spanish|swahili|swedish|tamil|thai|turkish|ukrainian|urdu|vietnamese|welsh"
)


def _pattern(source: str, *, flags: int = re.IGNORECASE) -> Finder:
    compiled = re.compile(rf"(?<![\w@#/])(?<!\w[.-])(?:{source})(?![\w@]|/\w)", flags)
    return lambda text: [match[0] for match in compiled.finditer(text)]


_FINDERS: dict[str, Finder] = {
    "email": _pattern(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "url": _pattern(
        r"https?://[^\s\"'<>]*[\w/=&%-]|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:/\S*)?"
    ),
    "ip": _pattern(
        r"(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:/\d{1,3})?"
    ),
    "phone": _pattern(r"\+?\(?\d[\d ()./-]{5,18}\d"),
    "colour": _pattern(r"#?(?=[0-9a-f]*\d)[0-9a-f]{6}|#[0-9a-f]{3}"),
    "isbn": _pattern(r"\d[\d -]{7,16}[\dX]"),
    "iban": _pattern(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){10,30}", flags=0),
    "vat": _pattern(r"[A-Z]{2} ?(?=[A-Z]?\d)[A-Z0-9]{6,12}", flags=0),
    "bic": _pattern(r"[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?", flags=0),
    "lei": _pattern(r"[A-Z0-9]{20}", flags=0),
    "card": _pattern(r"\d(?:[ -]?\d){11,18}"),
    "date": _pattern(_DATE),
    "time": _pattern(
        r"(?:\d{4}-\d{2}-\d{2}[ T])?\d{1,2}:\d{2}(?: ?[ap]\.?m\.?)?|\d{1,2} ?[ap]\.?m\.?"
    ),
    "year": _pattern(r"(?:1[5-9]|2[0-9])\d{2}"),
    "number": _pattern(_NUMBER),
    "numbers": _pattern(rf"(?:{_NUMBER})(?:(?:, | and |, and |;|,)(?:{_NUMBER}))+"),
    "currency": _pattern(rf"(?:{_CURRENCY})", flags=0),
    "language": _pattern(_LANGUAGE),
    "coordinate": _pattern(r"-?\d{1,3}\.\d+"),
    "formula": _pattern(r"(?:[A-Z][a-z]?\d*|\([A-Za-z0-9]+\)\d*){2,}|[A-Z][a-z]?\d+", flags=0),
    "measure": _pattern(
        rf"(?:{_NUMBER})\s?(?:km|kms|kilomet(?:er|re)s?|m|met(?:er|re)s?|mi|miles?|k|cm|mm|ft|feet|"
        r"foot|in|inch(?:es)?|yards?|yd|kg|kgs|kilos?|kilograms?|g|grams?|lbs?|pounds?|stone|oz|"
        r"ounces?)|(?:half )?marathon"
    ),
    "pace": _pattern(r"\d{1,2}:\d{2}(?::\d{2})?"),
    "note": _pattern(r"[A-G](?:#|b|♯|♭)?\d?", flags=0),
    "morse": _pattern(r"[.\-–·]{1,7}(?:\s+[.\-–·/]{1,7})+"),
    "expression": _pattern(r"[\d(][\d\s.+*/^()%x×÷-]*[\d)]"),
}

_KINDS: tuple[tuple[str, str], ...] = (
    (r"e ?mail", "email"),
    (r"url|link|website|uri|domain|host( ?name)?", "url"),
    (r"ip|cidr|network|subnet|address range", "ip"),
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
    (r"hex|hex colou?r", "colour"),
    (r"(.* )?currency( code)?|currency .*", "currency"),
    (r"(.* )?(date|day|birthday|birth ?date|born|deadline)", "date"),
    (r"(.* )?(distance|height|weight|length|waist)", "measure"),
    (r"(known |finish |race |target )time|pace", "pace"),
    (r"(.* )?(time|clock|moment|hour)", "time"),
    (r"(low |high |root )?note|root", "note"),
    (r"morse( code)?", "morse"),
    (r"(.* )?(country|city|place|state|region|airport|holiday|zone|person)", "name"),
    (r"(.* )?language", "language"),
)
_SAYS_TEXT = re.compile(r"\b(?:text|word|phrase|sentence|passage|letters)\b", re.IGNORECASE)
_BY_NAME = tuple((re.compile(rf"(?:{name})", re.IGNORECASE), kind) for name, kind in _KINDS)
_FREE_TEXT = re.compile(
    r"text|sentence|phrase|message|string|content|password|passage|paragraph|input|words?|"
    r"title|plaintext|payload|encoded",
    re.IGNORECASE,
)


def kind(parameter: Parameter, api: Api) -> str:
    """Return the kind of a parameter's values, "text" for free text, "" for names and the rest."""
    declared = parameter.type.upper()
    name = words(parameter.name)
    for pattern, found in _BY_NAME:
        if pattern.fullmatch(name):
            return found if declared != "NUMBER" or found in {"year", "coordinate"} else "number"
    if declared == "NUMBER":
        return "number"
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
    edges = " " if found == "morse" else " ,.;:"
    return list(dict.fromkeys(match.strip(edges) for match in finder(text)))
