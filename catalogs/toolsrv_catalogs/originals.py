"""What a file says otherwise than its cleaned entry, kept so that an export loses nothing.

The import alters what it reads: hidden characters go, long texts are cut, null becomes a text. Of
an entry that this changed the keys in question are kept as they were read, as JSON text in ASCII:
every character that could do harm is an escape in it. No model, search or screen gets it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.text import NAME_LIMIT, clean

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
