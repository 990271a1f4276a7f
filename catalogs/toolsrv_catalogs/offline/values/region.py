"""Countries, and the parts of them that have public holidays of their own, on holidays.

A part goes by its name (``Scotland``, ``Bavaria``), by name and country (``Georgia, USA``) or by
its ISO 3166-2 code (``DE-BY``). A name that is a country's too means the country.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import holidays
from holidays.utils import list_supported_countries

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.city import find_city
from toolsrv_catalogs.offline.values.country import Country, countries, parse_country
from toolsrv_catalogs.offline.values.once import once
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import NotFoundError

# Parts that are called countries themselves, and have no other's name behind theirs.
_NATIONS = {"england": "ENG", "scotland": "SCT", "wales": "WLS", "northern ireland": "NIR"}
_CONTINENTS = {
    "africa", "antarctica", "asia", "europe", "north america", "oceania", "south america",
}  # fmt: skip
# Whose parts are known by their names alone; Granada is rather Spain's than Nicaragua's.
_WELL_KNOWN = (
    "GB", "DE", "AT", "CH", "US", "CA", "AU", "NZ", "ES", "IT", "FR", "PT", "IN", "BR", "MY",
)  # fmt: skip
# English names, where the library has others.
_ENGLISH = {
    "AT": {
        "2": "Carinthia", "3": "Lower Austria", "4": "Upper Austria", "6": "Styria", "7": "Tyrol",
        "9": "Vienna",
    },
    "CH": {"GE": "Geneva", "GR": "Grisons", "LU": "Lucerne", "SG": "St. Gallen"},
    "DE": {
        "BY": "Bavaria", "HE": "Hesse", "MV": "Mecklenburg-Western Pomerania",
        "NI": "Lower Saxony", "NW": "North Rhine-Westphalia", "RP": "Rhineland-Palatinate",
        "SN": "Saxony", "ST": "Saxony-Anhalt", "TH": "Thuringia",
    },
    "ES": {
        "AN": "Andalusia", "CL": "Castile and León", "CM": "Castile-La Mancha",
        "CN": "Canary Islands", "CT": "Catalonia", "IB": "Balearic Islands", "NC": "Navarre",
        "PV": "Basque Country", "VC": "Valencian Community",
    },
    "IT": {
        "BZ": "South Tyrol", "FI": "Florence", "GE": "Genoa", "MI": "Milan", "NA": "Naples",
        "RM": "Rome", "TO": "Turin", "VE": "Venice",
    },
    "MY": {"04": "Malacca", "07": "Penang", "14": "Kuala Lumpur", "15": "Labuan"},
    "PT": {"11": "Lisbon", "20": "Azores", "30": "Madeira"},
    "US": {"DC": "Washington DC"},
}  # fmt: skip
_SHORTEST_NAME = 3
_CODE = re.compile(r"([A-Za-z]{2})-([A-Za-z0-9]{1,3})")
_KIND = re.compile(
    r"^(?:free )?(?:state|province|canton|region|autonomous community|commonwealth) of "
    r"| (?:state|province|canton)$"
)


@dataclass(frozen=True, slots=True)
class Area:
    """A country by ISO code, or its part by the holidays library's code ("" for all of it).

    The name of a part has its country's behind it, but for those of the United Kingdom.
    """

    iso: str
    part: str
    name: str


def parse_area(text: str) -> Area:
    """Return the country, or the part of one with holidays of its own, that ``text`` names.

    Raises:
        NotFoundError: neither, a part of several countries, or another place (a city, a continent).
    """
    plain = text[:100].strip()
    if match := _CODE.fullmatch(plain):
        iso, code = match[1].upper(), match[2].upper()
        if iso in countries() and code in _parts(iso).values():
            return _area(iso, code)
    name, _, land = re.sub(r"\s*[,(]\s*(?=[^,(]*$)", "|", plain.rstrip(")")).partition("|")
    owners = _owners().get(_bare(plain), [])
    if fold(land) and not owners:
        return _part_of(name, parse_country(land))
    if _bare(plain) not in _NATIONS:
        try:
            row = parse_country(plain)
            return Area(row["iso"], "", row["name"])
        except NotFoundError:
            pass
    if len(owners) == 1:
        return owners[0]
    if owners:
        several = " or ".join(repr(owner.name) for owner in owners)
        raise NotFoundError(f"{quoted(text)} is a part of several countries; write {several}")
    raise NotFoundError(_refusal(text))


def _part_of(name: str, country: Country) -> Area:
    code = _parts(country["iso"]).get(_bare(name))
    if code is None:
        raise NotFoundError(
            f"no part {quoted(name)} of {country['name']} with holidays of its own is known here"
        )
    return _area(country["iso"], code)


def _refusal(text: str) -> str:
    if fold(text) in _CONTINENTS:
        return f"{quoted(text)} is a continent; name a country"
    try:
        city = find_city(text)
    except NotFoundError:
        return f"no country {quoted(text)}, nor a part of one; give an English name or ISO code"
    return f"{quoted(text)} is a city of {city.country_name}; name a country, or such a part of one"


def _bare(name: str) -> str:
    return _KIND.sub("", fold(re.sub(r"[.,]", "", name)).removeprefix("the "))


@once
def _owners() -> Mapping[str, list[Area]]:
    """Return the well-known parts by each of their names."""
    found: dict[str, list[Area]] = {}
    for iso in _WELL_KNOWN:
        for name, code in _parts(iso).items():
            found.setdefault(name, []).append(_area(iso, code))
    return found


def _parts(iso: str) -> Mapping[str, str]:
    """Return the codes of a country's parts by name."""
    if iso not in list_supported_countries(include_aliases=False):
        return {}
    theirs = getattr(holidays, iso).subdivisions_aliases.items()
    ours = ((name, code) for code, name in _ENGLISH.get(iso, {}).items())
    return {_bare(name): code for name, code in (*theirs, *ours) if len(name) > _SHORTEST_NAME}


def part_names(iso: str) -> Mapping[str, str]:
    """Return the names of a country's parts with holidays of their own, by the library's codes."""
    return {
        code: _part_name(iso, code)
        for code in list_supported_countries(include_aliases=False).get(iso, ())
    }


def _area(iso: str, code: str) -> Area:
    name = _part_name(iso, code)
    full = name if fold(name) in _NATIONS else f"{name}, {countries()[iso]['name']}"
    return Area(iso, code, full)


def _part_name(iso: str, code: str) -> str:
    aliases = getattr(holidays, iso).subdivisions_aliases.items()
    theirs = (name for name, owner in aliases if owner == code and len(name) > _SHORTEST_NAME)
    return _ENGLISH.get(iso, {}).get(code) or next(theirs, code)


AreaName = Annotated[Area, Field(parse_area)]
