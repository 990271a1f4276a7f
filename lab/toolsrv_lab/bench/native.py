"""A model's own call syntax by this engine: a tree of calls, and plain completion beside it.

The tree is a small search: a chain of calls whose results are canned, then branches at two of its
nodes that call another function. Tokens that were evaluated stand against the distinct ones, those of
the tree of all prompts and replies; a call that is made because the first one is excluded stands
beside it. Rates are by the clock and by the processor's time, which other programs change less. Reading and writing are measured in turn with
llama-cpp-python's ``Llama``, so that both meet the same load; files of models without a chat
template get the generic syntax.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsrv_lab.bench.replay.llama_cpp_python import without_amx
from toolsrv_lab.bench.replay.tree import distinct
from toolsrv_lab.bench.report import Figure, figure, report_progress, share
from toolsrv_registry.host_resources import usable_cores
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    Completion,
    Message,
    Piece,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.templates.tool_template import ToolTemplate

DEPTH = 3
_BRANCHES = (1, 0)
"""Nodes of the chain below which another call is made, by their depth."""

_WRITTEN = 64
_MOST_TOKENS = 160
_FREE = "start: /(.|\\n){4000}/"
_TASK = "What is the weather in Lisbon and in Oslo on 12 May 2027, and how far apart are they?"
_FUNCTIONS = {
    "weather_forecast": ("Returns the forecast of a city for a day.", ("city", "day")),
    "distance_between": ("Returns how far two cities are apart, in km.", ("origin", "goal")),
    "local_time": ("Returns the time of day in a city.", ("city",)),
    "convert_currency": ("Converts an amount.", ("amount", "source", "target")),
    "holidays_of_year": ("Lists the public holidays of a country.", ("country", "year")),
}


@dataclass(slots=True)
class Written:
    """What the tree took: replies, the paths of their tokens, seconds, tokens evaluated.

    ``another`` is a reply where the first one was excluded, and is not part of the tree.
    """

    replies: list[Completion]
    paths: list[list[int]]
    seconds: float
    evaluated: int
    missed: int
    another: Completion


def tools() -> tuple[Tool, ...]:
    """Return the functions of the tree."""
    return tuple(
        Tool(
            name,
            description,
            {
                "type": "object",
                "properties": {key: {"type": "string", "maxLength": 40} for key in keys},
                "required": list(keys),
                "additionalProperties": False,
            },
        )
        for name, (description, keys) in _FUNCTIONS.items()
    )


def write_tree(engine: LlamaEngine, template: ToolTemplate) -> Written:
    """Let the model write the tree, one reply after the other."""
    begin: tuple[Message, ...] = (
        SystemMessage("Solve the task by calling functions, one at a time."),
        UserMessage(_TASK),
    )
    offered = tuple(_FUNCTIONS)
    nodes: list[tuple[Message, ...]] = [begin]
    called: list[str] = []
    replies: list[Completion] = []
    paths: list[list[int]] = []

    def write(
        messages: tuple[Message, ...], names: tuple[str, ...], *excluded: str
    ) -> tuple[Completion, list[int], tuple[ToolCall, ...]]:
        request = ChatRequest(messages, tools(), ReplyConstraints(names=names, text=False))
        prompt = template.render(request)
        reply = engine.generate(
            prompt,
            grammar=template.grammar(request),
            max_tokens=_MOST_TOKENS,
            excluded=excluded,
        )
        path = [*engine.vocabulary.prompt(prompt), *reply.tokens]
        return reply, path, template.parse(reply.text, request).calls

    def step(messages: tuple[Message, ...], names: tuple[str, ...]) -> None:
        report_progress(f"engine: call {len(replies) + 1} of {DEPTH + len(_BRANCHES)}")
        reply, path, calls = write(messages, names)
        replies.append(reply)
        paths.append(path)
        called.append(calls[0].name if calls else "")
        for one in calls[:1]:
            call = ToolCall(one.name, one.arguments, f"call{len(replies):05}")
            result = {"ok": True, "place": "Lisbon", "value": 17 * len(replies)}
            said = AssistantMessage(calls=(call,))
            nodes.append((*messages, said, ToolMessage(call, json.dumps(result))))
        if not calls:
            nodes.append(messages)

    before, began = engine.counts, time.perf_counter()
    for depth in range(DEPTH):
        step(nodes[depth], offered)
    for depth in _BRANCHES:
        step(nodes[depth], tuple(one for one in offered if one != called[depth]))
    seconds, after = time.perf_counter() - began, engine.counts
    another, _, _ = write(nodes[0], offered, replies[0].text)
    return Written(
        replies,
        paths,
        seconds,
        after.tokens - before.tokens,
        after.missed - before.missed,
        another,
    )


def measure_native(
    model: Path, engine: LlamaEngine, chat_template: str | None, *, threads: int, runs: int
) -> dict[str, Figure]:
    """Return the figures of the tree, and of reading and writing beside plain completion."""
    template = ToolTemplate(chat_template, tokens=engine.special_tokens)
    written = write_tree(engine, template)
    replies, tokens = written.replies, written.evaluated
    count = distinct(written.paths)
    prompts = sum(one.prompt_tokens for one in replies)
    said = sum(len(one.tokens) for one in replies)
    found = {
        "native_seconds": figure("write a tree of calls", "s", [written.seconds]),
        "native_prompt_tokens": figure("tokens in all prompts of the tree", "", [prompts]),
        "native_evaluated": figure("tokens evaluated in the tree", "", [tokens]),
        "native_ratio": figure("evaluated per distinct token", "", [tokens / count]),
        "native_forced": figure(
            "reply tokens forced by the grammar",
            "%",
            [share(sum(one.forced for one in replies), said)],
        ),
        "native_missed": figure(
            "tokens evaluated on a wrong guess", "%", [share(written.missed, tokens)]
        ),
        "native_another": figure(
            "tokens evaluated for another call than an excluded one",
            "",
            [written.another.evaluated],
        ),
    }
    return found | _beside_plain(model, engine, written.paths[-1], threads=threads, runs=runs)


def _beside_plain(
    model: Path, engine: LlamaEngine, prompt: list[int], *, threads: int, runs: int
) -> dict[str, Figure]:
    """Read and write one prompt in turn with llama-cpp-python's own completion."""
    import llama_cpp  # noqa: PLC0415 - heavy

    without_amx()
    plain: Any = llama_cpp.Llama(
        str(model),
        n_ctx=len(prompt) + 2 * _WRITTEN,
        n_threads=threads,
        n_threads_batch=threads,
        n_gpu_layers=engine.gpu_layers,
        verbose=False,
    )
    rates: dict[str, list[float]] = {}
    for run in range(runs):
        report_progress(f"engine: reading and writing beside plain completion, {run + 1} of {runs}")
        # A first token that differs, so that no run knows the prompt of another.
        tokens = [engine.vocabulary.text(str(run % 10), special=False)[-1], *prompt]
        plain.reset()
        for way, ours, length in (
            ("native_read", True, 1),
            ("plain_read", False, 1),
            ("native_write", True, _WRITTEN),
            ("plain_write", False, _WRITTEN),
        ):
            began, cpu = time.perf_counter(), time.process_time()
            read, wrote = _ours(engine, tokens, length) if ours else _plain(plain, tokens, length)
            count = read if way.endswith("read") else wrote
            rates.setdefault(way, []).append(count / (time.perf_counter() - began))
            rates.setdefault(f"{way}_cpu", []).append(count / (time.process_time() - cpu))
    plain.close()
    return {key: figure(_RATES[key], "1/s", values) for key, values in rates.items()}


_RATES = {
    "native_read": "prompt tokens read",
    "plain_read": "the same by llama-cpp-python",
    "native_write": "tokens written",
    "plain_write": "the same by llama-cpp-python",
    "native_read_cpu": "prompt tokens read, of processor time",
    "plain_read_cpu": "the same by llama-cpp-python",
    "native_write_cpu": "tokens written, of processor time",
    "plain_write_cpu": "the same by llama-cpp-python",
}


def _ours(engine: LlamaEngine, tokens: list[int], count: int) -> tuple[int, int]:
    """Write ``count`` free tokens; return how many were read and written."""
    prompt = (Piece("", tokens=tuple(tokens)),)
    reply = engine.generate(prompt, grammar=_FREE, max_tokens=count)
    return len(tokens), max(1, len(reply.tokens))


def _plain(llama: Any, tokens: list[int], count: int) -> tuple[int, int]:
    """Do the same with llama-cpp-python; what it has read before it does not read again either."""
    done = llama.create_completion(prompt=tokens, max_tokens=count, temperature=0.0)
    return len(tokens), max(1, done["usage"]["completion_tokens"])


def native_figures(model: Path | None, *, threads: int | None, runs: int) -> dict[str, Figure]:
    """Load a model anew and return its figures of ``measure_native``.

    Raises:
        ModelError: the file is missing, or not a model that can be run.
    """
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL, load_engine  # noqa: PLC0415 - heavy

    path, used = model or SHIPPED_MODEL, threads or usable_cores()
    engine, profile = load_engine(path, threads=used)
    assert isinstance(engine, LlamaEngine)  # noqa: S101 - of a file
    try:
        return measure_native(path, engine, profile.chat_template, threads=used, runs=runs)
    finally:
        engine.close()
