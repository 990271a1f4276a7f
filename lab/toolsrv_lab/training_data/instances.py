"""One answer file as training instances, exactly as ToolBench makes them (spec: formats 10.2).

An instance is a conversation up to one reply, which alone is learnt. A reply with text and a call
loses its text (unless that is to be kept); a text of its own becomes the thought of the next call;
a diversity message is a turn of the user like any other. Knows nothing of files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from toolsrv_runtime.toolbench.answer_files import Answer, AnswerConversation, AnswerMessage
from toolsrv_runtime.toolbench.prompts import toolllama_system

Turn = TypedDict("Turn", {"from": str, "value": str})
"""``from`` is system, user, assistant or function."""

ONLY_THINKS = "its last reply only thinks"
PARALLEL = "a reply makes several calls at once"
PARTIAL = "only a part of an answer was found before the search ended"
EMPTY = "it has no reply"

_ROLES = {"system": "system", "user": "user", "function": "function", "tool": "function"}


class Instance(TypedDict):
    """``id`` is ``Step <k>: <query>``, k the place of the reply in its conversation."""

    id: str
    conversations: list[Turn]


def instances_of(
    answer: Answer, skipped: Counter[str], *, thoughts: bool = False
) -> Iterator[Instance]:
    """Yield an answer file's instances; count in ``skipped`` why a conversation gives none.

    ``thoughts`` keeps the text of a reply that also calls, where ToolBench's program loses it.
    Whether the file is fit for training (``valid_data``) is not asked here.

    Raises:
        DataError: a system message lacks the words that the format hint follows.
    """
    generation = answer.answer_generation
    for conversation in generation.train_messages or ():
        if reason := _unfit(conversation):
            skipped[reason] += 1
            continue
        yield Instance(
            id=f"Step {len(conversation) - 1}: {generation.query}",
            conversations=_turns(conversation, generation.function, thoughts=thoughts),
        )


def _unfit(conversation: AnswerConversation) -> str:
    if not conversation or conversation[-1].role != "assistant":
        return EMPTY
    if any(len(message.calls) > 1 for message in conversation):
        return PARALLEL
    return "" if conversation[-1].calls else ONLY_THINKS


def _turns(
    conversation: AnswerConversation, functions: Sequence[dict[str, Any]], *, thoughts: bool
) -> list[Turn]:
    turns: list[Turn] = []
    thought = ""
    for message in conversation:
        text = message.content or ""
        if message.role != "assistant":
            role = _ROLES.get(message.role, message.role)
            value = toolllama_system(text, functions) if role == "system" else text
            turns.append({"from": role, "value": value})
        elif message.calls:
            said = (text if thoughts else "") or thought
            turns.append({"from": "assistant", "value": _call(message, said)})
            thought = ""
        else:
            thought = text
    return turns


def _call(message: AnswerMessage, thought: str) -> str:
    (call,) = message.calls
    return f"\nThought: {thought}\nAction: {call.name}\nAction Input: {call.arguments}"
