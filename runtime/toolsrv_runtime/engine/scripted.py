"""A public fake engine: replies from a list, as slowly as a test wants.

For tests of everything above the engine. It ignores the grammar and counts whitespace-separated
words as tokens; the last reply is repeated for ever when ``loop`` is set.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from toolsrv_runtime.engine.base import Prompt, Reply, Sampling, Scores, SpecialTokens
from toolsrv_runtime.errors import GrammarError, ModelError
from toolsrv_runtime.stop import Stop


class ScriptedEngine:
    """Says ``replies`` in order; ``seconds`` is how long each reply takes, ended early by Stop."""

    name = "scripted"
    context = 8192
    special_tokens = SpecialTokens()

    def __init__(self, replies: Sequence[str], *, seconds: float = 0.0, loop: bool = False) -> None:
        self._replies = list(replies)
        self._seconds = seconds
        self._loop = loop
        self._next = 0
        self.prompts: list[str] = []

    def count(self, prompt: Prompt) -> int:
        """Return the number of words."""
        return sum(len(piece.text.split()) for piece in prompt)

    def generate(
        self,
        prompt: Prompt,
        *,
        grammar: str,  # noqa: ARG002 - part of the port
        max_tokens: int,  # noqa: ARG002
        sampling: Sampling = Sampling(),  # noqa: ARG002, B008 - frozen
        stop: Stop | None = None,
        excluded: Sequence[str] = (),
    ) -> Reply:
        """Return the next reply that is not ``excluded``; those that are are passed over.

        Raises:
            ModelError: the script is over.
            GrammarError: only excluded replies are left.
        """
        self.prompts.append("".join(piece.text for piece in prompt))
        words = self.count(prompt)
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            if stop is not None and stop.is_set():
                return Reply("", (), "stopped", words, words, 0)
            time.sleep(0.005)
        if self._next >= len(self._replies):
            raise ModelError("the script is over", hint="give the scripted engine more replies")
        while self._replies[self._next] in excluded:
            if self._next + 1 == len(self._replies):
                raise GrammarError(
                    "the script's last reply is excluded",
                    hint="give the scripted engine more replies",
                )
            self._next += 1
        text = self._replies[self._next]
        if not (self._loop and self._next == len(self._replies) - 1):
            self._next += 1
        return Reply(text, tuple(range(len(text.split()))), "grammar", words, words, 0)

    def score(self, prompt: Prompt, options: Sequence[str]) -> Scores:
        """Find all options equally likely."""
        return Scores(tuple(0.0 for _ in options), self.count(prompt), 0)

    def close(self) -> None:
        """Do nothing."""
