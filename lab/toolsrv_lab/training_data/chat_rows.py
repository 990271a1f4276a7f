"""Answer files as conversations of a chat model: episodes, told in the model's own syntax, as ids.

A call that failed stays and is not learnt where its function is called again; functions are read
back from their objects. Only answers whose thoughts name words of the task (``lab annotate``) are
taken, and of give-ups only those that no function serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.conversations.build import Builder, build
from toolsrv_lab.conversations.episode import Episode, Made, Offered
from toolsrv_lab.training_data.compact import (
    ABOUT,
    OTHER_THOUGHTS,
    TOO_MANY,
    UnfitError,
    observed,
    path_to_end,
    words_of,
)
from toolsrv_lab.training_data.convert import PARTIAL, LeftOut, Progress, answer_files
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_registry.functions import FINISH
from toolsrv_runtime.outcome import TreeNode
from toolsrv_runtime.planner import layout
from toolsrv_runtime.toolbench.answer_files import Answer, read_answer, tree_of

GAVE_UP = "it gives up after calls"
_MOST_FUNCTIONS = 9


class ChatReport(BaseModel):
    """What a conversion took: episodes, rows and tokens written, ``learnt`` ones among them."""

    model_config = ConfigDict(frozen=True)

    episodes: int
    rows: int
    tokens: int
    learnt: int
    left_out: tuple[LeftOut, ...]


def write_chat(
    source: Path,
    out: Path,
    builder: Builder,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> ChatReport:
    """Write the rows of ``source``, a folder of answer files or a .jsonl file of episodes.

    Raises:
        NotFoundError: there is no such file or folder, or no .json file in it.
        DataError: nothing gives a row, or something cannot be read or written.
    """
    left_out: list[LeftOut] = []
    if source.suffix == ".jsonl" and source.is_file():
        try:
            lines = [one for one in source.read_text("utf-8").split("\n") if one.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"cannot read {source}: {error}", hint="name a file of episodes"
            ) from None
    else:
        lines = _lines(source, out, left_out, progress)
    made = build(lines, out, builder, workers=workers)
    left_out += [LeftOut(file=name, reason=why) for name, why in made.left_out]
    return ChatReport(
        episodes=len(lines), rows=made.rows, tokens=made.tokens, learnt=made.learnt,
        left_out=tuple(left_out),
    )  # fmt: skip


def _lines(
    source: Path, out: Path, left_out: list[LeftOut], progress: Progress | None
) -> list[str]:
    found = []
    files = answer_files(source, besides=out)
    for done, path in enumerate(files, start=1):
        try:
            day = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
            episode = episode_of(read_answer(path), day)
            found.append(json.dumps(asdict(episode), ensure_ascii=False))
        except ToolsrvError as error:
            left_out.append(LeftOut(file=path.name, reason=error.message))
        except UnfitError as error:
            left_out.append(LeftOut(file=path.name, reason=str(error)))
        if progress is not None:
            progress(done, len(files))
    if not found:
        why = f": {left_out[0].reason}" if left_out else ""
        raise DataError(
            f"none of the {len(files)} files in {source} gives a conversation{why}",
            hint="give answers of toolsrv lab annotate, or a .jsonl file of episodes",
        )
    return found


def episode_of(answer: Answer, now: str) -> Episode:
    """Return the episode of an answer file; ``now`` is the date when it was solved, ISO.

    Raises:
        UnfitError: the file gives none; says why.
    """
    generation = answer.answer_generation
    if answer.toolsrv is not None and not generation.valid_data:
        raise UnfitError(PARTIAL)
    *calls, end = path_to_end(tree_of(answer))
    if end.kind != "answer" and calls:
        raise UnfitError(GAVE_UP)
    steps = tuple(map(_step, calls))
    functions = _functions(generation.function, [one.name for one in steps])
    answered = end.kind == "answer"
    if answered != bool(steps):
        raise UnfitError(OTHER_THOUGHTS)
    return Episode(
        source="answers",
        now=now,
        task=generation.query,
        functions=functions,
        steps=steps,
        answer=_answer(generation.final_answer) if answered else "",
        reason="" if answered else f"no function for {end.thought.removesuffix(layout.NOTHING)}",
    )


def _step(node: TreeNode) -> Made:
    error, response = observed(node.observation)
    _, words = words_of(node)
    return Made(words, node.function, node.arguments, response=response, error=error)


def _answer(text: str) -> str:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    said = found.get("final_answer", "") if isinstance(found, dict) else found
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def _functions(objects: Sequence[Mapping[str, Any]], called: Sequence[str]) -> tuple[Offered, ...]:
    """Return the functions on offer, at most nine, the called ones among them."""
    offered = [one for one in objects if one.get("name") != FINISH]
    names = set(called)
    if len(names) > _MOST_FUNCTIONS:
        raise UnfitError(TOO_MANY)
    if not names <= {one.get("name") for one in offered}:
        raise UnfitError(OTHER_THOUGHTS)
    others = [one["name"] for one in offered if one["name"] not in names]
    taken = names | set(others[: _MOST_FUNCTIONS - len(names)])
    return tuple(_offered(one) for one in offered if one["name"] in taken)


def _offered(told: Mapping[str, Any]) -> Offered:
    _, found, about = str(told.get("description", "")).partition(ABOUT)
    shape = told.get("parameters") or {}
    properties = {
        key: {name: value for name, value in one.items() if name in ("type", "description", "enum")}
        for key, one in (shape.get("properties") or {}).items()
        if isinstance(one, Mapping)
    }
    return Offered(
        str(told["name"]),
        about.removesuffix('"') if found else str(told.get("description", "")),
        {"type": "object", "properties": properties, "required": list(shape.get("required") or [])},
    )
