"""Fuzzing run: batches of cases with seeds of their own, and reproducer files of failures."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_lab.fuzzing.strategies import Target
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.files import open_atomic_text


class Reproducer(BaseModel):
    """The smallest case found that breaks ``target``; ``seed`` is that of its batch."""

    model_config = ConfigDict(frozen=True)

    target: str
    seed: int
    error: str
    case: Any


def save_reproducer(reproducer: Reproducer, folder: Path) -> Path:
    """Write a reproducer into ``folder``, named after what it holds; return its path."""
    case = json.dumps(reproducer.case, sort_keys=True)
    mark = hashlib.sha256(case.encode()).hexdigest()[:12]
    path = folder / f"{reproducer.target}-{mark}.json"
    with open_atomic_text(path) as file:
        file.write(json.dumps(reproducer.model_dump(), indent=1) + "\n")
    return path


def read_reproducer(path: Path) -> Reproducer:
    """Return the reproducer at ``path``.

    Raises:
        NotFoundError: there is no such file.
        DataError: it is none.
    """
    try:
        return Reproducer.model_validate(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{path} does not exist", hint="give a file that lab fuzz wrote"
        ) from error
    except (OSError, ValueError, RecursionError, ValidationError) as error:
        why = str(error).splitlines()[0]
        raise DataError(
            f"{path} is no reproducer: {why}", hint="give a file that lab fuzz wrote"
        ) from error


BATCH = 500
"""Cases of a batch; part of what a seed means."""
NOTES = "batches.jsonl"


class Batch(BaseModel):
    """A batch that has ended: cases tried, shrinking included, and the reproducer if one failed."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    target: str
    seed: int
    number: int
    cases: int
    seconds: float
    failure: str = ""


def fuzz(
    targets: Sequence[Target],
    folder: Path,
    *,
    count: int,
    seed: int,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Batch]:
    """Try at least ``count`` cases of each target, in whole batches; return all batches so far.

    Raises:
        DataError: the folder cannot be written.
    """
    each = -(-count // BATCH)
    notes = folder / NOTES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {(target.name, number) for target in targets for number in range(each)}
        done = {
            (one.target, one.number): one
            for one in _read(notes)
            if one.seed == seed and not one.failure and (one.target, one.number) in wanted
        }
        with notes.open("a", encoding="utf-8") as file:
            for number in range(each):
                for target in targets:
                    if (target.name, number) not in done:
                        batch = _batch(target, folder, number, seed)
                        file.write(f"\n{batch.model_dump_json()}")  # behind half a line, if any
                        file.flush()
                        os.fsync(file.fileno())
                        done[target.name, number] = batch
                    progress(len(done) * BATCH, len(wanted) * BATCH)
    except OSError as error:
        raise DataError(
            f"cannot write {folder}: {error.strerror or error}", hint="name another with --out"
        ) from error
    return sorted(done.values(), key=lambda one: (one.target, one.number))


def attempt(target: Target, seed: int, count: int) -> tuple[int, Reproducer | None]:
    """Try ``count`` cases; return how many ran, and the smallest that failed."""
    ran = 0
    last: Any = None

    def probe(case: Any) -> None:
        nonlocal ran, last
        ran, last = ran + 1, case
        target.check(case)

    try:
        for case in target.known:
            probe(case)
        _generator(target, seed, count)(probe)
    except Exception as error:  # noqa: BLE001 - whatever a reader lets out is what is looked for
        told = f"{type(error).__name__}: {error}"[:2000]
        return ran, Reproducer(target=target.name, seed=seed, error=told, case=last)
    return ran, None


def _generator(target: Target, seed: int, count: int) -> Callable[[Callable[[Any], None]], None]:
    def run(probe: Callable[[Any], None]) -> None:
        @hypothesis.seed(seed)
        @settings(
            max_examples=count,
            phases=(Phase.generate, Phase.shrink),
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
        )
        @given(target.cases)
        def each(case: Any) -> None:
            probe(case)

        each()

    return run


def _batch(target: Target, folder: Path, number: int, seed: int) -> Batch:
    mark = hashlib.sha256(f"{target.name}/{seed}/{number}".encode()).digest()
    start = time.perf_counter()
    cases, failed = attempt(target, int.from_bytes(mark[:8], "big"), BATCH)
    return Batch(
        target=target.name,
        seed=seed,
        number=number,
        cases=cases,
        seconds=round(time.perf_counter() - start, 3),
        failure="" if failed is None else save_reproducer(failed, folder).name,
    )


def _read(notes: Path) -> list[Batch]:
    """Return the batches that are noted; half a line of a killed run is none."""
    found = []
    for line in notes.read_text("utf-8").split("\n") if notes.exists() else ():
        try:
            found.append(Batch.model_validate_json(line))
        except ValidationError:
            continue
    return found


def replay(reproducer: Reproducer, targets: Sequence[Target]) -> str:
    """Try one kept case again; return what is wrong with it, "" when it passes.

    Raises:
        DataError: its target is not there.
    """
    target = next((one for one in targets if one.name == reproducer.target), None)
    if target is None:
        raise DataError(f"there is no target {reproducer.target!r}", hint="toolsrv lab fuzz --list")
    try:
        target.check(reproducer.case)
    except Exception as error:  # noqa: BLE001 - as above
        return f"{type(error).__name__}: {error}"
    return ""
