"""Samples of talk with the assistant itself: greetings, questions about it, today's date. Seeded.

``data/talk.tsv`` has the texts, each with its kind. The matcher is asked whether one of
``agent.itself.ITSELF`` serves them; what is near talk and is none teaches it beside them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from importlib.resources import files

from toolsrv_lab.matching.samples import Sample
from toolsrv_runtime.agent.guidance import SMALL_TALK

VARIANTS = 11
"""Samples of each text."""
HELD_OUT = 33
"""Of so many texts one is held out."""

_ID = {api.name: api.id for api in SMALL_TALK}
_SERVES = {
    "greet": ("greet", "talk"), "about": ("greet", "about"), "today": ("today",), "none": (),
}  # fmt: skip
_WRONG = {
    "greet": ("about", "today"), "about": ("talk", "today"),
    "today": ("greet", "talk", "about"), "none": ("greet", "talk", "about", "today"),
}  # fmt: skip
_BESIDE = 5


def talk_texts() -> list[tuple[str, str]]:
    """Return kind and text of each line; "none" for a text that is no talk."""
    text = (files("toolsrv_lab.instructions") / "data" / "talk.tsv").read_text("utf-8")
    lines = [line.partition("\t") for line in text.splitlines()]
    return [(kind, said) for kind, _, said in lines]


def talk_samples(pool: Sequence[str], seed: int) -> Iterator[tuple[bool, Sample]]:
    """Yield samples of the texts beside APIs of ``pool`` (ids), and whether each is held out."""
    rng = random.Random(f"{seed}/talk")
    for number, (kind, text) in enumerate(talk_texts()):
        held = number % HELD_OUT == HELD_OUT // 4
        for _ in range(1 if held else VARIANTS):
            yield held, _sample(kind, text, pool, rng)


def _sample(kind: str, text: str, pool: Sequence[str], rng: random.Random) -> Sample:
    beside = rng.sample(pool, min(_BESIDE, len(pool)))
    wrong = [_ID[name] for name in _WRONG[kind]]
    served, whole = bool(_SERVES[kind]) and rng.random() < 0.5, rng.random() < 0.75
    if served:
        first = [rng.choice(wrong)] if rng.random() < 0.6 else []
        others = [*first, *beside[: _BESIDE - 1]]
        api = _ID[rng.choice(_SERVES[kind])]
    else:
        near = rng.random() < (0.9 if kind == "none" else 0.4)
        others = [*(rng.sample(wrong, 2) if near else ()), *beside][:_BESIDE]
        api = ""
    return Sample(text=text, clause=(0, len(text)), api=api, others=tuple(others), whole=whole)
