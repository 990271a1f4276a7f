"""Instructions written by an engine, as ToolLLM had ChatGPT write them; resumable.

For each sample of APIs the engine is asked for some tasks (``prompts``), and what of its reply is
usable (``replies``) is appended to the file with a record of how far it is (``engine_run``), from
which a run that was stopped goes on. Knows no particular engine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_lab.instructions import replies
from toolsrv_lab.instructions.engine_run import Run, append, open_run
from toolsrv_lab.instructions.prompts import Seed, drawn_seeds, grammar, prompt
from toolsrv_lab.instructions.samples import KINDS, Deck, Kind, Sample
from toolsrv_lab.instructions.writer import entry
from toolsrv_registry.api import Api
from toolsrv_registry.documents import content_hash, contents_hash
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.contract.models import Completion, Engine, Prompt, Sampling
from toolsrv_runtime.errors import ContextError, ModelError

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


def write_with_engine(
    apis: Sequence[Api],
    path: Path,
    engine: Engine,
    options: Options,
    *,
    template: str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Ask an engine for instructions over ``apis`` and append them to ``path``; return the run.

    Goes on where an earlier run of the same settings stopped. ``template`` is the model's chat
    template.

    Raises:
        UsageError: there is nothing to sample, or ``path`` is not of such a run.
        ContextError: the model has no room for the prompt.
        ModelError: the engine failed; what was written stays.
        DataError: the file or its record cannot be read or written.
    """
    if not apis:
        raise UsageError("there is no API to write instructions for", hint="toolsrv catalog list")
    deck = Deck(apis, options.kinds)
    total = options.rounds * len(deck)
    total = total if options.calls is None else min(total, options.calls)
    _check_room(engine, options, template)
    run, seen = open_run(path, _settings(apis, engine, options))
    run.total = total
    samples = islice(deck.samples(options.rounds, options.seed), run.calls, total)
    for at, sample in enumerate(samples, start=run.calls):
        if progress is not None:
            progress(at, total)
        lines = list(_asked(engine, sample, at, options, template, run, seen, path))
        run.calls = at + 1
        append(path, run, lines)
    if progress is not None:
        progress(total, total)
    return run


def _asked(
    engine: Engine,
    sample: Sample,
    at: int,
    options: Options,
    template: str | None,
    run: Run,
    seen: set[str],
    path: Path,
) -> Iterator[str]:
    """Yield the lines that one prompt brings."""
    rng = random.Random(f"{options.seed}/{at}")
    shown = drawn_seeds(sample.kind, rng)
    fitted = _fitted(engine, sample, shown, options.tasks, template)
    if fitted is None:
        run.leave_out(NO_ROOM)
        return
    asked, sample = fitted
    reply = _reply(engine, asked, sample, rng.randrange(2**31), options, run, path)
    run.tokens += len(reply.tokens)
    found, fault = replies.items(reply.text)
    for number, item in enumerate(found, start=1):
        taken = replies.judge(item, sample, shown) if number <= options.tasks else replies.TOO_MANY
        if not isinstance(taken, str) and replies.mark(taken.text) in seen:
            taken = replies.REPEATED
        if isinstance(taken, str):
            run.leave_out(taken)
            continue
        seen.add(replies.mark(taken.text))
        key = f"{options.name}/{at + 1}/{number}"
        line = entry(key, taken.text, options.name, taken.apis, sample=sample)
        yield json.dumps(line, ensure_ascii=False) + "\n"
    if fault:
        run.leave_out(fault)


def _reply(
    engine: Engine, asked: Prompt, sample: Sample, seed: int, options: Options, run: Run, path: Path
) -> Completion:
    try:
        return engine.generate(
            asked,
            grammar=grammar(sample, options.tasks),
            max_tokens=_REPLY_TOKENS * options.tasks,
            sampling=Sampling(options.temperature, options.top_p, seed),
        )
    except ModelError as error:
        raise ModelError(
            f"the engine failed at prompt {run.calls + 1} of {run.total}: {error.message};"
            f" the {run.instructions} instructions in {path} stay",
            hint="give the same command again: it goes on from there",
        ) from error


def _fitted(
    engine: Engine, sample: Sample, shown: Sequence[Seed], tasks: int, template: str | None
) -> tuple[Prompt, Sample] | None:
    """Return the fullest prompt that leaves room for the tasks, and the APIs that are in it."""
    room = engine.context - tasks * TASK_TOKENS
    tokens = engine.special_tokens
    for most in _CUTS:
        part = sample.cut(most)
        for limit in _LIMITS:
            asked = prompt(part, shown, tasks=tasks, limit=limit, template=template, tokens=tokens)
            if engine.count(asked) <= room:
                return asked, part
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
