"""A run that a task goes on from: what it was asked, what it answered, and what its calls returned.

Plain data, read from a run that is kept; nothing here knows where.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

KNOWN_LIMIT = 40_000
"""Characters of one response that count as known."""


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call that succeeded. ``function`` is the name that its model used, ``response`` its body."""

    api_id: str
    function: str
    arguments: dict[str, Any]
    response: Any


@dataclass(frozen=True, slots=True)
class Earlier:
    """One run.

    ``answer`` may be partial or empty, ``calls`` are in the order in which they were made, ``run_id``
    is the name of whoever keeps it.
    """

    task: str
    answer: str
    calls: tuple[EarlierCall, ...] = ()
    run_id: str = ""

    @property
    def known(self) -> str:
        """All that it says, as text: an answer may rest on it."""
        said = [self.task, self.answer]
        for call in self.calls:
            response = call.response
            text = (
                response
                if isinstance(response, str)
                else json.dumps(response, ensure_ascii=False, default=str)
            )
            said.append(text[:KNOWN_LIMIT])
        return "\n".join(filter(None, said))
