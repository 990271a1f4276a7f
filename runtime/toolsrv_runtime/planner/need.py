"""A need of a task: words of it, and the function that serves them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolsrv_registry.functions import Function


@dataclass(frozen=True, slots=True)
class Need:
    """Words of the task, where they begin, the function that serves them, and its log-odds.

    ``late``: only answers made it known, and for sure; no other function comes into question.
    """

    words: str
    begin: int
    function: Function
    serves: float = field(compare=False)
    late: bool = field(default=False, compare=False)

    @property
    def end(self) -> int:
        """Where the words end."""
        return self.begin + len(self.words)
