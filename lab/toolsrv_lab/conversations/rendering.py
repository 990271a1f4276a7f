"""Rendering of episodes as a model's conversations, and as token ids.

Prompts are those of the agent; replies are the training targets. Ids come from the base's own
tokenizer.
"""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from toolsrv_lab.conversations.episode import Episode, Made, Offered
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.answering import DataQuestion
from toolsrv_runtime.agent.fitting import PromptShape
from toolsrv_runtime.agent.prompts import (
    NO_FUNCTION_FITS,
    SHORT_LIMIT,
    make_tool,
    no_function_fits_tool,
)
from toolsrv_runtime.calls.compress import TextBudget
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.gguf_header import read_header
from toolsrv_runtime.templates.tool_template import ToolTemplate

_ROOMS = (400, 700, 1_000, 1_600, 2_400)
"""Characters of a response."""
_ASSISTANT = "<|im_start|>assistant\n"
_END = "<|im_end|>"
_TURN = re.compile(r"(<\|im_start\|>assistant\n)(.*?<\|im_end\|>)", re.DOTALL)
_HINTED, _HINT_LEFT_OUT, _HINT_WRONG = 0.75, 0.12, 0.03
_TRIED = 0.06


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation in pieces: text, and whether a model is to learn it."""

    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A reply without a call; ``functions`` are those that the reply may name."""

    now: str
    task: str
    functions: tuple[str, ...]
    reply: str


class EpisodeRenderer:
    """Tells episodes in the syntax of one template."""

    def __init__(self, template: ToolTemplate) -> None:
        self._template = template

    def rows(self, episode: Episode, rng: random.Random) -> Iterator[Row]:
        """Yield the conversations of one episode."""
        if "<|im_" in json.dumps([episode.task, episode.answer]):
            return
        one = _Rendering(episode, rng)
        yield self._row(one.request(len(episode.steps)), one.ending(self._write), one.unlearnt)
        steps = [at for at, step in enumerate(episode.steps) if not step.error]
        for at in rng.sample(steps, min(len(steps), rng.choice((0, 1, 1, 2)))):
            if (note := one.note(at)) or at:
                tried = one.tried()
                yield self._row(
                    one.request(at, f"{tried}\n{note}".strip()),
                    self._write(one.calls[at]),
                    range(at),
                )
        questions = list(one.questions())
        for question, answer in rng.sample(questions, min(len(questions), rng.choice((1, 1, 2)))):
            request = question.request(PromptShape((), question.data))
            if rng.random() > 0.25:
                request = replace(request, messages=(request.messages[0], request.messages[-1]))
            yield self._row(request, answer, range(9))

    def talk(self, one: Conversation) -> Row:
        """Return a reply without a call as the agent asks for it."""
        now = datetime.fromisoformat(one.now)
        system = prompts.ITSELF.format(
            today=prompts.format_date(now), examples=", ".join(one.functions)
        )
        request = ChatRequest((SystemMessage(system), UserMessage(one.task)), now=now)
        return self._row(request, one.reply, ())

    def _write(self, call: ToolCall) -> str:
        return self._template.call_syntax.write([call])

    def _row(self, request: ChatRequest, reply: str, unlearnt: Sequence[int]) -> Row:
        text = "".join(piece.text for piece in self._template.render(request))
        if not text.endswith(_ASSISTANT):
            raise ValueError("the template leaves no room for a reply")
        whole = f"{text}{reply}{_END}"
        pieces: list[tuple[str, bool]] = []
        end = 0
        turns = list(_TURN.finditer(whole))
        for number, found in enumerate(turns):
            learnt = number not in unlearnt or number == len(turns) - 1
            pieces += [(whole[end : found.start(2)], False), (found[2], learnt)]
            end = found.end()
        return Row(tuple(pieces))


class _Rendering:
    """One episode with what is drawn for it once."""

    def __init__(self, episode: Episode, rng: random.Random) -> None:
        self._episode = episode
        self._rng = rng
        self._now = datetime.fromisoformat(episode.now) + timedelta(hours=rng.randrange(24))
        form = rng.choices(("whole", "short", "bare"), (80, 15, 5))[0]
        self._tools = (*(_tool(one, form) for one in episode.functions), no_function_fits_tool())
        schemas = {one.name: one.parameters for one in episode.functions}
        room = rng.choice(_ROOMS)
        self.calls = [
            ToolCall(step.name, _ordered(step.arguments, schemas[step.name]), f"call{at:05d}")
            for at, step in enumerate(episode.steps)
        ]
        self._seen = [
            prompts.render_observation(step.response, step.error, TextBudget(room))
            for step in episode.steps
        ]
        later = [{one.name for one in episode.steps[at + 1 :]} for at in range(len(episode.steps))]
        # Learnt are no calls whose arguments were wrong.
        self.unlearnt = [
            at for at, step in enumerate(episode.steps) if step.error and step.name in later[at]
        ]

    def request(self, steps: int, note: str = "") -> ChatRequest:
        """Return the conversation behind so many steps, with ``note`` at its end."""
        system = prompts.SYSTEM.format(today=prompts.format_calendar(self._now))
        messages: list[Message] = [SystemMessage(system), UserMessage(self._episode.task)]
        for call, seen in zip(self.calls[:steps], self._seen, strict=False):
            messages += [AssistantMessage("", (call,)), ToolMessage(call, seen)]
        if note:
            messages.append(UserMessage(note))
        return ChatRequest(tuple(messages), self._tools, now=self._now)

    def ending(self, write: Any) -> str:
        """Return what the model says at the end."""
        if self._episode.answer:
            return self._episode.answer
        return str(write(ToolCall(NO_FUNCTION_FITS, {"reason": self._episode.reason})))

    def note(self, at: int) -> str:
        """Return what the agent says before a step: the part that is open, words for values."""
        step, rng = self._episode.steps[at], self._rng
        lines = [prompts.open_parts_note([step.words])] if at else []
        if rng.random() < _HINTED and (hint := self._hint(step)):
            lines.append(prompts.VALUES.format(hint=hint))
        return "\n".join(lines)

    def tried(self) -> str:
        """Return what was tried in vain, now and then."""
        names = {one.name for one in self._episode.steps}
        others = [one for one in self._episode.functions if one.name not in names]
        if not others or self._rng.random() > _TRIED:
            return ""
        other = self._rng.choice(others)
        row = {"name": other.name, "arguments": "{}", "result": '{"error": "not found"}'}
        return prompts.TRIED.format(calls=json.dumps(row, ensure_ascii=False))

    def questions(self) -> Iterator[tuple[DataQuestion, str]]:
        """Yield what is asked about the data of the calls, with the answer."""
        found = [
            (step, _data(self.calls[at], self._seen[at]))
            for at, step in enumerate(self._episode.steps)
            if not step.error
        ]
        if not found:
            return
        failed = len(found) < len(self._episode.steps) or self._episode.unserved
        said = " ".join(step.sentence for step, _ in found if step.sentence)
        answer = said if failed else self._episode.answer
        if answer:
            yield self._question(self._episode.task, [data for _, data in found]), answer
        if len(found) > 1:
            for step, data in found:
                if step.sentence:
                    yield self._question(step.words, [data]), step.sentence

    def _question(self, text: str, data: Sequence[str]) -> DataQuestion:
        return DataQuestion(text, tuple(data), self._now, 0)

    def _hint(self, step: Made) -> str:
        rng, pairs = self._rng, []
        others = [said for one in self._episode.steps for said in one.said.values()]
        for key, said in step.said.items():
            if rng.random() < _HINT_LEFT_OUT:
                continue
            words = rng.choice(others) if rng.random() < _HINT_WRONG else said
            if len(words) <= 80:
                pairs.append(f"{key}: {json.dumps(words, ensure_ascii=False)}")
        return f"{step.name}: {', '.join(pairs)}" if pairs else ""


def _data(call: ToolCall, seen: str) -> str:
    try:
        response = json.loads(seen)
    except ValueError:
        response = seen
    if isinstance(response, dict):
        return json.dumps({**call.arguments, **response}, ensure_ascii=False)
    return json.dumps({**call.arguments, "result": response}, ensure_ascii=False)


def _ordered(arguments: Any, schema: Any) -> dict[str, Any]:
    """Return arguments in the schema's order: the order in which the grammar lets them be written."""
    properties = schema.get("properties", {})
    return {key: arguments[key] for key in properties if key in arguments}


def _tool(offered: Offered, form: str) -> Tool:
    schema = offered.parameters
    properties = schema.get("properties", {})
    text = offered.description.strip()
    if form != "whole":
        properties = {
            key: {name: value for name, value in one.items() if name != "description"}
            for key, one in properties.items()
        }
        text = text if len(text) <= SHORT_LIMIT else f"{text[:SHORT_LIMIT]}…"
    text = "" if form == "bare" else text[:600]
    return make_tool(offered.name, text, properties, schema.get("required", []))


def tokenizer(base: Path) -> Tokenizer:
    """Return the tokenizer of a GGUF file with the pre-tokenizer ``smollm``.

    Raises:
        ModelError: no such file, or no GGUF.
        UsageError: one with another pre-tokenizer.
    """
    header = read_header(base)
    pre = str(header.metadata.get("tokenizer.ggml.pre") or "none")
    if pre != "smollm":
        raise UsageError(
            f"{base.name!r} has the pre-tokenizer {pre[:40]!r}, which is not known here",
            hint="take a GGUF file of SmolLM2 as the base",
        )
    fields = gguf.GGUFReader(base).fields

    def value(key: str) -> Any:
        return fields[f"tokenizer.ggml.{key}"].contents()

    tokens, kinds = value("tokens"), value("token_type")
    merges = [tuple(one.split(" ")) for one in value("merges")]
    found = Tokenizer(models.BPE({one: at for at, one in enumerate(tokens)}, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    found.decoder = decoders.ByteLevel()
    special = [one for one, kind in zip(tokens, kinds, strict=True) if kind == 3]
    found.add_special_tokens([AddedToken(one, normalized=False) for one in special])
    return found


def token_ids(row: Row, by: Tokenizer) -> tuple[list[int], list[bool]]:
    """Return a row's ids and which of them are learnt."""
    ids: list[int] = []
    learnt: list[bool] = []
    for text, learn in row.pieces:
        found = by.encode(text, add_special_tokens=False).ids
        ids += found
        learnt += [learn] * len(found)
    return ids, learnt


def write_ids(rows: Iterable[tuple[list[int], list[bool]]], file: Path) -> dict[str, int]:
    """Write rows and return how many rows, tokens and learnt tokens there are.

    Raises DataError: there are none, or the file cannot be written.
    """
    ends, ids, learnt = [], [], []
    total = 0
    for row, mask in rows:
        ids.append(np.array(row, np.uint16))
        learnt.append(np.array(mask, bool))
        total += len(row)
        ends.append(total)
    if not ends:
        raise DataError("no episode gives a row", hint="see what was left out, and why")
    masks = np.concatenate(learnt)
    head = json.dumps({"rows": len(ends), "tokens": total}).encode()
    raw = b"".join(
        [len(head).to_bytes(8, "little"), head, np.array(ends, np.uint32).tobytes(),
         np.concatenate(ids).tobytes(), np.packbits(masks).tobytes()]
    )  # fmt: skip
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 1 << 26}]
    try:
        file.write_bytes(lzma.compress(raw, format=lzma.FORMAT_XZ, filters=filters))
    except OSError as error:
        raise DataError(
            f"cannot write {file}: {error.strerror}", hint="name another file with --out"
        ) from None
    return {"rows": len(ends), "tokens": total, "learnt": int(masks.sum())}
