"""Scripted engine and script files: replies from a list, for demos and tests without a model.

The engine ignores the grammar and counts whitespace-separated words as tokens. A script file is
``{"replies": [...], "seconds": 0.3, "loop": false}`` as JSON or TOML. A reply is a table with
``thought``, ``function`` and ``arguments``, or the text of a reply. ``seconds`` is the duration of
each reply; with ``loop`` the last is repeated for ever.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.contract.models import (
    Completion,
    OptionScores,
    Prompt,
    Sampling,
    SpecialTokens,
)
from toolsrv_runtime.errors import GrammarError, ModelError
from toolsrv_runtime.files import read_file
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
    ) -> Completion:
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
                return Completion("", (), "stopped", words, words, 0)
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
        return Completion(text, tuple(range(len(text.split()))), "grammar", words, words, 0)

    def score(self, prompt: Prompt, options: Sequence[str]) -> OptionScores:
        """Find all options equally likely."""
        return OptionScores(tuple(0.0 for _ in options), self.count(prompt), 0)

    def close(self) -> None:
        """Do nothing."""


MOST_SCRIPT_BYTES = 16 << 20


class ScriptedCall(BaseModel):
    """One reply as a call; ``Finish`` ends a task as it does for every model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    function: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)
    thought: str = "as the script says"


class Script(BaseModel):
    """A whole script file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    replies: tuple[ScriptedCall | str, ...] = Field(min_length=1)
    seconds: float = Field(default=0.0, ge=0, le=3600, allow_inf_nan=False)
    loop: bool = False


def read_script(path: Path) -> Script:
    """Return the script that a file holds.

    Raises:
        NotFoundError: there is no such file.
        DataError: it is no script; says where.
    """
    hint = 'write {"replies": [{"function": "Finish", "arguments": {…}}]}, as JSON or TOML'
    try:
        text = read_file(path, MOST_SCRIPT_BYTES).decode()
        value = tomllib.loads(text) if path.suffix == ".toml" else wellformed.loads(text)
    except FileNotFoundError:
        raise NotFoundError(f"there is no script {str(path)!r}", hint=hint) from None
    except OSError as error:
        raise DataError(
            f"the script {str(path)!r} cannot be read: {error.strerror}", hint=hint
        ) from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError too
        raise DataError(f"the script {str(path)!r} cannot be read: {error}", hint=hint) from None
    try:
        return Script.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise DataError(f"{path}: {place}: {first['msg'][:200]}", hint=hint) from None
