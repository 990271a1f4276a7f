"""Train the matcher: which API of a group serves the clause, and where each value begins and ends.

Here are the files of a training; the training itself is ``trainer``'s, which knows no toolsrv. A
checkpoint is written every two minutes, whole or not at all; a run that is started again with the
same settings goes on from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from toolsrv_lab.card import library_versions
from toolsrv_lab.extras import load
from toolsrv_lab.matching import trainer
from toolsrv_lab.matching.network import holds_shipped, load_shipped, matcher_network
from toolsrv_lab.matching.pipeline import TRAINING, check_known, each_sample
from toolsrv_lab.matching.tables import write_rows
from toolsrv_lab.matching.trainer.options import Options
from toolsrv_lab.matching.trainer.rows import Rows
from toolsrv_lab.training_runs import (
    SAVE_SECONDS,
    keep_freed_memory,
    read_checkpoint,
    write_checkpoint,
    write_whole,
)
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError

if TYPE_CHECKING:
    from toolsrv_lab.matching.trainer.loop import Run

Progress = Callable[[int, int, float, int], None]
"""Called with (steps done, steps in all, running mean of the loss, tokens read)."""

Reading = Callable[[int, int], None]
"""Called with (samples read, samples in all) while they are made numbers."""

WEIGHTS, ABOUT = "matcher.pt", "training.json"
ROWS, START = "rows.npz", "start.npz"


def prepare(
    base: Path,
    out: Path,
    samples: Path,
    apis: Mapping[str, Api],
    *,
    reading: Reading = lambda _done, _total: None,
) -> int:
    """Write a folder of samples as numbers into ``out``; return how many there are.

    Those that are there already are kept where they are of the same samples: it takes long.

    Raises DataError where samples cannot be read, or name APIs that are not in ``apis``.
    """
    path, told = out / ROWS, samples / TRAINING
    made_of, count = _made_of(told, apis, base)
    load("torch")  # missed before the long part, not behind it
    out.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError, ValueError, KeyError, BadZipFile):  # none yet, or half of one
        rows = Rows(path)
        if rows.made_of == made_of:
            return len(rows)
    tokenizer = load("tokenizers").Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with write_whole(out):
        return write_rows(
            path,
            each_sample(told),
            apis,
            tokenizer,
            made_of=made_of,
            progress=lambda done: reading(done, count),
        )


def train(
    base: Path,
    out: Path,
    options: Options,
    *,
    start: Path | None = None,
    progress: Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Path:
    """Train on what ``prepare`` wrote into ``out`` and return the file of the weights there.

    ``start`` is the folder of a finished training whose weights it begins with.

    Raises DataError for a checkpoint of other settings, too few samples, and a loss that is no
    number.
    """
    torch = load("torch")
    from toolsrv_lab.matching.trainer.loop import Run  # noqa: PLC0415 - needs torch
    from toolsrv_lab.matching.trainer.network import Network  # noqa: PLC0415 - needs torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        keep_freed_memory()
    rows = Rows(out / ROWS)
    if len(rows) < options.groups:
        raise DataError(
            f"a step takes {options.groups} samples, there are {len(rows)}",
            hint="write more: toolsrv lab samples",
        )
    state, heads, before = _start(base, start, options.seed)
    run = Run(rows, Network(state, heads, device), options, device)
    settings = json.dumps([asdict(options), rows.made_of, before])
    kept = read_checkpoint(out, settings, device)
    if kept is not None:
        run.resume(kept)
    saved = _Saving(out, settings, run, save_seconds)
    try:
        run.train(progress, saved)
    except FloatingPointError as error:
        raise DataError(
            f"the training went astray: {error}",
            hint="delete the folder and train with lower rates: --learning-rate, --head-rate",
        ) from error
    return _finish(out, run, options, len(rows), before)


class _Saving:
    """Called after each step: writes a checkpoint where the last is old."""

    def __init__(self, out: Path, settings: str, run: Run, seconds: float) -> None:
        self._out, self._settings, self._run, self._seconds = out, settings, run, seconds
        self._last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last > self._seconds:
            write_checkpoint(self._out, self._settings, self._run.state())
            self._last = time.monotonic()


def export_start(base: Path, out: Path, *, start: Path | None = None, seed: int = 0) -> None:
    """Write weights and trainer beside what ``prepare`` wrote into ``out``, to train elsewhere.

    There it is ``python -m trainer --out RUN`` in ``out``; torch and numpy are all that it needs.
    ``start`` as in ``train``; ``seed`` is of the heads of a matcher from nothing.

    Raises DataError where the files cannot be written.
    """
    state, heads, before = _start(base, start, seed)
    about = {"begun_with": before} if before else {}
    arrays = {name: one.numpy() for name, one in state.items()}
    fresh = out / f".{START}.new"
    with write_whole(out, fresh):
        with fresh.open("wb") as file:
            np.savez_compressed(
                file, attention_heads=np.array(heads), about=np.array(json.dumps(about)), **arrays
            )
        fresh.replace(out / START)
        source = Path(trainer.__path__[0])
        (out / source.name).mkdir(exist_ok=True)
        for one in source.glob("*.py"):
            shutil.copyfile(one, out / source.name / one.name)


def load_finished(network: Any, run: Path) -> dict[str, Any]:
    """Give a network the weights of a finished training and return what is known of that.

    ``run`` may be the folder of a matcher as it ships. Raises DataError where it holds neither.
    """
    if holds_shipped(run):
        return load_shipped(network, run)
    try:
        about: dict[str, Any] = json.loads((run / ABOUT).read_text("utf-8"))
        weights = load("torch").load(run / WEIGHTS, map_location="cpu", weights_only=True)
        network.load_state_dict(weights)
    except (OSError, ValueError, KeyError, RuntimeError, pickle.UnpicklingError) as error:
        raise DataError(
            f"{run} holds no finished training of a matcher: {error}",
            hint="finish it: toolsrv lab train matcher",
        ) from error
    return about


def _start(base: Path, start: Path | None, seed: int) -> tuple[dict[str, Any], int, dict[str, Any]]:
    """Return the weights to begin with, the heads of an attention, and what is known of them."""
    load("torch").manual_seed(seed)
    network = matcher_network(base)
    before = load_finished(network, start) if start is not None else {}
    return network.state_dict(), int(network.encoder.config.num_attention_heads), before


def _made_of(samples: Path, apis: Mapping[str, Api], base: Path) -> tuple[str, int]:
    """Return a digest of samples, of the APIs they name and of the words' tokens; and their number."""
    named: dict[str, None] = {}
    count = 0
    for one in each_sample(samples):
        named |= dict.fromkeys(api for api in (one.api, *one.others) if api)
        count += 1
    check_known(samples, named, apis)
    digest = hashlib.sha256((base / "tokenizer.json").read_bytes())
    with samples.open("rb") as file:
        digest.update(hashlib.file_digest(file, "sha256").digest())
    for api in sorted(named):
        digest.update(repr(apis[api]).encode("utf-8", "replace"))
    return digest.hexdigest(), count


def _finish(out: Path, run: Run, options: Options, samples: int, before: Mapping[str, Any]) -> Path:
    """Write the weights and what they were made of; return their file."""
    path = out / WEIGHTS
    fresh = path.with_name(f".{path.name}.new")
    with write_whole(out, fresh):
        weights = {name: one.detach().cpu() for name, one in run.network.state.items()}
        load("torch").save(weights, fresh)
        fresh.replace(path)
    about = {
        **({"begun_with": before} if before else {}),
        "options": asdict(options), "steps": run.step, "loss": run.loss, "tokens": run.tokens,
        "seconds": round(run.seconds), "samples": samples,
        "versions": library_versions("torch", "transformers"),
    }  # fmt: skip
    (out / ABOUT).write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    return path
