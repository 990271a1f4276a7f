"""Standardised names, exactly as ToolBench makes them.

ToolBench drops the letters of most scripts. Where a name has such letters, ids and the names that a
model reads spell them in Latin ones (``readable_name``): ``Погода`` is ``pogoda`` there and not
nothing. Names in Latin letters, and the Han that ToolBench keeps, are the same either way.

Pure string functions; a name is never split again once it is made, it is looked up.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from anyascii import anyascii

_OUTSIDE = re.compile(r"[^\u4e00-\u9fa5a-zA-Z0-9_^]")
_RUNS = re.compile(r"_+")
_RESERVED = frozenset({"from", "class", "return", "false", "true", "id", "and"})
_NO_FUNCTION_NAME = re.compile(r"[^a-z0-9_]")
FUNCTION_NAME_LIMIT = 64
READABLE_LIMIT = 120
"""Characters of a name that was spelled in Latin letters: one letter may become several."""


def standardize(name: str) -> str:
    """Return ToolBench's standard form of a tool, API or parameter name.

    Characters outside CJK U+4E00-U+9FA5, ASCII letters, digits, ``_`` and ``^`` become ``_``
    (the caret survives in the reference, so it does here); runs collapse; lower case; outer
    underscores go; a leading digit gets the prefix ``get_``. Idempotent; may return ``""``.
    """
    text = _RUNS.sub("_", _OUTSIDE.sub("_", name)).lower().strip("_")
    return f"get_{text}" if text[:1].isdigit() else text


def api_name(name: str) -> str:
    """Return the standard form of an API or parameter name: reserved words get ``is_``."""
    text = standardize(name)
    return f"is_{text}" if text in _RESERVED else text


@lru_cache(maxsize=8_192)
def readable_name(name: str) -> str:
    """Return the standard form of a name; one that is mainly in another script in Latin letters.

    As ``standardize`` where that keeps more letters than it drops, so that ToolBench's names are its
    own; where nothing at all would be left, signs are spelled too (a rocket is ``rocket``). May
    still be ``""``, as for ``!!!``.
    """
    standard = standardize(name)
    dropped = sum(map(_is_dropped, name)) if not name.isascii() else 0
    kept = sum(one.isalpha() and not _OUTSIDE.match(one) for one in name)
    if standard and (not dropped or dropped < kept):
        return standard
    found = standardize(_spelled(name)) or standardize(anyascii(name))
    return found[:READABLE_LIMIT].rstrip("_")


def readable_api_name(name: str) -> str:
    """Return ``readable_name`` of an API or a parameter: reserved words get ``is_``."""
    text = readable_name(name)
    return f"is_{text}" if text in _RESERVED else text


def is_respelled(name: str) -> bool:
    """Whether ``readable_name`` is another name than ToolBench's."""
    return readable_name(name) != standardize(name)


def _spelled(name: str) -> str:
    """Return a name with each run of letters that ``standardize`` drops in Latin letters."""
    parts: list[str] = []
    run = ""
    for sign in name:
        if _is_dropped(sign) or (run and unicodedata.category(sign)[0] in "MC"):
            run += sign
            continue
        if run:
            parts.append(anyascii(unicodedata.normalize("NFC", run)))
        parts.append(sign)
        run = ""
    return "".join([*parts, anyascii(unicodedata.normalize("NFC", run))])


@lru_cache(maxsize=8_192)
def _is_dropped(sign: str) -> bool:
    """Whether a sign is a letter or digit of another script than Latin that ToolBench drops.

    Accented and full-width Latin letters are Latin ones: ids have always been without them.
    """
    kind = unicodedata.category(sign)
    if not _OUTSIDE.match(sign) or not (kind[0] == "L" or kind == "Nd"):
        return False
    plain = unicodedata.normalize("NFKD", sign)
    return not any(
        one.isascii() or unicodedata.name(one, "").startswith(("LATIN", "MODIFIER LETTER"))
        for one in plain
    )


def standardize_category(name: str) -> str:
    """Return the directory form of a category: case, ``&``, ``-`` and ``%`` are kept."""
    return name.replace(" ", "_").replace(",", "_").replace("/", "_").replace("__", "_")


def function_name(api: str, tool: str) -> str:
    """Return ``{api}_for_{tool}``, cut to its last 64 characters as ToolBench does.

    Both arguments may be raw or standardised. The result need not be unique: a function list
    resolves collisions (``functions.FunctionList``).
    """
    return f"{api_name(api)}_for_{standardize(tool)}"[-FUNCTION_NAME_LIMIT:]


def plain_function_name(api: str, tool: str) -> str:
    """Return ``function_name`` in letters, digits and ``_`` alone: all that model servers take.

    The same wherever ``function_name`` has no others.
    """
    return full_function_name(api, tool)[-FUNCTION_NAME_LIMIT:]


def full_function_name(api: str, tool: str) -> str:
    """Return ``plain_function_name`` before it is cut."""
    whole = f"{readable_api_name(api)}_for_{readable_name(tool)}"
    return _NO_FUNCTION_NAME.sub("_", anyascii(whole).lower())
