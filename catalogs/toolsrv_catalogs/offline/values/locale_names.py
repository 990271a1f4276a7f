"""Languages and currencies by English name, code or symbol.

Library: babel.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from babel import Locale, UnknownLocaleError
from babel.numbers import get_currency_name, get_territory_currencies

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import NotFoundError

_LANGUAGE_ALIASES = {
    "mandarin": "zh",
    "farsi": "fa",
    "norwegian": "nb",
    "flemish": "nl",
    "castilian": "es",
}


@cache
def _language_codes() -> Mapping[str, str]:
    table = {fold(str(name)): code for code, name in Locale("en").languages.items()}
    for code in list(table.values()):
        table.setdefault(code.lower(), code)
    return table | _LANGUAGE_ALIASES


def parse_language(text: str) -> Locale:
    """Return the locale of the language that ``text`` names.

    Raises:
        NotFoundError: no such language, or none whose words are known here.
    """
    code = _language_codes().get(fold(text[:60])) or _language_codes().get(
        text.strip().lower().replace("-", "_")
    )
    try:
        if code is not None:
            return Locale.parse(code)
    except (UnknownLocaleError, ValueError):
        pass
    raise NotFoundError(f"no language {quoted(text)} known here; give a name like French or a code")


Language = Annotated[Locale, Field(parse_language)]


_CURRENCY_ALIASES = {
    "dollar": "USD", "dollars": "USD", "$": "USD", "euro": "EUR", "euros": "EUR", "€": "EUR",
    "pound": "GBP", "pounds": "GBP", "pound sterling": "GBP", "sterling": "GBP", "£": "GBP",
    "yen": "JPY", "¥": "JPY", "yuan": "CNY", "renminbi": "CNY", "rupee": "INR", "rupees": "INR",
    "₹": "INR", "won": "KRW", "franc": "CHF", "francs": "CHF", "ruble": "RUB", "rubles": "RUB",
    "real": "BRL", "reais": "BRL", "lira": "TRY", "zloty": "PLN", "rand": "ZAR", "peso": "MXN",
    "pesos": "MXN",
}  # fmt: skip


_COUNTRY = 2
"""Letters of a country's code; larger regions have numbers."""


@cache
def currency_names() -> Mapping[str, str]:
    """Return the English names by code."""
    return {code: str(name) for code, name in Locale("en").currencies.items()}


@cache
def _currency_codes() -> Mapping[str, str]:
    # Old currencies share words with present ones: the longer names, which carry years, lose.
    table: dict[str, str] = {}
    for code, name in currency_names().items():
        table.setdefault(fold(name), code)
        table.setdefault(fold(get_currency_name(code, count=2, locale="en")), code)
        table[code.lower()] = code
    return table | _units() | _CURRENCY_ALIASES


def _units() -> dict[str, str]:
    """Return the codes by the last words of names that one currency in use has: "baht"."""
    units: dict[str, set[str]] = {}
    regions = (str(region) for region in Locale("en").territories)
    for code in {
        str(code)
        for region in regions
        if len(region) == _COUNTRY
        for code in get_territory_currencies(region)
    }:
        for count in (1, 2):
            name = fold(get_currency_name(code, count=count, locale="en"))
            units.setdefault(name.rpartition(" ")[2], set()).add(code)
    return {unit: min(codes) for unit, codes in units.items() if len(codes) == 1 and unit != "gold"}


def parse_currency(text: str) -> str:
    """Return the ISO 4217 code of the currency that ``text`` names.

    Raises:
        NotFoundError: no such currency.
    """
    code = _currency_codes().get(fold(text[:80])) or _currency_codes().get(text.strip())
    if code is None:
        raise NotFoundError(f"no currency {quoted(text)}; give a code like EUR or its English name")
    return code


Currency = Annotated[str, Field(parse_currency)]
