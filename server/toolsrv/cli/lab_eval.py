"""What the commands of ``toolsrv lab eval`` share: models by name, progress, files of a run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from toolsrv.cli.import_view import Bar
from toolsrv.cli.output import console, note
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.statistics import Mean, Share
    from toolsrv_lab.solving import FaultyCaller
    from toolsrv_registry.registry import Registry
    from toolsrv_runtime.contract.chat import ChatModel
    from toolsrv_runtime.solve import Solver
    from toolsrv_runtime.stop import Stop

LOG, REPORT, PLOT = "results.jsonl", "report.json", "solved.svg"
"""Files of an ``--out`` folder."""


def listed(values: Sequence[str]) -> list[str]:
    """Return the distinct names of an option given several times or with commas."""
    names = (name.strip() for value in values for name in value.split(","))
    return list(dict.fromkeys(name for name in names if name))


def file_hash(path: Path) -> str:
    """Return a file's SHA-256. Raises UsageError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}", hint="check the path"
        ) from error


def identity(settings: Settings) -> tuple[str, str]:
    """Return a model's name for people, and what tells it from others: a file's hash, an address."""
    from toolsrv.model_list import SHIPPED
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL

    model = settings.model
    if isinstance(model, str):
        return f"{model} {settings.engine_model}".strip(), f"{model} {settings.engine_model}"
    return SHIPPED if model is None else model.stem, file_hash(model or SHIPPED_MODEL)


def chat_model_of(bench: Workbench, *, free: bool = False) -> ChatModel:
    """Return the bench's model as a chat model, ``free`` of a grammar or held by it.

    Raises:
        UsageError: the model's format knows no conversations.
    """
    from toolsrv_runtime.contract.chat import ChatModel

    model, profile = bench.model()
    if isinstance(model, ChatModel):
        return model
    from toolsrv_lab.evaluation.chat_models import chat_model

    return chat_model(model, profile, free=free)


def solver_on(bench: Workbench, caller: FaultyCaller, registry: Registry | None = None) -> Solver:
    """Return a solver on the bench's model that calls with ``caller``, as evaluations do.

    ``registry``, with its index, stands in for the bench's.
    """
    from toolsrv.offered import Offered
    from toolsrv_runtime.solve import Solver

    engine, profile = bench.model()
    return Solver(
        retriever=Offered(registry or bench.searchable()),
        engine=engine,
        profile=profile,
        caller=caller,
        prompts=bench.prompts() if profile.format == "toolllama" else None,
        fidelity=bench.fidelity(),
    )


def out_folder(out: Path | None) -> Path | None:
    """Return the folder of ``--out``, made where it is not there. Raises UsageError."""
    if out is None:
        return None
    folder = out.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot use the folder {folder}: {error.strerror or error}", hint="name another --out"
        ) from error
    return folder


def write_report(folder: Path | None, document: Mapping[str, Any]) -> None:
    """Write ``report.json``: whole or not at all."""
    from toolsrv_runtime.atomic import fresh_bytes

    if folder is not None:
        text = json.dumps(document, indent=2, ensure_ascii=False, default=str)
        with fresh_bytes(folder / REPORT) as file:
            file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


def plot(
    folder: Path | None,
    shares: Mapping[str, Mapping[str, Share]],
    title: str,
    marks: Mapping[str, float] | None = None,
) -> None:
    """Draw ``solved.svg``; where matplotlib is not installed, say so instead."""
    from toolsrv_lab.evaluation.share_plot import draw_shares

    if folder is None or not any(shares.values()):
        return
    try:
        draw_shares(shares, folder / PLOT, title=title, marks=marks)
    except UsageError as error:
        note(f"note: no plot: {error.message} ({error.hint})")


def share_text(one: Share) -> str:
    """Return a share as ``12/40 = 30 (18-45)``, in per cent; empty for a share of nothing."""
    if not one.of:
        return ""
    return f"{one.count}/{one.of} = {100 * one.rate:.0f} ({100 * one.low:.0f}-{100 * one.high:.0f})"


def mean_text(one: Mean) -> str:
    """Return a mean to three digits."""
    return "" if one.mean is None else f"{one.mean:,.3g}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as ``answered 12, partial 3``."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[Stop]:
    """Yield a stop that Ctrl-C, SIGTERM and SIGHUP set, for work that blocks in compiled code.

    An exception that a signal raises inside a callback of such code is lost; so the work ends by
    the stop, and the interruption is raised after it.

    Raises:
        KeyboardInterrupt: the block was interrupted; ``Interrupted`` for the other signals.
    """
    from toolsrv.cli.interrupt import ended_as_by_ctrl_c
    from toolsrv_runtime.stop import Stop

    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    with ended_as_by_ctrl_c():
        before = signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, before)
        if stop.is_set():
            raise KeyboardInterrupt


class Progress:
    """Progress on stderr with the time left: a bar on a terminal, elsewhere a line each tenth.

    Results of an earlier run count as done and not for the pace.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = self._fresh = 0
        self._start = time.monotonic()
        self._bar = Bar(what, "tasks") if console(err=True).is_terminal else None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*raised)

    def step(self, fresh: bool) -> None:
        """Count one more task; ``fresh`` when it was worked on now."""
        self._done += 1
        self._fresh += fresh
        if self._bar is not None:
            self._bar.show(self._done, self._total)
        elif fresh and (self._tenth(self._done) > self._tenth(self._done - 1) or self._fresh == 1):
            note(f"{self._what}: {self._done} of {self._total}{self._left()}")

    def _tenth(self, done: int) -> int:
        return done * 10 // max(1, self._total)

    def _left(self) -> str:
        seconds = (time.monotonic() - self._start) / self._fresh * (self._total - self._done)
        if seconds < 1:
            return ""
        return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
