"""The vocabulary: byte-level BPE in which words, digits and blanks never merge with one another.

So a name or number reads as the same tokens wherever it stands, and to copy it is to repeat them.
The format's markers are tokens of their own, at most 32 bytes each (llama-cpp-python cuts longer
ones), wherever they stand, as llama.cpp reads user-defined tokens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_lab.nano.episodes import Segment
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.planner import layout

VOCABULARY = "vocabulary.json"
"""The file's name beside rows and in a finished run."""

UNKNOWN, BEGIN, END = 0, 1, 2
SPECIAL = ("<unk>", "<s>", "</s>")
NUMBERS = tuple(range(1, layout.MAX_FUNCTIONS + 1))
MARKERS = (
    layout.SYSTEM, layout.USER, layout.THOUGHT, layout.ACTION, layout.INPUT, layout.OBSERVATION,
    layout.NOTHING, layout.DONE, " failed. ", " failed, no other function.", " give up", "Finish",
    '{"return_type": "give_answer"', ', "final_answer": "', '{"return_type": "give_up',
    '_and_restart"}', ', "', '": "', "_for_",
    *(f"{layout.USE}{number}" for number in NUMBERS), *(f"#{number}" for number in NUMBERS),
)  # fmt: skip
# Two letters' case never meet in a token of a name; GGUF's "smollm" splits in the same way.
_SPLIT = r"[A-Za-z]+|\p{N}|\s|[^A-Za-z\p{N}\s]"
_LONGEST_MARKER = 32


class Vocabulary:
    """Text to token ids, a segment at a time, as the engine reads the pieces of a prompt."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, segment: Segment) -> list[int]:
        """Return the ids of one segment. Half a surrogate pair, which no UTF-8 has, is U+FFFD."""
        text = segment.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; bytes that are no whole character are U+FFFD."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def place(self, segment: Segment) -> list[tuple[int, int]]:
        """Return where each token of ``encode`` begins and ends in the text, in characters."""
        return list(self._tokenizer.encode(segment.text, add_special_tokens=False).offsets)

    def id_of(self, marker: str) -> int:
        """Return the id of a marker."""
        return int(self._tokenizer.token_to_id(marker))

    def tokens(self) -> list[str]:
        """Return the tokens in the order of their ids."""
        known = self._tokenizer.get_vocab()
        return sorted(known, key=lambda token: int(known[token]))

    def merges(self) -> list[str]:
        """Return the merges as GGUF writes them."""
        found = json.loads(self._tokenizer.to_str())["model"]["merges"]
        return [one if isinstance(one, str) else " ".join(one) for one in found]

    def save(self, path: Path) -> None:
        """Write the vocabulary: whole or not at all."""
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(self._tokenizer.to_str())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def read_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary in a file. Raises NotFoundError, DataError."""
    if not path.is_file():
        raise NotFoundError(
            f"there is no vocabulary {path}",
            hint=f"make one and rows with it: toolsrv lab episodes --out {path.parent}",
        )
    try:
        return Vocabulary(load("tokenizers").Tokenizer.from_str(path.read_text("utf-8")))
    except Exception as error:  # tokenizers raises plain Exceptions
        raise DataError(
            f"cannot read the vocabulary {path}: {error}",
            hint="delete it, and the rows made with it, to make them again",
        ) from error


def make_vocabulary(texts: Iterable[Sequence[Segment]], size: int) -> Vocabulary:
    """Return a vocabulary of ``size`` tokens, learnt from segments."""
    library = load("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE(byte_fallback=False))
    byte_level = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = library.pre_tokenizers.Split(library.Regex(_SPLIT), "isolated")
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size - len(MARKERS),
        special_tokens=list(SPECIAL),
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain = ("".join(one.text for one in segments if not one.markers) for segments in texts)
    tokenizer.train_from_iterator(plain, trainer)
    tokenizer.add_tokens(
        [library.AddedToken(one, normalized=False, special=False) for one in MARKERS]
    )
    return Vocabulary(tokenizer)
