"""How likely alternative continuations of one prompt are, all of them looked at together.

Options are paths of a tree whose root is the prompt. A token that several of them begin with is
evaluated once, and all branches are decoded in the same batches. Knows no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolsrv_runtime.engine.cache import common_prefix
from toolsrv_runtime.engine.context import Part
from toolsrv_runtime.engine.drawing import log_softmax
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.engine.seats import Seat
from toolsrv_runtime.engine.work import Work
from toolsrv_runtime.errors import ModelError

Path = tuple[int, ...]
"""Tokens behind a prompt."""


class Scoring:
    """Scores the continuations of one prompt; used once. ``evaluated`` counts tokens."""

    def __init__(self, scheduler: Scheduler, options: Sequence[Path]) -> None:
        self._scheduler = scheduler
        self._options = options
        self._values = [0.0] * len(options)
        self._seen: set[Path] = set()
        self.evaluated = 0

    def values(self, tokens: Sequence[int], *, head: int = 0) -> list[float]:
        """Return log P(option | ``tokens``) of each option; ``head`` of them repeat in other prompts.

        Raises:
            ModelError: llama.cpp failed.
        """
        paths = branches(self._options)
        room = 1 + sum(1 for _ in nodes(paths, range(len(paths))))
        with self._scheduler.seat(tokens, reserve=room, stop=None, head=head) as seat:
            if seat is None:
                raise ModelError("llama.cpp stopped in the middle of a score")
            self._take([()], self._scheduler.evaluate(seat, tokens[seat.keep :], None))
            while paths:
                paths = paths[self._look_at(seat, paths) :]
        return self._values

    def _look_at(self, seat: Seat, paths: Sequence[Path]) -> int:
        """Evaluate as many paths as sequences are free; return their number."""
        with self._scheduler.fork(seat, len(paths)) as lent:
            taken = paths[: len(lent)]
            tree = list(nodes(taken, lent))
            if self._scheduler.context.whole:  # no cell is held by two sequences
                tree = [
                    (path[:end], [sequence])
                    for path, sequence in zip(taken, lent, strict=True)
                    for end in range(1, len(path) + 1)
                ]
            parts = [
                Part(sequences, head[-1:], seat.keep + len(head) - 1, logits=True)
                for head, sequences in tree
            ]
            self._take([head for head, _ in tree], self._scheduler.evaluate_branches(parts))
            return len(lent)

    def _take(self, heads: Sequence[Path], work: Work) -> None:
        """Add what the rows behind ``heads`` say about the options' next tokens."""
        self.evaluated += work.evaluated
        for head, row in zip(heads, work.rows, strict=True):
            if head in self._seen:  # where paths took turns, what they begin with came again
                continue
            self._seen.add(head)
            likely = log_softmax(row)
            for index, option in enumerate(self._options):
                if len(option) > len(head) and option[: len(head)] == head:
                    self._values[index] += float(likely[option[len(head)]])


def branches(options: Sequence[Path]) -> list[Path]:
    """Return the paths behind which some option ends, sorted, without those that others begin with.

    An option's last token is not evaluated: nothing is asked behind it.
    """
    ends = sorted({option[:-1] for option in options})
    following = [*ends[1:], ()]
    return [
        path
        for path, after in zip(ends, following, strict=True)
        if path and after[: len(path)] != path
    ]


def nodes(paths: Sequence[Path], sequences: Sequence[int]) -> Iterator[tuple[Path, list[int]]]:
    """Yield the tree of sorted paths, a parent before its children, one token at a time.

    Each node is the path to it and the sequences that hold it: path i is in ``sequences[i]``.
    """
    last: Path = ()
    for at, path in enumerate(paths):
        for end in range(common_prefix(last, path) + 1, len(path) + 1):
            head = path[:end]
            sharing = zip(sequences[at:], paths[at:], strict=True)
            yield head, [sequence for sequence, other in sharing if other[:end] == head]
        last = path
