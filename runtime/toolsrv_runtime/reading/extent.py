"""Of what of a text something is done: of its letters, its words or its lines. Pure."""

from __future__ import annotations

from collections.abc import Collection

from toolsrv_registry.api import Parameter

_LETTERS = frozenset({"letter", "letters", "character", "characters", "char", "chars"})
_WORDS = frozenset({"word", "words"})


def narrowed(parameter: Parameter, value: str, given: Collection[str]) -> str:
    """Return letters for words where the call's text is a single word, any other value as it is.

    "The word lighthouse backwards": the words of a word are in order whatever is done.
    """
    letters = next((one for one in parameter.enum if one.lower() in _LETTERS), "")
    if not letters or value.lower() not in _WORDS:
        return value
    texts = [one for one in given if any(letter.isalpha() for letter in one)]
    return letters if texts and all(len(one.split()) == 1 for one in texts) else value
