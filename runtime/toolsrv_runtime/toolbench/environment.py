"""ToolBench's environment: which API an action names, error labels, status codes, observations.

Pure functions over names, texts and typed call results (vectors
``process_error`` and ``env_step``). Where the reference crashes, a defined result stands instead:
an action that matches no API is an unknown function, arguments of Finish that are no object lack
their ``return_type``. The label of a success is guessed from words of the response, as the
reference does; whether a call succeeded is never decided here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function
from toolsrv_registry.names import function_name, standardize
from toolsrv_runtime.calls.result import CallResult, ResultKind
from toolsrv_runtime.contract.format import FINISH, StepResult
from toolsrv_runtime.search.tree import Code

RESPONSE_LIMIT = 2048
OBSERVATION_LIMIT = 1024
"""Characters of a response at the service, and of the whole observation."""

ANSWERED_TEXT = '{"response":"successfully giving the final answer."}'
GAVE_UP_TEXT = '{"response":"chose to give up and restart"}'
NOT_JSON = "Tool input parse error...\n"
NO_SUCH_API = "No such api error...\n"

_OBSERVATION_CODES = {
    "Timeout error...": Code.TIMEOUT,
    "API not working error...": Code.NOT_FOUND,
    "Unauthorized error...": Code.UNAUTHORIZED,
    "Unsubscribed error...": Code.NOT_SUBSCRIBED,
    "Too many requests error...": Code.TOO_MANY,
    "Rate limit per minute error...": Code.RATE_LIMITED,
    "Message error...": Code.MESSAGE,
}


class ListedApi(NamedTuple):
    """One line of a function list as the reference keeps it."""

    name: str
    category: str
    tool: str
    api: str


def listed_api(api: Api) -> ListedApi:
    """Return an API as the reference lists it: under its own name, whatever else has that name."""
    return ListedApi(
        function_name(api.name, api.tool), api.category, standardize(api.tool), api.name
    )


def match_action(entries: Sequence[ListedApi], action: str) -> ListedApi | None:
    """Return what the reference calls for an action: the first entry whose name ends with it.

    Of entries with equal names the last one's API is called, under the first one's tool.
    """
    first = next((one for one in entries if one.name.endswith(action)), None)
    if first is None:
        return None
    last = next(one for one in reversed(entries) if one.name == first.name)
    return first._replace(api=last.api)


def matched_function(functions: Sequence[Function], action: str) -> str | None:
    """Return the name, in our list, of the function that the reference calls for an action.

    None where it finds none; "" where it mixes two entries into an API that there is not.
    """
    entries = [listed_api(function.api) for function in functions]
    target = match_action(entries, action)
    if target is None:
        return None
    same = (f.name for f, one in zip(functions, entries, strict=True) if one == target)
    return next(same, "")


def unknown_function(action: str) -> StepResult:
    """Return what calling an unknown function comes to."""
    return StepResult(
        Code.UNKNOWN_FUNCTION, truncate_observation(f"No such function name: {action}", "")
    )


def finish_result(arguments: str) -> StepResult:
    """Return what a Finish call comes to, read as leniently as the reference does."""
    said = _finish_text(arguments)
    kind = said.get("return_type")
    if kind == "give_up_and_restart":
        return StepResult(Code.GIVE_UP, GAVE_UP_TEXT)
    if kind == "give_answer" and "final_answer" in said:
        answer = said["final_answer"]
        return StepResult(
            Code.ANSWER, ANSWERED_TEXT, answer if isinstance(answer, str) else json.dumps(answer)
        )
    if kind == "give_answer":
        return StepResult(Code.BAD_FINISH, '{error:"must have "final_answer""}')
    if "return_type" not in said:
        return StepResult(Code.BAD_FINISH, '{error:"must have "return_type""}')
    return StepResult(Code.BAD_FINISH, '{error:""return_type" is not a valid choice"}')


def truncate_observation(error: str, response: Any) -> str:
    """Return a service's reply as a model reads it: JSON with escapes, cut in two places."""
    said = "" if response is None else str(response)[:RESPONSE_LIMIT]
    return truncate(json.dumps({"error": error, "response": said}), OBSERVATION_LIMIT)


def truncate(text: str, limit: int) -> str:
    """Return a text within ``limit`` characters, with three dots behind where it was cut."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def observation_code(error: str) -> Code:
    """Return the code of a service's reply by its error; OK where it has none of its own."""
    return _OBSERVATION_CODES.get(error, Code.OK)


def result_without_call(
    functions: Sequence[Function], action: str, arguments: str
) -> StepResult | str:
    """Return what an action comes to without a call, or the name of the function to call."""
    if action == FINISH:
        return finish_result(arguments)
    target = matched_function(functions, action)
    if target is None:
        return unknown_function(action)
    if target and is_json(arguments):
        return target
    return StepResult(Code.OK, truncate_observation(NOT_JSON if target else NO_SUCH_API, None))


def is_json(arguments: str) -> bool:
    """Whether the service can read an argument text; an empty one says that there are none."""
    try:
        return not arguments or json.loads(arguments) is not None
    except (ValueError, RecursionError):
        return False


def _finish_text(arguments: str) -> dict[str, Any]:
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


NOT_WORKING = "API not working error..."
UNAUTHORIZED = "Unauthorized error..."
UNSUBSCRIBED = "Unsubscribed error..."
TOO_MANY = "Too many requests error..."
RATE_LIMIT = "Rate limit error..."
RATE_LIMIT_PER_MINUTE = "Rate limit per minute error..."
GATEWAY = "Gateway error..."
BLOCKED = "Blocked error..."
MESSAGE_ERROR = "Message error..."
TIMED_OUT = "Timeout error..."
LABELS = frozenset(
    {
        NOT_WORKING,
        UNAUTHORIZED,
        UNSUBSCRIBED,
        TOO_MANY,
        RATE_LIMIT,
        RATE_LIMIT_PER_MINUTE,
        GATEWAY,
        BLOCKED,
        MESSAGE_ERROR,
        TIMED_OUT,
    }
)
INVALID_REQUEST = "request invalid, data error. status_code={status}"

_WORDS: tuple[tuple[str, str], ...] = (
    ("API (not working)", NOT_WORKING),
    ("Unauthorized", UNAUTHORIZED),
    ("unauthorized", UNAUTHORIZED),
    ("You are not subscribed to this API.", UNSUBSCRIBED),
    ("Too many requests", TOO_MANY),
    ("You have exceeded", RATE_LIMIT),
    ("you are being rate limited", RATE_LIMIT),
    ("Access restricted. Check credits balance", RATE_LIMIT),
    ("Oops, an error in the gateway", GATEWAY),
    ("Blocked User", BLOCKED),
    ("error", MESSAGE_ERROR),
)
_LABELS: dict[ResultKind, str] = {
    "unauthorized": UNAUTHORIZED,
    "not_subscribed": UNSUBSCRIBED,
    "rate_limited": TOO_MANY,
    "not_found": NOT_WORKING,
    "gone": NOT_WORKING,
    "timed_out": TIMED_OUT,
    "blocked_by_policy": BLOCKED,
    "needs_consent": BLOCKED,
    "declined": BLOCKED,
}
_CODES = {
    TIMED_OUT: Code.TIMEOUT,
    NOT_WORKING: Code.NOT_FOUND,
    UNAUTHORIZED: Code.UNAUTHORIZED,
    UNSUBSCRIBED: Code.NOT_SUBSCRIBED,
    TOO_MANY: Code.TOO_MANY,
    RATE_LIMIT_PER_MINUTE: Code.RATE_LIMITED,
    MESSAGE_ERROR: Code.MESSAGE,
}


def label_of_response(returned: Any) -> str:
    """Return the label of what an API returned: the first known words in its ``str``, else ""."""
    text = str(returned)
    return next((label for words, label in _WORDS if words in text), "")


def error_label(result: CallResult) -> str:
    """Return the reference's error label of a call, ``""`` for a success without such words."""
    if result.kind in _LABELS:
        return _LABELS[result.kind]
    if found := label_of_response(result.response):
        return found
    return "" if result.ok else result.error


def code_of_label(text: str) -> Code:
    """Return the status code of an error label; 0 for one without a code."""
    return _CODES.get(text, Code.OK)


def status_code(result: CallResult) -> Code:
    """Return the reference's status code of a call."""
    if result.kind in {"network_error", "server_error", "too_large", "replay_miss"}:
        return Code.ERROR
    return code_of_label(error_label(result))
