"""ToolBench's own sentences, found in an answer file or in the training file that a user has.

Where they stand is known, and their SHA-256; what has another is not taken. Stores nothing.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.answers.prompts import Prompts
from toolsrv_runtime.answers.read import parse_answer
from toolsrv_runtime.answers.words import ANCHOR, HINT, LISTING
from toolsrv_runtime.file_in import open_file

MOST_BYTES = 64 * 1024 * 1024
"""As much of a file is read: of the training file, its first instances."""

_END_OF_BASE = "Task description: "
_HEAD_LENGTH = 458
_HINT = "give an answer file of ToolBench, or its toolllama_G123_dfs_train.json"

Said = tuple[list[str], list[dict[str, Any]]]
"""The texts of a conversation's messages, the system's first, and its functions."""


def read_prompts(path: Path) -> Prompts:
    """Return the sentences that an artefact of ToolBench holds, their digests checked.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or holds none of the sentences.
    """
    text = _head_of(path)
    found = Prompts()
    conversations = _trained(text) if text.startswith("[") else _answered(text, path)
    for messages, functions in conversations:
        found = found.with_(
            Prompts(
                system=_system(messages[0]),
                diversity=_diversity(messages[1:]),
                finish=functions[-1] if functions else None,
            ).checked()
        )
        if not found.missing and found.newest:
            break
    if found == Prompts():
        raise DataError(
            f"{path} holds none of ToolBench's sentences, as their SHA-256 tells", hint=_HINT
        )
    return found


def _system(text: str) -> tuple[str, str]:
    base, mark, rest = text.partition(_END_OF_BASE)
    return base + mark, rest[:_HEAD_LENGTH]


def _diversity(messages: list[str]) -> tuple[str, str] | None:
    for text in messages:
        start = text.find("[\n  {")
        end = text.rfind("\n", 0, max(0, text.rfind("Remember")))
        if 0 <= start < end:
            found = Prompts(diversity=(text[:start], text[end:])).checked().diversity
            if found is not None:
                return found
    return None


def _answered(text: str, path: Path) -> Iterator[Said]:
    """Yield the conversations of an answer file."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON, or more than 64 MiB of it", hint=_HINT) from error
    generation = parse_answer(value, str(path)).answer_generation
    functions = list(generation.function)
    yield [""], functions
    for conversation in generation.train_messages or ():
        yield [message.content or "" for message in conversation] or [""], functions


def _trained(text: str) -> Iterator[Said]:
    """Yield the conversations of a training file, as far as the text goes."""
    for value in _instances(text):
        turns = value.get("conversations") if isinstance(value, dict) else None
        if isinstance(turns, list) and turns:
            said = [str(turn.get("value", "")) for turn in turns if isinstance(turn, dict)]
            system, _, listing = said[0].partition(LISTING) if said else ("", "", "")
            yield [system.replace(ANCHOR + HINT, ANCHOR), *said[1:]], _listed(listing)


def _instances(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value


def _listed(listing: str) -> list[dict[str, Any]]:
    try:
        value = ast.literal_eval(listing)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _head_of(path: Path) -> str:
    try:
        with open_file(path) as file:
            text = file.read(MOST_BYTES).decode("utf-8-sig", errors="ignore").lstrip()
            return wellformed.json_text(text)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist", hint=_HINT) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}", hint=_HINT) from error
