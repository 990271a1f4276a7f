"""Files of samples for the matcher: what is learnt from, and tools and tasks held out to judge it.

The tools held out are those that no row of the small model is about either (``nano.pipeline``);
of the catalog that ships all tools are learnt from, but not all tasks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ValidationError

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.errands import errands
from toolsrv_lab.instructions.writer import is_held_out
from toolsrv_lab.matching.errand_samples import errand_samples, need_samples
from toolsrv_lab.matching.kinds import EPISODES, SERVICES, TALK, Kind
from toolsrv_lab.matching.samples import LATEST, Plan, Sample
from toolsrv_lab.nano.needs import Needs
from toolsrv_lab.nano.pipeline import HELD_OUT
from toolsrv_lab.retrieval.examples import neighbours
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_text
from toolsrv_registry.encoder import Encoder
from toolsrv_registry.errors import DataError

TRAINING, UNSEEN_TOOLS, UNSEEN_TASKS = "training.jsonl", "unseen-tools.jsonl", "unseen-tasks.jsonl"
MORE_APIS = "apis.jsonl"
"""APIs of samples that no catalog has."""

HELD_OUT_TASKS = 0.05
"""Share of the errands that no sample is made of."""

_NEAREST = 24
_LISTING = 3
"""How much more often APIs with allowed values are told of: they are few, and their words many."""

Progress = Callable[[int, int], None]
"""Called with (needs and tasks told, needs and tasks in all)."""


def write_samples(
    apis: Sequence[Api], encoder: Encoder, out: Path, plan: Plan, *, progress: Progress
) -> Mapping[str, int]:
    """Write three files and return how many samples each has. The same seed, the same samples.

    But for what called APIs make up or read from the clock. ``apis`` are those of all catalogs to
    learn from. Raises DataError where none of them has a need.
    """
    own = load_offline_catalog().apis
    ours = {api.id for api in own}
    told = Needs(apis).apis
    others = [api for api in told if api.id not in ours]
    mine = [api for api in told if api.id in ours]
    if not told:
        raise DataError(
            "no need is written for any API of the catalogs",
            hint="enable the catalog that ships: toolsrv catalog enable offline",
        )
    held = [api for api in others if is_held_out(api, HELD_OUT)]
    known = [api for api in others if not is_held_out(api, HELD_OUT)]
    near = {**_near(mine, encoder), **_near(known, encoder), **_near(held, encoder)}
    out.mkdir(parents=True, exist_ok=True)
    for name in (EPISODES, SERVICES, TALK, MORE_APIS):  # of samples that were here before
        (out / name).unlink(missing_ok=True)
    done = 0
    listing = [api for api in mine if any(one.enum for one in api.parameters)]
    ours_in_all = (len(mine) + _LISTING * len(listing)) * plan.own_rounds
    total = len(known) * plan.rounds + ours_in_all + len(held)
    latest = min(plan.latest, len(errands())) * (LATEST - 1)
    total += (len(errands()) + latest) * plan.errand_rounds if mine else 0

    def step(more: int) -> None:
        nonlocal done
        done += more
        progress(done, max(done, total))

    vectors = encoder.encode([document_text(api) for api in mine]) if mine else None

    def nearest(text: str) -> list[str]:
        if vectors is None:
            return []
        order = np.argsort(-(vectors @ encoder.encode([text])[0]))
        return [mine[at].id for at in order[:_NEAREST]]

    whole = list(errand_samples(own, near, nearest, plan, progress=step)) if mine else []
    training = [
        *need_samples(known, near, plan, rounds=plan.rounds, progress=step),
        *need_samples(mine, near, plan, rounds=plan.own_rounds, progress=step),
        *need_samples(listing, near, plan, rounds=_LISTING * plan.own_rounds, progress=step),
        *(one for one in whole if not is_kept(one.text)),
    ]
    training.sort(key=lambda one: _lot(one, plan.seed))
    return {
        TRAINING: _write(out / TRAINING, training),
        UNSEEN_TOOLS: _write(
            out / UNSEEN_TOOLS, need_samples(held, near, plan, rounds=1, progress=step)
        ),
        UNSEEN_TASKS: _write(out / UNSEEN_TASKS, (one for one in whole if is_kept(one.text))),
    }


def add(out: Path, kinds: Iterable[Kind], seed: int) -> Mapping[str, int]:
    """Add samples of other kinds to those in ``out``; return how many each file has."""
    apis: dict[str, Api] = {}
    training = read_samples(out / TRAINING)
    counts = {}
    for kind in kinds:
        apis |= kind.apis
        training += kind.training
        if kind.file:
            counts[kind.file] = _write(out / kind.file, kind.held)
    training.sort(key=lambda one: _lot(one, seed))
    _write(out / MORE_APIS, apis.values())
    return {TRAINING: _write(out / TRAINING, training), **counts}


def read_apis(folder: Path) -> dict[str, Api]:
    """Return the APIs of a folder of samples that no catalog has, by id; none where it has none.

    Raises DataError for a file that is none.
    """
    path = folder / MORE_APIS
    try:
        lines = path.read_text("utf-8").split("\n") if path.exists() else []
        return {api.id: api for api in map(Api.model_validate_json, filter(None, lines))}
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read the APIs {str(path)!r}: {error}",
            hint="write the folder again: toolsrv lab samples --out DIR",
        ) from error


def is_kept(task: str) -> bool:
    """Whether an errand is held out; the first letters decide, so that its variants go with it."""
    digest = hashlib.sha256(" ".join(task.split()[:3]).lower().encode()).hexdigest()
    return int(digest[:8], 16) / 2**32 < HELD_OUT_TASKS


def read_samples(path: Path, known: Container[str] | None = None) -> list[Sample]:
    """Return the samples of a file.

    Raises DataError with the line that is none, or where they name APIs that are not ``known``:
    those of the enabled catalogs, unless they do not matter.
    """
    found = list(each_sample(path))
    if known is not None:
        named = dict.fromkeys(api for one in found for api in (one.api, *one.others) if api)
        check_known(path, named, known)
    return found


def each_sample(path: Path) -> Iterator[Sample]:
    """Yield the samples of a file. Raises DataError with the line that is none."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                yield _sample(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the samples {str(path)!r}: {error}", hint="toolsrv lab samples --out DIR"
        ) from error


def _sample(path: Path, number: int, line: str) -> Sample:
    try:
        return Sample.model_validate_json(line)
    except ValidationError as error:
        raise DataError(
            f"{str(path)!r}, line {number} is no sample: {error}",
            hint="write the folder again: toolsrv lab samples --out DIR",
        ) from error


def check_known(path: Path, named: Collection[str], known: Container[str]) -> None:
    """Raise DataError where the samples of a file name APIs that are not known."""
    missing = [api for api in named if api not in known]
    if missing:
        raise DataError(
            f"{str(path)!r}: of the {len(named)} APIs that its samples name {len(missing)} are in "
            f"no enabled catalog, {missing[0][:200]!r} for one",
            hint="import the catalog that they were made from, or enable it: "
            "toolsrv catalog enable NAME",
        )


def _lot(sample: Sample, seed: int) -> str:
    """Return a sample's place in an order by lot that other samples do not change."""
    told = f"{seed}/{sample.text}/{sample.clause}/{sample.api}/{sample.others}"
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def _near(apis: Sequence[Api], encoder: Encoder) -> dict[str, list[str]]:
    """Return for each API those like it, first those of its own tool; none that does the same."""
    if not apis:
        return {}
    vectors = encoder.encode([document_text(api) for api in apis])
    found = {}
    for api, close in zip(apis, neighbours(vectors), strict=True):
        some = [apis[at] for at in close if not does_the_same(apis[at], api)][:_NEAREST]
        some.sort(key=lambda one: one.tool != api.tool)
        found[api.id] = [one.id for one in some]
    return found


def _write(path: Path, entries: Iterable[BaseModel]) -> int:
    fresh, count = path.with_name(f".{path.name}.new"), 0
    with fresh.open("w", encoding="utf-8") as file:
        for one in entries:
            file.write(json.dumps(one.model_dump(), ensure_ascii=True) + "\n")
            count += 1
    fresh.replace(path)
    return count
