"""Tokenizers in a ``tokenizer.json``: byte-level BPE, as LLaMA 3 has it.

How texts are cut into words before merging has a name in llama.cpp for each rule it knows; a rule
without one is refused, since token ids would differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolsrv_runtime.convert.architecture import read_json
from toolsrv_runtime.convert.errors import TokenizerError
from toolsrv_runtime.convert.spm import read_byte_fallback
from toolsrv_runtime.convert.vocabulary import (
    HINT,
    NORMAL,
    Vocabulary,
    empty,
    put,
    put_added,
)

LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How LLaMA 3 cuts a text into words."""

_QWEN2 = LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")
_OTHER_HINT = "llama.cpp would cut texts in another way; only known rules are converted"


def read_tokenizer_json(folder: Path, size: int) -> Vocabulary:
    """Return the vocabulary in ``tokenizer.json``, for a model of ``size`` embeddings.

    Raises:
        TokenizerError: The file is damaged, or llama.cpp would cut texts in another way.
    """
    said = read_json(folder / "tokenizer.json", hint=HINT)
    model = said.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        kind = model.get("type") if isinstance(model, dict) else None
        raise TokenizerError(f"tokenizer.json is no BPE but {kind!r}", hint=_OTHER_HINT)
    _check(model)
    if model.get("byte_fallback"):
        return read_byte_fallback(folder, said, size)
    pre = pre_tokenizer(said.get("pre_tokenizer"), ignore_merges=bool(model.get("ignore_merges")))
    vocabulary = empty(size, model="gpt2", pre=pre)
    for text, at in model["vocab"].items():
        put(vocabulary, at, text, NORMAL)
    put_added(vocabulary, folder)
    match said.get("normalizer"):
        case None:
            pass
        case {"type": "NFC"}:
            vocabulary.notes.append(
                "the tokenizer composes characters (NFC), llama.cpp does not: ids differ for "
                "texts with decomposed accents"
            )
        case other:
            raise TokenizerError(f"tokenizer.json normalises texts: {other!r}", hint=_OTHER_HINT)
    return vocabulary


def _check(model: Mapping[str, Any]) -> None:
    vocab, merges = model.get("vocab"), model.get("merges")
    pairs = merges if isinstance(merges, list) else [None]
    whole = all(
        (isinstance(one, str) and one.count(" ") == 1)
        or (isinstance(one, list) and len(one) == 2 and all(isinstance(x, str) for x in one))
        for one in pairs
    )
    if not isinstance(vocab, dict) or not vocab or not whole:
        raise TokenizerError("tokenizer.json has no vocabulary or damaged merges", hint=HINT)
    for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise TokenizerError(f"tokenizer.json has a {key}", hint=_OTHER_HINT)


def pre_tokenizer(said: Any, *, ignore_merges: bool) -> str:
    """Return llama.cpp's name of a ``pre_tokenizer``.

    Raises:
        TokenizerError: It has none.
    """
    parts = said.get("pretokenizers", [said]) if isinstance(said, dict) else []
    match parts:
        case [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}]:
            return "gpt-2"
        case [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        ]:
            return "smollm"
        case [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated"},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]:
            if regex == LLAMA3_SPLIT:
                # The same rule; only the first takes a word that is a token before it merges.
                return "llama-bpe" if ignore_merges else "dbrx"
            if regex == _QWEN2:
                return "qwen2"
    raise TokenizerError("tokenizer.json cuts texts by an unknown rule", hint=_OTHER_HINT)
