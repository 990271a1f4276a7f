"""Answer files as episodes of the compact format, and as rows to train a small model on."""

from __future__ import annotations

import ast
import json
import random
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.nano.episodes import OBSERVATION_LIMIT, Episode, Row, Segment
from toolsrv_lab.nano.pipeline import HELD_OUT_ROWS
from toolsrv_lab.nano.rows import Numbers, pack, write_shard
from toolsrv_lab.nano.vocabulary import VOCABULARY, Vocabulary, make_vocabulary, read_vocabulary
from toolsrv_lab.training_data.convert import PARTIAL, LeftOut, Progress, answer_files
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_registry.functions import FINISH, Function
from toolsrv_runtime.outcome import TreeNode
from toolsrv_runtime.planner import layout
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.toolbench.answer_files import Answer, read_answer, tree_of
from toolsrv_runtime.values import facts

NO_END = "it ends neither with an answer nor with a give-up that had nothing left to try"
OTHER_THOUGHTS = "its thoughts are not the compact format's"
CUT_OFF = "an observation is cut off"
NOT_SAID = "a value is neither in the task nor in an observation as the API takes it"
TOO_MANY = "it calls more functions than the format numbers"

_THOUGHT = re.compile(rf"(?:#\d+ failed\. )?(.*?){layout.USE}\d", re.DOTALL)
_SPENT = re.compile(rf"#(\d+){re.escape(layout.GIVE_UP)}")
_NEXT = f"{layout.NOTHING}. "
ABOUT = 'The description of this function is: "'
_ARGUMENT = "the argument "  # as ``calls.arguments`` begins


class UnfitError(Exception):
    """An answer file that gives no episode; the message says why."""


@dataclass(frozen=True, slots=True)
class _Round:
    """A call of the path: the needs that nothing serves before it, its words, what came of it."""

    open: tuple[str, ...]
    words: str
    node: TreeNode
    facts: tuple[facts.Fact, ...]
    ok: bool


def row_of(answer: Answer) -> Row:
    """Return the episode of an answer file behind its list of functions.

    Raises:
        UnfitError: the file gives none; says why.
    """
    if answer.toolsrv is not None and not answer.answer_generation.valid_data:
        raise UnfitError(PARTIAL)
    nodes = tree_of(answer)
    path = path_to_end(nodes)
    rounds = [_round(node) for node in path[:-1]]
    again = [{one.words for one in rounds[at + 1 :]} for at in range(len(rounds))]
    rounds = [
        one
        for one, later in zip(rounds, again, strict=True)
        if not one.ok or one.words not in later
    ]
    functions = _functions(answer, [one.node.function for one in rounds])
    task = layout.shown(answer.answer_generation.query)
    numbers = {one.name: at for at, one in enumerate(functions, start=1)}
    segments = [
        Segment(layout.USER, markers=True), Segment(task), Segment(layout.THOUGHT, markers=True),
        *_called(rounds, functions, numbers, task), *_ended(path[-1], rounds, numbers, task),
    ]  # fmt: skip
    aims = tuple(
        (one.words, numbers[one.node.function]) for one in rounds if one.ok and one.words in task
    )
    lines = [Segment(layout.SYSTEM, markers=True)]
    lines += [Segment(layout.line(at, one)) for at, one in enumerate(functions, start=1)]
    return Row(tuple(lines), (Episode(tuple(segments), aims),))


def path_to_end(nodes: Sequence[TreeNode]) -> list[TreeNode]:
    """Return the replies down to the answer, else to a give-up that had nothing left to try.

    Raises:
        UnfitError: there is neither.
    """
    known = {node.id: node for node in nodes}
    ends = [node for node in nodes if node.kind == "answer"]
    ends += [
        node for node in nodes if node.kind == "give_up" and _is_spent(node, known[node.parent])
    ]
    if not ends:
        raise UnfitError(NO_END)
    found, node = [], ends[0]
    while node.parent >= 0:
        found.append(node)
        node = known[node.parent]
    return found[::-1]


def _is_spent(end: TreeNode, above: TreeNode) -> bool:
    """Whether a give-up follows the call that it is about, or no function serves the task."""
    if end.thought.endswith(layout.NOTHING):
        return True
    match = _SPENT.fullmatch(end.thought)
    return match is not None and above.thought.endswith(f"{layout.USE}{match[1]}")


def _round(node: TreeNode) -> _Round:
    before, words = words_of(node)
    error, response = observed(node.observation)
    found = facts.facts(response, limit=OBSERVATION_LIMIT)
    if error and not any(name == "error" for name, _ in found):
        found.insert(0, ("error", facts.plain(error)[: facts.VALUE_LIMIT]))
    return _Round(before, words, node, tuple(found), node.code == Code.OK)


def words_of(node: TreeNode) -> tuple[tuple[str, ...], str]:
    """Return the words of the task that nothing served before a call, and those that it serves.

    Raises:
        UnfitError: the thought is not the compact format's.
    """
    match = _THOUGHT.fullmatch(node.thought)
    if match is None or node.kind != "call":
        raise UnfitError(OTHER_THOUGHTS)
    *before, words = match[1].split(_NEXT)
    return tuple(before), words


def observed(text: str) -> tuple[str, Any]:
    """Return error and response of an observation in the words of ToolBench's service.

    Raises:
        UnfitError: it is cut off.
    """
    try:
        told = json.loads(text)
        error, said = str(told["error"]), str(told["response"])
    except (ValueError, KeyError, TypeError):
        raise UnfitError(CUT_OFF) from None
    try:
        return error, ast.literal_eval(said) if said else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return error, said


def _functions(answer: Answer, called: Sequence[str]) -> list[Function]:
    """Return the functions on offer that the format has numbers for, the called ones among them."""
    objects = [one for one in answer.answer_generation.function if one.get("name") != FINISH]
    names = set(called)
    if len(names) > layout.MAX_FUNCTIONS or not names <= {one.get("name") for one in objects}:
        raise UnfitError(TOO_MANY if len(names) > layout.MAX_FUNCTIONS else OTHER_THOUGHTS)
    room = layout.MAX_FUNCTIONS - len(names)
    others = [one["name"] for one in objects if one["name"] not in names][:room]
    return [_function(one) for one in objects if one["name"] in {*names, *others}]


def _function(told: Mapping[str, Any]) -> Function:
    """Return a function as far as its object tells it."""
    shape = told.get("parameters", {})
    wanted = shape.get("required", [])
    parameters = {
        key: Parameter(
            name=key,
            type=str(one.get("type", "string")).upper(),
            enum=tuple(map(str, one.get("enum", ()))),
        )
        for key, one in shape.get("properties", {}).items()
    }
    _, found, about = str(told.get("description", "")).partition(ABOUT)
    api = Api(
        id=f"//{told['name']}", category="", tool="", name=str(told["name"]),
        description=about.removesuffix('"') if found else "",
        required=tuple(one for key, one in parameters.items() if key in wanted),
        optional=tuple(one for key, one in parameters.items() if key not in wanted),
    )  # fmt: skip
    return Function(str(told["name"]), api, parameters)


def _called(
    rounds: Sequence[_Round],
    functions: Sequence[Function],
    numbers: Mapping[str, int],
    task: str,
) -> list[Segment]:
    known = {one.name: one for one in functions}
    out: list[Segment] = []
    said = facts.plain(task)
    for at, one in enumerate(rounds):
        if at and not rounds[at - 1].ok:
            out.append(_failed(rounds[at - 1], numbers))
        out += [part for words in one.open for part in _open(words)]
        name = one.node.function
        later = [other.node.function for other in rounds[at + 1 :] if other.words == one.words]
        another = bool(later) and name not in later and not _was_refused(one)
        learned = one.ok or another or at == len(rounds) - 1
        call = f"{layout.ACTION}{name}{layout.INPUT}"
        out += [
            Segment(one.words, learned),
            Segment(f"{layout.USE}{numbers[name]}", learned, True),
            Segment(call, learned, True),
            *_arguments(one, known[name], said, learned=learned),
            Segment(layout.OBSERVATION, markers=True),
            Segment(json.dumps(dict(one.facts), ensure_ascii=False)),
            Segment(layout.THOUGHT, markers=True),
        ]
        said += " " + " ".join(value for _, value in one.facts)
    return out


def _was_refused(one: _Round) -> bool:
    """Whether a call was wrong in itself, rather than its API down."""
    return any(name == "error" and _ARGUMENT in value for name, value in one.facts)


def _arguments(one: _Round, function: Function, said: str, *, learned: bool) -> list[Segment]:
    out = [Segment("{", learned, True)]
    for key, value in one.node.arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = facts.plain(text)[: facts.VALUE_LIMIT].strip()
        parameter = function.parameters.get(key)
        listed = parameter is not None and text in parameter.enum
        if learned and not listed and shown not in said:
            raise UnfitError(NOT_SAID)
        comma = "" if len(out) == 1 else ", "
        out += [
            Segment(f'{comma}"{key}": "', learned, True),
            Segment(shown, learned),
            Segment('"', learned, True),
        ]
    return [*out, Segment("}", learned, True)]


def _ended(
    end: TreeNode, rounds: Sequence[_Round], numbers: Mapping[str, int], task: str
) -> list[Segment]:
    call = f"{layout.ACTION}{FINISH}{layout.INPUT}"
    if end.kind == "answer":
        *left, _ = end.thought.split(_NEXT)
        told = "; ".join(facts.sentence(one.facts) for one in rounds if one.ok)
        return [
            *(part for words in left for part in _open(words)),
            Segment(layout.DONE, True, True), Segment(f"{call}{layout.ANSWER}", True, True),
            Segment(told, True), Segment('"}', True, True),
        ]  # fmt: skip
    quits = Segment(f"{call}{layout.QUIT}", True, True)
    if rounds and not rounds[-1].ok:
        number = numbers[rounds[-1].node.function]
        return [Segment(f"#{number}{layout.GIVE_UP}", True, True), quits]
    words = [one.removesuffix(layout.NOTHING) for one in end.thought.split("; ")]
    if not all(one in task for one in words):
        raise UnfitError(OTHER_THOUGHTS)
    return [*(part for one in words for part in _open(one)), quits]


def _failed(one: _Round, numbers: Mapping[str, int]) -> Segment:
    return Segment(f"#{numbers[one.node.function]} failed. ", True, True)


def _open(words: str) -> list[Segment]:
    return [Segment(words, True), Segment(_NEXT, True, True)]


TOO_LONG = "it is longer than a row"
SHARD = 1_000
"""Rows in a file."""

_HELD_OUT = 20  # one of so many


class CompactReport(BaseModel):
    """What a conversion took: ``rows`` for training, ``held_out`` ones, and the files left out."""

    model_config = ConfigDict(frozen=True)

    files: int
    rows: int
    held_out: int
    vocabulary: int
    left_out: tuple[LeftOut, ...]


def write_compact(
    source: Path,
    out: Path,
    *,
    vocabulary: Path | None = None,
    size: int = 8_192,
    length: int = 1_024,
    progress: Progress | None = None,
) -> CompactReport:
    """Write the rows of the answer files in ``source`` to the folder ``out``.

    ``vocabulary`` is a file of ``lab episodes``; without, one of up to ``size`` tokens is made.
    ``length`` is that of a row in tokens.

    Raises:
        NotFoundError: there is no such folder, or no .json file in it.
        DataError: no file gives a row, or something cannot be read or written.
    """
    told, left_out, files = _rows(source, out, progress)
    known = read_vocabulary(vocabulary) if vocabulary else _made([row for _, row in told], size)
    packed: list[Numbers] = []
    for name, row in told:
        numbers = pack(row, known, length, random.Random(name))
        if numbers is None:
            left_out.append(LeftOut(file=name, reason=TOO_LONG))
        else:
            packed.append(numbers)
    if not packed:
        why = f": {left_out[0].reason}" if left_out else ""
        raise DataError(
            f"none of the {files} files in {source} gives a row{why}",
            hint="give answers of toolsrv lab annotate, whose thoughts name words and functions",
        )
    held_out = packed[::_HELD_OUT]
    rows = [one for at, one in enumerate(packed) if at % _HELD_OUT] or held_out
    _write(out, known, vocabulary, rows, held_out)
    return CompactReport(
        files=files, rows=len(rows), held_out=len(held_out), vocabulary=len(known),
        left_out=tuple(left_out),
    )  # fmt: skip


def _rows(
    source: Path, out: Path, progress: Progress | None
) -> tuple[list[tuple[str, Row]], list[LeftOut], int]:
    found: list[tuple[str, Row]] = []
    left_out: list[LeftOut] = []
    files = answer_files(source, besides=out / VOCABULARY)
    for done, path in enumerate(files, start=1):
        try:
            found.append((path.name, row_of(read_answer(path))))
        except ToolsrvError as error:
            left_out.append(LeftOut(file=path.name, reason=error.message))
        except UnfitError as error:
            left_out.append(LeftOut(file=path.name, reason=str(error)))
        if progress is not None:
            progress(done, len(files))
    return found, left_out, len(files)


def _made(rows: list[Row], size: int) -> Vocabulary:
    return make_vocabulary(
        (part for row in rows for part in (row.functions, *(e.segments for e in row.episodes))),
        size,
    )


def _write(
    out: Path,
    known: Vocabulary,
    vocabulary: Path | None,
    rows: list[Numbers],
    held_out: list[Numbers],
) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if vocabulary is None:
            known.save(out / VOCABULARY)
        elif vocabulary.resolve() != (out / VOCABULARY).resolve():
            shutil.copyfile(vocabulary, out / VOCABULARY)
        about: dict[str, object] = {"source": "answer files"}
        write_shard(out / HELD_OUT_ROWS, held_out, about)
        for at in range(0, len(rows), SHARD):
            shard = out / f"rows-{at // SHARD:04}.npz"
            write_shard(shard, rows[at : at + SHARD], about)
    except OSError as error:
        raise DataError(
            f"cannot write {error.filename or out}: {error.strerror or error}",
            hint="free some space, or name another folder",
        ) from error
