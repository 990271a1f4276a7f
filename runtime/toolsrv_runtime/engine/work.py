"""What a call wants evaluated, how far that is, and what was done for all. Knows no threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field

from toolsrv_runtime.engine.context import Part
from toolsrv_runtime.engine.drawing import Logits
from toolsrv_runtime.stop import Stop


@dataclass(slots=True)
class Work:
    """Parts to be evaluated in this order; ``rows`` are the logits that they ask for, in order.

    ``back`` tokens of the resident sequence are to be forgotten first.

    ``evaluated`` counts the tokens that are done; ``over`` also when Stop ended it or it
    ``failed``. ``sequence`` is the resident one that grows by it, None where none does.
    """

    parts: Sequence[Part]
    stop: Stop | None
    sequence: int | None
    back: int = 0
    evaluated: int = 0
    rows: list[Logits] = field(default_factory=list)
    over: bool = False
    failed: str = ""

    @property
    def left(self) -> int:
        """How many tokens are not evaluated yet."""
        return sum(len(part.tokens) for part in self.parts) - self.evaluated

    @property
    def row(self) -> Logits | None:
        """The logits behind the last token, None until it is evaluated."""
        return self.rows[-1] if self.rows else None

    def next(self, count: int) -> list[Part]:
        """Return the next ``count`` tokens as parts."""
        return list(_cut(self.parts, self.evaluated, self.evaluated + count))


@dataclass(slots=True)
class Counts:
    """What was done so far.

    ``steps`` are calls of ``llama_decode``, ``shared_steps`` those for several calls at once,
    ``tokens`` were evaluated, of which ``missed`` on a guess that was wrong; ``seconds`` were spent
    inside llama.cpp.
    """

    steps: int = 0
    shared_steps: int = 0
    tokens: int = 0
    missed: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, some: Iterable[Counts]) -> Counts:
        """Return the sum of some counts."""
        rows = [astuple(one) for one in some]
        return cls(*(sum(column) for column in zip(*rows, strict=True)))


def _cut(parts: Sequence[Part], begin: int, end: int) -> Iterator[Part]:
    """Yield what lies from token ``begin`` to ``end`` of parts that are counted through."""
    for part in parts:
        size = len(part.tokens)
        first, last = max(begin, 0), min(end, size)
        if first < last:
            tokens, position = part.tokens[first:last], part.position + first
            yield Part(part.sequences, tokens, position, logits=part.logits and last == size)
        begin, end = begin - size, end - size
