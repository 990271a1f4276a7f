"""A model's vocabulary: text to tokens and back, as llama.cpp itself does it.

Safe to use from several threads. Knows no context and no logits.
"""

from __future__ import annotations

import warnings
from typing import Any

import llama_cpp
from llguidance import LLTokenizer
from llguidance.llamacpp import lltokenizer_from_vocab

from toolsrv_runtime.engine.base import Prompt

_KEPT_TEXTS = 4096
_KEPT_LENGTH = 4096
_LEAD = b"\n"
"""A text that no SentencePiece vocabulary joins with what follows it."""


class Vocabulary:
    """The vocabulary of a loaded model, ``size`` tokens; ``grammar`` is llguidance's view of it.

    ``bos``: whether prompts begin with the token for that; None does what the file says.
    """

    def __init__(self, model: Any, *, bos: bool | None = None) -> None:
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        self.size: int = llama_cpp.llama_vocab_n_tokens(self._vocab)
        with warnings.catch_warnings():
            # llguidance still asks for token attributes by llama.cpp's older name.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.grammar: LLTokenizer = lltokenizer_from_vocab(self._vocab)
        self._bos = bool(llama_cpp.llama_vocab_get_add_bos(self._vocab)) if bos is None else bos
        self._texts: dict[tuple[str, bool, bool], tuple[int, ...]] = {}
        # SentencePiece puts a blank before every text it is given, so before every piece.
        blanks = llama_cpp.llama_vocab_type(self._vocab) == llama_cpp.LLAMA_VOCAB_TYPE_SPM
        self._lead = self._tokenize(_LEAD, special=False) if blanks else ()

    def prompt(self, prompt: Prompt) -> list[int]:
        """Return a prompt's tokens, with the model's token for the beginning if it wants one.

        Pieces are cut apart but read as one text: only after a control token does one begin.
        """
        tokens = [llama_cpp.llama_vocab_bos(self._vocab)] if self._bos else []
        for piece in prompt:
            if piece.tokens is not None:
                tokens += piece.tokens
            else:
                inside = bool(tokens) and not self._controls(tokens[-1])
                tokens += self.text(piece.text, special=piece.special, inside=inside)
        return tokens

    def text(self, text: str, *, special: bool, inside: bool = False) -> tuple[int, ...]:
        """Return a text's tokens; with ``special`` it may spell control tokens.

        ``inside``: it goes on with a text, so no blank belongs before it.
        """
        key = (text, special, inside)
        known = self._texts.get(key)
        if known is None:
            if len(self._texts) > _KEPT_TEXTS:
                self._texts.clear()
            data = text.encode("utf-8", errors="replace")
            known = self._inside(data, special) if inside else self._tokenize(data, special=special)
            if len(text) <= _KEPT_LENGTH:
                self._texts[key] = known
        return known

    def spelled(self, tokens: list[int]) -> bytes:
        """Return the text of tokens, which may end within a character."""
        data: bytes = self.grammar.decode_bytes(tokens)
        return data

    def ends(self, token: int) -> bool:
        """Whether a token ends a reply."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))

    def _controls(self, token: int) -> bool:
        return bool(llama_cpp.llama_vocab_is_control(self._vocab, token))

    def _inside(self, data: bytes, special: bool) -> tuple[int, ...]:
        """Return the tokens of a text that goes on with another."""
        found = self._tokenize(_LEAD + data, special=special) if self._lead else ()
        at = len(self._lead)
        return (
            found[at:] if at and found[:at] == self._lead else self._tokenize(data, special=special)
        )

    def _tokenize(self, data: bytes, *, special: bool) -> tuple[int, ...]:
        size = len(data) + 8
        while True:
            buffer = (llama_cpp.llama_token * size)()
            count = llama_cpp.llama_tokenize(
                self._vocab, data, len(data), buffer, size, False, special
            )
            if count >= 0:
                return tuple(buffer[:count])
            size = -count
