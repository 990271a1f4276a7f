r"""Well-formed Unicode: text and JSON without lone surrogates (half surrogate pairs).

JSON may escape half a pair (``"\ud83d"``, as programs write that cut strings by UTF-16 units), but
UTF-8 cannot encode one. JSON from outside passes through ``loads`` or ``json_text`` where it is
decoded; a lone surrogate becomes U+FFFD, the replacement character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

DEPTH_LIMIT = 200
"""Levels of JSON; a reader of ours or of a client may not be made for more."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u(?P<pair>[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def text(value: str) -> str:
    """Return a text whose adjacent halves form pairs and whose lone surrogates are U+FFFD."""
    if value.isascii() or not _SURROGATE.search(value):
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def json_text(value: str) -> str:
    r"""Return JSON text whose lone surrogates, raw or escaped, are U+FFFD (``\ufffd``).

    Works on whole and on broken JSON, at any depth, in linear time; what is well-formed is
    returned as it is.
    """
    value = text(value)
    if not _ESCAPED.search(value):
        return value
    return _ESCAPE.sub(lambda one: "\\ufffd" if one["half"] else one[0], value)


def loads(
    data: str | bytes,
    *,
    strict: bool = True,
    parse_constant: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
) -> Any:
    """Decode JSON as ``json.loads`` does, without lone surrogates in values or keys.

    Bytes are UTF-8, UTF-16 or UTF-32, with or without a byte order mark, as for ``json.loads``.

    Raises:
        ValueError: not JSON, or not in that encoding.
        RecursionError: nested too deeply.
    """
    if isinstance(data, bytes):
        data = data.decode(json.detect_encoding(data))
    return json.loads(
        json_text(data), strict=strict, parse_constant=parse_constant, parse_float=parse_float
    )


def value(item: Any) -> Any:
    """Return a JSON value without lone surrogates in its texts and keys; itself where it has none.

    Of two keys that become equal the later one stays.

    Raises:
        TypeError, ValueError: no JSON value.
        RecursionError: nested too deeply.
    """
    written = json.dumps(item)
    return json.loads(json_text(written)) if _ESCAPED.search(written) else item


def too_deep(item: Any) -> bool:
    """Whether JSON is nested deeper than ``DEPTH_LIMIT``; one pass, level by level."""
    level = [item]
    for _ in range(DEPTH_LIMIT):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True
