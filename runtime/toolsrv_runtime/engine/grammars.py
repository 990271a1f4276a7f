"""Grammars that were compiled, for the next reply in the same one.

A search asks for many replies in one grammar, and compiling it takes about as long as writing a
token with a small model. Safe for threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import llguidance

from toolsrv_runtime.errors import GrammarError

KEPT = 16
"""Grammars that are kept: the ones used last."""


class Grammars:
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
            while len(self._compiled) > KEPT:
                self._compiled.popitem(last=False)
            return compiled.deep_copy()
