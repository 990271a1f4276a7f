"""Episode: one solved task as data, with available functions, calls, responses and answer.

``HeldOutTasks`` are tasks of evaluations, which no episode may contain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from toolsrv_registry.errors import DataError


@dataclass(frozen=True, slots=True)
class Offered:
    """A function as the model sees it; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """One call. ``words``: the part of the task that it serves, copied from it.

    ``said``: argument -> the words of the task that tell it, as they stand there; arguments that an
    earlier response tells are left out of it. ``error`` is not empty where the call failed.
    ``sentence``: what the response says to these words, alone; empty for a failed call and for one
    that only supplies another call's argument.
    """

    words: str
    name: str
    arguments: Mapping[str, Any]
    said: Mapping[str, str] = field(default_factory=dict)
    response: Any = None
    error: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Episode:
    """See the module. ``now``: the date of the conversation, ISO.

    ``answer`` is what the person reads at the end. Without steps it is empty and ``reason`` says in a
    few words which function is missing. ``unserved``: parts of the task that no function serves.
    """

    source: str
    now: str
    task: str
    functions: Sequence[Offered]
    steps: Sequence[Made] = ()
    answer: str = ""
    reason: str = ""
    unserved: Sequence[str] = ()


class EpisodeError(ValueError):
    """An episode, or the data that it is made of, breaks a rule."""


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")


def require(condition: object, message: str) -> None:
    """Raise EpisodeError with the message unless the condition holds."""
    if not condition:
        raise EpisodeError(message)


def check(episode: Episode) -> None:
    """Raise EpisodeError unless an episode is consistent.

    Names of functions are unique; words, wordings of arguments and unserved parts are copies from the
    task; arguments are valid against the schema and come from the task or from an earlier step;
    every number of the answer occurs in the task, an argument, a response or an error, or counts a
    list of a response.
    """
    functions = {one.name: one for one in episode.functions}
    require(len(functions) == len(episode.functions), "two functions of one name")
    require(2 <= len(functions) <= 9, f"{len(functions)} functions")
    for name in functions:
        require(_NAME.fullmatch(name), f"name of a function: {name!r}")
    require(episode.task.strip(), "no task")
    require(bool(episode.steps) != bool(episode.reason), "either steps or a reason")
    require(bool(episode.steps) == bool(episode.answer), "steps without answer, or the reverse")
    for words in episode.unserved:
        require(words and words in episode.task, f"unserved part is not in the task: {words!r}")
    earlier = ""
    for step in episode.steps:
        require(step.name in functions, f"call of a function that is not offered: {step.name!r}")
        _check_step(step, functions[step.name], episode.task, earlier)
        earlier += _dumped(step)
    _check_numbers(episode)


def _check_step(step: Made, function: Offered, task: str, earlier: str) -> None:
    require(step.words and step.words in task, f"words are not in the task: {step.words!r}")
    require(not (step.error and step.sentence), f"a sentence for a failed call: {step.name}")
    try:
        Draft202012Validator(dict(function.parameters)).validate(step.arguments)
    except ValidationError as error:
        raise EpisodeError(f"{step.name}: {error.message}") from error
    leaves = dict(_leaves(step.arguments))
    for path, said in step.said.items():
        require(said and said in task, f"wording of {path} is not in the task: {said!r}")
        inside = any(one == path or one.startswith(f"{path}.") for one in leaves)
        require(inside, f"wording of no argument: {path!r}")
    for path, value in leaves.items():
        known = any(path == one or path.startswith(f"{one}.") for one in step.said)
        known = known or _is_listed(function.parameters, path) or _occurs(value, earlier)
        require(known, f"value from nowhere: {path} = {value!r}")


def _check_numbers(episode: Episode) -> None:
    known = " ".join((episode.task, episode.now, *map(_dumped, episode.steps)))
    counts = {str(size) for step in episode.steps for size in _sizes(step.response)}
    for number in _NUMBER.findall(episode.answer):
        occurs = re.search(rf"(?<!\d){re.escape(number)}(?!\d)", known)
        require(occurs or number in counts, f"number from nowhere: {number}")


def _dumped(step: Made) -> str:
    return json.dumps([step.arguments, step.response, step.error], ensure_ascii=False)


def _is_listed(schema: Mapping[str, Any], path: str) -> bool:
    """Whether a parameter is a flag or has listed values: these need no wording of their own."""
    for key in path.split("."):
        schema = schema.get("properties", {}).get(key, {})
    return "enum" in schema or schema.get("type") == "boolean"


def _occurs(value: Any, earlier: str) -> bool:
    if isinstance(value, list):
        return all(_occurs(one, earlier) for one in value)
    if isinstance(value, str) and ", " in value:
        return value in earlier or all(one in earlier for one in value.split(", "))
    return json.dumps(value, ensure_ascii=False).strip('"') in earlier


def _leaves(value: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    for name, one in value.items():
        if isinstance(one, Mapping):
            yield from _leaves(one, f"{under}{name}.")
        else:
            yield f"{under}{name}", one


def _sizes(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        yield len(value)
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list):
        for one in inner:
            yield from _sizes(one)


def write(episodes: Iterator[Episode], file: Path) -> int:
    """Write one episode a line and return how many."""
    count = 0
    with file.open("w", encoding="utf-8") as out:
        for one in episodes:
            out.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
            count += 1
    return count


def read(file: Path) -> Iterator[Episode]:
    """Yield the episodes of a file."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            told = json.loads(line)
            told["functions"] = tuple(Offered(**one) for one in told["functions"])
            told["steps"] = tuple(Made(**one) for one in told["steps"])
            yield Episode(**told)


RUN = 13
_HELD_OUT_WORD = re.compile(r"\w+")


class HeldOutTasks:
    """The tasks of some files of JSON lines, each with a ``task``.

    Raises:
        DataError: a file cannot be read.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._runs = {run for file in files for task in _tasks(file) for run in _runs(task)}

    def __contains__(self, task: str) -> bool:
        """Whether a task is one of them."""
        return not self._runs.isdisjoint(_runs(task))


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the runs of words of a text, all of its words where it has fewer."""
    words = tuple(_HELD_OUT_WORD.findall(text.lower()))
    for at in range(max(1, len(words) - RUN + 1)):
        yield words[at : at + RUN]


def _tasks(path: Path) -> Iterator[str]:
    try:
        for line in path.read_text("utf-8").splitlines():
            yield str(json.loads(line)["task"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"cannot read the tasks of {path}: {str(error)[:200]}",
            hint="give JSON lines, each with a task",
        ) from None
