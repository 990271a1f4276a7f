"""Answer files in the form that ToolEval judges (spec: formats 8.1).

A conversation becomes a line of steps: ``system`` and ``user`` without text, then what the model
said (``assistant``) and called (``tool``). A call's own text is dropped, as the reference does. A
search without an answer has no conversation: a walk from the root to a leaf, drawn by a seed,
stands for it. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from toolsrv_registry.functions import FINISH
from toolsrv_runtime.toolbench.answer_files import Answer, AnswerConversation, AnswerNode, DfsAnswer

SEED = 42

Step = dict[str, Any]
"""``role`` and ``message``."""


def tooleval_form(answer: Answer, method: str, *, seed: int = SEED) -> dict[str, Any]:
    """Return ``query``, ``available_tools`` and ``answer`` of a file; ``method`` is its name's.

    ``total_steps`` counts the system and the user step too.
    """
    generation = answer.answer_generation
    if generation.valid_data and generation.train_messages:
        steps = list(_said(generation.train_messages[-1]))
    else:
        steps = list(_walked(_drawn(answer, random.Random(seed))))
    steps = [_step("system", ""), _step("user", ""), *steps]
    details: list[Step] = []
    for step in reversed(steps):
        details = [{**step, "next": details}]
    return {
        "query": generation.query,
        "available_tools": list(generation.function),
        "answer": {
            "method": method,
            "total_steps": len(steps),
            "final_answer": generation.final_answer,
            "answer_details": details,
        },
    }


def _step(role: str, message: Any) -> Step:
    return {"role": role, "message": message}


def _tool(name: str, arguments: str, response: str) -> Step:
    shown = "" if name == FINISH else response
    return _step("tool", {"name": name, "arguments": arguments, "response": shown})


def _said(conversation: AnswerConversation) -> Iterator[Step]:
    """Yield the steps of a conversation; the calls of one reply are answered in their order."""
    for at, message in enumerate(conversation[2:], start=3):
        if message.role != "assistant":
            continue
        if not message.calls:
            yield _step("assistant", message.content or "")
        for place, call in enumerate(message.calls, start=at):
            after = conversation[place] if place < len(conversation) else None
            answered = after is not None and after.role in ("function", "tool")
            yield _tool(
                call.name, call.arguments, (after.content or "") if answered and after else ""
            )


def _drawn(answer: Answer, rng: random.Random) -> Sequence[AnswerNode]:
    """Return the nodes of one try, or of one walk down the tree."""
    if not isinstance(answer, DfsAnswer):
        return rng.choice(answer.trys).chain if answer.trys else ()
    found, node = [], answer.tree.tree
    while node.children:
        node = rng.choice(node.children)
        found.append(node)
    return found


def _walked(nodes: Sequence[AnswerNode]) -> Iterator[Step]:
    for at, node in enumerate(nodes):
        if node.node_type == "Thought":
            yield _step("assistant", node.description)
        elif node.node_type == "Action":
            below = nodes[at + 1] if at + 1 < len(nodes) else None
            if below is not None and below.node_type == "Action Input":
                yield _tool(node.description, below.description, below.observation)
