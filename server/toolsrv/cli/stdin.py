"""Text from standard input, taken only where it is text."""

from __future__ import annotations

import sys
import unicodedata

from toolsrv_registry.errors import UsageError

_ORDINARY = frozenset("\t\n\r\f\x1b")
_MOST = 4
"""One character in so many may be a control character; a file that is no text has more."""


def read_text() -> str:
    """Return all of standard input; closed is empty.

    Raises:
        UsageError: it is not UTF-8, or full of control characters.
    """
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"standard input is not UTF-8 (byte {error.start})",
            hint="pipe text in; another encoding: iconv -t UTF-8",
        ) from error
    odd = sum(unicodedata.category(one) == "Cc" and one not in _ORDINARY for one in text)
    if odd * _MOST > len(text):
        raise UsageError("standard input is no text", hint="pipe text in, not a binary file")
    return text
