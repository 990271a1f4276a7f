"""First calls for needs of tools that no training row is about: the function and its arguments.

A need is told alone, with its own values, and its API is offered among others: those that a search
for it finds (in a large catalog some of them serve it as well), or some of its tool and category,
as the paper samples APIs (2.2). Arguments are exact when every value that the need states is given, as the need says it or
as the API takes it, and no optional one besides. No call is made.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.nano.told import Needs, Told
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Format, History, Interrupted, UsageMeter
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.stop import Stop

_TOKENS = 20_000

Beside = Callable[[Told], Sequence[Api]]
"""Returns what may be offered for a need, the API itself or not, the first ones first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A need and the APIs that are offered for it, in an order drawn by lot."""

    told: Told
    offered: tuple[Api, ...]


class Called(BaseModel):
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


def ask(
    apis: Sequence[Api], beside: Beside, count: int, *, offered: int, seed: int = 0
) -> list[Asked]:
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
        asked.append(Asked(told, tuple(some)))
    return asked


def of_category(apis: Sequence[Api], offered: int, seed: int = 0) -> Beside:
    """Return what draws half of the others from the need's own tool and the rest from its category.

    Where these have too few, from all ``apis``.
    """

    def beside(told: Told) -> list[Api]:
        rng = random.Random(f"{seed}/{told.api.id}")
        api = told.api
        tool = [one for one in apis if one.tool == api.tool and one.category == api.category]
        category = [one for one in apis if one.category == api.category and one.tool != api.tool]
        drawn = rng.sample(tool, min(offered // 2, len(tool)))
        drawn += rng.sample(category, min(offered, len(category)))
        return list({one.id: one for one in [*drawn, *rng.sample(apis, offered)]}.values())

    return beside


def call(
    asked: Sequence[Asked],
    form: Format,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Called]:
    """Return the first call for each need. Blocks."""
    found = []
    for at, one in enumerate(asked, start=1):
        found.append(_called(one, form))
        progress(at, len(asked))
    return found


def figures(called: Sequence[Called]) -> UnseenFigures:
    """Return the shares over some calls."""
    right = [one for one in called if one.right]
    return UnseenFigures(
        needs=len(called),
        tools=len({one.api.rpartition("/")[0] for one in called}),
        function=share(one.right for one in called),
        arguments=share(one.exact for one in right),
        spoken_arguments=share(one.exact for one in right if one.spoken),
    )


def _called(one: Asked, form: Format) -> Called:
    functions = FunctionList(one.offered)
    view = History(one.told.text, tuple(functions))
    name = ""
    given: dict[str, str] = {}
    try:
        move = form.propose(view, max_tokens=_TOKENS, stop=Stop(), meter=UsageMeter())
    except (ContextError, Interrupted):
        move = ""
    function = None if isinstance(move, str) else functions.function(move.function)
    if function is not None and not isinstance(move, str):
        name = function.api.id
        given = {k: str(v) for k, v in json.loads(move.arguments).items()}
        given = {k: str(v) for k, v in function.original_arguments(given).items()}
    return Called(
        api=one.told.api.id,
        text=one.told.text,
        function=name,
        arguments=given,
        right=name == one.told.api.id,
        exact=_exact(given, one.told),
        spoken=bool(one.told.values),
    )


def _exact(given: Mapping[str, str], told: Told) -> bool:
    required = {one.name for one in told.api.required}
    return (
        told.values.keys() <= given.keys()
        and given.keys() <= told.values.keys() | required
        and all(
            given[name].casefold() in {form.casefold() for form in pair}
            for name, pair in told.values.items()
        )
    )
