"""The compact format of the model that ships, and the help that a small model needs.

Layout: numbered functions after ``System:``, then ``User:``, and per round a thought that copies
the next part of the task and ends `` use #k``, an action, its JSON input and ``Function:`` with
the response. The model decides which part comes next, which function serves it, what to copy
into the arguments, and when the task is done; the grammar keeps each of these to what it was
given, and the retriever's view of part and function enters the choice as a prior.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import Function
from toolsrv_runtime.engine.base import Engine, Piece, Prompt, Sampling
from toolsrv_runtime.formats import clauses, facts, grounding
from toolsrv_runtime.formats.base import FINISH, Interrupted, Meter, Move, Prior, Step, View
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

MAX_FUNCTIONS = 9
"""The vocabulary numbers functions up to nine."""

_DESCRIPTION_WORDS = 10
_THOUGHT = "\nAssistant:\nThought: "
_DONE = "all done. answer"
_GIVE_UP = " failed, no other function. give up"
_ANSWER = '{"return_type": "give_answer", "final_answer": "'
_QUIT = '{"return_type": "give_up_and_restart"}'
_USE = re.compile(r" use #\d$")
_FAILED = re.compile(r"^#\d failed\. ")

RETRIES = 1
"""How often a failed part is tried with another function before the branch gives up."""

PRIOR_WEIGHT = 12.0
"""How many nats of the model's preference a full difference of the prior (0 to 1) outweighs."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A function with its number, and what may not be chosen again."""

    number: int
    function: Function


class CompactFormat:
    """See the module. ``prior`` may be left out: then the model chooses alone."""

    name = "compact"

    def __init__(self, engine: Engine, profile: Profile, *, prior: Prior | None = None) -> None:
        self._engine = engine
        self._profile = profile
        self._prior = prior

    def observation(self, response: Any, error: str) -> str:
        """Return the response's first facts as a flat JSON object of strings."""
        found = facts.facts(response, limit=self._profile.observation_limit)
        if error and not any(name == "error" for name, _ in found):
            found.insert(0, ("error", facts.plain(error)[: facts.VALUE_LIMIT]))
        return json.dumps(dict(found), ensure_ascii=False)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
        task = " ".join(facts.plain(view.task).split())
        offers = [_Offer(i, f) for i, f in enumerate(view.functions[:MAX_FUNCTIONS], start=1)]
        head = self._head(task, offers, view.path)
        meter.replies += 1
        turn = _Turn(self._engine, self._profile, head, max_tokens, stop, meter)
        parts = _open_parts(task, view)
        can_finish = any(step.ok for step in view.path) and not _was_tried(view, _DONE)
        if not parts and not can_finish:
            return self._quit(view, offers)
        failed = _failed_part(view.path)
        if failed:
            if sum(_part(step) == failed for step in view.path) > RETRIES:
                return self._quit(view, offers)
            turn.force(f"#{_number(view.path[-1], offers)} failed. {failed}")
        elif turn.write(_thought_grammar(parts, can_finish=can_finish)) == _DONE:
            return self._finish(turn, view)
        part = failed or turn.text()
        offer = self._choose(turn, part, offers, view)
        if offer is None:
            return self._quit(view, offers)
        return self._call(turn, part, offer, task, view)

    def _head(self, task: str, offers: Sequence[_Offer], path: Sequence[Step]) -> list[Piece]:
        listing = "".join(_line(offer) for offer in offers)
        head = [Piece("System:\n", special=True), Piece(listing)]
        head += [Piece("User: ", special=True), Piece(task), Piece(_THOUGHT, special=True)]
        for step in path:
            head += step.move.pieces
            head += [Piece("\nFunction: ", special=True), Piece(step.observation)]
            head.append(Piece(_THOUGHT, special=True))
        return head

    def _choose(
        self, turn: _Turn, part: str, offers: Sequence[_Offer], view: View
    ) -> _Offer | None:
        """Return the function for this part: the model's log-probability plus the prior's."""
        spent = {_key(step) for step in (*view.tried, *view.path) if _part(step) == part}
        open_offers = [o for o in offers if o.function.name not in spent]
        if not open_offers:
            return None
        options = [f" use #{offer.number}" for offer in open_offers]
        scores = turn.score(options)
        if self._prior is not None:
            fit = self._prior(part, [offer.function.api for offer in open_offers])
            scores = [s + PRIOR_WEIGHT * f for s, f in zip(scores, fit, strict=True)]
        best = max(range(len(options)), key=scores.__getitem__)
        turn.force(options[best])
        return open_offers[best]

    def _call(self, turn: _Turn, part: str, offer: _Offer, task: str, view: View) -> Move:
        name = offer.function.name
        turn.force(f"\nAction: {name}\nAction Input: ")
        seen = [step.observation for step in view.path if step.ok]
        arguments = turn.write(_argument_grammar(offer.function, part, task, seen))
        return Move(turn.text().partition("\nAction: ")[0], name, arguments, turn.pieces())

    def _finish(self, turn: _Turn, view: View) -> Move:
        turn.force(f"\nAction: {FINISH}\nAction Input: ")
        groups = [
            facts.facts(step.response, limit=self._profile.observation_limit)
            for step in view.path
            if step.ok
        ]
        arguments = turn.write(_answer_grammar([group for group in groups if group]))
        return Move(_DONE, FINISH, arguments, turn.pieces())

    def _quit(self, view: View, offers: Sequence[_Offer]) -> Move:
        steps = [step for step in (*view.path, *view.tried) if not step.ok]
        number = _number(steps[-1], offers) if steps else 1
        thought = f"#{number}{_GIVE_UP}"
        text = f"{thought}\nAction: {FINISH}\nAction Input: {_QUIT}"
        return Move(thought, FINISH, _QUIT, (Piece(text, special=True),))


class _Turn:
    """One reply in the making: what is written so far, and the engine that goes on."""

    def __init__(
        self,
        engine: Engine,
        profile: Profile,
        head: Sequence[Piece],
        max_tokens: int,
        stop: Stop,
        meter: Meter,
    ) -> None:
        self._engine = engine
        self._profile = profile
        self._head = tuple(head)
        self._left = max_tokens
        self._stop = stop
        self._meter = meter
        self._said: list[Piece] = []

    def write(self, grammar: str) -> str:
        """Let the model write one part of the reply inside ``grammar``."""
        reply = self._meter.reply(
            self._engine.generate(
                self._prompt(),
                grammar=grammar,
                max_tokens=max(1, min(self._left, self._profile.max_reply_tokens)),
                sampling=Sampling(self._profile.temperature, self._profile.top_p),
                stop=self._stop,
            )
        )
        if reply.finish == "stopped":
            raise Interrupted
        self._left -= len(reply.tokens)
        self._said.append(Piece(reply.text, special=True, tokens=reply.tokens or None))
        return reply.text

    def score(self, options: Sequence[str]) -> list[float]:
        """Return the model's log-probability of each continuation."""
        return list(self._meter.scores(self._engine.score(self._prompt(), options)).values)

    def force(self, text: str) -> None:
        """Write text that leaves no choice."""
        self._said.append(Piece(text, special=True))

    def pieces(self) -> Prompt:
        """Return the reply as it will stand in later prompts."""
        return tuple(self._said)

    def text(self) -> str:
        """Return what is written so far."""
        return "".join(piece.text for piece in self._said)

    def _prompt(self) -> Prompt:
        return self._head + tuple(self._said)


def _line(offer: _Offer) -> str:
    function = offer.function
    required = {parameter.name for parameter in function.api.required}
    signature = ", ".join(
        key if parameter.name in required else f"{key}?"
        for key, parameter in function.parameters.items()
    )
    text = " ".join(clean(function.api.description, 400).split())
    first = re.split(r"(?<=[a-z)])[.!?](?:\s|$)", text)[0]
    short = " ".join(first.split()[:_DESCRIPTION_WORDS]).rstrip(",:;. -")
    return f"#{offer.number} {function.name}({signature})" + (f": {short}" if short else "") + "\n"


def _part(step: Step) -> str:
    """The part of the task a step was about: its thought without the choice."""
    return _FAILED.sub("", _USE.sub("", step.move.thought or ""))


def _failed_part(path: Sequence[Step]) -> str:
    """The part that the last step failed at ("" when it succeeded)."""
    return _part(path[-1]) if path and not path[-1].ok else ""


def _number(step: Step, offers: Sequence[_Offer]) -> int:
    return next((o.number for o in offers if o.function.name == step.move.function), 1)


def _key(step: Step) -> str:
    return step.move.function


def _was_tried(view: View, thought: str) -> bool:
    return any(step.move.thought == thought for step in view.tried)


def _open_parts(task: str, view: View) -> list[str]:
    """Return the runs of clauses that no successful step on the path was about, lower-cased."""
    every = clauses.runs(clauses.split(task), task)
    done = [run for run in every if any(s.ok and _part(s) == _spell(run) for s in view.path)]
    free = [run for run in every if not any(run.overlaps(other) for other in done)]
    return list(dict.fromkeys(_spell(run) for run in free))


def _spell(run: clauses.Clause) -> str:
    return run.text[:1].lower() + run.text[1:]


def _thought_grammar(parts: Sequence[str], *, can_finish: bool) -> str:
    options = [grounding.literal(part) for part in parts]
    if can_finish:
        options.append(grounding.literal(_DONE))
    return f"start: {' | '.join(options)}\n"


def _argument_grammar(function: Function, thought: str, task: str, seen: Sequence[str]) -> str:
    required = {parameter.name for parameter in function.api.required}
    texts = [thought, task, *seen]
    rules = [grounding.span("VALUE", texts)]
    pairs: list[tuple[str, bool]] = []
    for index, (key, parameter) in enumerate(function.parameters.items()):
        rules.append(f"v{index}: {grounding.values(parameter, texts, spans='VALUE')}")
        head = grounding.literal(f'"{key}": "')
        pairs.append((f"{head} v{index} {grounding.literal(chr(34))}", parameter.name in required))
    return f'start: "{{" {_sequence(pairs)} "}}"\n' + "\n".join(rules) + "\n"


def _sequence(pairs: Sequence[tuple[str, bool]]) -> str:
    """Return pairs in order, required ones always, the others optional, comma between."""
    must = [text for text, required in pairs if required]
    may = [text for text, required in pairs if not required]
    comma = grounding.literal(", ")
    if must:
        return f" {comma} ".join(must) + "".join(f" ({comma} {text})?" for text in may)
    starts = [
        may[i] + "".join(f" ({comma} {text})?" for text in may[i + 1 :]) for i in range(len(may))
    ]
    return f"({' | '.join(starts)})?" if starts else ""


def _answer_grammar(groups: Sequence[Sequence[facts.Fact]]) -> str:
    """Return the grammar of an answer: from each response some facts, in order, at least one."""
    rules = []
    for index, group in enumerate(groups):
        items = [grounding.literal(f"{facts.words(name)} is {value}") for name, value in group]
        comma = grounding.literal(", ")
        starts = [
            items[i] + "".join(f" ({comma} {text})?" for text in items[i + 1 :])
            for i in range(len(items))
        ]
        rules.append(f"g{index}: {' | '.join(starts)}")
    body = f" {grounding.literal('; ')} ".join(f"g{index}" for index in range(len(groups)))
    closing = grounding.literal('"}')
    return f"start: {grounding.literal(_ANSWER)} {body} {closing}\n" + "\n".join(rules) + "\n"
