"""What ToolBench's environment makes of a reply: which API is meant, what is observed (spec: 4.4, 6).

Pure functions over names and texts. Where the reference crashes, a sane result stands instead:
an action that matches no API is an unknown function, arguments of Finish that are no object lack
their ``return_type``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function
from toolsrv_registry.names import function_name, standardize
from toolsrv_runtime.formats.base import FINISH, Verdict
from toolsrv_runtime.search.tree import Code

RESPONSE_LIMIT = 2048
OBSERVATION_LIMIT = 1024
"""Characters of a response at the service, and of the whole observation (spec: 4.4 and 6.1)."""

ANSWERED = '{"response":"successfully giving the final answer."}'
GAVE_UP = '{"response":"chose to give up and restart"}'
NOT_JSON = "Tool input parse error...\n"
NOT_THERE = "No such api error...\n"

_CODES = {
    "Timeout error...": Code.TIMEOUT,
    "API not working error...": Code.NOT_FOUND,
    "Unauthorized error...": Code.UNAUTHORIZED,
    "Unsubscribed error...": Code.NOT_SUBSCRIBED,
    "Too many requests error...": Code.TOO_MANY,
    "Rate limit per minute error...": Code.RATE_LIMITED,
    "Message error...": Code.MESSAGE,
}


class Entry(NamedTuple):
    """One line of a function list as the reference keeps it."""

    name: str
    category: str
    tool: str
    api: str


def entry(api: Api) -> Entry:
    """Return an API as the reference lists it: under its own name, whatever else has that name."""
    return Entry(function_name(api.name, api.tool), api.category, standardize(api.tool), api.name)


def meant(entries: Sequence[Entry], action: str) -> Entry | None:
    """Return what the reference calls for an action: the first entry whose name ends with it.

    Of entries with equal names the last one's API is called, under the first one's tool.
    """
    first = next((one for one in entries if one.name.endswith(action)), None)
    if first is None:
        return None
    last = next(one for one in reversed(entries) if one.name == first.name)
    return first._replace(api=last.api)


def offered(functions: Sequence[Function], action: str) -> str | None:
    """Return the name, in our list, of the function that the reference calls for an action.

    None where it finds none; "" where it mixes two entries into an API that there is not.
    """
    entries = [entry(function.api) for function in functions]
    target = meant(entries, action)
    if target is None:
        return None
    same = (f.name for f, one in zip(functions, entries, strict=True) if one == target)
    return next(same, "")


def no_such(action: str) -> Verdict:
    """Return what calling an unknown function comes to."""
    return Verdict(Code.UNKNOWN_FUNCTION, observation(f"No such function name: {action}", ""))


def finish(arguments: str) -> Verdict:
    """Return what a Finish call comes to, read as leniently as the reference does."""
    said = _said(arguments)
    kind = said.get("return_type")
    if kind == "give_up_and_restart":
        return Verdict(Code.GIVE_UP, GAVE_UP)
    if kind == "give_answer" and "final_answer" in said:
        answer = said["final_answer"]
        return Verdict(
            Code.ANSWER, ANSWERED, answer if isinstance(answer, str) else json.dumps(answer)
        )
    if kind == "give_answer":
        return Verdict(Code.BAD_FINISH, '{error:"must have "final_answer""}')
    if "return_type" not in said:
        return Verdict(Code.BAD_FINISH, '{error:"must have "return_type""}')
    return Verdict(Code.BAD_FINISH, '{error:""return_type" is not a valid choice"}')


def observation(error: str, response: Any) -> str:
    """Return a service's reply as a model reads it: JSON with escapes, cut in two places."""
    said = "" if response is None else str(response)[:RESPONSE_LIMIT]
    return shortened(json.dumps({"error": error, "response": said}), OBSERVATION_LIMIT)


def shortened(text: str, limit: int) -> str:
    """Return a text within ``limit`` characters, with three dots behind where it was cut."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def code_of(error: str) -> Code:
    """Return the code of a service's reply by its error; OK where it has none of its own."""
    return _CODES.get(error, Code.OK)


def settled(functions: Sequence[Function], action: str, arguments: str) -> Verdict | str:
    """Return what an action comes to without a call, or the name of the function to call."""
    if action == FINISH:
        return finish(arguments)
    target = offered(functions, action)
    if target is None:
        return no_such(action)
    if target and is_json(arguments):
        return target
    return Verdict(Code.OK, observation(NOT_JSON if target else NOT_THERE, None))


def is_json(arguments: str) -> bool:
    """Whether the service can read an argument text; an empty one says that there are none."""
    try:
        return not arguments or json.loads(arguments) is not None
    except (ValueError, RecursionError):
        return False


def _said(arguments: str) -> dict[str, Any]:
    try:
        said = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return _rescued(arguments)
    return said if isinstance(said, dict) else {}


def _rescued(text: str) -> dict[str, Any]:
    """Return what stands behind the two keys, spelled with one blank; the answer to its very end."""
    found = {}
    _, key, rest = text.partition('"return_type": "')
    if key:
        found["return_type"] = rest.partition('"')[0]
    _, key, rest = text.partition('"final_answer": "')
    if key:
        found["final_answer"] = rest
    return found
