"""What the model is offered in one solve: the APIs of a first search, and others once they fail.

A solve begins with the best few APIs for its task: of what the retriever finds, the matcher, which
reads each beside the whole task, puts those first that the task needs. When all of them have
failed, or a path of the search tree gave up, it may search again: for the parts of the task that no
call has served yet, leaving out all that was offered before. What worked stays on offer, new ones
take the place of the others. For a part that nothing on offer serves it may search too. Every
search is kept for the outcome. Blocks while it searches; knows nothing of models, calls or trees.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from toolsrv_registry.clauses import clauses
from toolsrv_registry.functions import Function, FunctionList
from toolsrv_runtime.contract.earlier import Earlier
from toolsrv_runtime.contract.hints import NO_HINTS, TaskHints
from toolsrv_runtime.finder import READ, Finder, Found, KeyAware, needed_first, reranked
from toolsrv_runtime.outcome import Searched
from toolsrv_runtime.profile import MOST_CANDIDATES

MOST_SEARCHES = 3
"""Searches of one solve, the first included: each one more may lead a hopeless task on."""

FRESH = 3
"""APIs that a search for one part of a task puts on offer."""


PART = "a subtask of the plan"
"""Why a subtask's candidates are searched for."""


class Offer:
    """The functions of one solve. ``begin`` comes first."""

    def __init__(
        self,
        finder: Finder,
        task: str,
        limit: int,
        category: str | None,
        *,
        most: int = MOST_CANDIDATES,
        again: bool = True,
        wider: bool = True,
        hints: TaskHints = NO_HINTS,
        earlier: Sequence[Earlier] = (),
    ) -> None:
        """Take what to offer for; ``again`` False leaves it at the first search.

        ``limit`` APIs are offered first, and never more than ``most`` at once (``limited_to`` is
        ``most`` where ``limit`` is more, else 0). ``wider`` False offers what the finder gives, in
        its order. The APIs that ``earlier`` runs called are offered too, last.
        """
        self._earlier = earlier
        self._finder = finder
        self._task = task
        self._hints = hints
        self._query = hints.query(task)
        self._limit = min(limit, most)
        self._room = most
        self.limited_to = most if limit > most else 0
        self._category = category
        self._most = MOST_SEARCHES if again else 1
        self._wider = wider
        self._parts: dict[str, str] = {}
        self._all = FunctionList([])
        self._shown: tuple[str, ...] = ()
        self.searches: list[Searched] = []
        self.fits = True
        self.nearest: tuple[str, ...] = ()
        self.dead_left_out = 0
        self.need_consent: tuple[str, ...] = ()
        self.need_keys: dict[str, str] = {}
        self.language = ""

    @property
    def all(self) -> FunctionList:
        """Every function that was ever on offer; a name means the same API all through."""
        return self._all

    @property
    def shown(self) -> tuple[Function, ...]:
        """The functions on offer now."""
        by_id = {function.api.id: function for function in self._all}
        return tuple(by_id[api_id] for api_id in self._shown)

    def begin(self) -> Searched:
        """Search for the whole task.

        Raises:
            NotFoundError: the category is unknown.
        """
        wide = max(READ, self._limit) if self._wider else self._limit
        extra = self._hints.extra_queries(self._task) if self._wider else ()
        text = ". ".join((self._query, *self._hints.expansion(self._task), *extra))
        found = self._finder.search(text, wide, category=self._category)
        self.fits = bool(found.hits) and not found.nothing_fits
        self.nearest = tuple(found.nearest_categories[:3])
        self.dead_left_out = found.dead_left_out
        self.need_consent = tuple(found.need_consent)
        self.need_keys = dict(found.need_keys) if isinstance(found, KeyAware) else {}
        self.language = found.language
        hits = self._ordered(found.hits, self._task)
        for question in extra:
            first = needed_first(found.hits, question, self._finder.match)[:1]
            hits = [*first, *(hit for hit in hits if hit not in first)]
        again = self._called_before({hit.api.id for hit in hits[: self._limit]})
        kept = hits[: max(0, min(self._limit, self._room - len(again)))]
        return self._take(self._query, [*kept, *again], "")

    def _ordered(self, hits: Sequence[Found], text: str) -> list[Found]:
        if not self._wider:
            return list(hits)
        return [one.hit for one in reranked(hits, text, self._finder.match)]

    def _called_before(self, offered: Collection[str]) -> list[Found]:
        """Return the hits for what earlier runs called and is not ``offered``, the last run's first."""
        found: dict[str, Found] = {}
        for run in reversed(self._earlier):
            called = {call.api_id for call in run.calls}
            text = self._hints.query(run.task)
            wide = max(READ, self._limit)
            for hit in self._finder.search(text, wide, category=self._category).hits:
                if hit.api.id in called and hit.api.id not in offered:
                    found.setdefault(hit.api.id, hit)
        return list(found.values())[: self._room // 2]

    def may_search(self) -> bool:
        """Whether another search is left, and the catalog had anything for the task at all."""
        made = sum(one.reason != PART for one in self.searches)
        return self.fits and made < self._most

    def spent(self, failed: Collection[str]) -> bool:
        """Whether all that is on offer has failed (API ids)."""
        return bool(self._shown) and all(api_id in failed for api_id in self._shown)

    def again(self, worked: Collection[str], failed: Collection[str], reason: str) -> bool:
        """Search for what is left of the task and offer what is found; say whether there is any.

        ``worked`` and ``failed`` are ids of called APIs; what failed goes, what worked stays, and
        what was not called stays where there is room.
        """
        if not self.may_search():
            return False
        known = {function.api.id for function in self._all}
        text = self._left(worked)
        found = self._finder.search(text, self._limit + len(known), category=self._category)
        fresh = [hit.api.id for hit in found.hits if hit.api.id not in known]
        stays = [api_id for api_id in self._shown if api_id in worked]
        if found.nothing_fits or not fresh:
            self.searches.append(Searched(query=text, reason=reason, api_ids=(), scores=()))
            return False
        room = min(max(self._limit, len(stays) + 1), self._room) - len(stays)
        self._take(text, [hit for hit in found.hits if hit.api.id not in known][:room], reason)
        idle = [i for i in self._shown if i not in worked and i not in failed]
        self._shown = tuple([*stays, *fresh[:room], *idle][: len(stays) + room])
        return True

    def look_for(self, part: str, stays: Collection[str], reason: str) -> bool:
        """Search for what nothing on offer does; say whether that helped.

        What is found takes the last places but those of the ids in ``stays``, so that every other
        function keeps its number. ``reason`` is kept with the search.
        """
        if not self.may_search():
            return False
        known = {function.api.id for function in self._all}
        wide = max(READ, FRESH + len(known)) if self._wider else FRESH + len(known)
        found = self._finder.search(self._hints.query(part), wide, category=self._category)
        hits = [hit for hit in found.hits if hit.api.id not in known]
        hits = self._ordered(hits, part)[:FRESH]
        fresh = [hit.api.id for hit in hits]
        if found.nothing_fits or not fresh:
            self.searches.append(Searched(query=part, reason=reason, api_ids=(), scores=()))
            return False
        self._take(part, hits, reason)
        places: list[str] = [*self._shown, *[""] * (self._room - len(self._shown))]
        free = [at for at, api_id in enumerate(places) if api_id not in stays]
        for at, api_id in zip(sorted(free[-len(fresh) :]), fresh, strict=False):
            places[at] = api_id
        self._shown = tuple(api_id for api_id in places if api_id)
        return True

    def for_part(self, part: str) -> tuple[Function, ...]:
        """Search for a subtask; return what to offer for it, which is what is offered where none is found."""
        wide = max(READ, self._limit) if self._wider else self._limit
        found = self._finder.search(self._hints.query(part), wide, category=self._category)
        hits = self._ordered(found.hits, part)[: self._limit]
        if found.nothing_fits or not hits:
            self.searches.append(Searched(query=part, reason=PART, api_ids=(), scores=()))
            return self.shown
        self._take(part, hits, PART)
        by_id = {function.api.id: function for function in self._all}
        return tuple(by_id[hit.api.id] for hit in hits)

    def keep(self, api_ids: Collection[str]) -> None:
        """Offer these first, which were offered for subtasks, then what is offered now."""
        known = {function.api.id for function in self._all}
        first = [one for one in dict.fromkeys(api_ids) if one in known]
        self._shown = tuple(dict.fromkeys([*first, *self._shown]))[: self._room]

    def _take(self, text: str, hits: Sequence[Found], reason: str) -> Searched:
        """Put new hits on the list and keep the search."""
        self._parts.update((hit.api.id, hit.clause) for hit in hits)
        if not self.searches:
            self._shown = tuple(hit.api.id for hit in hits)
        known = {function.api.id for function in self._all}
        fresh = [hit.api for hit in hits if hit.api.id not in known]
        self._all = FunctionList([*(f.api for f in self._all), *fresh])
        searched = Searched(
            query=text,
            reason=reason,
            api_ids=tuple(hit.api.id for hit in hits),
            scores=tuple(round(float(hit.score), 4) for hit in hits),
        )
        self.searches.append(searched)
        return searched

    def _left(self, worked: Collection[str]) -> str:
        """Return the parts of the task that no working API was found for; all where none is."""
        served = {self._parts.get(api_id, "") for api_id in worked}
        left = [part for part in clauses(self._query) if part not in served]
        return "; ".join(left) or self._query
