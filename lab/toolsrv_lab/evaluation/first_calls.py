"""First function calls of a model: relevance of the function, arguments for unseen tools.

Unseen tools are those that no training row is about.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import (
    Difference,
    Mean,
    Share,
    mean,
    share,
    share_difference,
)
from toolsrv_lab.nano.needs import Needs, ValuedNeed
from toolsrv_lab.retrieval.queries import Query
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Format, History, Interrupted, UsageMeter
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.stop import Stop

MOST_FUNCTIONS = 9
"""Functions that a format numbers and a solve may offer."""

ALL = "all sets"
CHOOSE = "all sets, not all relevant"
_CHOICE_TOKENS = 20_000

Rank = Callable[[str, frozenset[str]], Sequence[tuple[str, float]]]
"""Ranks the given API ids for a text, best first: (id, score)."""


@dataclass(frozen=True, slots=True)
class ChoiceRequest:
    """A query with its listed APIs that the catalogs have, as listed; some are relevant."""

    query: Query
    listed: tuple[Api, ...]
    relevant: frozenset[str]


class Choice(BaseModel):
    """What was chosen for one query: API ids, "" where no function was called.

    ``helped`` by the model as in a solve, ``alone`` by the model without the retriever, ``first``
    by the retriever. ``chance`` is the relevant share of the list, ``listed`` its length; of it
    ``offered`` were shown.
    """

    model_config = ConfigDict(frozen=True)

    query_id: str
    set: str
    helped: str
    alone: str
    first: str
    relevant: tuple[str, ...]
    listed: int
    offered: int
    chance: float


class ChoiceFigures(BaseModel):
    """Over some queries: how often each chooser's API is relevant; ``quiet``: none was called."""

    model_config = ConfigDict(frozen=True)

    queries: int
    helped: Share
    alone: Share
    retriever: Share
    chance: Mean
    quiet_helped: Share
    quiet_alone: Share
    helped_less_retriever: Difference
    helped_less_alone: Difference


def usable(
    queries: Iterable[Query], apis: Mapping[str, Api]
) -> tuple[list[ChoiceRequest], dict[str, int]]:
    """Return the queries that can be asked, and why how many others cannot."""
    asked: list[ChoiceRequest] = []
    out = {"come without a list of APIs": 0, "list no relevant API of the enabled catalogs": 0}
    no_list, unknown = out
    for query in queries:
        ids = dict.fromkeys(one.id for one in query.candidates)
        listed = tuple(apis[one] for one in ids if one in apis)
        relevant = frozenset(query.relevant_ids).intersection(api.id for api in listed)
        if not ids:
            out[no_list] += 1
        elif not relevant:
            out[unknown] += 1
        else:
            asked.append(ChoiceRequest(query, listed, relevant))
    return asked, {reason: count for reason, count in out.items() if count}


def choose(
    asked: Sequence[ChoiceRequest],
    *,
    helped: Format,
    alone: Format,
    rank: Rank,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Choice]:
    """Return the choices; ``helped`` has the retriever's prior, ``alone`` none. Blocks."""
    found = []
    for at, one in enumerate(asked, start=1):
        text = one.query.query
        order = _ordered(one.listed, rank(text, frozenset(api.id for api in one.listed)))
        shown = order[:MOST_FUNCTIONS]
        drawn = random.Random(f"{seed} {text}").sample(shown, len(shown))
        found.append(
            Choice(
                query_id=one.query.query_id,
                set=one.query.set,
                helped=first_call(helped, text, shown, seed=seed),
                alone=first_call(alone, text, drawn, seed=seed),
                first=order[0].id,
                relevant=tuple(sorted(one.relevant)),
                listed=len(order),
                offered=len(shown),
                chance=len(one.relevant) / len(order),
            )
        )
        progress(at, len(asked))
    return found


def first_call(form: Format, task: str, apis: Sequence[Api], *, seed: int = 0) -> str:
    """Return the id of the API that a model would call first, "" where it calls none of them."""
    functions = FunctionList(apis)
    view = History(task, tuple(functions), seed=seed)
    try:
        move = form.propose(view, max_tokens=_CHOICE_TOKENS, stop=Stop(), meter=UsageMeter())
    except (ContextError, Interrupted):
        return ""
    if isinstance(move, str):
        return ""
    api = functions.lookup(move.function)
    return "" if api is None else api.id


def _ordered(listed: Sequence[Api], ranking: Sequence[tuple[str, float]]) -> list[Api]:
    """Return the APIs in the retriever's order; what it does not rank comes last."""
    place = {api_id: at for at, (api_id, _) in enumerate(ranking)}
    return sorted(listed, key=lambda api: place.get(api.id, len(place)))


def by_set(choices: Sequence[Choice]) -> dict[str, ChoiceFigures]:
    """Return the figures per set, then over all, then over those with an irrelevant API listed."""
    sets: dict[str, list[Choice]] = {}
    for one in choices:
        sets.setdefault(one.set, []).append(one)
    groups = sets | {ALL: list(choices), CHOOSE: [one for one in choices if one.chance < 1]}
    return {name: choice_figures(group) for name, group in groups.items() if group}


def choice_figures(choices: Sequence[Choice]) -> ChoiceFigures:
    """Return the figures over some queries."""
    helped = [one.helped in one.relevant for one in choices]
    alone = [one.alone in one.relevant for one in choices]
    first = [one.first in one.relevant for one in choices]
    return ChoiceFigures(
        queries=len(choices),
        helped=share(helped),
        alone=share(alone),
        retriever=share(first),
        chance=mean([one.chance for one in choices]),
        quiet_helped=share(not one.helped for one in choices),
        quiet_alone=share(not one.alone for one in choices),
        helped_less_retriever=share_difference(list(zip(helped, first, strict=True))),
        helped_less_alone=share_difference(list(zip(helped, alone, strict=True))),
    )


_CALL_TOKENS = 20_000

Beside = Callable[[ValuedNeed], Sequence[Api]]
"""Returns what may be offered for a need, the API itself or not, the first ones first."""


@dataclass(frozen=True, slots=True)
class UnseenRequest:
    """A need and the APIs that are offered for it, in an order drawn by lot."""

    told: ValuedNeed
    offered: tuple[Api, ...]


class FirstCall(BaseModel):
    """The first call for one need. ``function`` is an API id, "" for none; ``spoken``: it has values.

    ``exact`` is about the arguments and means nothing where the function is wrong.
    """

    model_config = ConfigDict(frozen=True)

    api: str
    text: str
    function: str
    arguments: dict[str, str]
    right: bool
    exact: bool
    spoken: bool


class UnseenFigures(BaseModel):
    """Shares over all needs; arguments given the function, over all and over those with values."""

    model_config = ConfigDict(frozen=True)

    needs: int
    tools: int
    function: Share
    arguments: Share
    spoken_arguments: Share


def unseen_request(
    apis: Sequence[Api], beside: Beside, count: int, *, offered: int, seed: int = 0
) -> list[UnseenRequest]:
    """Return needs of ``count`` of the APIs, one each, with ``offered`` APIs in all.

    Where the API is not among those beside it takes the place of the last one. Others of the same
    name and description are left out: nothing tells which of them is meant.
    """
    needs = Needs(apis)
    rng = random.Random(seed)
    chosen = rng.sample(needs.apis, min(count, len(needs.apis)))
    asked = []
    for api in chosen:
        told = needs.tell(api, rng, keep=True)
        some = [one for one in beside(told) if one == api or not does_the_same(one, api)][:offered]
        if api.id not in {one.id for one in some}:
            some[offered - 1 :] = [api]
        rng.shuffle(some)
        asked.append(UnseenRequest(told, tuple(some)))
    return asked


def of_category(apis: Sequence[Api], offered: int, seed: int = 0) -> Beside:
    """Return what draws half of the others from the need's own tool and the rest from its category.

    Where these have too few, from all ``apis``.
    """

    def beside(told: ValuedNeed) -> list[Api]:
        rng = random.Random(f"{seed}/{told.api.id}")
        api = told.api
        tool = [one for one in apis if one.tool == api.tool and one.category == api.category]
        category = [one for one in apis if one.category == api.category and one.tool != api.tool]
        drawn = rng.sample(tool, min(offered // 2, len(tool)))
        drawn += rng.sample(category, min(offered, len(category)))
        return list({one.id: one for one in [*drawn, *rng.sample(apis, offered)]}.values())

    return beside


def judge_call(
    asked: Sequence[UnseenRequest],
    form: Format,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[FirstCall]:
    """Return the first call for each need. Blocks."""
    found = []
    for at, one in enumerate(asked, start=1):
        found.append(_called(one, form))
        progress(at, len(asked))
    return found


def unseen_figures(called: Sequence[FirstCall]) -> UnseenFigures:
    """Return the shares over some calls."""
    right = [one for one in called if one.right]
    return UnseenFigures(
        needs=len(called),
        tools=len({one.api.rpartition("/")[0] for one in called}),
        function=share(one.right for one in called),
        arguments=share(one.exact for one in right),
        spoken_arguments=share(one.exact for one in right if one.spoken),
    )


def _called(one: UnseenRequest, form: Format) -> FirstCall:
    functions = FunctionList(one.offered)
    view = History(one.told.text, tuple(functions))
    name = ""
    given: dict[str, str] = {}
    try:
        move = form.propose(view, max_tokens=_CALL_TOKENS, stop=Stop(), meter=UsageMeter())
    except (ContextError, Interrupted):
        move = ""
    function = None if isinstance(move, str) else functions.function(move.function)
    if function is not None and not isinstance(move, str):
        name = function.api.id
        given = {k: str(v) for k, v in json.loads(move.arguments).items()}
        given = {k: str(v) for k, v in function.original_arguments(given).items()}
    return FirstCall(
        api=one.told.api.id,
        text=one.told.text,
        function=name,
        arguments=given,
        right=name == one.told.api.id,
        exact=_is_exact(given, one.told),
        spoken=bool(one.told.values),
    )


def _is_exact(given: Mapping[str, str], told: ValuedNeed) -> bool:
    required = {one.name for one in told.api.required}
    return (
        told.values.keys() <= given.keys()
        and given.keys() <= told.values.keys() | required
        and all(
            given[name].casefold() in {form.casefold() for form in pair}
            for name, pair in told.values.items()
        )
    )
