"""Words that are no proper name: those that every sentence has, and those of the API itself.

In "what is today's date" the date is what is asked for, though a town has that name. Pure.
"""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.words import STOP_WORDS, words

_LOWER = re.compile(r"[^\W\d_]+")
_EXAMPLE = re.compile(r"\b(?:e\.g\.|for example|such as|like)\s+(\w+)")


def is_common(value: str, parameter: Parameter, api: Api) -> bool:
    """Whether a value for a parameter that takes proper names is made of common words alone.

    A parameter takes proper names if its default or example is one. A capitalised word is common
    only as one that every sentence has ("What"), one in lower case also as one of the API's text.
    """
    if parameter.enum or not _takes_names(parameter):
        return False
    found = _LOWER.findall(value)
    if not found or found != value.split():
        return False
    own = {*_LOWER.findall(api.description), *words(api.name), *words(parameter.name)}
    return all(_is_stop(one) or (one.islower() and one in own) for one in found)


def _is_stop(word: str) -> bool:
    return word.lower() in STOP_WORDS and not (len(word) > 1 and word.isupper())


def _takes_names(parameter: Parameter) -> bool:
    """Whether the values of a parameter, as its document shows them, are proper names."""
    named = _EXAMPLE.search(parameter.description)
    shown = [parameter.default, parameter.example, named[1] if named else ""]
    return any(isinstance(one, str) and one[:1].isupper() and one[1:2].islower() for one in shown)
