"""Folders of packed rows: the vocabulary first, then shards, held-out tools apart.

Every shard depends on its number and the seed alone, so several processes write them and a killed
run goes on with the shards that are missing. The same seed gives the same rows but for what the
called APIs make up or read from the clock.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.card import library_versions
from toolsrv_lab.instructions.errands import errands
from toolsrv_lab.instructions.writer import is_held_out
from toolsrv_lab.nano.episodes import Row, Segment, Teacher
from toolsrv_lab.nano.needs import Invented, Needs, document_words
from toolsrv_lab.nano.rows import SOURCES, Numbers, pack, write_shard
from toolsrv_lab.nano.vocabulary import (
    VOCABULARY,
    Vocabulary,
    make_vocabulary,
    read_vocabulary,
)
from toolsrv_lab.nano.world import World
from toolsrv_lab.retrieval.examples import neighbours
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_text
from toolsrv_registry.encoder import Encoder
from toolsrv_registry.errors import DataError
from toolsrv_runtime.planner import layout

Progress = Callable[[int, int], None]
"""Called with (rows written, rows in all)."""

HELD_OUT_ROWS = "held-out.npz"
HELD_OUT = 0.2
"""Share of the tools that no training row is about; those that ship are all learnt from."""

_VOCABULARY_ROWS = 3_000
_HELD_OUT_ROWS = 256
_NEAREST = 12


class Plan(NamedTuple):
    """What rows are made of.

    The first shards, ``early_share`` of all, are easy: few functions, most of them of made-up
    words. ``own_share`` of the needs are of the catalog that ships; ``errand_share`` of the rows
    have whole tasks that were written for it; ``invented_share`` of the rows are about APIs of
    made-up words (``invented``).
    """

    rows: int = 40_000
    shard: int = 2_000
    length: int = 1_024
    vocabulary: int = 8_192
    own_share: float = 0.5
    errand_share: float = 0.7
    invented_share: float = 0.25
    early_share: float = 0.15
    seed: int = 0


class _Stage(NamedTuple):
    """How hard rows are: the share of invented ones, and the most functions of a list."""

    invented: float
    most: int


_REAL = _Stage(0.0, layout.MAX_FUNCTIONS)
_EARLY, _NEXT = _Stage(0.7, 4), _Stage(0.5, 6)


class _Source(NamedTuple):
    apis: tuple[Api, ...]
    near: Mapping[str, tuple[str, ...]]
    plan: Plan


def write_rows(
    apis: Sequence[Api],
    encoder: Encoder,
    out: Path,
    plan: Plan,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[Path]:
    """Write vocabulary, shards and held-out rows for training and return the shards.

    ``apis`` are those of all catalogs to learn from; only those that needs were written for count.
    Raises DataError where there is none.
    """
    source = _source(apis, encoder, plan)
    out.mkdir(parents=True, exist_ok=True)
    _note_sources(source, out / SOURCES)
    if not (out / VOCABULARY).exists():
        _vocabulary(source).save(out / VOCABULARY)
    paths = [out / f"rows-{at:04}.npz" for at in range(-(-plan.rows // plan.shard))]
    if not (out / HELD_OUT_ROWS).exists():
        _shard(source, out, out / HELD_OUT_ROWS, -1)
    missing = [at for at, path in enumerate(paths) if not path.exists()]
    done = len(paths) - len(missing)
    if progress is not None:
        progress(done * plan.shard, plan.rows)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        made = [pool.submit(_shard, source, out, paths[at], at) for at in missing]
        try:
            for one in made:
                one.result()
                done += 1
                if progress is not None:
                    progress(min(done * plan.shard, plan.rows), plan.rows)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return paths


def _source(apis: Sequence[Api], encoder: Encoder, plan: Plan) -> _Source:
    told = Needs(apis).apis
    if not told:
        raise DataError(
            "no need is written for any API of the catalogs",
            hint="enable the catalog that ships: toolsrv catalog enable offline",
        )
    vectors = encoder.encode([document_text(api) for api in told])
    near = {
        api.id: tuple(told[at].id for at in found[:_NEAREST])
        for api, found in zip(told, neighbours(vectors), strict=True)
    }
    return _Source(tuple(told), near, plan)


def _note_sources(source: _Source, path: Path) -> None:
    """Write which APIs the rows are about: whole or not at all."""
    ours = {api.id for api in load_offline_catalog().apis}
    others = [api for api in source.apis if api.id not in ours]
    held = {(api.category, api.tool) for api in others if is_held_out(api, HELD_OUT)}
    texts = sorted(f"{api.id}\n{document_text(api)}" for api in source.apis)
    about = {
        "apis": len(source.apis),
        "apis_that_ship": len(source.apis) - len(others),
        "tools": len({(api.category, api.tool) for api in source.apis}),
        "tools_held_out": len(held),
        "sha256": hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest(),
        "versions": library_versions("numpy", "tokenizers"),
    }
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    fresh.replace(path)


def _shard(source: _Source, out: Path, path: Path, number: int) -> None:
    """Write one shard; the one of number -1 is about held-out tools."""
    vocabulary, plan = read_vocabulary(out / VOCABULARY), source.plan
    rng = random.Random(f"{plan.seed}/{number}")
    wanted = min(_HELD_OUT_ROWS, plan.rows) if number < 0 else min(plan.shard, plan.rows)
    packed: list[Numbers] = []
    for row in _rows(source, rng, held_out=number < 0, stage=_stage(plan, number)):
        numbers = pack(row, vocabulary, plan.length, rng)
        if numbers is not None:
            packed.append(numbers)
        if len(packed) == wanted:
            break
    write_shard(path, packed, {"plan": plan._asdict(), "shard": number})


def _stage(plan: Plan, number: int) -> _Stage:
    if number < 0:
        return _REAL
    begun = number / (plan.rows / plan.shard)
    if begun < plan.early_share:
        return _EARLY if begun < plan.early_share / 2 else _NEXT
    return _Stage(plan.invented_share, layout.MAX_FUNCTIONS)


def _rows(
    source: _Source, rng: random.Random, *, held_out: bool = False, stage: _Stage = _REAL
) -> Iterator[Row]:
    """Yield rows; about real APIs alone where no stage says otherwise."""
    own = load_offline_catalog().apis
    ours = {api.id for api in own}
    apis = [
        api
        for api in source.apis
        if (api.id not in ours and is_held_out(api, HELD_OUT)) == held_out
    ]
    if not apis:
        apis = list(source.apis)
    known = {api.id: api for api in apis}
    near = {
        key: [known[one] for one in found if one in known]
        for key, found in source.near.items()
        if key in known
    }
    share = source.plan.own_share
    inside = sum(api.id in ours for api in apis)
    weights = [
        share / max(1, inside) if api.id in ours else (1 - share) / max(1, len(apis) - inside)
        for api in apis
    ]
    with World(own) as world:
        told = [one for one in errands() if not held_out and set(one.apis) <= known.keys()]
        share = source.plan.errand_share
        teacher = Teacher(Needs(apis), world, near, weights, told, share, most=stage.most)
        spoken = document_words(apis)
        while True:
            if rng.random() < stage.invented:
                row = _invented_row(spoken, world, rng, stage.most)
            else:
                row = teacher.row(rng)
            if row is not None:
                yield row


def _invented_row(spoken: Sequence[str], world: World, rng: random.Random, most: int) -> Row | None:
    invented = Invented(spoken, rng)
    return Teacher(invented, world, {}, [1.0] * len(invented.apis), most=most).row(rng)


def _vocabulary(source: _Source) -> Vocabulary:
    rng = random.Random(f"{source.plan.seed}/vocabulary")
    told: list[Sequence[Segment]] = []
    for at, row in enumerate(_rows(source, rng)):
        if at == min(_VOCABULARY_ROWS, source.plan.rows):
            break
        told += [row.functions, *(one.segments for one in row.episodes)]
    return make_vocabulary(told, source.plan.vocabulary)
