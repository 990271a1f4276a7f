"""What a result brings that was not known before, and whether an answer says any of it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from toolsrv_runtime.evidence import trace
from toolsrv_runtime.evidence.claims import fold
from toolsrv_runtime.formats.base import Step
from toolsrv_runtime.values.facts import said_by

MOST_VALUES = 64
"""Values of a result that are looked at, the first ones."""
VALUE_LIMIT = 200
"""Characters of one."""
_SAID_LIMIT = 20_000
_FEW = 3
"""Items of a list up to which a text may state their number by chance."""
_DEPTH = 12
_ITEMS = 200
_WORD = re.compile(r"\w+")


def news(step: Step, task: str, others: Sequence[Step]) -> tuple[str, ...]:
    """Return the values of a response that neither the task nor its call nor another response says.

    Truth values are none: there are many ways to say them.
    """
    call = step.move.parsed
    also = (
        {_plain(leaf) for leaf in _leaves(one.response)}
        - {_plain(leaf) for leaf in _leaves(one.move.parsed)}
        for one in others
    )
    held = {_plain(one) for one in _leaves(call)}.union(*also)
    said = fold(task)
    found = dict.fromkeys(
        str(one)
        for one in _leaves(step.response)
        if one is not None and not isinstance(one, bool) and _plain(one) not in held
    )
    fresh = (
        one for one in list(found)[:MOST_VALUES] if _WORD.search(one) and len(one) <= VALUE_LIMIT
    )
    return tuple(one for one in fresh if not _stands(one, said) and not _follows(one, task, call))


def _follows(value: str, task: str, call: Any) -> bool:
    """Whether a value is a date, time or number of the task or of its call in other letters."""
    traced = trace(value, task, [(1, call)])
    known = traced.supported
    return bool(known) and not traced.unsupported and all(one.kind != "name" for one in known)


def tells(answer: str, step: Step, fresh: Sequence[str], task: str) -> bool:
    """Whether an answer states one of the values ``fresh`` that a call has brought.

    A response without such values is taken to be told; one that says yes or no beside them, if the
    answer names what was asked about.
    """
    if not fresh:
        return True
    said = fold(answer)
    if any(_stands(one, said) for one in fresh):
        return True
    given = [str(one) for one in _leaves(step.move.parsed)]
    judged = any(isinstance(one, bool) for one in _leaves(step.response))
    if judged and any(_stands(one, said) for one in given):
        return True
    if any(
        _stands(str(size), said) for size in said_by(step.response, _SAID_LIMIT)[1] if size > _FEW
    ):
        return True
    known = f"{task}\n{json.dumps(step.move.parsed)}"
    traced = trace(answer, known, [(1, "\n".join(fresh))])
    return any(one.nodes and not one.in_task for one in traced.supported)


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, dict) and depth < _DEPTH:
        for one in value.values():
            yield from _leaves(one, depth + 1)
    elif isinstance(value, list) and depth < _DEPTH:
        for one in value[:_ITEMS]:
            yield from _leaves(one, depth + 1)
    else:
        yield value


def _plain(value: Any) -> str:
    return str(value).casefold().strip()


def _stands(value: str, folded: str) -> bool:
    """Whether a value stands in a folded text, whole."""
    found = fold(value).strip()
    return bool(found) and re.search(rf"(?<!\w){re.escape(found)}(?!\w)", folded) is not None
