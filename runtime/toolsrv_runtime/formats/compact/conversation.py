"""The compact format of the model that ships, and the help that a small model needs.

Layout: numbered functions after ``System:``, then ``User:``, and per round a thought that copies
a part of the task and ends `` use #k``, an action, its JSON input and ``Function:`` with the
response. The model says which words of the task come next where the matcher has found none
(``planned``), whether a function serves them, which words of the task or of a response each
argument takes, and what the answer says. The retriever's and the matcher's views of words and
function enter the choice of the function (``choosing``), the matcher's that of values too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.engine.base import Engine, Piece
from toolsrv_runtime.formats.base import FINISH, Meter, Move, Prior, Step, View
from toolsrv_runtime.formats.compact import copying, formulas, layout
from toolsrv_runtime.formats.compact.bridging import Crossing, bridge, crossed, questions
from toolsrv_runtime.formats.compact.calculating import calculated, is_down, worked_out
from toolsrv_runtime.formats.compact.choosing import choose
from toolsrv_runtime.formats.compact.codes import coded
from toolsrv_runtime.formats.compact.filling import Filling
from toolsrv_runtime.formats.compact.finishing import finish
from toolsrv_runtime.formats.compact.forced import forced
from toolsrv_runtime.formats.compact.matched import Matched
from toolsrv_runtime.formats.compact.need import Need
from toolsrv_runtime.formats.compact.needs import Needs
from toolsrv_runtime.formats.compact.planned import Planned
from toolsrv_runtime.formats.compact.pointing import pointed
from toolsrv_runtime.formats.compact.repeats import repeats
from toolsrv_runtime.formats.compact.scene import Offer, Scene, about, news
from toolsrv_runtime.formats.compact.several import Several
from toolsrv_runtime.formats.compact.turn import Turn
from toolsrv_runtime.formats.fit import Shape, fit
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.reading import directions, facts, feasts
from toolsrv_runtime.stop import Stop

RETRIES = 2
"""How often a failed part is tried again on one branch before the branch gives up."""

SEEN = 60
"""Facts of earlier responses that arguments may be taken from."""

REPLY = 2
"""Room for one reply in a prompt, in the most tokens that one part of it may have."""

PARTS = 8
"""Needs of one task that nothing serves, after which a reply ends."""

_TAG = re.compile(
    r",\s*(?:true|right|correct|yes|no|ok(?:ay)?|isn['’]?t (?:it|that so))\s*\?\s*$", re.IGNORECASE
)
"""What only asks for a nod at the end of a task; none of it is a value."""


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
        plan = Planned(scene, self._prior) if self._prior else None
        # What failed and asks for nothing in words was no need, where others have been served.
        idle = served and needs is not None and not needs.asks(failed)
        if failed and not idle and not (plan and plan.is_extra(view.path[-1])):
            tries = sum(about(step) == failed for step in view.path)
            turn.force(f"#{scene.number(view.path[-1])} failed. ")
            expression = worked_out(scene, view.path[-1])
            if move := calculated(turn, failed, scene, expression):
                return move
            if self._prior is not None and (
                over := coded(scene, self._prior, meant=False) or bridge(scene, self._prior)
            ):
                return _crossing(turn, over)
            move = self._serve(turn, failed, scene, ()) if tries <= RETRIES else None
            wanted = (formulas.CALCULATOR,) if expression else questions(scene)
            return replace(move or _quit(scene, ()), wanted=wanted)
        again = crossed(scene)
        if again is None and self._prior is not None and view.path:
            again = coded(scene, self._prior, meant=False)
        if again:
            return _crossing(turn, again)
        missing = list(dict.fromkeys(text for step in view.path for text in step.move.missing))
        taken = [
            about(step)
            for step in view.path
            if step.ok or (served and needs is not None and not needs.asks(about(step)))
        ]
        if self._prior is not None and served:
            several = Several(scene, self._prior)
            missing += [words for words in several.failed() if words not in missing]
            if another := several.next():
                text = json.dumps(another.arguments, ensure_ascii=False)
                return forced(turn, another.words, another.offer, text, tuple(missing))
        passed: list[Need] = []
        for _ in range(PARTS):
            need = plan.next(passed) if plan else None
            if need is not None:
                passed.append(need)
                words = need.words
            else:
                words = self._need(turn, scene, served=served)
                if needs is not None:
                    words = needs.next(words, [*taken, *missing])
            if not words or (need is None and words in missing):
                break
            known = need is not None or plan is None or plan.may_serve(words)
            move = self._serve(turn, words, scene, tuple(missing), need) if known else None
            if move is not None and repeats(
                move, scene, asks=needs is None or needs.asks(move.about)
            ):
                taken.append(words)
                turn.rewind()
                served = True
            elif move is not None:
                return move
            elif plan is not None and need is not None and need not in plan.needs:
                continue  # the words have their answer, and ask for nothing besides
            elif any(about(step) == words for step in scene.attempts):
                return _quit(scene, missing)
            elif needs is None or needs.is_open(words, taken):
                missing.append(words)
            else:
                taken.append(words)
        if needs is not None:
            missing += needs.open([*taken, *missing])
        if served and not _was_tried(view, layout.DONE):
            turn.rewind()
            return finish(turn, self._told(view), missing)
        if (
            not served
            and self._prior is not None
            and (first := coded(scene, self._prior, meant=True))
        ):
            turn.rewind()
            return _crossing(turn, first)
        return _quit(scene, missing)

    def finish(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | None:
        """Return an answer from the facts of the path; see ``Format.finish``."""
        if not self._told(view):
            return None
        meter.replies += 1
        scene = self._scene(view, meter)
        turn = Turn(
            self._engine, self._profile, scene.head(), max_tokens=max_tokens, stop=stop, meter=meter
        )
        missing = list(dict.fromkeys(text for step in view.path for text in step.move.missing))
        if self._prior is not None:
            several = Several(scene, self._prior)
            missing += [words for words in several.unanswered() if words not in missing]
            taken = [about(step) for step in view.path if step.ok]
            missing += Needs(scene, self._prior).open([*taken, *missing])
        return finish(turn, self._told(view), missing)

    def prefers(self, view: View, first: Step, second: Step, *, stop: Stop, meter: Meter) -> bool:
        """Whether ``first`` worked and the other did not, else which call serves its words better.

        Of two calls for the same words the matcher says that; without it, and of others, the model
        says which it finds likelier, as it was never trained to compare steps in words. See
        ``Format.prefers``.
        """
        if first.ok != second.ok:
            return first.ok
        scene = self._scene(view, meter)
        if about(first) and about(first) == about(second):
            matched = Matched(scene, about(first), self._prior)
            serves = {one.function.name: matched.serves(one.function.api) for one in scene.offers}
            one, other = (serves.get(step.move.function, 0.0) for step in (first, second))
            if one != other:
                return one > other
        meter.replies += 1
        turn = Turn(self._engine, self._profile, scene.head(), max_tokens=1, stop=stop, meter=meter)
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
        task = feasts.dated(_TAG.sub("?", clean(view.task, 20_000)))
        return Scene(task, tuple(offers), view.path, attempts, tuple(seen))

    def _facts(self, response: Any) -> list[facts.Fact]:
        return facts.facts(response, limit=self._profile.observation_limit)

    def _told(self, view: View) -> list[tuple[Step, list[facts.Fact]]]:
        """Return the calls that answered something, with their facts."""
        found = [(step, self._facts(step.response)) for step in view.path if step.ok]
        return [(step, group) for step, group in found if group]

    def _need(self, turn: Turn, scene: Scene, *, served: bool) -> str:
        """Let the model copy what of the task comes next; empty when it is done."""
        mark = turn.mark()
        grammar = copying.need(layout.shown(scene.task), offers=len(scene.offers), served=served)
        said = turn.write(grammar)
        turn.rewind(mark)
        return copying.original(copying.needed(said).strip(), scene.task)

    def _serve(
        self,
        turn: Turn,
        part: str,
        scene: Scene,
        missing: tuple[str, ...],
        need: Need | None = None,
    ) -> Move | None:
        """Return the call that serves ``part``, or None when there is none; the turn says so.

        ``need`` says which function the whole task needs for it, where that is known.
        """
        if need is not None and is_down(need.function, scene):
            move = self._stand_in(turn, need, scene)
            if move is not None:
                return replace(move, missing=missing)
        mark = turn.mark()
        turn.force(layout.shown(part), data=True)
        matched = Matched(scene, part, self._prior)
        offer: Offer | None
        if need is not None and need.late:
            offer = next(one for one in scene.offers if one.function == need.function)
        else:
            planned = need.function.name if need else ""
            offer = choose(turn, part, scene, matched, self._prior, planned=planned)
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
        if self._prior is not None:
            straight = Several(scene, self._prior).straightened(offer.function, arguments)
            straight = pointed(part, scene, offer.function, straight)
            straight = directions.straight(straight, scene.task, part)
            if straight != arguments:
                turn.rewind(mark)
                text = json.dumps(straight, ensure_ascii=False)
                return forced(turn, part, offer, text, missing)
        thought = turn.text().partition(layout.ACTION)[0]
        text = json.dumps(arguments, ensure_ascii=False)
        return Move(thought, offer.function.name, text, turn.pieces(), part, missing)

    def _stand_in(self, turn: Turn, need: Need, scene: Scene) -> Move | None:
        """Return a calculator's call for what a function that is down would be called with."""
        mark = turn.mark()
        turn.force(layout.shown(need.words), data=True)
        number = next(one.number for one in scene.offers if one.function == need.function)
        turn.force(f"{layout.USE}{number}{layout.ACTION}{need.function.name}{layout.INPUT}")
        matched = Matched(scene, need.words, self._prior)
        filling = Filling(turn, need.words, scene, matched, grounded=self._profile.grounded)
        arguments = filling.arguments(need.function)
        turn.rewind(mark)
        expression = formulas.expression(need.function.api, arguments or {}, need.words)
        return calculated(turn, need.words, scene, expression)


def _crossing(turn: Turn, one: Crossing) -> Move:
    return forced(turn, one.words, one.offer, json.dumps(one.arguments, ensure_ascii=False))


def _quit(scene: Scene, missing: Sequence[str]) -> Move:
    failed = [step for step in scene.attempts if not step.ok and step.move.function != FINISH]
    if failed:
        thought = f"#{scene.number(failed[-1])}{layout.GIVE_UP}"
    else:
        thought = "; ".join(f"{words}{layout.NOTHING}" for words in missing) or "nothing to do"
    text = f"{thought}{layout.ACTION}{FINISH}{layout.INPUT}{layout.QUIT}"
    pieces = (Piece(text, special=True),)
    return Move(thought, FINISH, layout.QUIT, pieces, missing=tuple(missing))


def _was_tried(view: View, thought: str) -> bool:
    return any(step.move.thought == thought for step in view.tried)
