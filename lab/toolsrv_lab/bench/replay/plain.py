"""The recorded tree by llama-cpp-python's own classes: create_completion, and its HTTP server.

The tokens of a reply are chosen for the model (a logits processor leaves the recorded one alone),
everything else is what the library does. With ``fresh`` its cache is emptied before every step,
as ToolBench evaluates every prompt anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolsrv_lab.bench.replay.tree import Recording, Step


class Forced:
    """A logits processor that leaves only the next recorded token."""

    def __init__(self, reply: Sequence[int]) -> None:
        self._rest: Iterator[int] = iter(reply)

    def __call__(self, ids: Any, scores: Any) -> Any:
        """Return scores, (vocabulary,), in which one token is possible."""
        del ids
        token = next(self._rest)
        kept = np.full_like(scores, -np.inf)
        kept[token] = 0.0
        return kept


class Counted:
    """Counts the library's decodes and their tokens, from now on, for this process."""

    def __init__(self) -> None:
        from llama_cpp import _internals  # noqa: PLC0415 - heavy

        self.tokens = self.steps = 0
        decode = _internals.LlamaContext.decode

        def counted(context: Any, batch: Any) -> Any:
            self.steps += 1
            self.tokens += batch.batch.n_tokens
            return decode(context, batch)

        setattr(_internals.LlamaContext, "decode", counted)  # noqa: B010 - typed as fixed


def without_amx() -> None:
    """Let the library load models as this project does: not for AMX, which can kill the process."""
    from llama_cpp import llama_cpp as low  # noqa: PLC0415 - heavy

    from toolsrv_runtime.engine.context import has_amx  # noqa: PLC0415 - heavy

    defaults = low.llama_model_default_params

    def params() -> Any:
        found = defaults()
        found.use_extra_bufts = not has_amx()
        return found

    low.llama_model_default_params = params


def complete(llama: Any, step: Step, *, fresh: bool) -> Any:
    """Write one step's reply."""
    if fresh:
        llama.reset()
        llama._ctx.kv_cache_clear()  # noqa: SLF001 - the library offers no other way
    return llama.create_completion(
        prompt=list(step.prompt),
        max_tokens=len(step.reply),
        temperature=0.0,
        logits_processor=[Forced(step.reply)],
    )


def replay(model: Path, recording: Recording, *, threads: int, fresh: bool) -> dict[str, float]:
    """Write the whole tree; return seconds (wall, processor), tokens and decodes."""
    import llama_cpp  # noqa: PLC0415 - heavy

    counted = Counted()
    without_amx()
    llama = llama_cpp.Llama(
        str(model),
        n_ctx=recording.context,
        n_threads=threads,
        n_threads_batch=threads,
        verbose=False,
    )
    began, cpu = time.perf_counter(), time.process_time()
    for step in recording.steps:
        complete(llama, step, fresh=fresh)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "tokens": counted.tokens, "steps": counted.steps}
