"""Answer files as one training file, ``toolllama_G123_dfs_train.json``."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, TypedDict

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError
from toolsrv_runtime.files import check_target, open_atomic_text
from toolsrv_runtime.toolbench.answer_files import (
    Answer,
    AnswerConversation,
    AnswerMessage,
    read_answer,
)
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


Progress = Callable[[int, int], None]

NOT_VALID = "the search found no answer (valid_data is false)"
GIVE_UP = "the search gave up"
OTHER_METHOD = "its name does not hold {!r}"
NO_REPLIES = "no conversation in it gives an instance"

_HINT = "give a folder of answer files, as toolsrv solve --save-answer or ToolBench write them"


class LeftOut(BaseModel):
    """A file that was not taken, and why."""

    model_config = ConfigDict(frozen=True)

    file: str
    reason: str


class Report(BaseModel):
    """What a conversion took.

    ``files`` were seen, ``taken`` of them gave ``instances``; ``give_ups`` of the taken ones end
    with a give-up. ``skipped`` counts, by reason, the conversations of taken files that gave none.
    """

    model_config = ConfigDict(frozen=True)

    files: int
    taken: int
    give_ups: int
    instances: int
    skipped: dict[str, int]
    left_out: tuple[LeftOut, ...]


def convert(
    source: Path,
    out: Path,
    *,
    method: str = "",
    give_ups: bool = True,
    thoughts: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write the training file of the answer files in ``source`` (a folder, or one file) to ``out``.

    ``method`` takes only files whose name holds it, as ToolBench does. ``give_ups`` False leaves
    out searches that ended with a give-up, as the paper says and ToolBench's program does not.
    ``thoughts`` keeps the thoughts that its program loses. The file appears when it is complete.

    Raises:
        NotFoundError: there is no such folder, or no .json file in it.
        UsageError: no file can be made at ``out``.
        DataError: no file gives an instance, or ``out`` cannot be written.
    """
    check_target(out)
    files = answer_files(source, besides=out)
    work = _Conversion(method, give_ups=give_ups, thoughts=thoughts)
    with open_atomic_text(out) as file:
        listed = _JsonList(file)
        for done, path in enumerate(files, start=1):
            name = path.relative_to(source).as_posix() if path != source else path.name
            for instance in work.instances(path, name):
                listed.add(instance)
            if progress is not None:
                progress(done, len(files))
        listed.close()
        if not listed.count:
            raise _nothing(source, work.left_out)
    return Report(
        files=len(files),
        taken=len(files) - len(work.left_out),
        give_ups=work.gave_up,
        instances=listed.count,
        skipped=dict(sorted(work.skipped.items())),
        left_out=tuple(work.left_out),
    )


def answer_files(source: Path, *, besides: Path) -> list[Path]:
    """Return the .json files below a folder in the order of their paths, or the one file given.

    Hidden ones, linked folders and ``besides`` are passed over.

    Raises:
        NotFoundError: there is no such folder, or no .json file in it.
        DataError: a folder cannot be read.
    """
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise NotFoundError(f"{source} does not exist", hint=_HINT)
    found = []
    for folder, below, names in os.walk(source, onerror=_unreadable):
        below[:] = [one for one in below if not one.startswith(".")]
        paths = [Path(folder) / name for name in names if not name.startswith(".")]
        found += [path for path in paths if path.suffix.lower() == ".json" and path.is_file()]
    here = besides.resolve()
    found = [path for path in found if path.resolve() != here]
    if not found:
        raise NotFoundError(f"there is no .json file in {source}", hint=_HINT)
    return sorted(found, key=lambda path: path.relative_to(source).as_posix())


class _Conversion:
    """Counts while files are taken one after the other."""

    def __init__(self, method: str, *, give_ups: bool, thoughts: bool) -> None:
        self._method = method
        self._give_ups = give_ups
        self._thoughts = thoughts
        self.skipped: Counter[str] = Counter()
        self.left_out: list[LeftOut] = []
        self.gave_up = 0

    def instances(self, path: Path, name: str) -> list[Instance]:
        """Return a file's instances; none where it is left out."""
        try:
            if self._method not in path.name:
                return self._leave(name, OTHER_METHOD.format(self._method))
            answer = read_answer(path)
            if reason := self._unfit(answer):
                return self._leave(name, reason)
            skipped: Counter[str] = Counter()
            found = list(instances_of(answer, skipped, thoughts=self._thoughts))
        except ToolsrvError as error:
            return self._leave(name, error.message)
        if not found:
            return self._leave(name, NO_REPLIES)
        self.skipped += skipped
        self.gave_up += answer.answer_generation.finish_type == "give_up"
        return found

    def _unfit(self, answer: Answer) -> str:
        if not answer.answer_generation.valid_data:
            partial = answer.toolsrv is not None and answer.toolsrv.answer
            return f"{PARTIAL} (valid_data is false)" if partial else NOT_VALID
        gave_up = answer.answer_generation.finish_type == "give_up"
        return GIVE_UP if gave_up and not self._give_ups else ""

    def _leave(self, name: str, reason: str) -> list[Instance]:
        self.left_out.append(LeftOut(file=name, reason=reason))
        return []


class _JsonList:
    """A JSON list written element by element, as ``json.dump(…, indent=4)`` writes the whole."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.count = 0

    def add(self, value: Instance) -> None:
        text = json.dumps(value, ensure_ascii=False, indent=4).replace("\n", "\n    ")
        self._file.write(f"{',' if self.count else '['}\n    {text}")
        self.count += 1

    def close(self) -> None:
        self._file.write("\n]" if self.count else "[]")


def _nothing(source: Path, left_out: list[LeftOut]) -> DataError:
    if source.is_file():
        return DataError(f"{source} gives no training text: {left_out[0].reason}", hint=_HINT)
    reason, most = Counter(one.reason for one in left_out).most_common(1)[0]
    return DataError(
        f"none of the {len(left_out)} files in {source} gives training text; {most} of them: {reason}",
        hint=_HINT,
    )


def _unreadable(error: OSError) -> None:
    raise DataError(f"cannot read {error.filename}: {error.strerror}", hint=_HINT) from error
