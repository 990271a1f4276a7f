"""Fields of catalog entries, cleaned alike for every format, with their original values.

An original is what a file states otherwise than its cleaned entry. It is kept so that an export
loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.text import (
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    PARAMETER_DESCRIPTION_LIMIT,
    clean,
)
from toolsrv_registry import names
from toolsrv_registry.documents import NO_CATEGORY
from toolsrv_registry.flat_view import spelled

_DISPLAYED = (
    "Sports|Finance|Data|Entertainment|Travel|Location|Science|Food|Transportation|Music|Business"
    "|Visual Recognition|Tools|Text Analysis|Weather|Gaming|SMS|Events|Health and Fitness|Payments"
    "|Financial|Translation|Storage|Logistics|Database|Search|Reward|Mapping"
    "|Artificial Intelligence/Machine Learning|Email|News, Media|Video, Images|eCommerce|Medical"
    "|Devices|Business Software|Advertising|Education|Media|Social|Commerce|Communication|Other"
    "|Monitoring|Energy|Jobs|Movies|Cryptography|Cybersecurity"
)
CATEGORIES = frozenset(names.standardize_category(name) for name in _DISPLAYED.split("|"))


ORIGINAL_LIMIT = 1_048_576
"""Characters of ASCII JSON that are kept per API, tool or schema."""


def completed(
    read: Mapping[str, Any], written: Mapping[str, Any], keys: Collection[str]
) -> dict[str, Any]:
    """Return an entry as it was read, as far as it was taken.

    What it leaves out of ``keys`` is there as written; other keys that are not written under
    their own or their cleaned name were left out, and that was told.
    """
    stays = {key: one for key, one in written.items() if key in keys or key in read}
    told = {
        key: one
        for key, one in read.items()
        if key in keys or key in written or clean(key, NAME_LIMIT) in written
    }
    return stays | told


def original(
    read: Mapping[str, Any], written: Mapping[str, Any], found: FileFindings, *, what: str
) -> str:
    """Return what ``restored`` needs to make ``read`` of ``written``; ``""`` where they are equal.

    A value that no JSON can hold stays as it is written, and the reader has told of it. Of an
    entry with more to keep than the limit nothing is kept, which is told.
    """
    kept: dict[str, Any] = {}
    for key in sorted(read):  # an export has them in another order
        try:
            if key in written and read[key] == written[key]:
                continue
            json.dumps(read[key], allow_nan=False)
        except (ValueError, RecursionError):
            continue
        kept[key] = read[key]
    gone = sorted(key for key in written if key not in read)
    if not kept and not gone:
        return ""
    text = json.dumps([kept, gone], separators=(",", ":"))
    if len(text) > ORIGINAL_LIMIT:
        found.note(f"{what}: not kept as it was read (more than {ORIGINAL_LIMIT} characters)")
        return ""
    return text


def restored(written: dict[str, Any], original: str) -> dict[str, Any]:
    """Return an entry as it was read."""
    if not original:
        return written
    told: tuple[dict[str, Any], list[str]] = json.loads(original)
    read, gone = told
    return {key: one for key, one in written.items() if key not in gone} | read


URL_LIMIT = 2048
ENUM_LIMIT = 10_000
"""Allowed values that are held; a longer list is not enforced."""
EXTRA_LIMIT = 65_536
"""Characters of JSON that are kept per API or tool for an export."""
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY"})
_CATEGORY_LIMIT = 80
OTHER = NO_CATEGORY


def mapping(value: Any) -> dict[str, Any]:
    """Return an object of a document, an empty one where something else stands in its place."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list of a document, an empty one where something else stands in its place."""
    return value if isinstance(value, list) else []


def category(value: Any, found: FileFindings) -> str:
    """Return the directory form of a category, always one harmless path component."""
    name = names.standardize_category(found.text(value, _CATEGORY_LIMIT))
    name = name.replace("\\", "_").replace("\n", "_").replace("\t", "_").lstrip(".").strip()
    # A file name has at most 255 bytes.
    return name.encode()[:200].decode(errors="ignore") or OTHER


def default(value: Any, found: FileFindings) -> Any:
    """Return a default with its JSON type kept, but clean, finite and of bounded size."""
    try:
        if len(json.dumps(value, ensure_ascii=False, allow_nan=False)) > DESCRIPTION_LIMIT:
            return found.text(str(value), PARAMETER_DESCRIPTION_LIMIT)
        return "" if value is None else _cleaned(value, PARAMETER_DESCRIPTION_LIMIT, found)
    except (ValueError, RecursionError) as error:
        found.note(f"a default left out ({_unwritable(error)})")
        return ""


def kept_annotations(schema: Any, found: FileFindings) -> dict[str, Any]:
    """Return what an exported schema says beside what it demands, clean."""
    about = mapping(schema)
    kept: dict[str, Any] = {}
    if text := found.text(about.get("description"), PARAMETER_DESCRIPTION_LIMIT):
        kept["description"] = text
    if "default" in about and (about["default"] is None or default(about["default"], found)):
        kept["default"] = about["default"] and default(about["default"], found)
    if examples := listed(about.get("examples"))[:1]:
        kept["examples"] = [default(examples[0], found)]
    return kept | ({"deprecated": True} if about.get("deprecated") is True else {})


def check_enum(values: list[Any], found: FileFindings) -> list[str]:
    """Return allowed values as text, without null; note where they cannot be enforced.

    None at all where they cannot all be kept as they are: a part of them must not be enforced.
    """
    if len(values) > ENUM_LIMIT:
        found.note(f"{len(values)} allowed values are too many to be held; any value is taken")
        return []
    written = [spelled(value) for value in values if value is not None]
    texts = [found.text(one, NAME_LIMIT) for one in written]
    if texts != written:
        found.note("an allowed value was altered by the cleaning; any value is taken")
        return []
    return texts


def kept(value: Mapping[str, Any], found: FileFindings, *, what: str) -> dict[str, Any]:
    """Return what an export needs beside an entry, clean; nothing where it is too much.

    A key whose value no JSON can hold is left out, the others are kept.
    """
    result: dict[str, Any] = {}
    size = 0
    for key, one in value.items():
        try:
            cleaned = _cleaned({key: one}, EXTRA_LIMIT, found)
            size += len(json.dumps(cleaned, ensure_ascii=False, allow_nan=False))
        except (ValueError, RecursionError) as error:
            found.note(f"{what}: {key} not kept ({_unwritable(error)})")
            continue
        result |= cleaned
    if size <= EXTRA_LIMIT:
        return result
    found.note(f"{what}: {', '.join(sorted(value))} not kept (more than {EXTRA_LIMIT} characters)")
    return {}


def unused(wanted: str, taken: set[str]) -> str:
    """Return a name that is not taken: with ``_2``, ``_3`` … where need be; take it."""
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    taken.add(found)
    return found


def _unwritable(error: ValueError | RecursionError) -> str:
    """Say why a value is no JSON."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    return "NaN or infinity, which JSON does not have"


def _cleaned(value: Any, limit: int, found: FileFindings) -> Any:
    if isinstance(value, str):
        return found.text(value, limit)
    if isinstance(value, list):
        return [_cleaned(item, limit, found) for item in value]
    if isinstance(value, dict):
        return {
            found.text(str(key), NAME_LIMIT): _cleaned(item, limit, found)
            for key, item in value.items()
        }
    return value
