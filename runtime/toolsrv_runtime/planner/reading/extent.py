"""What of a text something is done with: its letters or its words, and where it begins. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from toolsrv_registry.api import Parameter

_LETTERS = frozenset({"letter", "letters", "character", "characters", "char", "chars"})
_WORDS = frozenset({"word", "words"})
_LEADS_UP = re.compile(
    r"(?:is |are )?(?:gonna|going to|will|shall|should|ought to|has to|is to) be (?:called |named )?(?=\S)",
    re.IGNORECASE,
)


def ended(parameter: Parameter, value: str, task: str) -> str:
    """Return a password with the sign that ends it: what else stands in it says that it is one of its."""
    if "password" not in parameter.name.lower() or value.isalpha():
        return value
    match = re.search(rf"{re.escape(value)}([!$%&*#@+]+)(?=\s|$)", task)
    return f"{value}{match[1]}" if match else value


def begun(parameter: Parameter, value: str, task: str) -> str:
    """Return a text without the verb that leads up to it: "the name is gonna be Old Trams"."""
    match = _LEADS_UP.match(value) if parameter.type.upper() == "STRING" else None
    quoted = match is not None and re.search(rf"[\"'“‘]{re.escape(value[:40])}", task)
    return value[match.end() :] if match and not quoted else value


def narrowed(parameter: Parameter, value: str, given: Collection[str]) -> str:
    """Return letters for words where the call's text is a single word, any other value as it is.

    "The word lighthouse backwards": the words of a word are in order whatever is done.
    """
    letters = next((one for one in parameter.enum if one.lower() in _LETTERS), "")
    if not letters or value.lower() not in _WORDS:
        return value
    texts = [one for one in given if any(letter.isalpha() for letter in one)]
    return letters if texts and all(len(one.split()) == 1 for one in texts) else value
