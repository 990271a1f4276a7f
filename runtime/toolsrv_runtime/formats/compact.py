"""The compact format of the model that ships, and the help that a small model needs.

Layout: numbered functions after ``System:``, then ``User:``, and per round a thought that copies
a part of the task and ends `` use #k``, an action, its JSON input and ``Function:`` with the
response. The parts are taken in order; the model decides which function serves a part, which of
the values it was given go into the arguments, and what the answer says of the responses. The
retriever's view of part and function enters the choice as a prior, and tells which parts of the
task are needs at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import Function
from toolsrv_runtime.engine.base import Engine, Piece, Prompt
from toolsrv_runtime.formats import facts, grounding, layout, spans
from toolsrv_runtime.formats.base import FINISH, Meter, Move, Prior, Step, View
from toolsrv_runtime.formats.grounding import Sources
from toolsrv_runtime.formats.parts import Part, split
from toolsrv_runtime.formats.turn import Turn
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

PRIOR_WEIGHT = 12.0
"""Nats of the model's preference that a full difference of the prior (0 to 1) outweighs."""

NEED = 0.35
"""Prior from which on a part that asks for nothing in words is a need all the same."""

ASKED = 0.20
"""Prior from which on a part that asks for something is a need that some function serves."""

OWN = 0.5
"""Share of the prior that comes from the need itself; the rest from what leads up to it."""

SERVES = 0.4
"""Prior, ties included, below which a function does not serve a need, whatever the others do."""

TIE = 0.09
"""What a function's prior gains for each parameter that the task speaks of."""

MOST_TIES = 3
"""Parameters that count for that."""

FIRM_TIES = 2
"""Parameters that must be spoken of where the retriever says that nothing fits."""

FAR = 0.7
"""Share of its prior a function keeps when a number must come from another part of the task."""

NEAR = 0.6
"""A failed part is tried with another function only if its prior is this share of the best."""

RETRIES = 2
"""How often a failed part is tried again on one branch before the branch gives up."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """A function with its number in the prompt."""

    number: int
    function: Function


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a reply is written from: the cleaned task, the functions, the path, past attempts."""

    task: str
    offers: tuple[_Offer, ...]
    path: tuple[Step, ...]
    attempts: tuple[Step, ...]
    parts: Mapping[str, Part]
    seen: tuple[facts.Fact, ...]

    def sources(self, part: str) -> Sources:
        """Return what the arguments for a part may be taken from."""
        return Sources(part, self.parts[part].context, self.task, self.seen)

    def spent(self, part: str, function: str) -> list[dict[str, Any]]:
        """Return the arguments that ``function`` was already called with for ``part``."""
        return [
            json.loads(step.move.arguments)
            for step in self.attempts
            if step.move.function == function and _part(step) == part
        ]


class CompactFormat:
    """See the module. Without ``prior`` every part is a need and the model chooses alone."""

    name = "compact"

    def __init__(self, engine: Engine, profile: Profile, *, prior: Prior | None = None) -> None:
        self._engine = engine
        self._profile = profile
        self._prior = prior

    def observation(self, response: Any, error: str) -> str:
        """Return the response's first facts as a flat JSON object of strings."""
        found = self._facts(response)
        if error and not any(name == "error" for name, _ in found):
            found.insert(0, ("error", facts.plain(error)[: facts.VALUE_LIMIT]))
        return json.dumps(dict(found), ensure_ascii=False)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
        meter.replies += 1
        scene = self._scene(view)
        head = _head(scene)

        def turn() -> Turn:
            return Turn(
                self._engine, self._profile, head, max_tokens=max_tokens, stop=stop, meter=meter
            )

        if not view.fits and not view.path and not self._tied(scene):
            return _quit(scene)
        failed = _part(view.path[-1]) if view.path and not view.path[-1].ok else ""
        if failed:
            tries = sum(_part(step) == failed for step in view.path)
            move = self._serve(turn(), failed, scene) if tries <= RETRIES else None
            return move or _quit(scene)
        needs, missing = self._needs(scene)
        for part in needs:
            if _told(scene.parts[part], scene):
                continue
            move = self._serve(turn(), part, scene)
            if move is None:
                if any(_part(step) == part for step in scene.attempts):
                    return _quit(scene)
                missing.append(part)
            elif not _repeats(move, view.path):
                return move
        if any(step.ok for step in view.path) and not _was_tried(view, layout.DONE):
            return self._finish(turn(), view, missing)
        return _quit(scene)

    def _scene(self, view: View) -> _Scene:
        offers = (
            _Offer(i, f) for i, f in enumerate(view.functions[: layout.MAX_FUNCTIONS], start=1)
        )
        seen = [fact for s in reversed(view.path) if s.ok for fact in self._facts(s.response)]
        task = clean(view.task, 20_000)
        parts = {part.text: part for part in split(task)} or {task: Part(task, task, asks=True)}
        return _Scene(
            task,
            tuple(offers),
            view.path,
            (*view.path, *view.tried, *view.failed),
            parts,
            tuple(seen),
        )

    def _facts(self, response: Any) -> list[facts.Fact]:
        return facts.facts(response, limit=self._profile.observation_limit)

    def _needs(self, scene: _Scene) -> tuple[list[str], list[str]]:
        """Return the parts of the task that are still to be served, and those nothing fits.

        What is asked for in words is a need, and so is what continues such a wish and fits
        another function; the best fitting part always is, so that a task in unusual words is
        tried rather than refused.
        """
        parts = list(scene.parts.values())
        fits = [self._fit(part, scene) for part in parts]
        asked = any(part.asks for part in parts)
        needs: list[str] = []
        missing: list[str] = []
        before = -1
        for part, fit in zip(parts, fits, strict=True):
            best = max(range(len(fit)), key=fit.__getitem__)
            if part.asks or not asked:
                wanted = fit[best] >= (ASKED if part.asks else NEED)
            else:
                other = best != before or part.text[:1].isdigit()
                wanted = part.goes_on and bool(needs) and fit[best] >= NEED and other
            if wanted:
                needs.append(part.text)
                before = best
            elif part.asks and not part.is_polite:
                missing.append(part.text)
        if not needs and parts:
            top = max(range(len(parts)), key=lambda index: max(fits[index]))
            needs = [parts[top].text]
            missing = [text for text in missing if text not in needs]
        done = {_part(step) for step in scene.path if step.ok}
        return [need for need in needs if need not in done], missing

    def _tied(self, scene: _Scene) -> bool:
        """Whether the task's values tie it to a function although its words do not."""
        return any(
            grounding.ties(offer.function.api, scene.sources(part)) >= FIRM_TIES
            for offer in scene.offers
            for part in scene.parts
        )

    def _fit(self, part: Part, scene: _Scene) -> list[float]:
        """Return how well each offered function fits a part, in [0, 1]."""
        apis = [offer.function.api for offer in scene.offers]
        if self._prior is None:
            return [1.0] * len(apis)
        own = self._prior(part.text, apis)
        if part.context == part.text:
            return list(own)
        around = self._prior(part.context, apis)
        return [OWN * o + (1 - OWN) * a for o, a in zip(own, around, strict=True)]

    def _serve(self, turn: Turn, part: str, scene: _Scene) -> Move | None:
        """Return the call that serves ``part``, or None when nothing is left to try for it."""
        last = scene.path[-1] if scene.path else None
        again = last is not None and not last.ok and _part(last) == part
        prefix = f"#{_number(last, scene.offers)} failed. " if last and again else ""
        turn.force(prefix)
        turn.force(layout.shown(f"{part[:1].lower()}{part[1:]}"), data=True)
        offer = self._choose(turn, part, scene)
        if offer is None:
            return None
        turn.force(f"{layout.ACTION}{offer.function.name}{layout.INPUT}")
        arguments = self._arguments(turn, offer.function, part, scene)
        if arguments is None:
            return None
        thought = turn.text().partition(layout.ACTION)[0]
        return Move(thought, offer.function.name, arguments, turn.pieces(), part)

    def _choose(self, turn: Turn, part: str, scene: _Scene) -> _Offer | None:
        """Return the function for a part: the model's log-probability plus the prior's."""
        offers = scene.offers
        sources = scene.sources(part)
        filled = [grounding.fills(offer.function.api, sources) for offer in offers]
        fit = [
            own * (FAR if grounding.borrows(offer.function.api, sources) else 1.0)
            + TIE * min(grounding.ties(offer.function.api, sources), MOST_TIES)
            for own, offer in zip(self._fit(scene.parts[part], scene), offers, strict=True)
        ]
        tried = any(_part(step) == part for step in scene.attempts)
        least = max(SERVES, NEAR * max(fit) if tried else 0.0)
        open_ = [
            (offer, prior)
            for offer, prior, full in zip(offers, fit, filled, strict=True)
            if full and prior >= least and self._is_open(offer.function, part, scene)
        ]
        if not open_:
            return None
        options = [f"{layout.USE}{offer.number}" for offer, _ in open_]
        scores = turn.score(options)
        scores = [s + PRIOR_WEIGHT * prior for s, (_, prior) in zip(scores, open_, strict=True)]
        best = max(range(len(options)), key=scores.__getitem__)
        turn.force(options[best])
        return open_[best][0]

    def _is_open(self, function: Function, part: str, scene: _Scene) -> bool:
        """Whether a function has arguments left that were not tried for this part."""
        spent = scene.spent(part, function.name)
        if not spent:
            return True
        sources = scene.sources(part)
        return any(
            set(grounding.candidates(parameter, function.api, sources)) - _used(spent, key)
            for key, parameter in function.parameters.items()
            if key in spent[0]
        )

    def _arguments(self, turn: Turn, function: Function, part: str, scene: _Scene) -> str | None:
        """Write the arguments one by one: each chosen among what the sources hold for it."""
        api = function.api
        sources = scene.sources(part)
        required = {parameter.name for parameter in api.required}
        spent = scene.spent(part, function.name)
        written: dict[str, str] = {}
        turn.force("{")
        for key, parameter in function.parameters.items():
            taken = set(written.values())
            optional = parameter.name not in required
            if optional and not grounding.has_own(parameter, api, sources, taken):
                continue
            options = grounding.candidates(parameter, api, sources, taken=taken)
            if optional and not options:
                continue
            if spent:  # another try differs in the first argument that can
                fresh = [value for value in options if value not in _used(spent, key)]
                options, spent = (fresh, []) if fresh else (options, spent)
            if not options:
                return None
            turn.force((", " if written else "") + f'"{key}": "')
            written[key] = _written(turn, options)
        turn.force("}")
        return None if spent else json.dumps(written, ensure_ascii=False)

    def _finish(self, turn: Turn, view: View, missing: Sequence[str]) -> Move:
        """Let the model choose what the answer says of each response; tell it in full."""
        turn.force(f"{layout.DONE}{layout.ACTION}{FINISH}{layout.INPUT}")
        steps = [step for step in view.path if step.ok and self._facts(step.response)]
        groups = [self._facts(step.response) for step in steps]
        told = {
            str(value).lower()
            for step in steps
            for value in json.loads(step.move.arguments).values()
        }
        said = turn.write(_answer_grammar(groups, told)).removeprefix(layout.ANSWER)
        sentences = []
        for step, chosen in zip(steps, _chosen(said, groups), strict=True):
            full = facts.whole(step.response)
            sentences.append(facts.sentence((name, full[name]) for name in chosen))
        answer = {"return_type": "give_answer", "final_answer": "; ".join(sentences)}
        arguments = json.dumps(answer, ensure_ascii=False)
        return Move(layout.DONE, FINISH, arguments, turn.pieces(), missing=tuple(missing))


def _told(part: Part, scene: _Scene) -> bool:
    """Whether the last response already holds what a part asks for by name."""
    last = scene.path[-1] if scene.path else None
    if last is None or not last.ok or not part.head or len(part.context) > len(part.text) + 8:
        return False
    if spans.codes(part.text) or any(name for _, name in spans.runs(part.text, ())):
        return False  # it speaks of something else
    names = {facts.words(name) for name in facts.whole(last.response)}
    return part.head in names


def _head(scene: _Scene) -> Prompt:
    listing = "".join(layout.line(offer.number, offer.function) for offer in scene.offers)
    head = [Piece(layout.SYSTEM, special=True), Piece(listing)]
    head += [
        Piece(layout.USER, special=True),
        Piece(layout.shown(scene.task)),
        Piece(layout.THOUGHT, special=True),
    ]
    for step in scene.path:
        head += step.move.pieces
        head += [Piece(layout.OBSERVATION, special=True), Piece(step.observation)]
        head.append(Piece(layout.THOUGHT, special=True))
    return tuple(head)


def _quit(scene: _Scene) -> Move:
    failed = [step for step in scene.attempts if not step.ok]
    number = _number(failed[-1], scene.offers) if failed else 1
    thought = f"#{number}{layout.GIVE_UP}"
    text = f"{thought}{layout.ACTION}{FINISH}{layout.INPUT}{layout.QUIT}"
    return Move(thought, FINISH, layout.QUIT, (Piece(text, special=True),))


def _part(step: Step) -> str:
    """The part of the task a step was about."""
    return step.move.about


def _number(step: Step, offers: Sequence[_Offer]) -> int:
    return next((o.number for o in offers if o.function.name == step.move.function), 1)


def _was_tried(view: View, thought: str) -> bool:
    return any(step.move.thought == thought for step in view.tried)


def _repeats(move: Move, path: Sequence[Step]) -> bool:
    """Whether the path already has this very call: the part it is for is served then."""
    return any(
        step.ok and (step.move.function, step.move.arguments) == (move.function, move.arguments)
        for step in path
    )


def _used(spent: Sequence[Mapping[str, Any]], key: str) -> set[str]:
    return {str(arguments[key]) for arguments in spent if key in arguments}


def _written(turn: Turn, options: Sequence[str]) -> str:
    """Let the model choose one of the values and return it whole.

    What it reads and writes is a short plain form: exact text, however long, reaches the call.
    """
    forms: dict[str, str] = {}
    for option in options:
        forms.setdefault(facts.plain(option)[: facts.VALUE_LIMIT].strip(), option)
    said = turn.write(f'start: value "\\""\nvalue: {grounding.choice(tuple(forms))}\n')
    return forms[said[:-1]]


def _chosen(said: str, groups: Sequence[Sequence[facts.Fact]]) -> list[list[str]]:
    """Return the names of the facts that an answer of ``_answer_grammar`` mentions, per group."""
    found = []
    position = 0
    for group in groups:
        names = []
        for name, value in group:
            item = facts.sentence([(name, value)])
            if said.startswith(item, position):
                names.append(name)
                position += len(item)
                position += 2 * said.startswith((", ", "; "), position)
        found.append(names)
    return found


def _answer_grammar(groups: Sequence[Sequence[facts.Fact]], told: Collection[str]) -> str:
    """Return the grammar of an answer: of each response everything that is news, in order.

    A fact that repeats what the task or an argument already said is the model's choice.
    """
    rules = []
    for index, group in enumerate(groups):
        pairs = [
            (grounding.literal(facts.sentence([fact])), fact[1].lower() not in told)
            for fact in group
        ]
        if not any(news for _, news in pairs):
            pairs = [(text, True) for text, _ in pairs]
        rules.append(f"g{index}: {_sequence(pairs)}")
    body = f" {grounding.literal('; ')} ".join(f"g{index}" for index in range(len(groups)))
    closing = grounding.literal('"}')
    return f"start: {grounding.literal(layout.ANSWER)} {body} {closing}\n" + "\n".join(rules) + "\n"


def _sequence(pairs: Sequence[tuple[str, bool]]) -> str:
    """Return items in order with commas between, where some may be left out."""
    comma = grounding.literal(", ")
    first = next(index for index, (_, must) in enumerate(pairs) if must)
    head = "".join(f"({text} {comma})? " for text, _ in pairs[:first])
    tail = "".join(
        f" {comma} {text}" if must else f" ({comma} {text})?" for text, must in pairs[first + 1 :]
    )
    return f"{head}{pairs[first][0]}{tail}"
