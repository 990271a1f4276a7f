"""Tokenizer of a loaded model, and a cache of compiled grammars over it.

Text to tokens and back as llama.cpp does it. Compiling a grammar takes about as long as one token
of a small model, so the latest are kept. Thread-safe. Knows no context and no logits.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from typing import Any

import llama_cpp
import llguidance
from llguidance import LLTokenizer

from toolsrv_runtime.contract.models import Prompt, SpecialTokens
from toolsrv_runtime.errors import GrammarError

_KEPT_TEXTS = 4096
_KEPT_LENGTH = 4096
_LEAD = b"\n"
"""A text that no SentencePiece vocabulary joins with what follows it."""

_LONGEST_PIECE = 1 << 14
_MARK = b"\xff"
"""Begins a token that llguidance never takes for the text that it shows."""


class Vocabulary:
    """The vocabulary of a loaded model, ``size`` tokens; ``grammar`` is llguidance's view of it.

    ``ends`` are the tokens that end a reply, all that llama.cpp knows (several in most chat
    models), and ``special`` the tokens that are more than their text. ``bos``: whether prompts
    begin with the token for that; None does what the file says.
    """

    def __init__(self, model: Any, *, bos: bool | None = None) -> None:
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        self.size: int = llama_cpp.llama_vocab_n_tokens(self._vocab)
        pieces, self.special = _read(self._vocab, self.size)
        self.ends = frozenset(
            token for token in range(self.size) if llama_cpp.llama_vocab_is_eog(self._vocab, token)
        )
        self.grammar: LLTokenizer = _grammar_tokens(self._vocab, pieces, self.ends)
        self._bos_token: int = llama_cpp.llama_vocab_bos(self._vocab)
        wanted = bool(llama_cpp.llama_vocab_get_add_bos(self._vocab)) if bos is None else bos
        self._bos = wanted and self._bos_token >= 0
        self._texts: dict[tuple[str, bool, bool], tuple[int, ...]] = {}
        # SentencePiece puts a blank before every text it is given, so before every piece.
        blanks = llama_cpp.llama_vocab_type(self._vocab) == llama_cpp.LLAMA_VOCAB_TYPE_SPM
        self._lead = self._tokenize(_LEAD, special=False) if blanks else ()

    def prompt(self, prompt: Prompt) -> list[int]:
        """Return a prompt's tokens, with the model's token for the beginning if it wants one.

        Pieces are cut apart but read as one text: only after a control token does one begin.
        """
        tokens = [self._bos_token] if self._bos else []
        for piece in prompt:
            if piece.tokens is not None:
                tokens += piece.tokens
            else:
                inside = bool(tokens) and not self._controls(tokens[-1])
                found = self.text(piece.text, special=piece.special, inside=inside)
                # Most chat templates spell the token for the beginning themselves.
                twice = piece.special and tokens == [self._bos_token] == list(found[:1])
                tokens += found[1:] if twice else found
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
        """Return the text of tokens, control tokens shown; it may end within a character."""
        data: bytes = self.grammar.decode_bytes(tokens)
        return data

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


def _read(vocab: Any, size: int) -> tuple[list[bytes], SpecialTokens]:
    """Return the bytes of each token, those of control tokens marked, and the special tokens."""
    buffer = ctypes.create_string_buffer(_LONGEST_PIECE)
    pieces: list[bytes] = []
    texts: dict[int, str] = {}
    control: dict[str, int] = {}
    user_defined: dict[str, int] = {}
    for token in range(size):
        length = llama_cpp.llama_token_to_piece(vocab, token, buffer, _LONGEST_PIECE, 0, True)
        piece = ctypes.string_at(buffer, max(0, length))
        attributes = llama_cpp.llama_vocab_get_attr(vocab, token)
        if attributes & llama_cpp.LLAMA_TOKEN_ATTR_CONTROL:
            texts[token] = piece.decode(errors="replace")
            control.setdefault(texts[token], token)
            piece = _MARK + piece
        elif attributes & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED:
            # Not marked, though llguidance's own reader does so where it looks like a tag: the
            # tokenizer makes this token of the text, so a grammar's text has to match it.
            texts[token] = piece.decode(errors="replace")
            user_defined.setdefault(texts[token], token)
        pieces.append(piece)
    bos, eos = llama_cpp.llama_vocab_bos(vocab), llama_cpp.llama_vocab_eos(vocab)
    names = [texts.get(one) or _shown(pieces, one) for one in (bos, eos)]
    return pieces, SpecialTokens(names[0], names[1], control, user_defined)


def _shown(pieces: list[bytes], token: int) -> str:
    return pieces[token].decode(errors="replace") if 0 <= token < len(pieces) else ""


def _grammar_tokens(vocab: Any, pieces: list[bytes], ends: frozenset[int]) -> LLTokenizer:
    """Return llguidance's tokenizer, which cuts texts as llama.cpp does. Takes about a second."""
    first = llama_cpp.llama_vocab_eos(vocab)
    eos = [first, *sorted(ends - {first})] if first >= 0 else sorted(ends)
    cut = ctypes.cast(llama_cpp.llama_cpp._lib.llama_tokenize, ctypes.c_void_p).value  # noqa: SLF001 - its address
    tokenizer: LLTokenizer = LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]
        tokens=pieces,
        vocab_ptr=vocab,
        tokenize_fptr=cut,
        eos_token=eos or [0],
        slices=None,
    )
    return tokenizer


KEPT_GRAMMARS = 16
"""Grammars that are kept: the ones used last."""


class GrammarCache:
    """Matchers for grammars in llguidance's Lark dialect, over one tokenizer."""

    def __init__(self, tokenizer: llguidance.LLTokenizer) -> None:
        self._tokenizer = tokenizer
        self._turn = threading.Lock()
        self._compiled: OrderedDict[str, llguidance.LLMatcher] = OrderedDict()

    def matcher(self, grammar: str) -> llguidance.LLMatcher:
        """Return a matcher at the beginning of ``grammar``, the caller's own.

        Raises:
            GrammarError: it does not compile.
        """
        with self._turn:
            if grammar in self._compiled:
                self._compiled.move_to_end(grammar)
                return self._compiled[grammar].deep_copy()
        compiled = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
        if compiled.is_error():
            raise GrammarError(f"the grammar does not compile: {compiled.get_error()}")
        with self._turn:
            self._compiled[grammar] = compiled
            while len(self._compiled) > KEPT_GRAMMARS:
                self._compiled.popitem(last=False)
            return compiled.deep_copy()
