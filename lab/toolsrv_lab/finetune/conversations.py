"""Training files: conversations in ToolBench's format (``toolbench_formats`` 10.1).

A JSON list, as ToolBench has it, or JSON lines. Either is read piece by piece, so that a file of
gigabytes needs little memory. Knows no tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry.errors import DataError, NotFoundError

Role = Literal["system", "user", "function", "assistant"]

_CHUNK = 1 << 20
_MOST_CHARACTERS = 64 << 20
_LONGEST_WORD = 16
_HINT = "write it anew with: toolsrv lab convert, or leave the entry out"


class Turn(BaseModel):
    """One turn. ``from`` in the file."""

    model_config = ConfigDict(frozen=True)

    role: Role = Field(alias="from")
    value: str


class Conversation(BaseModel):
    """What a model is shown, and as its last turn what it is to write."""

    model_config = ConfigDict(frozen=True)

    id: str = ""
    turns: tuple[Turn, ...] = Field(alias="conversations", min_length=2)


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Yield the conversations of a file.

    Raises:
        NotFoundError: No such file.
        DataError: No file, or an entry that is damaged; says which and why.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for where, entry in _entries(file, path.name):
                yield _checked(where, entry)
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {str(path)!r}", hint="name a file of conversations"
        ) from None
    except OSError as error:
        raise DataError(
            f"cannot read {str(path)!r}: {error.strerror}", hint="name a file of conversations"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name!r} is not UTF-8: {error.reason}", hint=_HINT) from None


def _entries(file: TextIO, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (where, entry) of a JSON list or of JSON lines."""
    start = file.read(1)
    while start.isspace() or start == "\ufeff":
        start = file.read(1)
    if start == "[":
        yield from _listed(file, name)
        return
    for number, line in enumerate(_lines(start, file), start=1):
        where = f"{name!r}, line {number}"
        if not line.strip():
            continue
        try:
            yield where, json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"{where} is not JSON", hint=_HINT) from None


def _lines(start: str, file: TextIO) -> Iterator[str]:
    yield start + file.readline()
    yield from file


def _listed(file: TextIO, name: str) -> Iterator[tuple[str, Any]]:
    decoder = json.JSONDecoder()
    text, number = "", 0
    while True:
        text = text.lstrip(", \t\r\n")
        if text.startswith("]"):
            return
        where = f"{name!r}, entry {number + 1}"
        try:
            entry, end = decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            if not _cut(error) or len(text) > _MOST_CHARACTERS:
                raise DataError(f"{where} is not JSON: {error.msg}", hint=_HINT) from None
            more = file.read(_CHUNK)
            if not more:
                raise DataError(f"{where}: the list ends in the middle", hint=_HINT) from None
            text += more
            continue
        except RecursionError:
            raise DataError(f"{where} is nested too deeply", hint=_HINT) from None
        yield where, entry
        text, number = text[end:], number + 1


def _cut(error: json.JSONDecodeError) -> bool:
    """Whether more of the text may mend the error: it is at the end, or in an open string."""
    return error.msg.startswith("Unterminated") or error.pos > len(error.doc) - _LONGEST_WORD


def _checked(where: str, entry: Any) -> Conversation:
    try:
        found = Conversation.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(one) for one in first["loc"]) or "it"
        raise DataError(f"{where}: {place}: {first['msg']}", hint=_HINT) from None
    if found.turns[-1].role != "assistant":
        raise DataError(
            f"{where}: the last turn is of {found.turns[-1].role!r}, so there is nothing to learn",
            hint=_HINT,
        )
    if not found.turns[-1].value.strip():
        raise DataError(f"{where}: the last turn of the assistant is empty", hint=_HINT)
    return found
