"""Task decomposition: the subtasks that a model names, and what it is asked in one of them.

A subtask is data of a model: it is capped, and dropped where it states a value that the task does
not (values of subtasks would pass for values of the task). Subtasks may be in any language.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import Function
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.coverage import Need, open_needs
from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Expected,
    Message,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.formats import goes_on
from toolsrv_runtime.formats.base import FINISH, Move, View
from toolsrv_runtime.search.plan import PART_CALLS

MOST_PARTS = 6
"""Subtasks of a plan; what a model names beyond them is left to the search for the whole task."""

PART_LIMIT = 200
"""Characters of a subtask."""

PLAN_TOKENS = 320

_LINE = 100
_SCHEMA = {
    "type": "object",
    "properties": {
        "subtasks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": PART_LIMIT},
            "minItems": 1,
            "maxItems": MOST_PARTS,
        }
    },
    "required": ["subtasks"],
    "additionalProperties": False,
}

SYSTEM = (
    "You divide a request into questions that are looked up one after the other. Each stands for "
    "itself and keeps the request's own values and language. Nothing that the request does not ask "
    "for is a question. Today is {today}."
)
EXAMPLES = (
    (
        "How heavy is parcel K-77, and when does it arrive?",
        ("How heavy is parcel K-77?", "When does parcel K-77 arrive?"),
    ),
    ("is seat 14C still free", ("is seat 14C still free",)),
    (
        "I moved to Elbonia for 3 years. Which tower there is the tallest, and how high is it in feet?",
        ("Which tower of Elbonia is the tallest?", "How high is that tower, in feet?"),
    ),
    (
        "bridge notes: length of the Yod, age of the Zed in years",
        ("length of the bridge Yod", "age of the bridge Zed in years"),
    ),
)
"""Made-up requests: independent parts, one part, parts that follow from each other, notes.

Small models copy a list of functions as the subtasks; with examples they divide the request.
"""

PART = (
    "{part}\n\nThis is one part of a larger request, the others are taken care of: {whole}{earlier}"
)
EARLIER = "\nResults of the parts before it:\n{rows}"


def request(task: str, now: datetime) -> ChatRequest:
    """Return the request for the subtasks of a task."""
    messages: list[Message] = [SystemMessage(SYSTEM.format(today=prompts.today(now)))]
    for text, parts in EXAMPLES:
        said = json.dumps({"subtasks": parts}, ensure_ascii=False)
        messages += [UserMessage(text), AssistantMessage(said)]
    return ChatRequest(
        (*messages, UserMessage(task)),
        expected=Expected(schema=_SCHEMA),
        max_tokens=PLAN_TOKENS,
        now=now,
    )


def read(reply: ChatReply, task: str) -> tuple[str, ...]:
    """Return the subtasks that a reply names; none where the task is to be solved as one.

    Repetitions, empty ones and those that state values which the task does not are left out. One
    subtask alone is the task itself.
    """
    named = reply.parsed_object.get("subtasks")
    found: dict[str, str] = {}
    for one in named if isinstance(named, list) else ():
        if not isinstance(one, str):
            continue
        part = " ".join(clean(one, PART_LIMIT).split())
        if part and not _invents(part, task):
            found.setdefault(part.casefold(), part)
        if len(found) == MOST_PARTS:
            break
    return tuple(found.values()) if len(found) > 1 else ()


def asked(view: View) -> str:
    """Return what the user says at the beginning: the task, or a subtask with what surrounds it."""
    text = goes_on.request(view)
    if view.whole:
        rows = "\n".join(map(goes_on.row, view.earlier[-goes_on.MOST_CALLS :]))
        earlier = EARLIER.format(rows=rows) if rows else ""
        text = PART.format(part=view.task, whole=view.whole, earlier=earlier)
    if view.conditions:
        text += prompts.CONDITIONS.format(rows="\n".join(f"- {one}" for one in view.conditions))
    return text


def next_move(
    view: View,
    needs: Sequence[Need],
    move: Callable[[], Move | str],
    give_up: Callable[[str], Move],
) -> Move | str:
    """Return the next move of a subtask: ``move``'s, or its end where its calls are used up.

    A subtask is solved once the matcher sees that all of its ``needs`` are served; where it sees
    none, once the model wants no further call.
    """
    succeeded = any(step.ok for step in view.path)
    served = succeeded and bool(needs) and not open_needs(needs, view.path)
    if served or len(view.path) >= PART_CALLS:
        return done(view) if succeeded else give_up(f"no call served the subtask: {view.task}")
    found = move()
    if isinstance(found, str) or found.function in ("", FINISH):
        return found
    return replace(found, about=view.task)


def done(view: View) -> Move:
    """Return the move that ends a subtask: a thought, no call."""
    return Move(f"done: {view.task}", "", "")


def one_line(function: Function) -> str:
    """Return a function's name and the beginning of its description."""
    text = " ".join(clean(function.api.description or function.api.name, 2 * _LINE).split())
    return f"{function.name}: {text if len(text) <= _LINE else f'{text[:_LINE]}…'}"


def _invents(part: str, task: str) -> bool:
    """Whether a subtask states a number, date, time or identifier that the task does not."""
    return any(claim.kind != "name" for claim in trace(part, task, ()).unsupported)
