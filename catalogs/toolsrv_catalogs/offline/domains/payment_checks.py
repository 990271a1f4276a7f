"""Payment Checks: account, card and bank codes. Library: python-stdnum (form only, no bank)."""

from __future__ import annotations

import re
from typing import Annotated

from stdnum import bic, iban, luhn
from stdnum.exceptions import InvalidComponent, ValidationError

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.country import countries
from toolsrv_catalogs.offline.values.words import text_up_to

tool = Endpoints()
Code = Annotated[str, text_up_to(60)]
_BRANDS = (
    (re.compile(r"4(\d{12}|\d{15}|\d{18})"), "Visa"),
    (re.compile(r"(5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"), "Mastercard"),
    (re.compile(r"3[47]\d{13}"), "American Express"),
    (re.compile(r"3(0[0-5]|[689]\d)\d{11}"), "Diners Club"),
    (re.compile(r"6(011|5\d\d|4[4-9]\d)\d{12}"), "Discover"),
    (re.compile(r"35(2[89]|[3-8]\d)\d{12}"), "JCB"),
)


def _country(code: str) -> str:
    return str(countries()[code]["name"]) if code in countries() else "unknown"


def _is_iban(number: str) -> bool:
    """Say whether form and check digits are right; the library's lists of banks are not complete."""
    try:
        iban.validate(number)
    except InvalidComponent:
        return bool(iban.is_valid(number, check_country=False))
    except ValidationError:
        return False
    return True


@tool.get("/iban")
def check_iban(iban_number: Code) -> Answer:
    valid = _is_iban(iban_number)
    compact = iban.compact(iban_number).upper()
    return {
        "iban": iban.format(compact) if valid else iban_number,
        "valid": valid,
        "country": _country(compact[:2]) if valid else "unknown",
    }


@tool.get("/card")
def check_card(card_number: Code) -> Answer:
    digits = re.sub(r"[ -]", "", card_number)
    plausible = bool(re.fullmatch(r"[0-9]{12,19}", digits))
    brand = next((name for form, name in _BRANDS if form.fullmatch(digits)), "unknown")
    return {
        "card_ending": digits[-4:] if plausible else "none",
        "valid": plausible and bool(luhn.is_valid(digits)),
        "brand": brand if plausible else "unknown",
    }


@tool.get("/bic")
def check_bic(bic_code: Code) -> Answer:
    compact = bic.compact(bic_code)
    valid = bool(bic.is_valid(bic_code)) and compact[4:6] in countries()
    return {
        "bic_code": compact if valid else bic_code,
        "valid": valid,
        "country": _country(compact[4:6]) if valid else "unknown",
    }
