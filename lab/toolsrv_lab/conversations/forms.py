"""Answer forms: sentences with fields of a response (``r``) and of a call's arguments (``a``).

``{r.capital}``, ``{a.amount}``, ``{r.items.0.name}``; filters behind ``|``: ``join`` (a list as words),
``count``, ``yesno:text:text``, ``if:text`` (nothing where the value is absent or empty). The texts of
filters may hold fields. Raises LookupError where a field is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolsrv_lab.conversations.wording import enumerated


def fill(form: str, response: Any, arguments: Mapping[str, Any]) -> str:
    """Return the form with its fields filled in."""
    return re.sub(r"\s+", " ", _fill(form, {"r": response, "a": arguments})).strip()


def _fill(form: str, values: Mapping[str, Any]) -> str:
    out = []
    for kind, text in _pieces(form):
        out.append(_field(text, values) if kind else text)
    return "".join(out)


def _pieces(form: str) -> Iterator[tuple[bool, str]]:
    """Yield (is a field, text), with braces that hold braces as one field."""
    depth, start = 0, 0
    for at, sign in enumerate(form):
        if sign == "{":
            if depth == 0:
                yield False, form[start:at]
                start = at + 1
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                yield True, form[start:at]
                start = at + 1
            if depth < 0:
                raise ValueError(f"a brace too many in {form!r}")
    if depth:
        raise ValueError(f"a brace too few in {form!r}")
    yield False, form[start:]


def _field(text: str, values: Mapping[str, Any]) -> str:
    path, _, rest = text.partition("|")
    name, _, detail = rest.partition(":")
    value, there = _value(path.strip(), values)
    if name == "if":
        return _fill(detail, values) if there and value not in (None, "", [], {}, False) else ""
    if not there:
        raise LookupError(path)
    if name == "yesno":
        yes, no = _split(detail)
        return _fill(yes if value else no, values)
    if name == "count":
        return str(len(value))
    if name == "join":
        parts = [_shown(one) for one in value]
        return enumerated(parts)
    if name:
        raise ValueError(f"no filter {name!r}")
    return _shown(value)


def _split(text: str) -> tuple[str, str]:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if sign == ":" and depth == 0:
            return text[:at], text[at + 1 :]
    return text, ""


def _value(path: str, values: Mapping[str, Any]) -> tuple[Any, bool]:
    found: Any = values
    for key in path.split("."):
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif (
            isinstance(found, list)
            and key.lstrip("-").isdigit()
            and -len(found) <= int(key) < len(found)
        ):
            found = found[int(key)]
        else:
            return None, False
    return found, True


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(not isinstance(one, dict | list) for one in value):
        return ", ".join(map(_shown, value))
    return json.dumps(value, ensure_ascii=False)
