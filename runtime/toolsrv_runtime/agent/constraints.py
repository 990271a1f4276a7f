"""Conditions that a task sets: listed first, then results and answer are checked against them.

A condition is a phrase of the model about the task, in any language; the model says of each whether
a text keeps it, breaks it, or does not tell. Only a broken one has a consequence: it is marked before
the next call, one more draft of the answer, and a note of the outcome where that breaks it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from toolsrv_catalogs.text import clean
from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Expected,
    Message,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.formats.base import Step
from toolsrv_runtime.formats.goes_on import row

MOST = 5
"""Conditions of one task."""

LIMIT = 120
"""Characters of a condition."""

LIST_TOKENS = 240
VERDICT_TOKENS = 96

SYSTEM = "You read requests closely: what do they demand of the answer, besides its subject?"
LIST = "Request: {task}\nWhich conditions must the answer keep? Copy the request's own words."
EXAMPLES = (
    (
        "Name three rivers of Elbonia that are longer than 200 km, in Dutch.",
        ("three rivers", "longer than 200 km", "in Dutch"),
    ),
    ("How heavy is parcel K-77?", ()),
    ("What did seat 14C cost in May 2031, in euros?", ("in May 2031", "in euros")),
)
"""Made-up requests. A list of kinds of conditions would be copied by small models."""

CHECK = (
    "Request: {task}\nConditions:\n{conditions}\n{what}:\n{text}\nSay of each condition whether this "
    "keeps it, breaks it, or does not tell (unknown)."
)

_WORD = re.compile(r"\w+")

Ask = Callable[[ChatRequest], ChatReply]
State = Literal["kept", "broken", "unknown"]
_STATES = ("kept", "broken", "unknown")
_LISTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": LIMIT},
            "maxItems": MOST,
        }
    },
    "required": ["conditions"],
    "additionalProperties": False,
}


class Conditions:
    """The conditions of one solve's task, asked for once, and what was found to break them."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[str, ...]] = {}
        self._broken: dict[str, tuple[str, ...]] = {}

    def of(self, task: str, ask: Ask) -> tuple[str, ...]:
        """Return the conditions that a task sets."""
        if task not in self._listed:
            text = LIST.format(task=task)
            reply = ask(_request(text, _LISTED, LIST_TOKENS, examples=True))
            self._listed[task] = _read(reply, task)
        return self._listed[task]

    def broken_by_step(self, task: str, step: Step, ask: Ask) -> tuple[str, ...]:
        """Return the conditions that a call with its result breaks; each step is read once."""
        said = row(step)
        if said not in self._broken:
            self._broken[said] = self._check(task, "Call and result", said, ask)
        return self._broken[said]

    def broken_by_answer(self, task: str, answer: str, ask: Ask) -> tuple[str, ...]:
        """Return the conditions that an answer breaks."""
        return self._check(task, "Answer", answer, ask)

    def _check(self, task: str, what: str, text: str, ask: Ask) -> tuple[str, ...]:
        conditions = self.of(task, ask)
        if not conditions:
            return ()
        listed = "\n".join(f"{at}. {one}" for at, one in enumerate(conditions, 1))
        said = CHECK.format(task=task, conditions=listed, what=what, text=text)
        reply = ask(_request(said, _verdicts(len(conditions)), VERDICT_TOKENS))
        states = _states(reply, len(conditions))
        return tuple(
            one for one, state in zip(conditions, states, strict=True) if state == "broken"
        )


def _request(
    text: str, schema: dict[str, Any], tokens: int, *, examples: bool = False
) -> ChatRequest:
    messages: list[Message] = [SystemMessage(SYSTEM)]
    for task, conditions in EXAMPLES if examples else ():
        said = json.dumps({"conditions": conditions}, ensure_ascii=False)
        messages += [UserMessage(LIST.format(task=task)), AssistantMessage(said)]
    return ChatRequest(
        (*messages, UserMessage(text)), expected=Expected(schema=schema), max_tokens=tokens
    )


def _verdicts(count: int) -> dict[str, Any]:
    names = [str(number) for number in range(1, count + 1)]
    return {
        "type": "object",
        "properties": {name: {"type": "string", "enum": list(_STATES)} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _read(reply: ChatReply, task: str) -> tuple[str, ...]:
    """Return the conditions that a reply names in the words of the task; others are made up."""
    value = reply.parsed_object.get("conditions")
    listed = value if isinstance(value, list) else []
    found = [" ".join(clean(one, LIMIT).split()) for one in listed if isinstance(one, str)]
    said = set(_WORD.findall(task.casefold()))
    return tuple(dict.fromkeys(one for one in found if one and _is_said(one, said)))[:MOST]


def _is_said(condition: str, said: set[str]) -> bool:
    """Whether most of a condition's words are among those of the task."""
    words = _WORD.findall(condition.casefold())
    return 2 * sum(word in said for word in words) > len(words)


def _states(reply: ChatReply, count: int) -> Sequence[State]:
    """Return the state of each condition; what is said otherwise is unknown."""
    value = reply.parsed_object
    said = [value.get(str(number)) for number in range(1, count + 1)]
    return ["broken" if one == "broken" else "kept" if one == "kept" else "unknown" for one in said]
