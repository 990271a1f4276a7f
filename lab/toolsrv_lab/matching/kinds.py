"""Kinds of samples beside needs and errands, with held-out parts; small talk. Seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.conversations.episode import HeldOutTasks
from toolsrv_lab.instructions.requests import (
    document_of,
    is_held_out_document,
    read_services,
    requests,
)
from toolsrv_lab.instructions.writer import is_held_out
from toolsrv_lab.matching.choice_samples import Asked, Choices
from toolsrv_lab.matching.episode_samples import drawn
from toolsrv_lab.matching.samples import Sample
from toolsrv_lab.nano.pipeline import HELD_OUT
from toolsrv_registry.api import Api
from toolsrv_registry.encoder import Encoder
from toolsrv_registry.errors import DataError
from toolsrv_runtime.agent.guidance import SMALL_TALK

VARIANTS = 11
"""Samples of each text."""
HELD_OUT_TALK = 33
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
        held = number % HELD_OUT_TALK == HELD_OUT_TALK // 4
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


EPISODES, SERVICES, TALK = (f"unseen-{name}.jsonl" for name in ("episodes", "services", "talk"))
"""Files of what is held out of a kind."""

HELD_OUT_EPISODES = 50
"""Of so many samples of episodes one is held out."""

_OWN_TALK = 20
"""How often the catalog that ships stands beside talk for each time that others do."""


class Kind(NamedTuple):
    """Samples of a kind: to learn from, and held out in ``file``. ``apis`` are in no catalog."""

    training: list[Sample]
    file: str = ""
    held: Sequence[Sample] = ()
    apis: Mapping[str, Api] = {}


def episodes(told: Sequence[tuple[Path, int]], judged: HeldOutTasks, seed: int) -> Kind:
    """Return samples of episode files; ``told`` are files and how many to draw of each, 0 for all.

    Raises DataError for a file that cannot be read.
    """
    apis: dict[str, Api] = {}
    training: list[Sample] = []
    held: list[Sample] = []
    for file, count in told:
        try:
            more, samples = drawn(file, count, judged, seed)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"cannot read the episodes {str(file)!r}: {error}") from error
        apis |= more
        some = len(samples) // HELD_OUT_EPISODES
        held += samples[:some]
        training += samples[some:]
    return Kind(training, EPISODES, held, apis)


def services(folder: Path, encoder: Encoder, judged: HeldOutTasks, seed: int) -> Kind:
    """Return samples of requests to the services whose documents are in ``folder``.

    Held out are the documents that the encoder does not know either. Raises NotFoundError where
    none of the documents is there.
    """
    apis, queries = read_services(folder)
    choices = Choices(
        apis,
        encoder,
        service=lambda api: document_of(api.id),
        held=lambda api: is_held_out_document(document_of(api.id)),
    )
    asked = [
        Asked(one.query, dict(zip(one.relevant_ids, one.needs, strict=True)))
        for one in queries
        if one.query not in judged
    ]
    made = list(choices.samples(asked, f"{seed}/services"))
    return Kind(
        [one for held, one in made if not held],
        SERVICES,
        [one for held, one in made if held],
        {api.id: api for api in apis},
    )


def whole_requests(apis: Sequence[Api], encoder: Encoder, judged: HeldOutTasks, seed: int) -> Kind:
    """Return samples of the requests that were written for other catalogs, as far as these are here.

    Raises DataError where they are not.
    """
    known = learnt_of(apis)
    ids = {api.id for api in known}
    asked = [
        Asked(one.text, one.needs)
        for one in requests()
        if one.needs.keys() <= ids and one.text not in judged
    ]
    if not asked:
        raise DataError(
            "no request is about the APIs of the enabled catalogs",
            hint="import the catalog that they are about: toolsrv catalog pull toolbench",
        )
    choices = Choices(known, encoder, service=lambda api: (api.category, api.tool))
    return Kind([one for _, one in choices.samples(asked, f"{seed}/requests")])


def talk_kind(apis: Sequence[Api], more: Sequence[Api], judged: HeldOutTasks, seed: int) -> Kind:
    """Return samples of talk beside the APIs of catalogs, and ``more`` of services."""
    own = [api.id for api in load_offline_catalog().apis]
    pool = [
        *(api.id for api in learnt_of(apis)),
        *(api.id for api in more if not is_held_out_document(document_of(api.id))),
        *own * _OWN_TALK,
    ]
    known = {api.id for api in (*apis, *more)}
    pool = [one for one in pool if one in known]
    made = [one for one in talk_samples(pool, seed) if one[1].text not in judged]
    return Kind(
        [one for held, one in made if not held],
        TALK,
        [one for held, one in made if held],
        {api.id: api for api in SMALL_TALK},
    )


def learnt_of(apis: Sequence[Api]) -> list[Api]:
    """Return the APIs of other catalogs than the one that ships whose tools are not held out."""
    own = {api.id for api in load_offline_catalog().apis}
    return [api for api in apis if api.id not in own and not is_held_out(api, HELD_OUT)]
