"""Book Numbers: ISBN, ISSN and the barcodes on their backs. Library: python-stdnum."""

from __future__ import annotations

from typing import Annotated

from stdnum import ean, isbn, issn
from stdnum.exceptions import ValidationError

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, ParameterError
from toolsrv_catalogs.offline.values.words import text_up_to

tool = Endpoints()
Code = Annotated[str, text_up_to(40)]


@tool.get("/isbn/check")
def check_isbn(isbn_number: Code) -> Answer:
    valid = bool(isbn.is_valid(isbn_number))
    return {
        "isbn": isbn.format(isbn_number) if valid else isbn_number,
        "valid": valid,
        "kind": isbn.isbn_type(isbn_number) or "none",
    }


@tool.get("/isbn/convert")
def convert_isbn(isbn_number: Code) -> Answer:
    try:
        long = isbn.to_isbn13(isbn.validate(isbn_number))
        short = isbn.to_isbn10(long) if long.startswith("978") else "none"
    except ValidationError:
        raise ParameterError("isbn_number", "not a valid ISBN of 10 or 13 digits") from None
    return {
        "isbn_number": isbn_number,
        "isbn13": isbn.compact(long),
        "isbn10": isbn.compact(short) if short != "none" else short,
    }


@tool.get("/issn/check")
def check_issn(issn_number: Code) -> Answer:
    valid = bool(issn.is_valid(issn_number))
    return {"issn": issn.format(issn_number) if valid else issn_number, "valid": valid}


@tool.get("/barcode/check")
def check_barcode(barcode: Code) -> Answer:
    compact = ean.compact(barcode)
    valid = bool(ean.is_valid(barcode))
    expected = ean.calc_check_digit(compact[:-1]) if compact[:-1].isdecimal() else "none"
    return {"barcode": compact, "valid": valid, "expected_check_digit": expected}
