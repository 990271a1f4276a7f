"""The AskValue port: a question to a person for one argument that nobody has given.

A question is data: its texts come from a catalog and are cleaned and capped where it is made. Who
asks the person (a terminal, an MCP client) is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import BaseModel, ConfigDict


class Question(BaseModel):
    """One argument that a call requires and that neither the task nor a result holds.

    ``text`` is the question in one sentence; ``function`` and ``parameter`` are the names that the
    model uses, ``description`` the parameter's own. ``json_schema`` is what the value must fulfil.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    api_id: str
    function: str
    parameter: str
    description: str = ""
    json_schema: dict[str, Any] = {}


class Given(BaseModel):
    """A value that a person gave in answer to a question."""

    model_config = ConfigDict(frozen=True)

    question: Question
    value: Any

    @property
    def spelled(self) -> str:
        """The value as text."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False)


AskValue = Callable[[Question], Coroutine[Any, Any, Any]]
"""Ask a person for a value: what they gave, text where it was typed, or None where nobody did.

Cancelled when nobody waits for the answer any more.
"""
