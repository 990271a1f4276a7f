"""A model's own call syntax by this engine: a tree of calls, and plain completion beside it.

The tree is a small search: a chain of calls whose results are canned, then branches at two of its
nodes that must call otherwise (``excluded``). Tokens that were evaluated stand against the distinct
ones, those of the tree of all prompts and replies. Reading and writing are measured in turn with
llama-cpp-python's ``Llama``, so that both meet the same load; files of models without a chat
template get the generic syntax.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolsrv_lab.bench.figures import Figure, figure, share
from toolsrv_lab.bench.replay.plain import without_amx
from toolsrv_lab.bench.replay.tree import distinct
from toolsrv_lab.bench.report import tell
from toolsrv_registry.process import usable_cores
from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatRequest,
    Expected,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.engine.base import Piece, Reply
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
    """What the tree took: replies, the paths of their tokens, seconds."""

    replies: list[Reply]
    paths: list[list[int]]
    seconds: float = 0.0


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
    nodes: list[tuple[Message, ...]] = [begin]
    made: list[str] = []
    written = Written([], [])
    began = time.perf_counter()

    def step(messages: tuple[Message, ...], excluded: tuple[str, ...] = ()) -> None:
        names = tuple(_FUNCTIONS)
        request = ChatRequest(messages, tools(), Expected(names=names, text=False))
        prompt = template.render(request)
        grammar = template.grammar(request)
        reply = engine.generate(prompt, grammar=grammar, max_tokens=_MOST_TOKENS, excluded=excluded)
        written.replies.append(reply)
        written.paths.append([*engine.vocabulary.prompt(prompt), *reply.tokens])
        made.append(reply.text)
        calls = template.parse(reply.text, request).calls
        result = {"ok": True, "number": len(made), "place": "Lisbon", "value": 17 * len(made)}
        call = ToolCall(calls[0].name, calls[0].arguments, f"call{len(made):05}") if calls else None
        if call is not None:
            said = AssistantMessage(calls=(call,))
            nodes.append((*messages, said, ToolMessage(call, json.dumps(result))))
        else:
            nodes.append(messages)

    for depth in range(DEPTH):
        tell(f"engine: call {depth + 1} of {DEPTH + len(_BRANCHES)}")
        step(nodes[depth])
    for number, depth in enumerate(_BRANCHES, start=DEPTH + 1):
        tell(f"engine: call {number} of {DEPTH + len(_BRANCHES)}")
        step(nodes[depth], (made[depth],))
    written.seconds = time.perf_counter() - began
    return written


def measure_native(
    model: Path, engine: LlamaEngine, chat_template: str | None, *, threads: int, runs: int
) -> dict[str, Figure]:
    """Return the figures of the tree, and of reading and writing beside plain completion."""
    template = ToolTemplate(chat_template, tokens=engine.special_tokens)
    before = engine.counts
    written = write_tree(engine, template)
    after = engine.counts
    replies, tokens = written.replies, after.tokens - before.tokens
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
            "tokens evaluated on a wrong guess", "%", [share(after.missed - before.missed, tokens)]
        ),
    }
    return found | _beside_plain(model, engine, written.paths[-1], threads=threads, runs=runs)


def _beside_plain(
    model: Path, engine: LlamaEngine, prompt: list[int], *, threads: int, runs: int
) -> dict[str, Figure]:
    """Read and write one prompt in turn with llama-cpp-python's own completion."""
    import llama_cpp  # noqa: PLC0415 - heavy

    without_amx()
    plain = llama_cpp.Llama(
        str(model),
        n_ctx=len(prompt) + 2 * _WRITTEN,
        n_threads=threads,
        n_threads_batch=threads,
        n_gpu_layers=engine.gpu_layers,
        verbose=False,
    )
    rates: dict[str, list[float]] = {"ours_read": [], "plain_read": [], "ours": [], "plain": []}
    for run in range(runs):
        tell(f"engine: reading and writing beside plain completion, {run + 1} of {runs}")
        # A first token that differs, so that no run knows the prompt of another.
        tokens = [engine.vocabulary.text(str(run % 10), special=False)[-1], *prompt]
        read, write = _ours(engine, tokens)
        rates["ours_read"].append(read)
        rates["ours"].append(write)
        read, write = _plain(plain, tokens)
        rates["plain_read"].append(read)
        rates["plain"].append(write)
    plain.close()
    return {
        "native_read": figure("prompt tokens read", "1/s", rates["ours_read"]),
        "plain_read": figure("the same by llama-cpp-python", "1/s", rates["plain_read"]),
        "native_write": figure("tokens written", "1/s", rates["ours"]),
        "plain_write": figure("the same by llama-cpp-python", "1/s", rates["plain"]),
    }


def _ours(engine: LlamaEngine, tokens: list[int]) -> tuple[float, float]:
    prompt = (Piece("", tokens=tuple(tokens)),)
    began = time.perf_counter()
    first = engine.generate(prompt, grammar=_FREE, max_tokens=1)
    read = first.evaluated / (time.perf_counter() - began)
    began = time.perf_counter()
    reply = engine.generate(prompt, grammar=_FREE, max_tokens=_WRITTEN)
    return read, len(reply.tokens) / (time.perf_counter() - began)


def _plain(llama: Any, tokens: list[int]) -> tuple[float, float]:
    llama.reset()
    began = time.perf_counter()
    llama.create_completion(prompt=tokens, max_tokens=1, temperature=0.0)
    read = len(tokens) / (time.perf_counter() - began)
    began = time.perf_counter()
    done = llama.create_completion(prompt=tokens, max_tokens=_WRITTEN, temperature=0.0)
    count = max(1, done["usage"]["completion_tokens"])
    return read, count / (time.perf_counter() - began)


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
