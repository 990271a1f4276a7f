"""A prompt made to fit a model's context before it is evaluated, without touching the task.

When it is too long, in this order: responses are condensed, the oldest first and the latest last;
function documents are shortened, from the least relevant up; then they are left out, from the
least relevant up, all but the first. What was done is told in notes. Measures with what it is
given; knows no engine and writes no turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsrv_runtime.calls.sizes import counted
from toolsrv_runtime.errors import ContextError, TaskTooLongError

SIZES = (400, 120, 40)
"""Characters of a condensed response, in the order in which they are tried."""

_ITEMS = 2
_TEXT = 60
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of a prompt that may shrink.

    ``documents`` stand in the order of relevance, best first, None where one is left out;
    ``observations`` from the oldest to the latest.
    """

    documents: tuple[str | None, ...]
    observations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A shape that fits, how many tokens its prompt has, and what was done to the parts."""

    shape: Shape
    tokens: int
    notes: tuple[str, ...] = ()


def fit(
    documents: Sequence[Sequence[str]],
    observations: Sequence[str],
    measure: Callable[[Shape], int],
    limit: int,
    *,
    task_tokens: int,
) -> Fitted:
    """Return the least shortened shape whose prompt has at most ``limit`` tokens.

    ``documents`` are the forms of each function's document, from the whole to the shortest;
    ``measure`` counts the tokens of the whole prompt, O(documents + observations) times.

    Raises:
        TaskTooLongError: not even the shortest prompt fits, and nothing was called yet.
        ContextError: the same, with calls and replies that take the room.
    """
    whole = Shape(tuple(forms[0] for forms in documents), tuple(observations))
    tokens = measure(whole)
    if tokens <= limit:
        return Fitted(whole, tokens)
    for shape in _smaller(whole, documents):
        tokens = measure(shape)
        if tokens <= limit:
            return Fitted(shape, tokens, tuple(_notes(whole, shape)))
    if observations:
        raise ContextError(
            f"the conversation has {counted(tokens, 'token')} at its shortest, and {limit} fit the model",
            hint="choose a smaller depth, or a model with a longer context",
        )
    raise TaskTooLongError(
        f"the task has {counted(task_tokens, 'token')}; with the instructions and one function the "
        f"prompt has {tokens}, and {limit} fit the model",
        hint="shorten the task, split it, or choose a model with a longer context",
    )


def shortest(documents: Sequence[Sequence[str]], observations: Sequence[str]) -> Shape:
    """Return the last shape that ``fit`` tries."""
    shape = Shape(tuple(forms[0] for forms in documents), tuple(observations))
    for smaller in _smaller(shape, documents):
        shape = smaller
    return shape


def condensed(observation: str, size: int) -> str:
    """Return a response in at most about ``size`` characters.

    As paper A.2 has it, first by structure, then by a cut: of a list its first items stay, texts
    are shortened, what lies deep goes; what is still too long, or no JSON, is cut.
    """
    if len(observation) <= size:
        return observation
    try:
        short = json.dumps(_pruned(json.loads(observation), 0), ensure_ascii=False)
    except (ValueError, RecursionError):
        short = observation
    return short if len(short) <= size else f"{short[:size]}..."


def _smaller(whole: Shape, documents: Sequence[Sequence[str]]) -> Iterator[Shape]:
    """Yield ever smaller shapes."""
    shape = whole
    for size in SIZES[:-1]:
        for at in range(len(shape.observations) - 1):
            shape = _condense(shape, at, size)
            yield shape
    for form in range(1, max(map(len, documents), default=0)):
        for at in reversed(range(len(documents))):
            if form < len(documents[at]):
                shape = _set(shape, at, documents[at][form])
                yield shape
    for size in SIZES:
        for at in range(len(shape.observations)):
            shape = _condense(shape, at, size)
            yield shape
    for at in range(len(documents) - 1, 0, -1):
        shape = _set(shape, at, None)
        yield shape


def _condense(shape: Shape, at: int, size: int) -> Shape:
    seen = shape.observations
    return replace(shape, observations=(*seen[:at], condensed(seen[at], size), *seen[at + 1 :]))


def _set(shape: Shape, at: int, document: str | None) -> Shape:
    kept = shape.documents
    return replace(shape, documents=(*kept[:at], document, *kept[at + 1 :]))


def _notes(whole: Shape, shape: Shape) -> Iterator[str]:
    pairs = list(zip(whole.documents, shape.documents, strict=True))
    shortened = sum(new is not None and new != old for old, new in pairs)
    dropped = sum(new is None for _, new in pairs)
    condensed_ = sum(
        new != old for old, new in zip(whole.observations, shape.observations, strict=True)
    )
    for count, what, done in (
        (condensed_, "response", "condensed"),
        (shortened, "function document", "shortened"),
        (dropped, "function", "left out, the least relevant"),
    ):
        if count:
            were = "was" if count == 1 else "were"
            yield f"for lack of room {counted(count, what)} {were} {done}"


def _pruned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}..."
    if not isinstance(value, dict | list):
        return value
    if depth >= _DEPTH:
        return "..."
    if isinstance(value, list):
        return [_pruned(item, depth + 1) for item in value[:_ITEMS]]
    return {key: _pruned(item, depth + 1) for key, item in value.items()}
