"""Company Numbers: VAT and legal entity numbers. Library: python-stdnum (form only, no register)."""

from __future__ import annotations

from typing import Annotated

from stdnum import lei
from stdnum.eu import vat

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.country import CountryName, countries
from toolsrv_catalogs.offline.values.words import text_up_to

tool = Endpoints()
Code = Annotated[str, text_up_to(40)]


@tool.get("/vat")
def check_vat(vat_number: Code, country: CountryName | None = None) -> Answer:
    number = vat_number.upper()
    prefix = {"GR": "EL"}.get(country["iso"], country["iso"]) if country else ""
    if prefix and not number.startswith(prefix):
        number = prefix + number
    valid = bool(vat.is_valid(number))
    region = {"EL": "GR"}.get(number[:2], number[:2])
    return {
        "vat_number": vat.compact(number) if valid else vat_number,
        "valid": valid,
        "country": countries()[region]["name"] if valid and region in countries() else "unknown",
    }


@tool.get("/lei")
def check_lei(lei_code: Code) -> Answer:
    return {"lei_code": lei_code, "valid": bool(lei.is_valid(lei_code))}
