"""Train a network on packed rows, from a checkpoint if there is one, to its end.

A checkpoint is written at least every two minutes (or after each step, where steps are longer); a
run that is started again with the same settings goes on from it. ``curve.jsonl`` keeps how held-out
rows are told, ``curve.svg`` draws it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from toolsrv_lab.alone import alone
from toolsrv_lab.checkpoints import SAVE_SECONDS, written
from toolsrv_lab.extras import load
from toolsrv_lab.memory import keep_freed_memory
from toolsrv_lab.nano.batches import batches, read_rows
from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.options import TrainingOptions
from toolsrv_lab.nano.rows import Numbers
from toolsrv_lab.nano.run import Run
from toolsrv_lab.nano.vocabulary import Vocabulary
from toolsrv_registry.errors import DataError

Progress = Callable[[int, int, float, int], None]
"""Called with (steps done, steps in all, running mean of the loss, tokens seen)."""


def train(
    shape: Shape,
    vocabulary: Vocabulary,
    files: Sequence[Path],
    held_out: Path,
    out: Path,
    options: TrainingOptions,
    *,
    start: Path | None = None,
    progress: Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
    compiled: bool = True,
) -> Path:
    """Train a network on shards and return the file of its weights (``out``/weights.safetensors).

    It begins with the weights of the run in ``start``, if one is named.
    ``compiled`` costs a minute at the start and doubles the speed; without a C++ compiler it is
    left. Rows are taken in a seeded order, the shards one after the other, again and again.

    Raises:
        DataError: Damaged shards, a checkpoint of other settings, no room on the disk. What was
            trained until then is kept.
        BusyError: Another training works in ``out``.
        UsageError: Sizes that fit no network, or a library that is missing.
    """
    torch = load("torch")
    load("matplotlib.figure")
    if not torch.cuda.is_available():
        keep_freed_memory()
    with written(out):
        out.mkdir(parents=True, exist_ok=True)
    judged = read_rows(held_out, shape)
    run = Run(shape, vocabulary, out, options, compiled=compiled and can_compile())
    with alone(out), contextlib.closing(run):
        run.resume()
        if start is not None:
            run.begin(start)
        source = batches(files, shape, rows=options.rows, seed=options.seed, done=run.step)
        _work(run, source, judged, options.steps, progress, save_seconds)
        return run.finish(files)


def _work(
    run: Run,
    source: Iterator[Numbers],
    judged: Numbers,
    steps: int,
    progress: Progress | None,
    save_seconds: float,
) -> None:
    """Train until ``steps``. What was judged is behind a checkpoint: judging takes a while."""
    saved = time.monotonic()
    while True:
        if run.is_to_judge():
            run.save()
            run.note(run.validate(judged))
            saved = time.monotonic()
        if run.step >= steps:
            return
        run.advance(_next(source, run))
        if progress is not None:
            progress(run.step, steps, run.loss, run.tokens)
        if time.monotonic() - saved > save_seconds:
            run.save()
            saved = time.monotonic()


def can_compile() -> bool:
    """Whether torch can compile a network here: on processors it needs a C++ compiler."""
    if load("torch").cuda.is_available():
        return True
    return any(shutil.which(one) for one in (os.environ.get("CXX") or "g++", "clang++"))


def _next(source: Iterator[Numbers], run: Run) -> Numbers:
    try:
        return next(source)
    except DataError:
        if run.step:
            run.save()
        raise
