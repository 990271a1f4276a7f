"""One reply of the compact format in the making: which words of the task are served next, by what call.

In this order: what failed is tried again or crossed, a wish for several values goes on, the next
need is served. What no function serves is missing, and so are the words of a call that a person
declined: no other call is made for them.
"""

from __future__ import annotations

import json
from dataclasses import replace

from toolsrv_runtime.contract.format import FINISH, Action, Reranker
from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.planner import ciphers, clues, copying, counted, formulas, layout, other_ways
from toolsrv_runtime.planner.bridging import Crossing, bridge, crossed, questions
from toolsrv_runtime.planner.calculating import calculated, is_down, worked_out
from toolsrv_runtime.planner.choosing import choose
from toolsrv_runtime.planner.codes import coded
from toolsrv_runtime.planner.counts import too_few
from toolsrv_runtime.planner.dates import iso_dates
from toolsrv_runtime.planner.filling import Filling
from toolsrv_runtime.planner.forced import forced
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.need import Need
from toolsrv_runtime.planner.needs import Needs
from toolsrv_runtime.planner.planned import Planned
from toolsrv_runtime.planner.pointing import pointed
from toolsrv_runtime.planner.reading import directions, pairs
from toolsrv_runtime.planner.repeats import repeats
from toolsrv_runtime.planner.scene import Offer, Scene, about
from toolsrv_runtime.planner.several import Several
from toolsrv_runtime.planner.turn import Turn

RETRIES = 2
"""How often a failed part is tried again on one branch before the branch gives up."""

PARTS = 8
"""Needs of one task that nothing serves, after which a reply ends."""


class Reply:
    """The reply to one scene. Without ``prior`` the model chooses alone.

    ``served`` says whether anything of the task has an answer, ``missing`` which of its words have
    none, both as far as ``next`` has come.
    """

    def __init__(self, turn: Turn, scene: Scene, prior: Reranker | None, *, grounded: bool) -> None:
        self._turn = turn
        self._scene = scene
        self._prior = prior
        self._grounded = grounded
        self._needs = Needs(scene, prior) if prior else None
        self._plan = Planned(scene, prior) if prior else None
        self._declined = frozenset(about(step) for step in scene.attempts if step.declined)
        self.served = any(step.ok for step in scene.path)
        self.missing = list(
            dict.fromkeys(text for step in scene.path for text in step.move.missing)
        )

    def next(self) -> Action | None:
        """Return the next call, or the end of a path that leads nowhere; None where all is served.

        What is left without a call is in ``missing`` then.
        """
        if failed := self._failed():
            return self._again(failed)
        if crossing := self._crossing():
            return _crossed(self._turn, crossing)
        if another := self._another():
            return another
        if sign := self._sign():
            return _crossed(self._turn, sign)
        if move := self._counted():
            return move
        taken = self._taken()
        if move := self._first(taken):
            return move
        if self._needs is not None:
            self.missing += self._needs.open([*taken, *self.missing])
        self.missing += [words for words in too_few(self._scene) if words not in self.missing]
        if (
            not self.served
            and self._prior
            and (code := coded(self._scene, self._prior, meant=True))
        ):
            self._turn.rewind()
            return _crossed(self._turn, code)
        return None

    def gives_up(self) -> Action:
        """Return the end of a path on which nothing is left to try."""
        scene = self._scene
        failed = [one for one in scene.attempts if not one.ok and one.move.function != FINISH]
        if failed:
            thought = f"#{scene.number(failed[-1])}{layout.GIVE_UP}"
        else:
            told = (f"{words}{layout.NOTHING}" for words in self.missing)
            thought = "; ".join(told) or "nothing to do"
        text = f"{thought}{layout.ACTION}{FINISH}{layout.INPUT}{layout.QUIT}"
        pieces = (Piece(text, special=True),)
        return Action(thought, FINISH, layout.QUIT, pieces, missing=tuple(self.missing))

    def _failed(self) -> str:
        """Return the words whose call has just failed, "" where they need no other try.

        What asks for nothing in words was no need, where others have been served.
        """
        last = self._scene.path[-1] if self._scene.path else None
        if last is None or last.ok or last.declined:
            return ""
        idle = self.served and self._needs is not None and not self._needs.asks(about(last))
        extra = self._plan is not None and self._plan.is_extra(last)
        return "" if idle or extra else about(last)

    def _again(self, failed: str) -> Action:
        """Return another call for words whose call has failed, or the end of the path."""
        scene, turn, last = self._scene, self._turn, self._scene.path[-1]
        tries = sum(about(step) == failed for step in scene.path)
        turn.force(f"#{scene.number(last)} failed. ")
        expression = worked_out(scene, last)
        if move := calculated(turn, failed, scene, expression):
            return move
        if way := other_ways.of_step(last, scene):
            return _crossed(turn, way)
        if self._prior is not None and (
            over := coded(scene, self._prior, meant=False) or bridge(scene, self._prior)
        ):
            return _crossed(turn, over)
        self.missing.clear()  # a call for the words themselves leaves none of them open
        call = self._serve(failed) if tries <= RETRIES else None
        wanted = (formulas.CALCULATOR,) if expression else questions(scene)
        wanted += other_ways.searches(last, scene)
        return replace(call or self.gives_up(), wanted=wanted)

    def _crossing(self) -> Crossing | None:
        """Return the call again of what was refused before a call was made in between."""
        again = crossed(self._scene)
        if again is None and self._prior is not None and self._scene.path:
            again = coded(self._scene, self._prior, meant=False)
        return again

    def _sign(self) -> Crossing | None:
        """Return the call that says what the next sign of the task stands for."""
        if self._prior is None:
            return None
        return ciphers.back(self._scene) or clues.read(self._scene, self._prior)

    def _counted(self) -> Action | None:
        """Return the next call towards a day that is counted from a feast."""
        if self._prior is None:
            return None
        return counted.next_call(self._turn, self._scene, self._prior, grounded=self._grounded)

    def _another(self) -> Action | None:
        """Return a call like one before it, where the task asks for that with other values."""
        if self._prior is None or not self.served:
            return None
        several = Several(self._scene, self._prior)
        self.missing += [words for words in several.failed() if words not in self.missing]
        another = several.next()
        if another is None:
            return None
        text = json.dumps(another.arguments, ensure_ascii=False)
        return forced(self._turn, another.words, another.offer, text, tuple(self.missing))

    def _taken(self) -> list[str]:
        """Return the words that ask for no more: they have an answer, or never asked."""
        return [
            about(step)
            for step in self._scene.path
            if step.ok
            or (self.served and self._needs is not None and not self._needs.asks(about(step)))
        ]

    def _first(self, taken: list[str]) -> Action | None:
        """Return the call for the first need that some function serves; None where none is left.

        Adds to ``taken`` what turns out to ask for no more, and to ``missing`` what nothing serves.
        """
        passed: list[Need] = []
        for _ in range(PARTS):
            need = self._plan.next(passed) if self._plan else None
            if need is not None:
                passed.append(need)
            words = need.words if need is not None else self._copied(taken)
            if not words or (need is None and words in self.missing):
                break
            if any(words in one for one in self._declined):
                if words not in self.missing:
                    self.missing.append(words)
                continue
            if self._is_talk(words, need):
                taken.append(words)
                continue
            known = need is not None or self._plan is None or self._plan.may_serve(words)
            move = self._serve(words, need) if known else None
            if move is not None and self._repeats(move):
                taken.append(words)
                self._turn.rewind()
                self.served = True
            elif move is not None:
                return move
            elif need is not None and self._plan is not None and need not in self._plan.needs:
                continue  # the words have their answer, and ask for nothing besides
            elif any(about(step) == words for step in self._scene.attempts):
                return self.gives_up()
            elif self._needs is None or self._needs.is_open(words, taken):
                self.missing.append(words)
            else:
                taken.append(words)
        return None

    def _is_talk(self, words: str, need: Need | None) -> bool:
        """Whether words ask for nothing more.

        They hold a sign that was read, ask whether that is right, or lead up to what nothing
        serves.
        """
        if self._needs is None:
            return False
        if self._needs.asks(words):
            return need is None and self.served and self._needs.is_yes_or_no(words)
        if not self.served:
            return self._needs.is_talk(words, self.missing)
        signs = [one.sign for one in clues.find(self._scene.task) if one.sign in words]
        return any(about(step) in signs for step in self._scene.path if step.ok)

    def _repeats(self, move: Action) -> bool:
        asks = self._needs is None or self._needs.asks(move.about)
        return repeats(move, self._scene, asks=asks)

    def _copied(self, taken: list[str]) -> str:
        """Let the model copy what of the task comes next; empty when it is done."""
        scene, mark = self._scene, self._turn.mark()
        task = layout.shown(scene.task)
        said = self._turn.write(copying.need(task, offers=len(scene.offers), served=self.served))
        self._turn.rewind(mark)
        words = copying.original(copying.needed(said).strip(), scene.task)
        return self._needs.next(words, [*taken, *self.missing]) if self._needs else words

    def _serve(self, part: str, need: Need | None = None) -> Action | None:
        """Return the call that serves ``part``, or None when there is none; the turn says so.

        ``need`` says which function the whole task needs for it, where that is known.
        """
        turn, scene, missing = self._turn, self._scene, tuple(self.missing)
        down = need is not None and is_down(need.function, scene)
        if need is not None and down:
            move = self._stand_in(need)
            if move is not None:
                return replace(move, missing=missing)
        mark = turn.mark()
        turn.force(layout.shown(part), data=True)
        matched = Matched(scene, part, self._prior)
        offer: Offer | None
        if need is not None and need.late and not down:
            offer = next(one for one in scene.offers if one.function == need.function)
        else:
            planned = need.function.name if need else ""
            offer = choose(turn, part, scene, matched, self._prior, planned=planned)
        filling = Filling(turn, part, scene, matched, grounded=self._grounded)
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
        straight = self._straightened(part, offer, arguments)
        if straight != arguments:
            turn.rewind(mark)
            return forced(turn, part, offer, json.dumps(straight, ensure_ascii=False), missing)
        thought = turn.text().partition(layout.ACTION)[0]
        text = iso_dates(offer.function, json.dumps(arguments, ensure_ascii=False))
        return Action(thought, offer.function.name, text, turn.pieces(), part, missing)

    def _straightened(self, part: str, offer: Offer, arguments: dict[str, str]) -> dict[str, str]:
        """Return a call's arguments with each value in its place: of its side, order and direction."""
        if self._prior is None:
            return arguments
        straight = Several(self._scene, self._prior).straightened(offer.function, arguments)
        straight = pointed(part, self._scene, offer.function, straight)
        straight = pairs.ordered(offer.function.api, straight, self._scene.task)
        return directions.straight(straight, self._scene.task, part)

    def _stand_in(self, need: Need) -> Action | None:
        """Return the call that tells what a function that is down would be called for."""
        turn, scene = self._turn, self._scene
        mark = turn.mark()
        turn.force(layout.shown(need.words), data=True)
        number = next(one.number for one in scene.offers if one.function == need.function)
        turn.force(f"{layout.USE}{number}{layout.ACTION}{need.function.name}{layout.INPUT}")
        matched = Matched(scene, need.words, self._prior)
        filling = Filling(turn, need.words, scene, matched, grounded=self._grounded)
        arguments = filling.arguments(need.function)
        turn.rewind(mark)
        api, given = need.function.api, arguments or {}
        expression = formulas.expression(api, given, need.words)
        way = other_ways.other_way(api, given, need.words, scene) if not expression else None
        return _crossed(turn, way) if way else calculated(turn, need.words, scene, expression)


def _crossed(turn: Turn, one: Crossing) -> Action:
    return forced(turn, one.words, one.offer, json.dumps(one.arguments, ensure_ascii=False))
