"""What may be replied to without a call: greetings, thanks, what toolsrv is, today's date.

These are described as if they were functions, so that the matcher, which judges functions, says
whether a task asks for one of them. Anything else that no function serves is given up: world
knowledge is never an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Asked
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.contract.chat import ChatRequest, Expected, SystemMessage, UserMessage
from toolsrv_runtime.formats.base import Prior

SERVED = 0.0
"""Log-odds from which on a task is taken for talk with the assistant itself.

Of 269 tasks over a catalog in other words that the retriever finds something near, one lies above
with no function that fits better.
"""

NOTHING_NEAR = -2.0
"""The same where the retriever finds nothing near the task: "hi" is like nothing in a catalog.

With ``SURELY`` 43 of 48 greetings and questions about the assistant are taken for talk, and one of 19 tasks.
"""

SURELY = 0.0
"""Log-odds from which on a function serves a text that the retriever finds nothing near."""

REPLY_TOKENS = 160

MOST_EXAMPLES = 5
NAME_LIMIT = 60
"""Characters of an API's name among the examples."""


def _api(name: str, tool_description: str, description: str) -> Api:
    return Api(
        id=f"Assistant/toolsrv/{name}",
        category="Assistant",
        tool="toolsrv",
        name=name,
        description=description,
        tool_description=tool_description,
    )


ITSELF = (
    _api(
        "greet",
        "Small talk with the assistant",
        "Answer a greeting, thanks, a goodbye, or a question about what this assistant is and "
        "what it can do.",
    ),
    _api("talk", "Conversation", "Reply to hello, thank you and goodbye"),
    _api("about", "About the assistant", "Tell who the assistant is and what it can do"),
    _api("today", "Calendar of today", "Today's date and weekday"),
)


def asks_itself(
    task: str, functions: Sequence[Function], prior: Prior, *, fits: bool = True
) -> bool:
    """Whether a task is talk with the assistant, and no function serves it better.

    ``fits``: the retriever finds something near the task.
    """
    talk = prior.match(Asked(task), ITSELF)
    if not talk:
        return False
    best = max(one.serves for one in talk)
    offered = prior.match(Asked(task), [one.api for one in functions])
    if not fits:
        return best >= NOTHING_NEAR and all(one.serves < max(best, SURELY) for one in offered)
    return best >= SERVED and all(one.serves < best for one in offered)


def examples(functions: Sequence[Function]) -> list[str]:
    """Return the names of a few APIs, cleaned: catalogs are untrusted, and these enter instructions."""
    names = (" ".join(clean(one.api.name, NAME_LIMIT).split()) for one in functions[:MOST_EXAMPLES])
    return [name for name in names if name]


def request(task: str, functions: Sequence[Function], now: datetime) -> ChatRequest:
    """Return the request for a reply without a call."""
    system = prompts.ITSELF.format(
        today=prompts.today(now), examples=", ".join(examples(functions))
    )
    return ChatRequest(
        (SystemMessage(system), UserMessage(task)), (), Expected(), REPLY_TOKENS, now=now
    )
