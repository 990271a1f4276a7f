"""The compact format of the model that ships, and the help that a small model needs.

Layout: numbered functions after ``System:``, then ``User:``, and per round a thought that copies
a part of the task and ends `` use #k``, an action, its JSON input and ``Function:`` with the
response. The model decides which words of the task come next, whether a function serves them,
which words of the task or of a response each argument takes, and what the answer says. The
retriever's view of words and function enters the choice of the function as a prior, the matcher's that
of functions, values and needs (``matched``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.engine.base import Engine, Piece
from toolsrv_runtime.formats import answering, copying, facts, grounding, layout
from toolsrv_runtime.formats.base import FINISH, Meter, Move, Prior, Step, View
from toolsrv_runtime.formats.filling import Filling, has_left
from toolsrv_runtime.formats.fit import Shape, fit
from toolsrv_runtime.formats.matched import Matched
from toolsrv_runtime.formats.needs import Needs
from toolsrv_runtime.formats.scene import Offer, Scene, about, news
from toolsrv_runtime.formats.turn import Turn
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

PRIOR_WEIGHT = 8.3
"""Nats of the model's preference that a difference of one in the prior outweighs.

This and the next were fitted to 1,700 steps of whole tasks (a multinomial logit) before there was a
matcher; what follows them was chosen with it, on the development and open tasks.
"""

LIKE = 2.0
"""What the likeness to requests that people make of a function adds to its prior."""

MATCH_WEIGHT = 0.5
"""What the matcher's log-odds that a function serves some words count; also with their context."""

CHOICE_WEIGHT = 0.25
"""What the model's own log-probability counts: one that small hardly tells functions apart."""

NOTHING_PRIOR = 1.0
"""The prior that no function serves some words."""

NEED_SHARE = 0.6
"""Share of the prior that comes from the words of a need; the rest from the whole task."""

TIE = 0.09
"""What a function's prior gains for each parameter that the task speaks of."""

MOST_TIES = 3
"""Parameters that count for that."""

FAR = 0.7
"""Share of its prior a function keeps when a number must come from another part of the task."""

NEAR = 0.6
"""A failed part is tried with another function only if its prior is this share of the best."""

RETRIES = 2
"""How often a failed part is tried again on one branch before the branch gives up."""

SEEN = 60
"""Facts of earlier responses that arguments may be taken from."""

REPLY = 2
"""Room for one reply in a prompt, in the most tokens that one part of it may have."""

PARTS = 8
"""Needs of one task that nothing serves, after which a reply ends."""


class CompactFormat:
    """See the module. Without ``prior`` the model chooses alone."""

    name = "compact"

    def __init__(self, engine: Engine, profile: Profile, *, prior: Prior | None = None) -> None:
        self._engine = engine
        self._profile = profile
        self._prior = prior

    def observation(self, response: Any, error: str, schema: Any = None) -> str:  # noqa: ARG002
        """Return the response's first facts as a flat JSON object of strings."""
        found = self._facts(response)
        if error and not any(name == "error" for name, _ in found):
            found.insert(0, ("error", facts.plain(error)[: facts.VALUE_LIMIT]))
        return json.dumps(dict(found), ensure_ascii=False)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
        meter.replies += 1
        scene = self._scene(view, meter)
        turn = Turn(
            self._engine, self._profile, scene.head(), max_tokens=max_tokens, stop=stop, meter=meter
        )
        needs = Needs(scene, self._prior) if self._prior else None
        served = any(step.ok for step in view.path)
        failed = about(view.path[-1]) if view.path and not view.path[-1].ok else ""
        if failed and not (served and needs is not None and not needs.asks(failed)):
            tries = sum(about(step) == failed for step in view.path)
            turn.force(f"#{scene.number(view.path[-1])} failed. ")
            move = self._serve(turn, failed, scene, ()) if tries <= RETRIES else None
            return move or _quit(scene, ())
        missing = list(dict.fromkeys(text for step in view.path for text in step.move.missing))
        # What failed and asks for nothing in words was no need, where others have been served.
        taken = [
            about(step)
            for step in view.path
            if step.ok or (served and needs is not None and not needs.asks(about(step)))
        ]
        for _ in range(PARTS):
            words = self._need(turn, scene, served=served)
            if needs is not None:
                words = needs.next(words, [*taken, *missing])
            if not words or words in missing:
                break
            move = self._serve(turn, words, scene, tuple(missing))
            if move is not None and _repeats(move, view.path):
                taken.append(words)
                turn.rewind()
                served = True
            elif move is not None:
                return move
            elif any(about(step) == words for step in scene.attempts):
                return _quit(scene, missing)
            elif needs is None or (needs.asks(words) and not needs.is_answered(words)):
                missing.append(words)
            else:
                taken.append(words)
        if needs is not None:
            missing += needs.open([*taken, *missing])
        if served and not _was_tried(view, layout.DONE):
            turn.rewind()
            return self._finish(turn, view, missing)
        return _quit(scene, missing)

    def finish(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | None:
        """Return an answer from the facts of the path; see ``Format.finish``."""
        if not any(step.ok and self._facts(step.response) for step in view.path):
            return None
        meter.replies += 1
        scene = self._scene(view, meter)
        turn = Turn(
            self._engine, self._profile, scene.head(), max_tokens=max_tokens, stop=stop, meter=meter
        )
        missing = list(dict.fromkeys(text for step in view.path for text in step.move.missing))
        if self._prior is not None:
            taken = [about(step) for step in view.path if step.ok]
            missing += Needs(scene, self._prior).open([*taken, *missing])
        return self._finish(turn, view, missing)

    def prefers(self, view: View, first: Step, second: Step, *, stop: Stop, meter: Meter) -> bool:
        """Whether ``first`` worked and the other did not, else which the model finds likelier.

        The model was never trained to compare steps in words; see ``Format.prefers``.
        """
        if first.ok != second.ok:
            return first.ok
        meter.replies += 1
        turn = Turn(
            self._engine, self._profile, self._scene(view, meter).head(),
            max_tokens=1, stop=stop, meter=meter,
        )  # fmt: skip
        said = ["".join(piece.text for piece in step.move.pieces) for step in (first, second)]
        scores = turn.score(said)
        one, other = (score / max(1, len(text)) for score, text in zip(scores, said, strict=True))
        return one >= other

    def _scene(self, view: View, meter: Meter) -> Scene:
        """Return what a reply is written from, shortened where its prompt would be too long."""
        scene = self._whole(view)

        def shaped(shape: Shape) -> Scene:
            offers = tuple(
                replace(offer, brief=text != offer.line)
                for offer, text in zip(scene.offers, shape.documents, strict=True)
                if text is not None
            )
            path = tuple(
                replace(step, observation=text)
                for step, text in zip(scene.path, shape.observations, strict=True)
            )
            return replace(scene, offers=offers, path=path)

        fitted = fit(
            [(offer.line, replace(offer, brief=True).line) for offer in scene.offers],
            [step.observation for step in scene.path],
            lambda shape: self._engine.count(shaped(shape).head()),
            self._engine.context
            - min(REPLY * self._profile.max_reply_tokens, self._engine.context // 2),
            task_tokens=self._engine.count((Piece(layout.shown(scene.task)),)),
        )
        meter.note(fitted.notes)
        return shaped(fitted.shape)

    def _whole(self, view: View) -> Scene:
        offers = (
            Offer(i, f) for i, f in enumerate(view.functions[: layout.MAX_FUNCTIONS], start=1)
        )
        seen = [fact for step in reversed(view.path) if step.ok for fact in news(step)][:SEEN]
        attempts = (*view.path, *view.tried, *view.failed)
        return Scene(clean(view.task, 20_000), tuple(offers), view.path, attempts, tuple(seen))

    def _facts(self, response: Any) -> list[facts.Fact]:
        return facts.facts(response, limit=self._profile.observation_limit)

    def _need(self, turn: Turn, scene: Scene, *, served: bool) -> str:
        """Let the model copy what of the task comes next; empty when it is done."""
        mark = turn.mark()
        grammar = copying.need(layout.shown(scene.task), offers=len(scene.offers), served=served)
        said = turn.write(grammar)
        turn.rewind(mark)
        return copying.original(copying.needed(said).strip(), scene.task)

    def _serve(self, turn: Turn, part: str, scene: Scene, missing: tuple[str, ...]) -> Move | None:
        """Return the call that serves ``part``, or None when there is none; the turn says so."""
        mark = turn.mark()
        turn.force(layout.shown(part), data=True)
        matched = Matched(scene, part, self._prior)
        offer = self._choose(turn, part, scene, matched)
        filling = Filling(turn, part, scene, matched, grounded=self._profile.grounded)
        arguments = None
        if offer is not None:
            turn.force(f"{layout.USE}{offer.number}")
            turn.force(f"{layout.ACTION}{offer.function.name}{layout.INPUT}")
            arguments = filling.arguments(offer.function)
        if offer is None or arguments is None:
            turn.rewind(mark)
            turn.force(layout.shown(part), data=True)
            turn.force(f"{layout.NOTHING}. ")
            return None
        thought = turn.text().partition(layout.ACTION)[0]
        text = json.dumps(arguments, ensure_ascii=False)
        return Move(thought, offer.function.name, text, turn.pieces(), part, missing)

    def _choose(self, turn: Turn, part: str, scene: Scene, matched: Matched) -> Offer | None:
        """Return the function for a part: the model's log-probability, the prior's, the match's."""
        offers = scene.offers
        fit = self._fit(part, scene)
        tried = any(about(step) == part for step in scene.attempts)
        least = NEAR * max(fit, default=0.0) if tried else 0.0
        open_ = [
            (offer, prior)
            for offer, prior in zip(offers, fit, strict=True)
            if prior >= least and has_left(offer.function, part, scene)
        ]
        options = [f"{layout.USE}{offer.number}" for offer, _ in open_] + [layout.NOTHING]
        weights = [prior for _, prior in open_] + [NOTHING_PRIOR]
        scores = turn.score(options)
        around = Matched(scene, scene.sources(part).context, self._prior)
        served = [
            matched.serves(offer.function.api) + around.serves(offer.function.api)
            for offer, _ in open_
        ]
        scores = [
            CHOICE_WEIGHT * score + PRIOR_WEIGHT * prior + MATCH_WEIGHT * match
            for score, prior, match in zip(scores, weights, [*served, 0.0], strict=True)
        ]
        best = max(range(len(options)), key=scores.__getitem__)
        return open_[best][0] if best < len(open_) else None

    def _fit(self, part: str, scene: Scene) -> list[float]:
        """Return how well each offered function fits a part, about in [0, 1]."""
        apis = [offer.function.api for offer in scene.offers]
        if self._prior is None:
            return [NOTHING_PRIOR] * len(apis)
        sources = scene.sources(part)
        own, around = self._prior.affinity(part, apis), self._prior.affinity(scene.task, apis)
        like = self._prior.likeness(part, apis)
        return [
            (NEED_SHARE * o + (1 - NEED_SHARE) * a)
            * (FAR if grounding.borrows(api, sources) else 1.0)
            + TIE * min(grounding.ties(api, sources), MOST_TIES)
            + LIKE * near
            for o, a, near, api in zip(own, around, like, apis, strict=True)
        ]

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
        said = turn.write(answering.grammar(groups, told)).removeprefix(layout.ANSWER)
        sentences = []
        for step, chosen in zip(steps, answering.chosen(said, groups), strict=True):
            full = facts.whole(step.response)
            sentences.append(facts.sentence((name, full[name]) for name in chosen))
        answer = {"return_type": "give_answer", "final_answer": "; ".join(sentences)}
        arguments = json.dumps(answer, ensure_ascii=False)
        return Move(layout.DONE, FINISH, arguments, turn.pieces(), missing=tuple(missing))


def _quit(scene: Scene, missing: Sequence[str]) -> Move:
    failed = [step for step in scene.attempts if not step.ok]
    if failed:
        thought = f"#{scene.number(failed[-1])}{layout.GIVE_UP}"
    else:
        thought = "; ".join(f"{words}{layout.NOTHING}" for words in missing) or "nothing to do"
    text = f"{thought}{layout.ACTION}{FINISH}{layout.INPUT}{layout.QUIT}"
    pieces = (Piece(text, special=True),)
    return Move(thought, FINISH, layout.QUIT, pieces, missing=tuple(missing))


def _was_tried(view: View, thought: str) -> bool:
    return any(step.move.thought == thought for step in view.tried)


def _repeats(move: Move, path: Sequence[Step]) -> bool:
    """Whether the path already has this very call: the part it is for is served then."""
    return any(
        step.ok and (step.move.function, step.move.arguments) == (move.function, move.arguments)
        for step in path
    )
