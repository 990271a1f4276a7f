"""One reply in the making, written piece by piece: forced text, constrained text, scored options.

Shared machinery for formats that write a reply in several engine calls. The prefix stays in the
engine's cache, so every piece costs only its own tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolsrv_runtime.contract.format import Interrupted, UsageMeter
from toolsrv_runtime.contract.models import Engine, Piece, Prompt, Sampling
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop


class Turn:
    """What is written so far behind ``head``, and the engine that goes on."""

    def __init__(
        self,
        engine: Engine,
        profile: Profile,
        head: Prompt,
        *,
        max_tokens: int,
        stop: Stop,
        meter: UsageMeter,
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._head = head
        self._left = max_tokens
        self._stop = stop
        self._meter = meter
        self._said: list[Piece] = []

    @property
    def is_stopped(self) -> bool:
        """Whether somebody wants it to end."""
        return self._stop.is_set()

    def write(self, grammar: str) -> str:
        """Let the model write one part inside ``grammar``.

        Raises:
            Interrupted: Stop was set, or the tokens ended before the part was complete.
        """
        if self._left < 1:
            raise Interrupted
        reply = self._meter.reply(
            self._engine.generate(
                (*self._head, *self._said),
                grammar=grammar,
                max_tokens=min(self._left, self._profile.max_reply_tokens),
                sampling=Sampling(self._profile.temperature, self._profile.top_p),
                stop=self._stop,
            )
        )
        if reply.finish != "grammar":  # stopped, or cut by a limit: a part of a value is none
            raise Interrupted
        self._left -= len(reply.tokens)
        self._said.append(Piece(reply.text, special=True, tokens=reply.tokens or None))
        return reply.text

    def score(self, options: Sequence[str]) -> list[float]:
        """Return the model's log-probability of each continuation."""
        if self._stop.is_set():
            raise Interrupted
        scores = self._engine.score((*self._head, *self._said), options)
        return list(self._meter.scores(scores).values)

    def force(self, text: str, *, data: bool = False) -> None:
        """Write text that leaves no choice; ``data`` is text from outside."""
        self._said.append(Piece(text, special=not data))

    def mark(self) -> int:
        """Return the place to ``rewind`` to."""
        return len(self._said)

    def rewind(self, mark: int = 0) -> None:
        """Forget what was written after ``mark``."""
        del self._said[mark:]

    def pieces(self) -> Prompt:
        """Return the reply as it will stand in later prompts."""
        return tuple(self._said)

    def text(self) -> str:
        """Return what is written so far."""
        return "".join(piece.text for piece in self._said)
