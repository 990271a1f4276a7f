"""A vocabulary as GGUF keeps it, and the tokens that a checkpoint adds to its tokenizer's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolsrv_runtime.convert.architecture import read_json
from toolsrv_runtime.convert.errors import TokenizerError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Kinds of tokens: SentencePiece's numbers, and GGUF's."""

HINT = "download the tokenizer's files again, from where the weights come from"


@dataclass
class Vocabulary:
    """Tokens by id. ``model`` and ``pre`` are llama.cpp's names for how text is cut.

    ``specials`` are ids by role (bos, eos, unk) where the checkpoint's other files say nothing;
    ``adds_bos`` likewise.
    """

    model: Literal["llama", "gpt2"]
    pre: str
    tokens: list[str]
    kinds: list[int]
    scores: list[float] | None = None
    add_space_prefix: bool | None = None
    adds_bos: bool = False
    specials: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Added:
    """A token that is cut out of a text before anything else."""

    text: str
    special: bool


def empty(size: int, *, model: Literal["llama", "gpt2"], pre: str) -> Vocabulary:
    """Return a vocabulary of ``size`` unused tokens, as padding of the embeddings has them."""
    return Vocabulary(
        model=model,
        pre=pre,
        tokens=[f"[PAD{at}]" for at in range(size)],
        kinds=[UNUSED] * size,
    )


def put(vocabulary: Vocabulary, at: object, text: object, kind: int) -> None:
    """Set one token.

    Raises:
        TokenizerError: An id outside the model's embeddings, or a text that is none.
    """
    if not isinstance(at, int) or not 0 <= at < len(vocabulary.tokens):
        raise TokenizerError(
            f"the token {text!r} has the id {at!r}, and the model has "
            f"{len(vocabulary.tokens)} embeddings",
            hint="the tokenizer belongs to another model; " + HINT,
        )
    if not isinstance(text, str):
        raise TokenizerError(f"token {at} is no text", hint=HINT)
    vocabulary.tokens[at] = text
    vocabulary.kinds[at] = kind


def put_added(vocabulary: Vocabulary, folder: Path) -> None:
    """Set the tokens that the folder's other files add or declare special."""
    for at, one in read_added(folder).items():
        known = 0 <= at < len(vocabulary.tokens) and vocabulary.tokens[at] == one.text
        if known and vocabulary.kinds[at] in {UNKNOWN, CONTROL, BYTE}:
            continue
        if one.special:
            put(vocabulary, at, one.text, CONTROL)
        else:
            put(vocabulary, at, one.text.replace("\u2581", " "), USER_DEFINED)


def read_added(folder: Path) -> dict[int, Added]:
    """Return added tokens by id, from the three files that may name them; later ones win."""
    found: dict[int, Added] = {}
    for text, at in _object(folder / "added_tokens.json").items():
        if isinstance(at, int):
            found[at] = Added(text, special=False)
    entries = _object(folder / "tokenizer.json").get("added_tokens")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("id"), int):
            found[entry["id"]] = _added(entry)
    declared = _object(folder / "tokenizer_config.json").get("added_tokens_decoder")
    for key, entry in declared.items() if isinstance(declared, dict) else ():
        if str(key).isdecimal() and isinstance(entry, dict):
            found[int(key)] = _added(entry)
    return found


def _added(entry: Mapping[str, Any]) -> Added:
    return Added(str(entry.get("content", "")), special=bool(entry.get("special", False)))


def _object(path: Path) -> dict[str, Any]:
    return read_json(path, hint=HINT) if path.is_file() else {}
