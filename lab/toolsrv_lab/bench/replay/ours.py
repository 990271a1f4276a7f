"""The recorded tree by this project's engine: one after the other, at once, cancelled, again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llguidance

from toolsrv_lab.bench.replay.tree import Recording
from toolsrv_lab.bench.report import memory
from toolsrv_runtime.contract.models import Completion, Piece, Prompt, Sampling
from toolsrv_runtime.engine.generation import ReplyWriter
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.sampling import Logits
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.stop import Stop

_SETTLED = 10
"""Solves after which buffers have their final size."""


class Repeated(ReplyWriter):
    """Writes a recorded reply: draws as always, then takes the recorded token."""

    recorded: Sequence[int] = ()

    def draw(self, row: Logits) -> int:
        """Return the recorded token that stands here."""
        super().draw(row)
        return self.recorded[len(self.written)]


class ReplayEngine(LlamaEngine):
    """The engine, told what to write; each thread has its own recorded reply.

    ``decode_cpu`` counts the processor seconds spent in decoding: the rest is Python's.
    """

    def __init__(self, path: Path, **given: Any) -> None:
        super().__init__(path, **given)
        self._told = threading.local()
        self.decode_cpu = 0.0
        context = self.scheduler.context
        decode = context.decode

        def timed(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return decode(*given, **named)
            finally:
                self.decode_cpu += time.process_time() - began

        setattr(context, "decode", timed)  # noqa: B010 - this object's own

    def writing(
        self,
        scheduler: Scheduler,
        matcher: llguidance.LLMatcher,
        sampling: Sampling,
        stop: Stop | None,
    ) -> ReplyWriter:
        """Return a writing that repeats what this thread was told."""
        repeated = Repeated(scheduler, self._vocabulary, matcher, sampling, stop)
        repeated.recorded = self._told.reply
        return repeated

    def repeat(self, prompt: Prompt, reply: Sequence[int], grammar: str) -> Completion:
        """Write ``reply`` behind ``prompt``."""
        self._told.reply = reply
        return self.generate(prompt, grammar=grammar, max_tokens=len(reply))


def solve(engine: ReplayEngine, recording: Recording) -> int:
    """Write the whole tree; return how many tokens differ from the recording (none should)."""
    wrong = 0
    for step in recording.steps:
        begin = engine.count(())
        head, path = step.prompt[begin : recording.head], step.prompt[recording.head :]
        prompt = (Piece("", tokens=tuple(head), shared=True), Piece("", tokens=tuple(path)))
        reply = engine.repeat(prompt, step.reply, recording.grammar)
        wrong += list(reply.tokens) != step.reply
    return wrong


def replay(model: Path, recordings: Sequence[Recording], *, threads: int) -> dict[str, float]:
    """Write the first tree; return seconds, tokens, decodes and Python's part of the seconds."""
    engine = _engine(model, recordings[:1], threads)
    began, cpu = time.perf_counter(), time.process_time()
    wrong = solve(engine, recordings[0])
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    counts = engine.counts
    written = sum(len(step.reply) for step in recordings[0].steps)
    result = {
        "seconds": seconds,
        "cpu": cpu,
        "tokens": counts.tokens,
        "steps": counts.steps,
        "wrong": wrong,
        "python_ms": 1000 * (cpu - engine.decode_cpu) / written,
        "decode_ms": 1000 * engine.decode_cpu / counts.steps,
    }
    engine.close()
    return result


def together(model: Path, recordings: Sequence[Recording], *, threads: int) -> dict[str, float]:
    """Write every tree, one after the other and then at once, each time with an empty cache."""
    engine = _engine(model, recordings, threads)
    began, cpu = time.perf_counter(), time.process_time()
    for recording in recordings:
        solve(engine, recording)
    row, row_cpu = time.perf_counter() - began, time.process_time() - cpu
    engine.close()
    engine = _engine(model, recordings, threads)
    workers = [threading.Thread(target=solve, args=(engine, one)) for one in recordings]
    began, cpu = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    at_once, cpu = time.perf_counter() - began, time.process_time() - cpu
    counts = engine.counts
    engine.close()
    return {
        "row": row,
        "row_cpu": row_cpu,
        "at_once": at_once,
        "at_once_cpu": cpu,
        "steps": counts.steps,
        "shared_steps": counts.shared_steps,
    }


def again(model: Path, recordings: Sequence[Recording], *, threads: int, solves: int) -> Any:
    """Solve small trees ``solves`` times; return the resident memory (MiB) early and at the end."""
    engine = _engine(model, recordings, threads)
    sizes = []
    for number in range(solves):
        solve(engine, recordings[number % len(recordings)])
        sizes.append(memory(os.getpid()).resident or 0.0)
    engine.close()
    return {"early": sizes[min(_SETTLED, solves) - 1], "end": sizes[-1]}


def _engine(model: Path, recordings: Sequence[Recording], threads: int) -> ReplayEngine:
    context = max(one.context for one in recordings)
    # Every path of every tree stays resident.
    cells = sum(one.distinct for one in recordings) + 2 * context
    return ReplayEngine(model, context=context, threads=threads, cells=cells)
