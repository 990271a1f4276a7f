"""ToolLLaMA's own conversation (spec: formats 4): what its checkpoints were fine-tuned on.

The system turn holds ToolBench's instructions, the tools and the functions as Python prints them;
then task, replies and observations follow as turns with the roles System, User, Assistant and
Function. By default former replies stand as in the training text, so that every prompt extends the
one before, and a grammar holds replies in shape; ``Fidelity`` brings back what ToolBench does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from toolsrv_registry.functions import Function, function_object, tool_list_block
from toolsrv_registry.names import function_name
from toolsrv_runtime.answers.prompts import Prompts
from toolsrv_runtime.answers.words import toolllama_system, user
from toolsrv_runtime.calls.by_schema import by_schema
from toolsrv_runtime.calls.compress import compressed
from toolsrv_runtime.calls.sizes import counted
from toolsrv_runtime.engine.base import Engine, Piece, Prompt, Reply, Sampling
from toolsrv_runtime.fidelity import Fidelity
from toolsrv_runtime.formats import asides, goes_on, grounded, react_parser, told, toolbench_env
from toolsrv_runtime.formats.base import Interrupted, Judgement, Meter, Move, Step, View
from toolsrv_runtime.formats.cutting import cut_from_left
from toolsrv_runtime.formats.fit import Shape, fit
from toolsrv_runtime.formats.react_grammar import FREE, react_grammar
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

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
        fidelity: Fidelity | None = None,
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._prompts = prompts or Prompts()
        self._words = self._prompts.words
        self._fidelity = fidelity or Fidelity()

    @property
    def name(self) -> str:
        """The format, whether it is the reference's, and whether the sentences are ours."""
        told = ["toolllama"]
        if self._fidelity.told:
            told.append(self._fidelity.told)
        if self._prompts.missing:
            told.append("own wording")
        return ", ".join(told)

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return a response as the service's reply, capped."""
        if self._fidelity.service_observations:
            return toolbench_env.observation(error, response)
        said = {"error": error, "response": "" if response is None else response}
        room = told.budget(self._engine, self._profile.observation_limit)
        named = isinstance(response, dict) and not error and by_schema(response, schema)
        return compressed(said, room, {"error": "str", "response": schema} if named else None)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
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
            return f"the reply broke off after {counted(len(reply.tokens), 'token')}"
        return replace(move, pieces=(*self._opening(shown), *self._said(move, reply)))

    def finish(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | None:
        """Return an answer with what the path holds; see ``Format.finish``."""
        tokens = self._room(max_tokens)
        _, prompt = self._fitted(view, asides.FINISH_NOW, tokens, meter)
        reply = self._ask(prompt, asides.finish_grammar(), tokens, Sampling(), stop, meter)
        return asides.read_finish(reply)

    def prefers(self, view: View, first: Step, second: Step, *, stop: Stop, meter: Meter) -> bool:
        """Whether ``first`` is the better next step; see ``Format.prefers``."""
        tokens = asides.LETTER_TOKENS
        _, prompt = self._fitted(view, asides.which(first, second), tokens, meter)
        return asides.is_first(self._ask(prompt, asides.LETTER, tokens, Sampling(), stop, meter))

    def verify(
        self,
        view: View,
        answer: str,
        untraced: Sequence[str],
        *,
        max_tokens: int,
        stop: Stop,
        meter: Meter,
    ) -> Judgement | None:
        """Return what the model says of ``answer``; see ``Verifier.verify``."""
        tokens = min(self._room(max_tokens), asides.JUDGEMENT_TOKENS)
        _, prompt = self._fitted(view, asides.judge(answer, untraced), tokens, meter)
        reply = self._ask(prompt, asides.judgement_grammar(), tokens, Sampling(), stop, meter)
        return asides.read_judgement(reply)

    def prompt(self, view: View, aside: str = "", documents: Documents | None = None) -> Prompt:
        """Return the whole conversation up to the next reply; ``aside`` is a last user's turn.

        ``documents`` are the functions' as they are to stand in it; None: whole. Cut behind the
        line break, where no vocabulary has a token across: the tokens are those of the whole text.
        """
        pieces = [
            Piece(f"System: {self._system(view, documents)}\n", shared=True),
            Piece(f"User: {user(goes_on.request(view))}\n"),
        ]
        for step in view.path:
            pieces += step.move.pieces
            pieces.append(Piece(f"\nFunction: {self._shown(step)}\n"))
        asked = (Piece(f"User: {aside}\n"),) if aside else self._diversity(view)
        return (*pieces, *asked, Piece(f"Assistant:{self._start}"))

    def _fitted(self, view: View, aside: str, room: int, meter: Meter) -> tuple[View, Prompt]:
        """Return the view that the model has room for, and its prompt, ``room`` tokens left."""
        limit = self._engine.context - room - RESERVE
        if self._fidelity.cut_from_left:
            return view, cut_from_left(self._engine, self.prompt(view, aside), limit)
        forms = [_forms(self._listed(function)) for function in view.functions]
        said = {repr(one): one for both in forms for one in both}

        def write(shape: Shape) -> tuple[View, Prompt]:
            shown = _shaped(view, shape)
            return shown, self.prompt(shown, aside, [said[one] for one in shape.documents if one])

        fitted = fit(
            [[repr(one) for one in both] for both in forms],
            [step.observation for step in (*view.tried, *view.path)],
            lambda shape: self._engine.count(write(shape)[1]),
            limit,
            task_tokens=self._engine.count((Piece(goes_on.request(view)),)),
        )
        meter.note(fitted.notes)
        return write(fitted.shape)

    @property
    def _start(self) -> str:
        """What stands between the assistant's name and a reply that is being asked for."""
        return " \n" if self._fidelity.assistant_turns == "trained" else "\n"

    def _system(self, view: View, documents: Documents | None = None) -> str:
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
        return f"{step.observation}\n{asides.REPEATED}" if again else step.observation

    def _diversity(self, view: View) -> Iterator[Piece]:
        """Yield the messages about what was tried from here, one for each time it was asked."""
        own = view.path[-1].observation if view.path else ""
        tried = [(s.move.function, s.move.arguments, s.observation) for s in view.tried]
        for count in range(1, len(tried) + 1):
            yield Piece(f"User: {self._words.diversity(tried[:count], own)}\n")

    def _opening(self, view: View) -> Iterator[Piece]:
        """Yield what stands between the last observation and a reply, once it is history."""
        yield from self._diversity(view)
        trained = self._fidelity.assistant_turns == "trained"
        yield Piece("Assistant: \n" if trained else "Assistant: ")

    def _said(self, move: Move, reply: Reply) -> Prompt:
        """Return a reply as it stands in later prompts, in the model's own tokens if it can."""
        match self._fidelity.assistant_turns:
            case "trained":
                return (Piece(reply.text, tokens=reply.tokens or None),)
            case "reply":
                return (Piece(reply.text),)
            case "thought":
                return (Piece(move.thought or ""),)

    def _move(self, reply: Reply) -> Move | None:
        spoken = react_parser.read(reply.text)
        if spoken is None or reply.finish == "length":
            return None
        return Move(*spoken)

    def _literal(self, view: View, reply: Reply) -> Move:
        """Return the move that the reference makes of a reply, whatever it says."""
        spoken = react_parser.sliced(reply.text.partition(_END)[0])
        settled = toolbench_env.settled(view.functions, spoken.action, spoken.action_input)
        if isinstance(settled, str):
            return Move(*spoken, target=settled)
        return Move(*spoken, verdict=settled)

    def _sources(self, view: View) -> Sequence[str] | None:
        if not self._profile.grounded:
            return None
        return grounded.sources(goes_on.request(view), [step.observation for step in view.path])

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
        meter: Meter,
    ) -> Reply:
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


def _shaped(view: View, shape: Shape) -> View:
    """Return a view with the observations and functions that are left of it."""
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
