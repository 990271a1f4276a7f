"""Fields and lists of a response, and their values as a sentence shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_lab.conversations.needs_episodes.tables import (
    split_words,
)


def shown(value: Any) -> str:
    """Return a value as it stands in a response, for a sentence."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value, ensure_ascii=False)


def leaves_of(body: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Return (path, value) for the fields of a response."""
    if isinstance(body, Mapping):
        return [leaf for key, one in body.items() for leaf in leaves_of(one, (*path, key))]
    if isinstance(body, list):
        if body and all(isinstance(one, (str, int, float)) for one in body):
            return [(path, ", ".join(shown(one) for one in body[:5]))]
        return []
    return [(path, body)]


def lists_of(body: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], list[Any]]]:
    """Return (path, items) for the lists of a response."""
    if isinstance(body, list):
        if len(body) == 1 and isinstance(body[0], Mapping) and not path:
            return [(path, body), *lists_of(body[0], path)]
        return [(path, body)]
    if isinstance(body, Mapping):
        return [found for key, one in body.items() for found in lists_of(one, (*path, key))]
    return []


_MAIN = ("name", "title", "fullname", "displayname", "username", "headline", "question", "word", "text", "joke", "quote",
         "label", "shortname", "symbol", "ticker", "make", "model", "address", "city", "country", "date", "type", "market")  # fmt: skip


def main_leaf(
    leaves: Sequence[tuple[tuple[str, ...], Any]], main: Sequence[str]
) -> tuple[tuple[str, ...], Any] | None:
    """Return the field that names an item. ``main``: field names to try first."""
    usable = [
        leaf for leaf in leaves if leaf[1] not in (None, "") and not isinstance(leaf[1], bool)
    ]
    for name in main:
        for path, value in usable:
            if (
                path == (name,)
                and name not in {"id", "rank", "position", "code"}
                and not isinstance(value, float)
            ):
                return path, value
    for wanted in _MAIN:
        for path, value in usable:
            if "".join(split_words(path[-1])) in {
                wanted,
                *({f"{p}{wanted}" for p in split_words(path[-2])} if len(path) > 1 else ()),
            } and isinstance(value, (str, int)):
                return path, value
    strings = [
        one
        for one in usable
        if isinstance(one[1], str)
        and not re.search(
            r"(?i)id$|url|uri|link|image|logo|stamp|code$", one[0][-1] if one[0] else ""
        )
    ]
    found = strings or usable
    return found[0] if found else None
