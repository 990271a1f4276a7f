"""Plain text values and the folding that makes names comparable."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Field
from toolsrv_registry.errors import UsageError

_ODD = str.maketrans(
    {
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "\u0131": "i",
        "æ": "ae",
        "Æ": "Ae",
    }
)


_JOINT = re.compile(r"(?:^|\s+)(?:and|or)\s+", re.IGNORECASE)


def fold(text: str) -> str:
    """Return ``text`` without accents, case, hyphens, apostrophes or stray spaces.

    Two spellings of one name fold to the same text: ``São Paulo`` and ``sao paulo``.
    """
    bare = text if text.isascii() else _without_accents(text)
    spaced = bare.casefold().replace("-", " ").replace(".", " ")
    return " ".join(spaced.replace("'", "").replace("\u2019", "").split())


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.translate(_ODD))
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def items(text: str) -> list[str]:
    """Return the items of a list with commas: "tea, coffee and milk" has three.

    The "and" or "or" of the last two counts once there is a comma; after one in the end ("tea, coffee,
    and mac and cheese") it belongs to an item.
    """
    found = [item.strip() for item in re.split(r"[,;]", text) if item.strip()]
    if len(found) < 2:
        return found
    last = found.pop()
    after_comma = _JOINT.match(last)
    rest = [last[after_comma.end() :]] if after_comma else _JOINT.split(last, maxsplit=1)
    return [*found, *(item.strip() for item in rest if item.strip())]


def text_up_to(limit: int) -> Field:
    """Return a field for free text of at most ``limit`` characters."""

    def parse(text: str) -> str:
        if len(text) > limit:
            raise UsageError(f"has {len(text)} characters, more than the {limit} accepted")
        return text

    return Field(parse)


Text = Annotated[str, text_up_to(2000)]
Line = Annotated[str, text_up_to(200)]
