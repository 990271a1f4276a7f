"""Conversations of a search path: chat requests, actions read from replies, and subtasks.

Builds the messages and tools of a path, and what the next reply may be. Turns the calls of a reply
into actions, and the end of a path into an answer or a give-up. For task decomposition it writes
the request for subtasks and reads them: a subtask is data of a model, so it is capped, and dropped
where it states a value that the task does not. Pure; calls no model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import Function
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.coverage import Subtask, open_subtasks
from toolsrv_runtime.agent.fitting import PromptShape
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS, no_function_fits_tool, tool_forms
from toolsrv_runtime.contract.format import FINISH, Action, History, Step
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Message,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.search.dfsdt import SUBTASK_CALLS

MOST_SUBTASKS = 6
"""Subtasks of a plan; what a model names beyond them is left to the search for the whole task."""

SUBTASK_LIMIT = 200
"""Characters of a subtask."""

SUBTASKS_TOKENS = 320

_LINE = 100
_SUBTASKS_SCHEMA = {
    "type": "object",
    "properties": {
        "subtasks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": SUBTASK_LIMIT},
            "minItems": 1,
            "maxItems": MOST_SUBTASKS,
        }
    },
    "required": ["subtasks"],
    "additionalProperties": False,
}

SUBTASKS_SYSTEM = (
    "You divide a request into questions that are looked up one after the other. Each stands for "
    "itself and keeps the request's own values and language. Nothing that the request does not ask "
    "for is a question. Today is {today}."
)
SUBTASKS_EXAMPLES = (
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

SUBTASK_PROMPT = (
    "{part}\n\nThis is one part of a larger request, the others are taken care of: {whole}{earlier}"
)
EARLIER_RESULTS = "\nResults of the parts before it:\n{rows}"


def subtasks_request(task: str, now: datetime) -> ChatRequest:
    """Return the request for the subtasks of a task."""
    messages: list[Message] = [
        SystemMessage(SUBTASKS_SYSTEM.format(today=prompts.format_date(now)))
    ]
    for text, parts in SUBTASKS_EXAMPLES:
        said = json.dumps({"subtasks": parts}, ensure_ascii=False)
        messages += [UserMessage(text), AssistantMessage(said)]
    return ChatRequest(
        (*messages, UserMessage(task)),
        expected=ReplyConstraints(schema=_SUBTASKS_SCHEMA),
        max_tokens=SUBTASKS_TOKENS,
        now=now,
    )


def read_subtasks(reply: ChatReply, task: str) -> tuple[str, ...]:
    """Return the subtasks that a reply names; none where the task is to be solved as one.

    Repetitions, empty ones and those that state values which the task does not are left out. One
    subtask alone is the task itself.
    """
    named = reply.parsed_object.get("subtasks")
    found: dict[str, str] = {}
    for one in named if isinstance(named, list) else ():
        if not isinstance(one, str):
            continue
        part = " ".join(clean(one, SUBTASK_LIMIT).split())
        if part and not _invents(part, task):
            found.setdefault(part.casefold(), part)
        if len(found) == MOST_SUBTASKS:
            break
    return tuple(found.values()) if len(found) > 1 else ()


def user_message(view: History) -> str:
    """Return what the user says at the beginning: the task, or a subtask with what surrounds it."""
    text = prompts.task_with_earlier_runs(view)
    if view.whole:
        rows = "\n".join(map(prompts.result_row, view.earlier[-prompts.MOST_EARLIER_CALLS :]))
        earlier = EARLIER_RESULTS.format(rows=rows) if rows else ""
        text = SUBTASK_PROMPT.format(part=view.task, whole=view.whole, earlier=earlier)
    if view.conditions:
        text += prompts.CONDITIONS.format(rows="\n".join(f"- {one}" for one in view.conditions))
    return text


def next_subtask_action(
    view: History,
    needs: Sequence[Subtask],
    move: Callable[[], Action | str],
    give_up: Callable[[str], Action],
) -> Action | str:
    """Return the next action of a subtask: ``move``, or its end where its calls are used up.

    A subtask is solved once the matcher sees that all of its ``needs`` are served; where it sees
    none, once the model wants no further call.
    """
    succeeded = any(step.ok for step in view.path)
    served = succeeded and bool(needs) and not open_subtasks(needs, view.path)
    if served or len(view.path) >= SUBTASK_CALLS:
        return (
            end_subtask(view) if succeeded else give_up(f"no call served the subtask: {view.task}")
        )
    found = move()
    if isinstance(found, str) or found.function in ("", FINISH):
        return found
    return replace(found, about=view.task)


def end_subtask(view: History) -> Action:
    """Return the action that ends a subtask: a thought, no call."""
    return Action(f"done: {view.task}", "", "")


def summary_line(function: Function) -> str:
    """Return a function's name and the beginning of its description."""
    text = " ".join(clean(function.api.description or function.api.name, 2 * _LINE).split())
    return f"{function.name}: {text if len(text) <= _LINE else f'{text[:_LINE]}…'}"


def _invents(part: str, task: str) -> bool:
    """Whether a subtask states a number, date, time or identifier that the task does not."""
    return any(claim.kind != "name" for claim in trace(part, task, ()).unsupported)


@dataclass(frozen=True, slots=True)
class StepRequest:
    """What is asked at a node of the search.

    ``note`` is said by the user at the end, after ``rejected``, the reply that it sends back (""
    for none). ``several``: the model may make several calls in one reply.
    """

    view: History
    expected: ReplyConstraints
    now: datetime
    note: str = ""
    rejected: str = ""
    max_tokens: int = 512
    several: bool = False

    def documents(self) -> list[list[str]]:
        """Return the functions of a history as JSON, each in all its forms."""
        return [[_dumped(one) for one in tool_forms(each)] for each in self.view.functions]

    def observations(self) -> list[str]:
        """Return the results that stand in the request, oldest first."""
        return [step.observation for step in self.view.path]

    def request(self, shape: PromptShape) -> ChatRequest:
        """Return the conversation with what ``shape`` leaves of functions and results."""
        seen = [
            replace(step, observation=text)
            for step, text in zip(self.view.path, shape.observations, strict=True)
        ]
        tools = (*(_loaded(one) for one in shape.documents if one), no_function_fits_tool())
        names = {one.name for one in tools}
        expected = replace(
            self.expected, names=tuple(one for one in self.expected.names if one in names)
        )
        return ChatRequest(
            tuple(self._messages(seen)), tools, expected, max_tokens=self.max_tokens, now=self.now
        )

    def _messages(self, path: Sequence[Step]) -> list[Message]:
        system = prompts.SYSTEM_SEVERAL if self.several else prompts.SYSTEM
        told: list[Message] = [
            SystemMessage(system.format(today=prompts.format_calendar(self.now))),
            UserMessage(user_message(self.view)),
        ]
        for question, answer in self.view.answers:
            told += [AssistantMessage(question), UserMessage(answer)]
        for turn in _turns(path):
            results = [
                ToolMessage(step_call(step, number), step.observation) for number, step in turn
            ]
            calls = tuple(one.call for one in results)
            told += [AssistantMessage(turn[0][1].move.thought or "", calls), *results]
        if self.rejected:
            told.append(AssistantMessage(self.rejected))
        if self.note:
            told.append(UserMessage(self.note))
        return told


def _turns(path: Sequence[Step]) -> list[list[tuple[int, Step]]]:
    """Return the calls of a path with their places, those that came in one reply together."""
    turns: list[list[tuple[int, Step]]] = []
    for number, step in enumerate(path):
        if step.move.function == FINISH:
            continue
        if number and turns and path[number - 1].move.is_followed_by(step.move):
            turns[-1].append((number, step))
        else:
            turns.append([(number, step)])
    return turns


def step_call(step: Step, number: int) -> ToolCall:
    """Return a step's call, with an id that its place on the path determines."""
    return action_call(step.move, number)


def action_call(move: Action, number: int) -> ToolCall:
    """Return the call of an action, with an id that ``number`` determines."""
    return ToolCall(move.function, move.parsed, call_id(number))


def call_id(number: int) -> str:
    """Return nine alphanumerics, one id for each number."""
    return f"call{number:05d}"


def _dumped(tool: Tool) -> str:
    return json.dumps([tool.name, tool.description, tool.parameters], ensure_ascii=False)


def _loaded(document: str) -> Tool:
    name, description, parameters = json.loads(document)
    return Tool(name, description, parameters)


_GIVE_UP = "give_up_and_restart"
_GIVE_ANSWER = "give_answer"


def group_subtasks(
    need: Subtask, left: Sequence[Subtask], ready: Callable[[Subtask], bool], most: int
) -> tuple[Subtask, ...]:
    """Return ``need`` and the other open needs that one reply may serve with it.

    Only those whose values are known: what waits for a result is called for once it is there.
    """
    others = (one for one in left if one is not need and ready(one)) if most > 1 else ()
    return (need, *others)[:most]


def first_action(calls: Sequence[ToolCall], text: str, path: Sequence[Step], most: int) -> Action:
    """Return the first new call of a reply as an action, with at most ``most - 1`` others as ``also``.

    Identical calls count once, and one that stands on the path is left out, unless nothing is left
    then: the reply's first call counts. ``no_function_fits`` beside calls says nothing.
    """
    moves = [_move(one) for one in calls if one.name != NO_FUNCTION_FITS or len(calls) == 1]
    moves = list({_key(one): one for one in reversed(moves or [_move(calls[0])])}.values())[::-1]
    made = {_key(step.move) for step in path}
    fresh = [one for one in moves if _key(one) not in made] or moves[:1]
    thought = clean(text, 2000).strip() or None
    return replace(fresh[0], thought=thought, also=tuple(fresh[1:most]))


def remaining_actions(steps: Sequence[Step]) -> list[Action]:
    """Return the further calls of the replies that steps came in, without the steps themselves."""
    made = {_key(step.move) for step in steps}
    also = {_key(one): one for step in steps for one in step.move.also}
    return [one for key, one in also.items() if key not in made]


def answer_action(text: str) -> Action:
    """Return the end of a path with an answer."""
    arguments = {"return_type": _GIVE_ANSWER, "final_answer": text}
    return Action(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def give_up_action(reason: str) -> Action:
    """Return the end of a path without one."""
    arguments = {"return_type": _GIVE_UP, "reason": reason}
    return Action(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def made_calls(view: History) -> tuple[ToolCall, ...]:
    """Return the calls of a path and those tried below its end, with all of their replies.

    A call that came too early was not made, and is to be made later.
    """
    steps = (*view.path, *view.tried)
    calls = [
        step_call(step, at)
        for at, step in enumerate(steps)
        if step.move.function != FINISH and not step.early
    ]
    also = enumerate(remaining_actions(view.tried), len(steps))
    return (*calls, *(action_call(move, at) for at, move in also))


def functions_failed_by_option(view: History) -> Iterator[str]:
    """Yield the functions of which a call failed whose error names an optional argument of it."""
    optional = {
        function.name: {
            key for key, one in function.parameters.items() if one in function.api.optional
        }
        for function in view.functions
    }
    for step in (*view.path, *view.tried):
        suspects = optional.get(step.move.function, set()) & step.move.parsed.keys()
        if not step.ok and any(key in step.observation for key in suspects):
            yield step.move.function


def _move(call: ToolCall) -> Action:
    return Action(None, call.name, json.dumps(call.arguments, ensure_ascii=False))


def _key(move: Action) -> str:
    """Return the same text for the same call, whatever the order of its arguments."""
    return json.dumps([move.function, move.parsed], sort_keys=True)
