"""Generate one reply inside a grammar, and score alternative continuations of a prompt.

Forced tokens are the model's own tokenization of the forced text: llguidance holds back what the
next token could still merge with. They are evaluated in one batch behind the last sampled token,
together with draft tokens. Scored options are paths of a tree whose root is the prompt: a token
that several options begin with is evaluated once, and all branches share batches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Literal

import llguidance
import numpy as np

from toolsrv_runtime.contract.models import Completion, Sampling
from toolsrv_runtime.engine.context import BatchPart, DecodeWork
from toolsrv_runtime.engine.prefix_cache import common_prefix
from toolsrv_runtime.engine.sampling import (
    Logits,
    PromptLookup,
    TokenChoice,
    log_softmax,
    sample_token,
    token_choice,
)
from toolsrv_runtime.engine.scheduler import Scheduler, Slot
from toolsrv_runtime.engine.vocabulary import Vocabulary
from toolsrv_runtime.errors import GrammarError, ModelError
from toolsrv_runtime.stop import Stop

_FinishReason = Literal["grammar", "length", "stopped"]


class ReplyWriter:
    """Writes one reply inside a grammar; used once. ``written`` are its tokens so far.

    ``choices`` are the tokens that were drawn, where they are to be noted: None by default.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        vocabulary: Vocabulary,
        matcher: llguidance.LLMatcher,
        sampling: Sampling,
        stop: Stop | None,
        stop_texts: Sequence[bytes] = (),
    ) -> None:
        self._scheduler = scheduler
        self._vocabulary = vocabulary
        self._matcher = matcher
        self._sampling = sampling
        self._stop = stop
        self._stop_texts = stop_texts
        self._rng = np.random.default_rng(sampling.seed)
        self.written: list[int] = []
        self.choices: list[TokenChoice] | None = None
        self._over = False
        self._pending: list[int] = []
        self._ahead: list[tuple[int, Logits]] = []
        self._guessing: PromptLookup | None = None
        self._seat: Slot | None = None
        self._head = 0
        self._evaluated = 0
        self._forced = 0

    def begin(self, tokens: Sequence[int]) -> None:
        """Let the reply begin with ``tokens``, before ``reply``; an end only as the last of them.

        Raises:
            GrammarError: the grammar does not allow them.
        """
        for token in tokens:
            if token in self._vocabulary.ends:
                self._over = True
                return
            if not self._matcher.consume_token(token):
                raise GrammarError(f"the grammar broke off: {self._matcher.get_error()}")
            self.written.append(token)
        self._pending = list(self.written)

    def reply(self, tokens: list[int], room: int, *, head: int = 0) -> Completion:
        """Return the continuation of ``tokens`` by at most ``room`` more.

        ``head``: how many of the first tokens other prompts share; 0 where that is unknown.

        Raises:
            GrammarError: no text fulfils the grammar, or it refused a token that it had allowed.
            ModelError: llama.cpp failed.
        """
        self._head = head
        with contextlib.ExitStack() as stack:
            finish = self._write(tokens, room, stack)
        if self._cut_at_stop_text():
            finish = "grammar"
        return Completion(
            self._vocabulary.spelled(self.written).decode("utf-8", errors="replace"),
            tuple(self.written),
            finish,
            len(tokens),
            self._evaluated,
            self._forced,
        )

    def _write(self, tokens: list[int], room: int, stack: contextlib.ExitStack) -> _FinishReason:
        if self._over:
            return "grammar"
        while len(self.written) < room:
            if self._stop is not None and self._stop.is_set():
                return "stopped"
            if self._force(room):
                return "grammar"
            if self._matcher.is_stopped():
                self._check()
                return "grammar"
            if len(self.written) >= room:
                return "length"
            row = self._evaluate(tokens, room, stack)
            if row is None:
                return "stopped"
            token = self.draw(row)
            if token in self._vocabulary.ends:
                return "grammar"
            if not self._matcher.consume_token(token):
                raise GrammarError(f"the grammar broke off: {self._matcher.get_error()}")
            self.written.append(token)
            self._pending = [token]
            if self._stop_text_at() is not None:
                return "grammar"
        return "length"

    def _force(self, room: int) -> bool:
        """Take over what the grammar leaves no choice about; return whether that ends the reply."""
        ahead = self._matcher.compute_ff_tokens()[: room - len(self.written)]
        if not ahead or not self._matcher.consume_tokens(ahead):
            return False
        # A grammar may name a token that ends replies; it is as little part of one as when drawn.
        end = next((at for at, token in enumerate(ahead) if token in self._vocabulary.ends), None)
        taken = ahead[:end]
        self.written += taken
        self._pending += taken
        self._forced += len(taken)
        return end is not None

    def _evaluate(self, tokens: list[int], room: int, stack: contextlib.ExitStack) -> Logits | None:
        """Return the logits behind all that is written, None when Stop came first."""
        pending = self._pending
        if self._seat is None:
            whole = [*tokens, *pending]
            lent = self._scheduler.seat(whole, reserve=room, stop=self._stop, head=self._head)
            self._seat = stack.enter_context(lent)
            if self._seat is None:
                return None
            self._guessing = PromptLookup(tokens)
            pending = whole[self._seat.keep :]
        elif self._ahead:
            pending, behind = self._take(pending)
            if behind is not None:
                return behind
        guesses = self._guess(room)
        work = self._scheduler.evaluate(self._seat, pending, self._stop, guesses)
        self._evaluated += work.evaluated
        self._ahead = list(zip(guesses, work.rows[1:], strict=False))
        self._seat.missed += len(self._ahead)
        return work.rows[0] if work.rows else None

    def _take(self, pending: list[int]) -> tuple[list[int], Logits | None]:
        """Compare the sampled tokens with the draft: return those not evaluated, or the next row.

        What was guessed wrongly is forgotten before the next decode.
        """
        guessed = [token for token, _ in self._ahead]
        right = common_prefix(guessed, pending)
        row = self._ahead[right - 1][1] if right else None
        if self._seat is not None:
            self._seat.missed -= right
            if right < len(pending):
                self._seat.rollback = len(guessed) - right
        self._ahead = self._ahead[right:] if right == len(pending) else []
        return pending[right:], row if right == len(pending) else None

    def _guess(self, room: int) -> list[int]:
        """Return tokens that may come next, to be evaluated already; or none."""
        most = room - len(self.written) - 1
        if self._guessing is None or most <= 0 or self._scheduler.context.whole:
            return []  # what was guessed wrongly could not be forgotten
        return self._guessing.next(self.written, self._matcher.validate_tokens)[:most]

    def draw(self, row: Logits) -> int:
        """Return the next token for a row of logits: one that the grammar allows."""
        bias = np.frombuffer(self._matcher.compute_logit_bias(), dtype=np.uint8)
        self._check()  # with nothing left to write the end would be allowed
        allowed = bias[: self._vocabulary.size] != 0
        token = sample_token(row, allowed, self._sampling, self._rng)
        if self.choices is not None:
            self.choices.append(token_choice(row, allowed, token, len(self.written)))
        return token

    def _check(self) -> None:
        """Raise GrammarError where the grammar is not fulfilled and nothing fulfils it."""
        if self._matcher.is_error():
            said = self._matcher.get_error().splitlines()[0]
            raise GrammarError(
                f"no text fulfils the grammar behind {self._vocabulary.spelled(self.written)!r} "
                f"({said})",
                hint="allow one more thing there",
            )

    def _stop_text_at(self) -> int | None:
        """Return where in the reply's bytes a stop text begins, None without one."""
        if not self._stop_texts:
            return None
        said = self._vocabulary.spelled(self.written)
        return min((at for one in self._stop_texts if (at := said.find(one)) >= 0), default=None)

    def _cut_at_stop_text(self) -> bool:
        """Drop the tokens from the first stop text on; False when there is none."""
        end = self._stop_text_at()
        if end is None:
            return False
        while self.written and len(self._vocabulary.spelled(self.written)) > end:
            self.written.pop()
        return True


TokenPath = tuple[int, ...]
"""Tokens behind a prompt."""


class OptionScorer:
    """Scores the continuations of one prompt; used once. ``evaluated`` counts tokens."""

    def __init__(self, scheduler: Scheduler, options: Sequence[TokenPath]) -> None:
        self._scheduler = scheduler
        self._options = options
        self._values = [0.0] * len(options)
        self._seen: set[TokenPath] = set()
        self.evaluated = 0

    def values(self, tokens: Sequence[int], *, head: int = 0) -> list[float]:
        """Return log P(option | ``tokens``) of each option; ``head`` of them repeat in other prompts.

        Raises:
            ModelError: llama.cpp failed.
        """
        paths = branches(self._options)
        room = 1 + sum(1 for _ in tree_nodes(paths, range(len(paths))))
        with self._scheduler.seat(tokens, reserve=room, stop=None, head=head) as seat:
            if seat is None:
                raise ModelError("llama.cpp stopped in the middle of a score")
            self._take([()], self._scheduler.evaluate(seat, tokens[seat.keep :], None))
            while paths:
                paths = paths[self._look_at(seat, paths) :]
        return self._values

    def _look_at(self, seat: Slot, paths: Sequence[TokenPath]) -> int:
        """Evaluate as many paths as sequences are free; return their number."""
        with self._scheduler.fork(seat, len(paths)) as lent:
            taken = paths[: len(lent)]
            tree = list(tree_nodes(taken, lent))
            if self._scheduler.context.whole:  # no cell is held by two sequences
                tree = [
                    (path[:end], [sequence])
                    for path, sequence in zip(taken, lent, strict=True)
                    for end in range(1, len(path) + 1)
                ]
            parts = [
                BatchPart(sequences, head[-1:], seat.keep + len(head) - 1, logits=True)
                for head, sequences in tree
            ]
            self._take([head for head, _ in tree], self._scheduler.evaluate_branches(parts))
            return len(lent)

    def _take(self, heads: Sequence[TokenPath], work: DecodeWork) -> None:
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


def branches(options: Sequence[TokenPath]) -> list[TokenPath]:
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


def tree_nodes(
    paths: Sequence[TokenPath], sequences: Sequence[int]
) -> Iterator[tuple[TokenPath, list[int]]]:
    """Yield the tree of sorted paths, a parent before its children, one token at a time.

    Each node is the path to it and the sequences that hold it: path i is in ``sequences[i]``.
    """
    last: TokenPath = ()
    for at, path in enumerate(paths):
        for end in range(common_prefix(last, path) + 1, len(path) + 1):
            head = path[:end]
            sharing = zip(sequences[at:], paths[at:], strict=True)
            yield head, [sequence for sequence, other in sharing if other[:end] == head]
        last = path
