"""The fixed sentences around a ToolBench conversation, and the texts made from them.

ToolBench's own sentences are not here: a user has them in an artefact of that project and hands
them over as ``Words``. ``OURS`` says the same in our words. Knows nothing of trees or files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.errors import DataError

ANCHOR = "with a function call to actually excute your step."
"""What ToolBench's own programs look for in a system message, in that spelling (spec: 4.1)."""

HINT = " Your output should follow this format:\nThought:\nAction\nAction Input:\n"
LISTING = "\nSpecifically, you have access to the following APIs: "
HALLUCINATED = "invalid_hallucination_function_name"


@dataclass(frozen=True, slots=True)
class Words:
    """The sentences that stand in every conversation.

    ``base`` ends where the task description begins and holds ``ANCHOR``; ``head`` is the start of
    that description, up to the tool list; ``before`` and ``after`` enclose the list of what was
    tried already.
    """

    base: str
    head: str
    before: str
    after: str

    def system(self, tools: str) -> str:
        """Return the system message for a numbered tool list (``tool_list_block``)."""
        return f"{self.base}{self.head}{tools}"

    def diversity(self, tried: Iterable[tuple[str, str, str]], observation: str) -> str:
        """Return the message that asks for something else than what was tried from a node.

        ``tried`` are (name, argument text, observation), ``observation`` the node's own.
        """
        return f"{self.before}{candidates(tried, observation)}{self.after}"


OURS = Words(
    base=(
        "You solve tasks for a person and have functions for it. First comes the description of "
        "the task, then the task.\n"
        "In every turn, say in a sentence or two what is known by now and what has to come next, "
        f"{ANCHOR}\n"
        "You are then given what the call returned, and take the next turn from there, until the "
        "task is served.\nTask description: "
    ),
    head=(
        "Serve the person's task with the functions below. The last call is always Finish: with "
        "give_answer and everything the person wants to know, or with give_up_and_restart where "
        "the functions cannot help. Call functions by the names in the list only.\n"
        "These tools are at hand:\n"
    ),
    before="You were here before, and these calls were made from here:\n",
    after=(
        "\nThey led to no answer. Look at where you are and at what they returned, then call "
        "something else."
    ),
)


def user(query: str) -> str:
    """Return the user message of a task."""
    return f"\n{query}\nBegin!\n"


def candidates(tried: Iterable[tuple[str, str, str]], observation: str) -> str:
    """Return the list of what was tried from a node (spec: 5.4)."""
    rows = [
        {
            "name": name,
            "arguments": arguments,
            "function_output": output,
            "mento-carlo-action-value": 0.0,
        }
        for name, arguments, output in tried
    ]
    text = json.dumps(rows, indent=2) + "\n"
    return f"{text}again, your former observation: {observation}\n" if observation else text


def toolllama_system(system: str, functions: Sequence[Mapping[str, Any]]) -> str:
    """Return a system message as ToolLLaMA reads it: with the format hint and the function list.

    The list is Python's ``str`` of it, not JSON (spec: 4.1).

    Raises:
        DataError: the message lacks the words that the hint follows.
    """
    if ANCHOR not in system:
        raise DataError(
            f"the system message does not say {ANCHOR!r}",
            hint="ToolLLaMA's format hint goes after these words; see the answer file's prompts",
        )
    hinted = system.replace(ANCHOR, ANCHOR + HINT)
    return f"{hinted}{LISTING}{[dict(one) for one in functions]}"
