"""The compact format of the model that ships, and the help that a small model needs.

Layout: numbered functions after ``System:``, then ``User:``, and per round a thought that copies
a part of the task and ends `` use #k``, an action, its JSON input and ``Function:`` with the
response. The model says which words of the task come next where the matcher has found none
(``planned``), whether a function serves them, which words of the task or of a response each
argument takes, and what the answer says. The retriever's and the matcher's views of words and
function enter the choice of the function (``choosing``), the matcher's that of values too.

Here are prompts that fit, answers and comparisons; which call comes next ``reply`` decides.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.agent.fitting import PromptShape, fit_prompt
from toolsrv_runtime.contract.format import Action, History, Reranker, Step, UsageMeter
from toolsrv_runtime.contract.models import Engine, Piece
from toolsrv_runtime.planner import layout
from toolsrv_runtime.planner.finishing import finish
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.needs import Needs
from toolsrv_runtime.planner.reading import two_scales, upcoming
from toolsrv_runtime.planner.reading.cards import unquoted
from toolsrv_runtime.planner.reading.digits import in_digits
from toolsrv_runtime.planner.reading.idioms import in_plain_words
from toolsrv_runtime.planner.reading.ratios import as_sums
from toolsrv_runtime.planner.reading.same_month import in_full
from toolsrv_runtime.planner.reading.yearless import with_year
from toolsrv_runtime.planner.reply import Reply
from toolsrv_runtime.planner.scene import Offer, Scene, about, news
from toolsrv_runtime.planner.several import Several
from toolsrv_runtime.planner.turn import Turn
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.values import dates, facts

SEEN = 60
"""Facts of earlier responses that arguments may be taken from."""

REPLY = 2
"""Room for one reply in a prompt, in the most tokens that one part of it may have."""

_TAG = re.compile(
    r",\s*(?:true|right|correct|yes|no|ok(?:ay)?|isn['’]?t (?:it|that so))\s*\?\s*$", re.IGNORECASE
)
"""What only asks for a nod at the end of a task; none of it is a value."""


class CompactFormat:
    """See the module. Without ``prior`` the model chooses alone."""

    name = "compact"

    def __init__(self, engine: Engine, profile: Profile, *, prior: Reranker | None = None) -> None:
        self._engine = engine
        self._profile = profile
        self._prior = prior

    def observation(self, response: Any, error: str, schema: Any = None) -> str:  # noqa: ARG002
        """Return the response's first facts as a flat JSON object of strings."""
        found = self._facts(response)
        if error and not any(name == "error" for name, _ in found):
            found.insert(0, ("error", facts.plain(error)[: facts.VALUE_LIMIT]))
        return json.dumps(dict(found), ensure_ascii=False)

    def propose(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | str:
        """Return the next move; see ``Format.propose``."""
        meter.replies += 1
        scene = self._scene(view, meter)
        turn = Turn(
            self._engine, self._profile, scene.head(), max_tokens=max_tokens, stop=stop, meter=meter
        )
        reply = Reply(turn, scene, self._prior, grounded=self._profile.grounded)
        move = reply.next()
        if move is None and reply.served and not _was_tried(view, layout.DONE):
            turn.rewind()
            move = finish(turn, self._told(view), reply.missing)
        return move or reply.gives_up()

    def finish(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | None:
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
            missing += Needs(scene, self._prior).all_left([*taken, *missing])
        return finish(turn, self._told(view), list(dict.fromkeys(missing)))

    def prefers(
        self, view: History, first: Step, second: Step, *, stop: Stop, meter: UsageMeter
    ) -> bool:
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

    def _scene(self, view: History, meter: UsageMeter) -> Scene:
        """Return what a reply is written from, shortened where its prompt would be too long."""
        scene = self._whole(view)

        def shaped(shape: PromptShape) -> Scene:
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

        fitted = fit_prompt(
            [(offer.line, replace(offer, brief=True).line) for offer in scene.offers],
            [step.observation for step in scene.path],
            lambda shape: self._engine.count(shaped(shape).head()),
            self._engine.context
            - min(REPLY * self._profile.max_reply_tokens, self._engine.context // 2),
            task_tokens=self._engine.count((Piece(layout.shown(scene.task)),)),
        )
        meter.note((*layout.hidden(scene.task), *fitted.notes))
        return shaped(fitted.shape)

    def _whole(self, view: History) -> Scene:
        offers = (
            Offer(i, f) for i, f in enumerate(view.functions[: layout.MAX_FUNCTIONS], start=1)
        )
        steps = (*view.earlier, *view.path)
        told = [fact for step in reversed(steps) if step.ok for fact in news(step)]
        attempts = (*view.path, *view.tried, *view.failed)
        task = in_plain_words(unquoted(_TAG.sub("?", clean(view.task, 20_000))))
        task = as_sums(in_digits(task))
        task = in_full(with_year(dates.with_holiday_dates(task, dates.today()), dates.today()))
        seen = two_scales.taken_on(upcoming.meant(told, task), task)[:SEEN]
        return Scene(task, tuple(offers), view.path, attempts, tuple(seen))

    def _facts(self, response: Any) -> list[facts.Fact]:
        return facts.facts(response, limit=self._profile.observation_limit)

    def _told(self, view: History) -> list[tuple[Step, list[facts.Fact]]]:
        """Return the calls that answered something, with their facts that the task may mean."""
        found = [
            (step, upcoming.meant(self._facts(step.response), view.task))
            for step in view.path
            if step.ok
        ]
        return [(step, group) for step, group in found if group]


def _was_tried(view: History, thought: str) -> bool:
    return any(step.move.thought == thought for step in view.tried)
