"""The text that the compact format and its model share: markers, function lines, what is shown.

The pipeline that trains a compact model writes its rows with this, so that a model meets in use
what it was trained on. Pure.
"""

from __future__ import annotations

import re

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import Function

MAX_FUNCTIONS = 9
"""The vocabulary numbers functions up to nine."""

SHOWN_LIMIT = 1_000
"""Characters of a task or a part that stand in the prompt; values are taken from all of it."""

SYSTEM = "System:\n"
USER = "User: "
THOUGHT = "\nAssistant:\nThought: "
ACTION = "\nAction: "
INPUT = "\nAction Input: "
OBSERVATION = "\nFunction: "
USE = " use #"
NOTHING = " use nothing"
DONE = "all done. answer"
GIVE_UP = " failed, no other function. give up"
ANSWER = '{"return_type": "give_answer", "final_answer": "'
QUIT = '{"return_type": "give_up_and_restart"}'

_LONG_QUOTE = re.compile(r"([\"'])([^\"']{60})[^\"']+\1")
_DESCRIPTION_WORDS = 10


def line(number: int, function: Function, *, brief: bool = False) -> str:
    """Return the line of a function: number, name, parameters, the beginning of what it does.

    A ``brief`` one does not say what it does.
    """
    required = {parameter.name for parameter in function.api.required}
    signature = ", ".join(
        key if parameter.name in required else f"{key}?"
        for key, parameter in function.parameters.items()
    )
    text = "" if brief else " ".join(clean(function.api.description, 400).split())
    first = re.split(r"(?<=[a-z)])[.!?](?:\s|$)", text)[0]
    short = " ".join(first.split()[:_DESCRIPTION_WORDS]).rstrip(",:;. -")
    return f"#{number} {function.name}({signature})" + (f": {short}" if short else "") + "\n"


def shown(text: str) -> str:
    """Return text as it stands in the prompt: on one line, long quotations and texts shortened."""
    words = _in_one_line(text)
    return words if len(words) <= SHOWN_LIMIT else f"{words[:SHOWN_LIMIT]}..."


def hidden(task: str) -> tuple[str, ...]:
    """Return a note on what of a long task the prompt leaves out, nothing of one that is whole."""
    length = len(_in_one_line(task))
    if length <= SHOWN_LIMIT:
        return ()
    note = (
        f"the model reads the first {SHOWN_LIMIT:,} of the task's {length:,} characters; "
        "values are taken from all of it"
    )
    return (note,)


def _in_one_line(text: str) -> str:
    short = _LONG_QUOTE.sub(lambda match: f"{match[1]}{match[2]}...{match[1]}", text)
    return " ".join(short.split())
