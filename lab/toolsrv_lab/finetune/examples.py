"""Conversations as tokens, and which of them the loss counts.

The text is ToolBench's (``toolbench_formats`` 4.2): ``Role: value`` lines, the last ended by the
end-of-text token. The target is the last assistant turn alone, from the blank after its colon to
the end-of-text token: what the reference leaves of a text after its mask and the correction by
two tokens (10.3). A conversation of more tokens than the context is left out whole; the reference
cuts it on the right and then ignores it, which comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsrv_lab.extras import load
from toolsrv_lab.finetune.conversations import Conversation
from toolsrv_registry.errors import DataError

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
