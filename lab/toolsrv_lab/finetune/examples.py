"""Training conversations in ToolBench's format as tokens with loss masks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_lab.extras import load
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


IGNORED = -100
"""The label of a token that the loss does not count."""

_BATCH = 64
_PROBE = "System: You may call\n\nUser: Größe, 北京\nAssistant: \nThought: so\nAction: f_for_t"


class Examples:
    """Examples by number, packed: token ids one after the other, and where each target begins.

    ``left_out`` counts the conversations that were too long; ``targets`` all counted tokens.
    """

    def __init__(self, rows: Iterable[tuple[Sequence[int], int] | None]) -> None:
        parts, ends, starts = [], [0], []
        self.left_out = self.targets = 0
        for row in rows:
            if row is None:
                self.left_out += 1
                continue
            ids, start = row
            parts.append(np.asarray(ids, np.uint32))
            ends.append(ends[-1] + len(ids))
            starts.append(start)
            self.targets += len(ids) - start
        self._ids: NDArray[np.uint32] = np.concatenate(parts) if parts else np.empty(0, np.uint32)
        self._ends, self._starts = ends, starts

    @property
    def tokens(self) -> int:
        """Tokens of all examples."""
        return len(self._ids)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, at: int) -> dict[str, NDArray[np.int64]]:
        ids = self._ids[self._ends[at] : self._ends[at + 1]].astype(np.int64)
        labels = ids.copy()
        labels[: self._starts[at]] = IGNORED
        return {"input_ids": ids, "labels": labels}


def layout(conversation: Conversation) -> tuple[str, int]:
    """Return a conversation's text without the end token, and where its target begins in it."""
    *head, last = [f"{turn.role.capitalize()}: {turn.value}" for turn in conversation.turns]
    text = "".join(f"{one}\n" for one in head)
    return text + last, len(text) + len("Assistant:")


def encode(
    conversations: Iterable[Conversation],
    tokenizer: Any,
    max_tokens: int,
    *,
    limit: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Examples:
    """Return the conversations (or the first ``limit``) as examples of at most ``max_tokens``.

    ``progress`` is told how many were read. Control tokens that a text spells stay plain text.

    Raises:
        DataError: No conversation fits.
    """
    found = Examples(_rows(islice(conversations, limit), tokenizer, max_tokens, progress))
    if not len(found):
        raise DataError(
            f"none of {found.left_out} conversations fits {max_tokens} tokens"
            if found.left_out
            else "the training file holds no conversation",
            hint="give a larger --max-tokens" if found.left_out else "name another file",
        )
    return found


def _rows(
    conversations: Iterable[Conversation],
    tokenizer: Any,
    max_tokens: int,
    progress: Callable[[int], None] | None,
) -> Iterator[tuple[Sequence[int], int] | None]:
    head = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    tail = [tokenizer.eos_token_id]
    done = 0
    conversations = iter(conversations)
    while some := list(islice(conversations, _BATCH)):
        texts = [layout(one) for one in some]
        cut = tokenizer(
            [text for text, _ in texts],
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            return_attention_mask=False,
            verbose=False,
        )
        for (_, start), ids, offsets in zip(
            texts, cut["input_ids"], cut["offset_mapping"], strict=True
        ):
            first = next(at for at, (begin, _) in enumerate(offsets) if begin >= start)
            whole = [*head, *ids, *tail]
            yield (whole, len(head) + first) if len(whole) <= max_tokens else None
        done += len(some)
        if progress is not None:
            progress(done)


def collate(examples: Sequence[dict[str, NDArray[np.int64]]]) -> dict[str, Any]:
    """Return examples as tensors, padded on the right to the longest."""
    torch = load("torch")
    longest = max(len(one["input_ids"]) for one in examples)
    ids = torch.zeros((len(examples), longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    labels = torch.full_like(ids, IGNORED)
    for row, one in enumerate(examples):
        length = len(one["input_ids"])
        ids[row, :length] = torch.from_numpy(one["input_ids"])
        labels[row, :length] = torch.from_numpy(one["labels"])
        mask[row, :length] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a checkpoint.

    Raises:
        DataError: There is none, it has no end token, or transformers would cut texts in another
            way than the SentencePiece file in the folder, and so than llama.cpp later.
    """
    hint = "take the tokenizer's files from where the checkpoint comes from"
    try:
        tokenizer = load("transformers").AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"cannot read the tokenizer in {str(folder)!r}: {reason}", hint=hint
        ) from None
    if tokenizer.eos_token_id is None or not tokenizer.is_fast:
        raise DataError(f"the tokenizer in {str(folder)!r} has no end-of-text token", hint=hint)
    model = folder / "tokenizer.model"
    if model.is_file():
        own = load("sentencepiece").SentencePieceProcessor(model_file=str(model)).encode(_PROBE)
        if own != tokenizer.encode(_PROBE, add_special_tokens=False):
            raise DataError(
                f"transformers cuts texts in another way than {str(model)!r}",
                hint='tokenizer_config.json must say "tokenizer_class": "LlamaTokenizer"',
            )
    return tokenizer
