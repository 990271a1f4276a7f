"""How a matcher is trained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How a matcher is trained: ``groups`` a step, each of one API that serves and ``others``.

    It ends after ``steps``, or ``seconds`` of training, whichever comes first; None is no end.
    From the share ``int8_from`` of it on, weights are what the export's int8 makes of them.
    Raises ValueError for a training without an end.
    """

    steps: int | None = 1_900
    seconds: float | None = None
    groups: int = 256
    others: int = 3
    learning_rate: float = 1e-4
    head_rate: float = 3e-4
    warmup: int = 60
    weight_decay: float = 0.01
    int8_from: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise ValueError("a training ends after some steps or some seconds")


def options_of(**given: float | None) -> Options:
    """Return the options that are given, not None. With seconds alone they are the only end."""
    told = {name: one for name, one in given.items() if one is not None}
    return Options(**({"steps": None} if "seconds" in told else {}) | told)  # type: ignore[arg-type]
