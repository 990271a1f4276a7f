"""Provenance of rendered text: which characters are data and which the template's.

Every character of a string from a task, a catalog, a call or a result is moved into Unicode's
private planes 15 and 16 before a template sees it, and back afterwards. So a template can split,
join, sort, quote and repeat data, and each character still shows where it came from; and no test
of the template (``'</think>' in content``) is true because of data. White space stays as it is:
templates trim it, and it spells nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from toolsrv_runtime.contract.models import Piece, Prompt, SpecialTokens

_BASE = 0xF0000
_MOVABLE = 0x20000
_UNMOVED = frozenset(map(ord, " \t\n\r"))
_MOVED = re.compile("[\U000f0000-\U0010ffff]+")
_RUNS = re.compile(rb"\x00+|\x01+")
_MARKER = re.compile(r"[<\[/|].*[^\W\d_]", re.DOTALL)
_LITERALS = re.compile(r"\\U00(0f|10)([0-9a-f]{4})")


class _There(dict[int, int]):
    """Code points of characters to where they are moved."""

    def __missing__(self, code: int) -> int:
        found = code if code in _UNMOVED or code >= _MOVABLE else code + _BASE
        self[code] = found
        return found


class _Back(dict[int, int]):
    """The way back."""

    def __missing__(self, code: int) -> int:
        found = code - _BASE if code >= _BASE else code
        self[code] = found
        return found


_THERE, _BACK = _There(), _Back()


class DataText(str):
    """A moved string; in a Python literal (``tools|string``) it is quoted as its text would be."""

    __slots__ = ()

    def __repr__(self) -> str:
        return mark(repr(unmark(self)))


def mark(text: str) -> DataText:
    """Return ``text`` moved into the private planes. Characters of planes 2 to 14 stay."""
    clean = _MOVED.sub("\N{REPLACEMENT CHARACTER}", text)
    return DataText(clean.translate(_THERE))


def unmark(text: str) -> str:
    """Return a moved text as it was."""
    return text.translate(_BACK)


def marked(value: Any) -> Any:
    """Return a JSON value with all its strings moved, keys too."""
    if isinstance(value, str):
        return mark(value)
    if isinstance(value, Mapping):
        return {mark(str(key)): marked(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [marked(one) for one in value]
    return value


def to_json(
    value: Any,
    ensure_ascii: Any = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: Any = False,
) -> str:
    """Return JSON text as transformers' ``tojson`` does: no HTML escapes, insertion order, UTF-8."""
    del ensure_ascii
    pair = tuple(map(str, separators)) if isinstance(separators, list | tuple) else None
    text = json.dumps(
        value,
        ensure_ascii=False,
        indent=indent,
        separators=pair if pair is not None and len(pair) == 2 else None,
        sort_keys=bool(sort_keys),
    )
    return text.translate(_ESCAPES)


def _escapes() -> dict[int, str]:
    """Return what becomes of moved characters within JSON strings."""
    plain = [chr(code) for code in (*range(32), ord('"'), ord("\\"))]
    return {ord(mark(one)): mark(json.dumps(one)[1:-1]) for one in plain if mark(one) != one}


_ESCAPES = _escapes()


def without_escapes(rendered: str) -> str:
    """Return a rendering in which Python's escapes of moved characters are such characters."""
    return _LITERALS.sub(lambda found: chr(int(found[1] + found[2], 16)), rendered)


def rendered_text(text: str) -> tuple[str, bytearray]:
    """Return a rendering as text, and for every character whether it is data (1) or not (0)."""
    data = bytearray(len(text))
    parts, at = [], 0
    for found in _MOVED.finditer(text):
        parts += [text[at : found.start()], unmark(found[0])]
        at = found.end()
        data[found.start() : at] = b"\1" * (at - found.start())
    return "".join([*parts, text[at:]]), data


class Occurrences:
    """Finds every place where one of ``texts`` stands, overlapping ones too."""

    def __init__(self, texts: frozenset[str]) -> None:
        self._texts = texts
        self._lengths: dict[str, list[int]] = {}
        for one in texts:
            self._lengths.setdefault(one[:2], []).append(len(one))
        for begin, lengths in self._lengths.items():
            self._lengths[begin] = sorted(set(lengths))
        begins = "|".join(re.escape(one) for one in sorted(self._lengths, key=len, reverse=True))
        self._begins = re.compile(f"(?=({begins}))") if begins else None

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return begin and end of every occurrence in ``text``."""
        if self._begins is None:
            return []
        found: list[tuple[int, int]] = []
        for hit in self._begins.finditer(text):
            at = hit.start()
            lengths = (x for begin in {hit[1], text[at]} for x in self._lengths.get(begin, ()))
            found += [(at, at + x) for x in lengths if text[at : at + x] in self._texts]
        return found


class Pieces:
    """Cuts renderings into prompt pieces in which no data spells a token of the vocabulary.

    ``tokens`` without control tokens means an unknown vocabulary: all data is cut out.
    User-defined tokens that look like markers (``<tool_call>``, ``/think``) are cut in two inside
    data, so that they are never one token; blanks and plain words are left whole.
    """

    def __init__(self, tokens: SpecialTokens) -> None:
        self._known = bool(tokens.control)
        self._control = Occurrences(frozenset(one for one in tokens.control if one))
        self._words = Occurrences(
            frozenset(one for one in tokens.user_defined if _MARKER.match(one))
        )

    def cut(self, rendered: str, shared: int | None = None) -> Prompt:
        """Return the pieces of a rendering with moved data.

        ``shared``: where the part ends that repeats from task to task.
        """
        text, data = rendered_text(rendered)
        plain = bytearray(len(text)) if self._known else bytearray(data)
        cuts = {0, len(text)}
        if self._known and any(data):
            for begin, end in self._control.find(text):
                plain[begin:end] = bytes(
                    old or new for old, new in zip(plain[begin:end], data[begin:end], strict=True)
                )
        if any(data):
            for begin, end in self._words.find(text):
                if any(data[begin:end]):
                    cuts.add(begin + 1)
        cuts |= {found.start() for found in _RUNS.finditer(plain)}
        if shared is not None:
            cuts.add(shared)
        order = sorted(cuts)
        return tuple(
            Piece(text[begin:end], special=not plain[begin], shared=end == shared)
            for begin, end in pairwise(order)
        )
