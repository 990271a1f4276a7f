"""OpenAPI's styles: one value of a parameter as text for a path, a header, a query or a form.

Separators are literal and what stands between them is escaped (RFC 6570). What a style cannot
write so that it is read back as it was given is refused. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from toolsrv_registry.api import Style
from toolsrv_registry.numerals import spell

Escape = Callable[[str], str]

_BETWEEN = {"commas": ",", "spaces": "%20", "pipes": "%7C"}
_UNSAFE_BETWEEN = {"spaces": " ", "pipes": "|"}
_RESERVED = ":/?@!$'()*,;="
"""Reserved signs that have no meaning of their own in the value of a query."""
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")


class StyleError(Exception):
    """A value cannot be written where it must go; the message goes on after the argument's name."""

    def __init__(self, message: str, hint: str = "leave it out, or choose another API") -> None:
        super().__init__(message)
        self.hint = hint


def escaped(value: Any) -> str:
    """Return a value with everything escaped that is no letter, digit, ``-._~``."""
    return quote(spell(value), safe="")


def reserved(value: Any) -> str:
    """Return a value with reserved signs and escapes left as they are (RFC 6570, 3.2.3).

    ``&``, ``+``, ``#`` and brackets are escaped: they would end the value or change it.
    """
    parts = _TRIPLET.split(spell(value))
    return "".join(one if at % 2 else quote(one, safe=_RESERVED) for at, one in enumerate(parts))


def ascii_json(value: Any) -> str:
    """Return JSON that may stand in a header too: line ends and accents are escapes in it."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def leaves_no_trace(value: Any) -> bool:
    """Whether a list or an object would leave no trace in a query, or one in it would."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return not value or any(map(leaves_no_trace, inner))
    return False


def in_path(name: str, value: Any, style: Style) -> str:
    """Return the text for a placeholder: simple, label or matrix, or JSON.

    Raises:
        StyleError: a part holds the dot that stands between the parts.
    """
    if style == "json":
        return escaped(ascii_json(value))
    if style.startswith("label"):
        if style == "label_each" and any("." in spell(one) for one in _parts(value)):
            raise StyleError("holds '.' in one of its items, which parts them there")
        return "." + _simple(value, "." if style == "label_each" else ",", escaped, style)
    if not style.startswith("matrix"):
        return _simple(value, ",", escaped, style)
    head = f";{escaped(name)}"
    if style == "matrix_each" and isinstance(value, list):
        return "".join(_assigned(head, escaped(one)) for one in value)
    if style == "matrix_each" and isinstance(value, dict):
        return "".join(_assigned(f";{escaped(key)}", escaped(one)) for key, one in value.items())
    return _assigned(head, _simple(value, ",", escaped, style))


def _assigned(head: str, text: str) -> str:
    """Return a name with its value; of an empty one the name alone (RFC 6570, 3.2.7)."""
    return f"{head}={text}" if text else head


def unescaped(value: Any, style: Style) -> str:
    """Return the text for a header, where nothing is escaped.

    Raises:
        StyleError: a part holds the comma that stands between the parts.
    """
    if style == "json":
        return ascii_json(value)
    _check_commas(value)
    return _simple(value, ",", spell, style)


def in_cookies(name: str, value: Any, style: Style) -> Iterator[tuple[str, str]]:
    """Yield names and escaped values for cookies: one, or one for each entry of an object.

    Raises:
        StyleError: a part holds the comma that stands between the parts.
    """
    if style == "json":
        yield name, escaped(ascii_json(value))
    elif style == "pairs" and isinstance(value, dict):
        for key, one in value.items():
            yield key, escaped(one)
    else:
        _check_commas(value)
        yield name, _simple(value, ",", escaped, style)


def _check_commas(value: Any) -> None:
    if any("," in spell(one) for one in _parts(value)):
        raise StyleError("holds a comma in one of its items, and commas part them there")


def _parts(value: Any) -> list[Any]:
    """Return what a list or an object is made of; nothing of any other value."""
    return _flat(value) if isinstance(value, list | dict) else []


def _simple(value: Any, between: str, escape: Escape, style: Style) -> str:
    if isinstance(value, dict) and (style == "pairs" or style.endswith("_each")):
        return between.join(f"{escape(key)}={escape(one)}" for key, one in value.items())
    if isinstance(value, list | dict):
        return between.join(escape(one) for one in _flat(value))
    return escape(value)


def pairs(
    name: str, value: Any, style: Style, *, escape: Escape = escaped
) -> Iterator[tuple[str, str]]:
    """Yield names with their escaped values, for a query or a form.

    Written in its ``style``, else in OpenAPI's "form", exploded.

    Raises:
        StyleError: a part holds the sign that stands between the parts.
    """
    if style == "json":
        yield name, escape(ascii_json(value))
    elif not isinstance(value, list | dict):
        yield name, escape(value)
    elif style in _BETWEEN:
        sign = _UNSAFE_BETWEEN.get(style, "," if escape is not escaped else "")
        parts = _flat(value)
        if sign and any(sign in spell(part) for part in parts):
            raise StyleError(f"holds {sign!r} in one of its items, which parts them there")
        if parts:
            yield name, _BETWEEN[style].join(escape(part) for part in parts)
    elif style == "brackets":
        yield from _brackets(name, value, escape)
    elif isinstance(value, list):
        for one in value:
            yield name, escape(one)
    else:
        for key, one in value.items():
            yield key, escape(one)


def _brackets(name: str, value: Any, escape: Escape) -> Iterator[tuple[str, str]]:
    """Yield ``name[a][0]=1``: of lists and nested objects too, as most servers read them."""
    if not isinstance(value, list | dict):
        yield name, escape(value)
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _brackets(f"{name}[{key}]", one, escape)


def _flat(value: list[Any] | dict[str, Any]) -> list[Any]:
    """Return a list's items, or an object's keys and values in turn."""
    return value if isinstance(value, list) else [part for pair in value.items() for part in pair]
