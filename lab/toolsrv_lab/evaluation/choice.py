"""Whether the first function that a model calls for a query is a relevant one.

A query comes with the APIs that it may use. The model is asked for its first move twice: as in a
solve, in the retriever's order and with its prior; and alone, in an order drawn by lot and without
a prior. Beside it stand the retriever's first and chance. No call is made. A list that is longer
than a format can number is cut by the retriever's order, for the model alone too; a relevant API
that is cut off thereby is lost.
"""

from __future__ import annotations

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
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Format, History, Interrupted, UsageMeter
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.stop import Stop

MOST = 9
"""Functions that a format numbers and a solve may offer."""

ALL = "all sets"
CHOOSE = "all sets, not all relevant"
_TOKENS = 20_000

Rank = Callable[[str, frozenset[str]], Sequence[tuple[str, float]]]
"""Ranks the given API ids for a text, best first: (id, score)."""


@dataclass(frozen=True, slots=True)
class Asked:
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


def usable(queries: Iterable[Query], apis: Mapping[str, Api]) -> tuple[list[Asked], dict[str, int]]:
    """Return the queries that can be asked, and why how many others cannot."""
    asked: list[Asked] = []
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
            asked.append(Asked(query, listed, relevant))
    return asked, {reason: count for reason, count in out.items() if count}


def choose(
    asked: Sequence[Asked],
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
        shown = order[:MOST]
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
        move = form.propose(view, max_tokens=_TOKENS, stop=Stop(), meter=UsageMeter())
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
    return {name: figures(group) for name, group in groups.items() if group}


def figures(choices: Sequence[Choice]) -> ChoiceFigures:
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
