"""Phone Inspector: validity, formats and countries of numbers. Library: phonenumbers."""

from __future__ import annotations

from typing import Annotated

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberFormat, PhoneNumberType, geocoder

from toolsrv_catalogs.offline.endpoint import (
    Answer,
    Endpoints,
    NotFoundError,
    ParameterError,
    choice,
)
from toolsrv_catalogs.offline.values.country import Country, CountryName, countries
from toolsrv_catalogs.offline.values.number import whole
from toolsrv_catalogs.offline.values.words import Line

tool = Endpoints()
_FORMATS = {
    "international": PhoneNumberFormat.INTERNATIONAL,
    "national": PhoneNumberFormat.NATIONAL,
    "e164": PhoneNumberFormat.E164,
}
_TYPES = {
    PhoneNumberType.FIXED_LINE: "landline",
    PhoneNumberType.MOBILE: "mobile",
    PhoneNumberType.FIXED_LINE_OR_MOBILE: "landline or mobile",
    PhoneNumberType.TOLL_FREE: "toll free",
    PhoneNumberType.PREMIUM_RATE: "premium rate",
    PhoneNumberType.VOIP: "internet telephony",
}


def _parsed(text: str, country: Country | None) -> PhoneNumber:
    # A plus sign is often lost on its way through a query string.
    plain = f"+{text}" if country is None and not text.startswith(("+", "00")) else text
    if plain.startswith("00"):
        plain = f"+{plain[2:]}"
    try:
        return phonenumbers.parse(plain, country["iso"] if country else None)
    except phonenumbers.NumberParseException:
        raise ParameterError(
            "number", "not a phone number; write it like +47 22 22 55 55 or also give the country"
        ) from None


def _country_name(number: PhoneNumber) -> str:
    code = phonenumbers.region_code_for_number(number) or ""
    return str(countries()[code]["name"]) if code in countries() else "unknown"


@tool.get("/validate")
def validate_phone(number: Line, country: CountryName | None = None) -> Answer:
    parsed = _parsed(number, country)
    valid = phonenumbers.is_valid_number(parsed)
    return {
        "number": phonenumbers.format_number(parsed, PhoneNumberFormat.INTERNATIONAL),
        "valid": valid,
        "country": _country_name(parsed),
        "line_type": _TYPES.get(phonenumbers.number_type(parsed), "other") if valid else "none",
        "place": geocoder.description_for_number(parsed, "en") or "unknown",
    }


@tool.get("/format")
def format_phone(
    number: Line,
    country: CountryName | None = None,
    style: Annotated[str, choice("international", "national", "e164")] = "international",
) -> Answer:
    parsed = _parsed(number, country)
    return {
        "number": number,
        "style": style,
        "formatted": phonenumbers.format_number(parsed, _FORMATS[style]),
    }


@tool.get("/calling_code/{country}")
def calling_code(country: CountryName) -> Answer:
    code = phonenumbers.country_code_for_region(country["iso"])
    if not code:
        raise NotFoundError(f"{country['name']} has no calling code")
    return {"country": country["name"], "calling_code": f"+{code}"}


@tool.get("/code_owner")
def calling_code_owner(calling_code: Annotated[int, whole(1, 999)]) -> Answer:
    codes = phonenumbers.region_codes_for_country_code(calling_code)
    names = [countries()[code]["name"] for code in codes if code in countries()]
    if not names:
        raise NotFoundError(f"no country has the calling code +{calling_code}")
    return {"calling_code": f"+{calling_code}", "country": names[0], "also": names[1:6]}
