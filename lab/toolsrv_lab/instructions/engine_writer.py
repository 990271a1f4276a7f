"""Instructions written by an engine, as ToolLLM had ChatGPT write them; resumable.

``FILE.run.json`` beside the file records how far a run has come.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_lab.execution import Backend, Codec, LocalPool, Pool, TaskFailedError, stateless
from toolsrv_lab.instructions import replies
from toolsrv_lab.instructions.prompts import Seed, drawn_seeds, grammar, prompt
from toolsrv_lab.instructions.replies import mark
from toolsrv_lab.instructions.samples import KINDS, Deck, Kind, Sample
from toolsrv_lab.instructions.writer import entry
from toolsrv_registry.api import Api
from toolsrv_registry.documents import content_hash, contents_hash
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.agent.concurrency import run_in_thread
from toolsrv_runtime.contract.models import Engine, Prompt, Sampling
from toolsrv_runtime.errors import ContextError, ModelError
from toolsrv_runtime.files import check_target, open_atomic_text
from toolsrv_runtime.stop import Stop


class WriterRun(BaseModel):
    """A run: ``calls`` of ``total`` prompts are done, ``size`` bytes and what is in them.

    ``settings`` tells runs apart that must not share a file; ``left_out`` counts by reason.
    """

    settings: dict[str, Any]
    total: int = 0
    calls: int = 0
    size: int = 0
    instructions: int = 0
    left_out: dict[str, int] = {}
    tokens: int = 0

    def leave_out(self, reason: str) -> None:
        """Count something that is not written."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def record_path(path: Path) -> Path:
    """Return where the record of a run lies that writes ``path``."""
    return path.with_name(f"{path.name}.run.json")


def open_run(path: Path, settings: dict[str, Any]) -> tuple[WriterRun, set[str]]:
    """Return the run that writes ``path``, new or gone on with, and the marks of its texts.

    Raises:
        UsageError: the file is none of such a run, or of one with other settings.
        DataError: the file or its record cannot be read or written.
    """
    check_target(path)
    record = record_path(path)
    if not record.exists():
        if path.exists() and path.stat().st_size:
            raise UsageError(
                f"{path} exists and is no run to go on with", hint="name another file with --out"
            )
        run = WriterRun(settings=settings)
        append(path, run, ())
        return run, set()
    run = _read(record)
    other = sorted(key for key in settings if run.settings.get(key) != settings[key])
    if other:
        raise UsageError(
            f"{path} was begun with other settings: {', '.join(other)}",
            hint="give the same again, or name another file with --out",
        )
    return run, _texts(path, run)


def append(path: Path, run: WriterRun, lines: Iterable[str]) -> None:
    """Write lines behind what a run has written, and then its record.

    Raises DataError where one of them cannot be written; the record then is the earlier one.
    """
    told = [line.encode() for line in lines]
    data = b"".join(told)
    try:
        with path.open("r+b" if path.exists() else "x+b") as file:
            file.truncate(run.size)
            file.seek(run.size)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}; what it had stays",
            hint="free some space and give the same command again",
        ) from error
    run.size += len(data)
    run.instructions += len(told)
    with open_atomic_text(record_path(path)) as record:
        record.write(run.model_dump_json(indent=1) + "\n")


def _read(record: Path) -> WriterRun:
    try:
        return WriterRun.model_validate_json(record.read_bytes())
    except (OSError, ValidationError) as error:
        raise DataError(
            f"cannot read the record {record}: {str(error).splitlines()[0]}",
            hint="delete it and its file to start again",
        ) from error


def _texts(path: Path, run: WriterRun) -> set[str]:
    """Return the marks of the texts within the size that the record tells."""
    seen = set()
    read = 0
    try:
        with path.open("rb") as file:
            while read < run.size and (line := file.readline()):
                read += len(line)
                seen.add(mark(json.loads(line)["query"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if read != run.size:
        raise _damaged(path, f"it has {read} bytes where {run.size} were written")
    return seen


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"{path} is not what its run wrote: {why}",
        hint=f"delete it and {record_path(path).name} to start again",
    )


Progress = Callable[[int, int], None]

NO_ROOM = "its documents leave no room for a reply"
TASK_TOKENS = 120
"""Tokens kept free for each task of a reply, at least."""

_REPLY_TOKENS = 400  # for each task, at most
_LIMITS = (400, 100, 0)  # characters of a description, longest first
_CUTS = (10, 5, 3, 2, 1)  # APIs of each tool


class Options(BaseModel):
    """How an engine is asked.

    ``calls`` limits the prompts of all rounds; ``tasks`` is how many tasks one asks for.
    """

    model_config = ConfigDict(frozen=True)

    kinds: tuple[Kind, ...] = KINDS
    rounds: int = Field(default=1, ge=1)
    calls: int | None = Field(default=None, ge=0)
    tasks: int = Field(default=10, ge=1, le=20)
    temperature: float = Field(default=0.8, ge=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    seed: int = 17
    name: str = "instructions"


class WriterReply(BaseModel):
    """What an engine wrote to one prompt: ``apis`` of each tool were in it, 0 for no room."""

    model_config = ConfigDict(frozen=True)

    apis: int
    text: str = ""
    tokens: int = 0


def writer_backend(
    apis: Sequence[Api], engine: Engine, options: Options, template: str | None
) -> Backend[int, WriterReply]:
    """Return what asks an engine by the number of a prompt; ``template`` is its chat template."""
    deck = Deck(apis, options.kinds)
    samples = list(islice(deck.samples(options.rounds, options.seed), _total(deck, options)))

    async def ask(at: int) -> WriterReply:
        stop = Stop()
        return await run_in_thread(
            lambda: _reply(engine, samples[at], at, options, template, stop), stop
        )

    return stateless(ask)


CODEC: Codec[int, WriterReply] = Codec(
    str, int, WriterReply.model_dump_json, WriterReply.model_validate_json
)
"""Numbers of prompts and replies between processes."""


def write_with_engine(
    apis: Sequence[Api],
    path: Path,
    engine: Engine,
    options: Options,
    *,
    template: str | None = None,
    pool: Pool[int, WriterReply] | None = None,
    progress: Progress | None = None,
) -> WriterRun:
    """Ask an engine for instructions over ``apis`` and append them to ``path``; return the run.

    Goes on where an earlier run of the same settings stopped. ``template`` is the model's chat
    template. ``pool`` asks other engines of the same model instead; replies are written in the
    order of the prompts, so that the file is the same.

    Raises:
        UsageError: there is nothing to sample, or ``path`` is not of such a run.
        BusyError: another run writes ``path``.
        ContextError: the model has no room for the prompt.
        ModelError: the engine failed; what was written stays.
        DataError: the file or its record cannot be read or written, or the pool has nobody.
    """
    if not apis:
        raise UsageError("there is no API to write instructions for", hint="toolsrv catalog list")
    deck = Deck(apis, options.kinds)
    _check_room(engine, options, template)
    with _locked(path):
        run, seen = open_run(path, _settings(apis, engine, options))
        run.total = _total(deck, options)
        samples = islice(deck.samples(options.rounds, options.seed), run.calls, run.total)
        written = _Writer(path, run, seen, samples, options, progress or (lambda *_: None))
        pool = pool or LocalPool(writer_backend(apis, engine, options, template), 1)
        asyncio.run(written.run(pool))
    return run


def _total(deck: Deck, options: Options) -> int:
    total = options.rounds * len(deck)
    return total if options.calls is None else min(total, options.calls)


def _locked(path: Path) -> HeldLock:
    check_target(path)
    try:
        return lock_beside(record_path(path))
    except BlockingIOError as error:
        raise BusyError(
            f"another run writes {path}", hint="wait for it, or name another file with --out"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}", hint="name another file with --out"
        ) from error


class _Writer:
    """Writes replies in the order of their prompts, whichever comes first."""

    def __init__(
        self,
        path: Path,
        run: WriterRun,
        seen: set[str],
        samples: Iterator[Sample],
        options: Options,
        progress: Progress,
    ) -> None:
        self._path = path
        self._run = run
        self._seen = seen
        self._samples = samples
        self._options = options
        self._progress = progress
        self._early: dict[int, WriterReply] = {}

    async def run(self, pool: Pool[int, WriterReply]) -> None:
        run = self._run
        self._progress(run.calls, run.total)
        try:
            await pool.run(range(run.calls, run.total), self._keep)
        except TaskFailedError as failed:
            raise ModelError(
                f"the engine failed at prompt {failed.task + 1} of {run.total}: "
                f"{failed.error.message}; the {run.instructions} instructions in {self._path} stay",
                hint="give the same command again: it goes on from there",
            ) from failed.error

    async def _keep(self, at: int, reply: WriterReply) -> None:
        self._early[at] = reply
        while (found := self._early.pop(self._run.calls, None)) is not None:
            lines = list(self._lines(next(self._samples), found))
            self._run.calls += 1
            append(self._path, self._run, lines)
            self._progress(self._run.calls, self._run.total)

    def _lines(self, sample: Sample, reply: WriterReply) -> Iterator[str]:
        """Yield the lines that one reply brings."""
        run, options, at = self._run, self._options, self._run.calls
        if not reply.apis:
            run.leave_out(NO_ROOM)
            return
        sample = sample.cut(reply.apis)
        shown = drawn_seeds(sample.kind, random.Random(f"{options.seed}/{at}"))
        run.tokens += reply.tokens
        found, fault = replies.items(reply.text)
        for number, item in enumerate(found, start=1):
            taken = (
                replies.judge(item, sample, shown) if number <= options.tasks else replies.TOO_MANY
            )
            if not isinstance(taken, str) and replies.mark(taken.text) in self._seen:
                taken = replies.REPEATED
            if isinstance(taken, str):
                run.leave_out(taken)
                continue
            self._seen.add(replies.mark(taken.text))
            key = f"{options.name}/{at + 1}/{number}"
            line = entry(key, taken.text, options.name, taken.apis, sample=sample)
            yield json.dumps(line, ensure_ascii=False) + "\n"
        if fault:
            run.leave_out(fault)


def _reply(
    engine: Engine, sample: Sample, at: int, options: Options, template: str | None, stop: Stop
) -> WriterReply:
    rng = random.Random(f"{options.seed}/{at}")
    shown = drawn_seeds(sample.kind, rng)
    fitted = _fitted(engine, sample, shown, options.tasks, template)
    if fitted is None:
        return WriterReply(apis=0)
    asked, most = fitted
    reply = engine.generate(
        asked,
        grammar=grammar(sample.cut(most), options.tasks),
        max_tokens=_REPLY_TOKENS * options.tasks,
        sampling=Sampling(options.temperature, options.top_p, rng.randrange(2**31)),
        stop=stop,
    )
    return WriterReply(apis=most, text=reply.text, tokens=len(reply.tokens))


def _fitted(
    engine: Engine, sample: Sample, shown: Sequence[Seed], tasks: int, template: str | None
) -> tuple[Prompt, int] | None:
    """Return the fullest prompt that leaves room for the tasks, and its most APIs of each tool."""
    room = engine.context - tasks * TASK_TOKENS
    tokens = engine.special_tokens
    for most in _CUTS:
        part = sample.cut(most)
        for limit in _LIMITS:
            asked = prompt(part, shown, tasks=tasks, limit=limit, template=template, tokens=tokens)
            if engine.count(asked) <= room:
                return asked, most
    return None


def _check_room(engine: Engine, options: Options, template: str | None) -> None:
    """Raise ContextError where even without documents no reply has room."""
    tokens = engine.special_tokens
    for kind in options.kinds:
        shown = drawn_seeds(kind, random.Random(0))
        bare = prompt(
            Sample(kind, ()), shown, tasks=options.tasks, limit=0, template=template, tokens=tokens
        )
        wanted = engine.count(bare) + options.tasks * TASK_TOKENS
        if wanted >= engine.context:
            raise ContextError(
                f"the prompt for {options.tasks} tasks and their texts need more than {wanted}"
                f" tokens, and {engine.name} has a context of {engine.context}",
                hint="ask for fewer with --tasks, or take a model with a longer context",
            )


def _settings(apis: Sequence[Api], engine: Engine, options: Options) -> dict[str, Any]:
    """Return what two runs must share to write one file; rounds and calls may grow."""
    asked = options.model_dump(mode="json", exclude={"rounds", "calls"})
    return {
        "engine": engine.name,
        "context": engine.context,
        "apis": contents_hash(content_hash(api) for api in apis),
        **asked,
    }
