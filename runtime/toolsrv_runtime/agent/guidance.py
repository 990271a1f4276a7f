"""What the matcher says of a task to whoever asks a model: needs, values, what is served at all.

The matcher and the aids that lean on it are known here alone. An aid that is not in use, or no
matcher, means that nothing is said: the model then chooses for itself. Knows no model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from toolsrv_runtime.agent import coverage, itself, missing, values
from toolsrv_runtime.contract.questions import Question
from toolsrv_runtime.formats.base import Move, Prior, View

AIDS = frozenset({"coverage", "match", "exclude", "check", "decline", "shortlist", "values", "ask"})
"""What helps a model, each of which can be left out.

``coverage``: needs that the matcher sees in the task are called for before an answer is taken;
``match``: for a need only functions are offered that the matcher finds to serve it, and the model
cannot begin by saying that none fits; ``exclude``: an identical call on a path is not made again;
``check``: an answer is checked against the results and written again once; ``decline``: a task for
which the matcher sees no function is given up without asking the model; ``shortlist``: candidates
that the matcher rules out are not shown; ``values``: the model is told which words of the task the
matcher takes for which argument; ``ask``: a person is asked for values that nobody gave, where
without it the model makes them up.
"""


class Guidance:
    """The matcher's part of one solve, aid by aid; ``prior`` None: there is no matcher."""

    def __init__(self, prior: Prior | None, aids: frozenset[str]) -> None:
        self.prior = prior
        self._aids = aids

    def helps(self, aid: str) -> bool:
        """Whether an aid is in use."""
        return aid in self._aids

    def needs(self, view: View) -> tuple[tuple[coverage.Need, ...], tuple[coverage.Need, ...]]:
        """Return what the matcher sees that the task asks for, and what may follow from it."""
        if self.prior is None or "coverage" not in self._aids:
            return (), ()
        return coverage.needs(view.task, view.functions, self.prior)

    def shown(self, view: View) -> View:
        """Return the view with the functions that the model is shown."""
        if self.prior is None or "shortlist" not in self._aids:
            return view
        called = {step.move.function for step in (*view.path, *view.tried, *view.earlier)}
        kept = coverage.shortlist(view.task, view.functions, self.prior)
        also = (one for one in view.functions if one.name in called and one not in kept)
        return replace(view, functions=(*kept, *also))

    def declines(self, view: View) -> bool:
        """Whether the matcher sees nothing on offer that serves any of the task, of what still may.

        A function whose calls failed too often may not.
        """
        if self.prior is None or "decline" not in self._aids:
            return False
        failed = Counter(step.move.function for step in view.failed)
        may = [one for one in view.functions if failed[one.name] < coverage.MOST_FAILED]
        # A model that chooses for itself may say so too: it is asked where the matcher only doubts.
        fits = view.fits or not self.helps("match")
        return coverage.is_unserved(view.task, may, self.prior, fits=fits)

    def reading(self, view: View) -> values.Reading | None:
        """Return the matcher's reading of the task behind the results so far."""
        return (
            values.Reading(view.task, (*view.earlier, *view.path), self.prior)
            if self.prior
            else None
        )

    def asks_itself(self, view: View) -> bool:
        """Whether the task is talk with the assistant."""
        prior = None if view.whole else self.prior
        return prior is not None and itself.asks_itself(
            view.task, view.functions, prior, fits=view.fits
        )

    def sees_needs(self, view: View) -> bool:
        """Whether a matcher says what the task asks for."""
        prior = self.prior
        if prior is None or "coverage" not in self._aids:
            return False
        return coverage.has_matcher(view.task, view.functions, prior)

    def missing(
        self, view: View, move: Move, today: str, asked: Collection[str]
    ) -> Sequence[Question]:
        """Return the questions that a call leaves open; see ``Inquirer.missing``."""
        if self.prior is None or "ask" not in self._aids:
            return ()
        return missing.questions(view, move, missing.known(view, today), self.prior, asked)

    def doubts(self, view: View, move: Move, today: str) -> Mapping[str, str]:
        """Return what the task says instead of some arguments; see ``Inquirer.doubts``."""
        function = next((one for one in view.functions if one.name == move.function), None)
        if self.prior is None or function is None or "ask" not in self._aids:
            return {}
        return missing.doubts(function, move.parsed, missing.known(view, today), self.prior)

    def suppliers(self, view: View, move: Move) -> Sequence[str]:
        """Return functions whose answers may hold what a call lacks; see ``Inquirer.suppliers``."""
        return missing.suppliers(view, move, self.prior) if self.prior is not None else ()
