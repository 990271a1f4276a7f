"""ToolLLaMA's conversation format: prompt, grammar and parser.

The system turn holds ToolBench's instructions, the tools and the functions as Python prints them.
Task, replies and observations follow as turns with the roles System, User, Assistant and Function.
By default former replies stand as in the training text, so that every prompt extends the one
before, and a grammar holds a reply to thought, action and action input. ``ReferenceMode`` restores
what ToolBench does, including the cut from the left. ``parse_sliced`` reads a reply exactly as the
reference does; ``parse_reply`` agrees on well-formed text and repairs the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from toolsrv_registry.functions import Function, function_object, tool_list_block
from toolsrv_registry.names import function_name
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.fitting import PromptShape, fit_prompt
from toolsrv_runtime.calls.compress import compress, count_text, filter_by_schema
from toolsrv_runtime.contract.format import (
    FINISH,
    Action,
    History,
    Interrupted,
    Judgement,
    Step,
    UsageMeter,
)
from toolsrv_runtime.contract.models import Completion, Engine, Piece, Prompt, Sampling
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates import grammar_rules
from toolsrv_runtime.templates.grammar_rules import lark_literal
from toolsrv_runtime.toolbench import environment
from toolsrv_runtime.toolbench.prompts import Prompts, toolllama_system, user_message
from toolsrv_runtime.toolbench.reference import ReferenceMode


def cut_from_left(engine: Engine, prompt: Prompt, limit: int) -> Prompt:
    """Return the end of a prompt, as much as has at most ``limit`` tokens.

    The cut falls between characters; the reference's falls between tokens. Asks the engine
    O(log characters) times.
    """
    if engine.count(prompt) <= limit:
        return prompt
    text = "".join(piece.text for piece in prompt)
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if engine.count((Piece(text[middle:]),)) <= limit:
            high = middle
        else:
            low = middle + 1
    return (Piece(text[low:]),)


THOUGHT = "Thought: "
ACTION = "\nAction: "
INPUT = "\nAction Input: "


class ReactReply(NamedTuple):
    """The parts of a reply, as text."""

    thought: str
    action: str
    action_input: str


def parse_sliced(text: str) -> ReactReply:
    """Return what the reference cuts out of a reply, first occurrences, without repair.

    A marker that is missing counts as found one character before the text, so its slices are
    odd parts of the text; nothing is stripped, and nothing is refused.
    """
    thought = text[_behind(text, THOUGHT) : text.find(ACTION)]
    action = text[_behind(text, ACTION[1:]) : text.find(INPUT)]
    return ReactReply(thought, action, text[_behind(text, INPUT[1:]) :])


def parse_reply(text: str) -> ReactReply | None:
    """Return the parts of a reply, or None where it names no function.

    The markers count at the beginning of a line only, in any case and with or without a blank
    behind them. The input is the JSON value it begins with: what a model makes up behind it is
    dropped.
    """
    parts: dict[str, list[str]] = {}
    part = "thought"
    for line in text.replace("\r\n", "\n").split("\n"):
        for name in ("thought", "action", "action input"):
            head, colon, rest = line.partition(":")
            if colon and head.strip().lower() == name and name not in parts:
                part, line = name, rest  # noqa: PLW2901 - the marker is not part of the text
                break
        parts.setdefault(part, []).append(line)
    action = "\n".join(parts.get("action", ())).strip()
    if not action:
        return None
    thought = "\n".join(parts.get("thought", ())).strip()
    return ReactReply(thought, action, _value("\n".join(parts.get("action input", ())).strip()))


def _behind(text: str, marker: str) -> int:
    return text.find(marker) + len(marker)


def _value(text: str) -> str:
    """Return the JSON value that a text begins with; the whole text where there is none."""
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return text
    return text[:end]


FREE = "start: /(?s:.+)/\n"
"""Any text of at least one character."""

_TIGHT = {"whitespace_flexible": False}
_SPACED = {**_TIGHT, "item_separator": ", ", "key_separator": ": "}


def react_grammar(
    functions: Sequence[Function],
    sources: Sequence[str] | None = None,
    *,
    spaced: bool = True,
    silent: bool = True,
) -> str:
    """Return the grammar of a reply: a thought, then an available function or Finish.

    With ``sources`` the texts among the arguments are held to what stands there. ``spaced``: JSON
    has blanks after commas and colons; ``silent``: the thought may be empty.
    """
    spelling = _SPACED if spaced else _TIGHT
    rules = [] if sources is None else [grammar_rules.words_rule("WORDS", sources)]
    calls = []
    for index, function in enumerate(functions):
        schema = function.argument_schema()
        if sources is None:
            rules.append(_json_rule(f"a{index}", schema, spelling))
        else:
            rules.append(grammar_rules.object_rules(f"a{index}", schema, "WORDS"))
        calls.append(f"{lark_literal(function.name + INPUT)} a{index}")
    rules += [_json_rule("answer", _ANSWER, spelling), _json_rule("quit", _QUIT, spelling)]
    calls.append(f"{lark_literal(FINISH + INPUT)} (answer | quit)")
    thought = f"/[^\\n]{{{0 if silent else 1},400}}/"
    start = f"start: {lark_literal(THOUGHT)} {thought} {lark_literal(ACTION)} ({' | '.join(calls)})"
    return "\n".join([start, *rules]) + "\n"


def _json_rule(name: str, schema: dict[str, Any], spelling: dict[str, Any]) -> str:
    spelled = {**schema, "x-guidance": spelling}
    return f"{name}: %json {json.dumps(spelled, ensure_ascii=False)}"


def _finish(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_ANSWER = _finish(
    return_type={"const": "give_answer"},
    final_answer={"type": "string", "minLength": 1, "maxLength": 2000},
)
_QUIT = _finish(return_type={"const": "give_up_and_restart"})


RESERVE = 8
"""Tokens that the reference leaves free besides those of a reply."""

_STRIDE = 1_000_003  # replies of one solve never reach it, so seeds do not overlap
_END = "</s>"

Documents = Sequence[dict[str, Any]]
"""Function objects as they are to stand in a prompt."""


class ToolllamaFormat:
    """See the module. ``prompts`` are the sentences that stand in it."""

    def __init__(
        self,
        engine: Engine,
        profile: Profile,
        *,
        prompts: Prompts | None = None,
        fidelity: ReferenceMode | None = None,
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._prompts = prompts or Prompts()
        self._words = self._prompts.words
        self._fidelity = fidelity or ReferenceMode()

    @property
    def name(self) -> str:
        """The format, whether it is the reference's, and whether the sentences are ours."""
        told = ["toolllama"]
        if self._fidelity.label:
            told.append(self._fidelity.label)
        if self._prompts.missing:
            told.append("own wording")
        return ", ".join(told)

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return a response as the service's reply, capped."""
        if self._fidelity.service_observations:
            return environment.truncate_observation(error, response)
        said = {"error": error, "response": "" if response is None else response}
        room = prompts.observation_tokens(self._engine, self._profile.observation_limit)
        named = isinstance(response, dict) and not error and filter_by_schema(response, schema)
        return compress(said, room, {"error": "str", "response": schema} if named else None)

    def propose(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | str:
        """Return the next action; see ``Format.propose``."""
        literal = self._fidelity.literal_replies
        seed = view.seed * _STRIDE + meter.replies + 1
        tokens = self._room(max_tokens)
        shown, prompt = self._fitted(view, "", tokens, meter)
        reply = self._ask(
            prompt,
            FREE if literal else react_grammar(shown.functions, self._sources(view)),
            tokens,
            Sampling(self._profile.temperature, self._profile.top_p, seed=seed),
            stop,
            meter,
        )
        move = self._literal(view, reply) if literal else self._move(reply)
        if move is None:
            return f"the reply broke off after {count_text(len(reply.tokens), 'token')}"
        return replace(move, pieces=(*self._opening(shown), *self._assistant_turn(move, reply)))

    def finish(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | None:
        """Return an answer with what the path holds; see ``Format.finish``."""
        tokens = self._room(max_tokens)
        _, prompt = self._fitted(view, prompts.FINISH_PROMPT, tokens, meter)
        reply = self._ask(prompt, prompts.finish_grammar(), tokens, Sampling(), stop, meter)
        return prompts.read_finish(reply)

    def prefers(
        self, view: History, first: Step, second: Step, *, stop: Stop, meter: UsageMeter
    ) -> bool:
        """Whether ``first`` is the better next step; see ``Format.prefers``."""
        tokens = prompts.LETTER_TOKENS
        _, prompt = self._fitted(view, prompts.comparison_question(first, second), tokens, meter)
        return prompts.prefers_first(
            self._ask(prompt, prompts.LETTER_GRAMMAR, tokens, Sampling(), stop, meter)
        )

    def verify(
        self,
        view: History,
        answer: str,
        untraced: Sequence[str],
        *,
        max_tokens: int,
        stop: Stop,
        meter: UsageMeter,
    ) -> Judgement | None:
        """Return what the model says of ``answer``; see ``Verifier.verify``."""
        tokens = min(self._room(max_tokens), prompts.JUDGEMENT_TOKENS)
        _, prompt = self._fitted(view, prompts.judgement_question(answer, untraced), tokens, meter)
        reply = self._ask(prompt, prompts.judgement_grammar(), tokens, Sampling(), stop, meter)
        return prompts.read_judgement(reply)

    def prompt(self, view: History, aside: str = "", documents: Documents | None = None) -> Prompt:
        """Return the whole conversation up to the next reply; ``aside`` is a last user's turn.

        ``documents`` are the functions' as they are to stand in it; None: whole. Cut behind the
        line break, where no vocabulary has a token across: the tokens are those of the whole text.
        """
        pieces = [
            Piece(f"System: {self._system(view, documents)}\n", shared=True),
            Piece(f"User: {user_message(prompts.task_with_earlier_runs(view))}\n"),
        ]
        for step in view.path:
            pieces += step.move.pieces
            pieces.append(Piece(f"\nFunction: {self._shown(step)}\n"))
        asked = (Piece(f"User: {aside}\n"),) if aside else self._diversity(view)
        return (*pieces, *asked, Piece(f"Assistant:{self._start}"))

    def _fitted(
        self, view: History, aside: str, room: int, meter: UsageMeter
    ) -> tuple[History, Prompt]:
        """Return the history that fits the context, and its prompt, ``room`` tokens left."""
        limit = self._engine.context - room - RESERVE
        if self._fidelity.cut_from_left:
            return view, cut_from_left(self._engine, self.prompt(view, aside), limit)
        forms = [_forms(self._listed(function)) for function in view.functions]
        said = {repr(one): one for both in forms for one in both}

        def write(shape: PromptShape) -> tuple[History, Prompt]:
            shown = _shaped(view, shape)
            return shown, self.prompt(shown, aside, [said[one] for one in shape.documents if one])

        fitted = fit_prompt(
            [[repr(one) for one in both] for both in forms],
            [step.observation for step in (*view.tried, *view.path)],
            lambda shape: self._engine.count(write(shape)[1]),
            limit,
            task_tokens=self._engine.count((Piece(prompts.task_with_earlier_runs(view)),)),
        )
        meter.note(fitted.notes)
        return write(fitted.shape)

    @property
    def _start(self) -> str:
        """What stands between the assistant's name and a reply that is being asked for."""
        return " \n" if self._fidelity.assistant_turns == "trained" else "\n"

    def _system(self, view: History, documents: Documents | None = None) -> str:
        tools = tool_list_block((f.api.tool_key, f.api.tool_description) for f in view.functions)
        if documents is None:
            documents = [self._listed(function) for function in view.functions]
        listed = [*documents, self._prompts.finish_entry]
        return toolllama_system(self._words.system(tools), listed)

    def _listed(self, function: Function) -> dict[str, Any]:
        api = function.api
        shared = function_name(api.name, api.tool) if self._fidelity.match_suffix else None
        return function_object(api, name=shared or function.name, literal=True)

    def _shown(self, step: Step) -> str:
        again = step.repeats and not self._fidelity.literal_replies
        return f"{step.observation}\n{prompts.REPEATED_CALL_NOTE}" if again else step.observation

    def _diversity(self, view: History) -> Iterator[Piece]:
        """Yield the messages about what was tried from here, one for each time it was asked."""
        own = view.path[-1].observation if view.path else ""
        tried = [(s.move.function, s.move.arguments, s.observation) for s in view.tried]
        for count in range(1, len(tried) + 1):
            yield Piece(f"User: {self._words.diversity(tried[:count], own)}\n")

    def _opening(self, view: History) -> Iterator[Piece]:
        """Yield what stands between the last observation and a reply, once it is history."""
        yield from self._diversity(view)
        trained = self._fidelity.assistant_turns == "trained"
        yield Piece("Assistant: \n" if trained else "Assistant: ")

    def _assistant_turn(self, move: Action, reply: Completion) -> Prompt:
        """Return a reply as it stands in later prompts, in the model's own tokens if it can."""
        match self._fidelity.assistant_turns:
            case "trained":
                return (Piece(reply.text, tokens=reply.tokens or None),)
            case "reply":
                return (Piece(reply.text),)
            case "thought":
                return (Piece(move.thought or ""),)

    def _move(self, reply: Completion) -> Action | None:
        spoken = parse_reply(reply.text)
        if spoken is None or reply.finish == "length":
            return None
        return Action(*spoken)

    def _literal(self, view: History, reply: Completion) -> Action:
        """Return the action that the reference reads from a reply, whatever it says."""
        spoken = parse_sliced(reply.text.partition(_END)[0])
        settled = environment.result_without_call(
            view.functions, spoken.action, spoken.action_input
        )
        if isinstance(settled, str):
            return Action(*spoken, target=settled)
        return Action(*spoken, verdict=settled)

    def _sources(self, view: History) -> Sequence[str] | None:
        if not self._profile.grounded:
            return None
        return grammar_rules.grounding_texts(
            prompts.task_with_earlier_runs(view), [step.observation for step in view.path]
        )

    def _room(self, max_tokens: int) -> int:
        """Return how many tokens a reply may have: never more than half of the context."""
        return max(1, min(max_tokens, self._profile.max_reply_tokens, self._engine.context // 2))

    def _ask(
        self,
        prompt: Prompt,
        grammar: str,
        max_tokens: int,
        sampling: Sampling,
        stop: Stop,
        meter: UsageMeter,
    ) -> Completion:
        meter.replies += 1
        reply = meter.reply(
            self._engine.generate(
                prompt, grammar=grammar, max_tokens=max_tokens, sampling=sampling, stop=stop
            )
        )
        if reply.finish == "stopped":
            raise Interrupted
        return reply


def _forms(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a function's document whole, and without what describes it."""
    parameters = document["parameters"]
    kept = {key: {"type": one["type"]} for key, one in parameters["properties"].items()}
    bare = {**document, "description": "", "parameters": {**parameters, "properties": kept}}
    return document, bare


def _shaped(view: History, shape: PromptShape) -> History:
    """Return a history with the observations and functions that are left of it."""
    steps = [
        replace(step, observation=text)
        for step, text in zip((*view.tried, *view.path), shape.observations, strict=True)
    ]
    pairs = zip(view.functions, shape.documents, strict=True)
    return replace(
        view,
        tried=tuple(steps[: len(view.tried)]),
        path=tuple(steps[len(view.tried) :]),
        functions=tuple(function for function, document in pairs if document),
    )
