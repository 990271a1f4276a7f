"""How a model writes tool calls: the parts of a call, written and read. Pure.

A reply with calls is ``begin call (separator call)* end``; a call is a sequence of literals and
slots (name, arguments, id, index). JSON around the name, tags and headers all have this form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from toolsrv_runtime.contract.chat import ToolCall
from toolsrv_runtime.templates.marking import to_json
from toolsrv_runtime.templates.pair_arguments import PairArguments

_BLANKS = re.compile(r"\s+")
_JSON_SIGNS = re.compile(r"([{}\[\]:,])")
_NAME = re.compile(r"""[^\s"'<>{}()\[\]=,]+""")
_ID = re.compile(r"[A-Za-z0-9_.:-]+")


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _same(value: Any) -> Any:
    return value


class Slot(Enum):
    """What differs from call to call."""

    NAME = "name"
    ARGUMENTS = "arguments"
    ID = "id"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class JsonArguments:
    """Arguments as one JSON object with these separators; ``ordered``: keys are sorted."""

    item_separator: str = ", "
    key_separator: str = ": "
    indent: int | None = None
    ordered: bool = False

    def write(self, arguments: Mapping[str, Any], data: Callable[[Any], Any]) -> str:
        """Return the arguments as text; ``data`` maps values, as ``marking.marked`` does."""
        spelled = [
            self.item_separator.rstrip() if self.indent else self.item_separator,
            self.key_separator,
        ]
        return to_json(data(dict(arguments)), None, self.indent, spelled, self.ordered)

    def read(self, text: str, at: int, schema: Mapping[str, Any]) -> tuple[Any, int] | None:
        """Return the value at ``at`` and where it ends, or None where there is none."""
        del schema
        at = _skip(text, at)
        try:
            return _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call as it stands in a reply; ``arguments`` need not be an object."""

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """See the module. ``learnt``: from a template's renderings; else the generic syntax.

    ``several``: whether a turn may hold more than one call.
    """

    begin: str = ""
    parts: tuple[str | Slot, ...] = (
        '<tool_call>\n{"name": "',
        Slot.NAME,
        '", "arguments": ',
        Slot.ARGUMENTS,
        "}\n</tool_call>",
    )
    separator: str = "\n"
    end: str = ""
    arguments: JsonArguments | PairArguments = field(default_factory=JsonArguments)
    several: bool = True
    learnt: bool = False

    def describe(self) -> str:
        """Return the syntax in one line, for records."""
        if not self.learnt:
            return "generic"
        shown = "".join(f"{{{one.value}}}" if isinstance(one, Slot) else one for one in self.parts)
        return f"learnt: {self.begin}{shown}{self.end}".replace("\n", "\\n")

    @property
    def opener(self) -> str:
        """The text with which calls begin, up to the first slot."""
        first = self.parts[0] if isinstance(self.parts[0], str) else ""
        return self.begin + first

    @property
    def markers(self) -> str:
        """Every literal of the syntax, one a line."""
        return "\n".join(
            [self.begin, self.separator, self.end, *(x for x in self.parts if isinstance(x, str))]
        )

    def write(self, calls: Sequence[ToolCall], data: Callable[[Any], Any] = _same) -> str:
        """Return calls as a model writes them; ``data`` maps names and arguments."""
        texts = [self._write(call, data, index) for index, call in enumerate(calls)]
        return self.begin + self.separator.join(texts) + self.end if texts else ""

    def _write(self, call: ToolCall, data: Callable[[Any], Any], index: int) -> str:
        slots = {
            Slot.NAME: str(data(call.name)),
            Slot.ARGUMENTS: self.arguments.write(call.arguments, data),
            Slot.ID: call.id,
            Slot.INDEX: str(index),
        }
        return "".join(slots[one] if isinstance(one, Slot) else one for one in self.parts)

    def read(
        self, text: str, schemas: Mapping[str, Mapping[str, Any]]
    ) -> tuple[list[FoundCall], str] | None:
        """Return the calls in a reply and the text around them, or None where there are none.

        White space around JSON signs and markers may differ from what was learnt.
        """
        opener = self.opener.strip()
        if not opener:
            return None
        found = _lenient(opener).search(text)
        if found is None or (
            opener[0] in "{[" and not _marker(opener) and text[: found.start()].strip()
        ):
            return None
        at = found.start()
        before = text[:at]
        begun = _lenient(self.begin).match(text, at)
        at = begun.end() if begun else at
        calls: list[FoundCall] = []
        while (one := self._read(text, at, schemas)) is not None:
            call, at = one
            calls.append(call)
            parted = _lenient(self.separator.strip()).match(text, at)
            if parted is None:
                break
            at = parted.end()
        if not calls:
            return None
        ended = _lenient(self.end).match(text, at)
        return calls, before + text[ended.end() if ended else at :]

    def _read(
        self, text: str, at: int, schemas: Mapping[str, Mapping[str, Any]]
    ) -> tuple[FoundCall, int] | None:
        name, call_id, arguments = "", "", None
        last = len(self.parts) - 1
        for index, part in enumerate(self.parts):
            if part is Slot.ARGUMENTS:
                value = self.arguments.read(text, at, schemas.get(name, {}))
                if value is None:
                    return None
                arguments, at = value
                continue
            if isinstance(part, str):
                found = _lenient(part).match(text, at)
                if found is None and index == last and not text[at:].strip():
                    continue  # the closer is left out at the end of a reply
            else:
                found = (_NAME if part is Slot.NAME else _ID).match(text, at)
            if found is None:
                return None
            at = found.end()
            if part is Slot.NAME:
                name = found[0]
            elif part is Slot.ID:
                call_id = found[0]
        return FoundCall(name, arguments, call_id), at


GENERIC = CallSyntax()
"""The syntax of models whose template has none: the one that most of them are trained on."""


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _marker(opener: str) -> bool:
    """Whether an opener is more than JSON: ``[TOOL_CALLS][{"name": "`` is."""
    return bool(re.match(r"\[/?[A-Z_]{3,}\]", opener))


_PATTERNS: dict[str, re.Pattern[str]] = {}


def _lenient(literal: str) -> re.Pattern[str]:
    """Return a pattern of a literal in which white space is free where JSON lets it be."""
    known = _PATTERNS.get(literal)
    if known is None:
        words = _JSON_SIGNS.sub(r" \1 ", literal).split()
        tight = r"\s*".join(re.escape(word) for word in words)
        lead = r"\s*" if literal[:1].isspace() or literal[:1] in '{}[]:,"' else ""
        known = re.compile(lead + tight + (r"\s*" if literal[-1:].isspace() else ""))
        if len(_PATTERNS) < 1000:
            _PATTERNS[literal] = known
    return known
