"""Values cut to a size that a client's model reads: the least telling parts go first.

What is cut is said in the value, with how to get it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from toolsrv.mcp_server.run_list import RunsView, cut_runs
from toolsrv.mcp_server.show import NodePart, TreePart, cut_node, cut_tree
from toolsrv.mcp_server.texts import render
from toolsrv.plain import compact_json, one_line
from toolsrv.run_views import RunView, cut_evidence
from toolsrv.search_view import HitView, SearchView
from toolsrv.views import ApiView, CallView, DescribeView, ParameterView, cut_response, json_text
from toolsrv_registry.schema_view import without_texts
from toolsrv_runtime.outcome import Evidence

View = TypeVar("View", bound=BaseModel)

QUERY_CHARACTERS = 200
SIMILAR_SHOWN = 5
CLAIMS_SHOWN = 20


def within(view: View, limit: int) -> View:
    """Return a value that is at most ``limit`` bytes as JSON and as text, as far as it can be cut."""
    shown = view
    for shown in _steps(view):
        if size(shown) <= limit:
            break
    return shown


def data(view: BaseModel) -> dict[str, Any]:
    """Return a value as JSON; of a tree's nodes without what is not set, as most of it is."""
    value = view.model_dump(mode="json")
    if isinstance(view, TreePart):
        value["nodes"] = [one.model_dump(mode="json", exclude_defaults=True) for one in view.nodes]
    return value


def size(view: BaseModel) -> int:
    """Return the bytes of the larger half of a result, in UTF-8."""
    halves = json.dumps(data(view), ensure_ascii=False), render(view)
    return max(len(half.encode(errors="replace")) for half in halves)


def _steps(view: Any) -> Iterator[Any]:
    """Return a value in ever shorter forms."""
    match view:
        case SearchView():
            yield from _searches(view)
        case DescribeView():
            yield from _descriptions(view)
        case CallView():
            yield from _calls(view)
        case RunView():
            yield from _runs(view)
        case TreePart():
            for nodes, characters in _TREES:
                yield cut_tree(view, nodes, characters)
        case NodePart():
            for characters in (4_000, 3_000, 2_000, 1_000):
                yield cut_node(view, characters)
        case RunsView():
            for runs, characters in ((50, 400), (50, 200), (50, 80), (25, 80), (10, 80)):
                yield cut_runs(view, runs, characters)
        case _:
            yield view


def _searches(view: SearchView) -> Iterator[SearchView]:
    """Cut descriptions first, then return fewer hits; the next page begins behind them."""
    view = view.model_copy(
        update={
            "query": one_line(view.query, QUERY_CHARACTERS),
            "searched": one_line(view.searched, QUERY_CHARACTERS),
            "nearest_categories": view.nearest_categories if view.nothing_fits else (),
        }
    )
    for characters in (400, 160, 80):
        yield _page(view, len(view.hits), characters)
    for count in range(len(view.hits) - 1, 0, -1):
        yield _page(view, count, 80)


def _page(view: SearchView, count: int, characters: int) -> SearchView:
    most = view.offset + count
    hits = tuple(_hit(one, characters) for one in view.hits if one.rank <= most)
    page = view.model_copy(update={"hits": hits})
    if count < len(view.hits):
        page = page.model_copy(update={"next_offset": most, "total": None})
    step = "describe_apis for parameters, then call_api" if hits else ""
    return page.model_copy(update={"next_step": step})


def _hit(hit: HitView, characters: int) -> HitView:
    return hit.model_copy(
        update={
            "description": one_line(hit.description, characters),
            "parameters": _parameters(hit.parameters, characters, 0),
            "similar": hit.similar[:SIMILAR_SHOWN],
            "more_similar": max(0, len(hit.similar) - SIMILAR_SHOWN),
        }
    )


def _descriptions(view: DescribeView) -> Iterator[DescribeView]:
    """Cut descriptions and fields first, then schemas, then leave APIs out and name them."""
    asked = any(one.arguments_schema is not None for one in view.apis)
    for step, (characters, fields) in enumerate(_CUTS):
        apis = [_api(one, characters, fields) for one in view.apis]
        if asked and step > 0:
            apis = [_with_bare_schema(one) for one in apis]
        yield view.model_copy(update={"apis": tuple(apis)})
    if asked:
        told = "the JSON Schema has no room here: ask for one id, or go by the fields listed"
        view = view.model_copy(
            update={
                "apis": tuple(
                    one.model_copy(update={"arguments_schema": None}) for one in view.apis
                ),
                "next_step": told,
            }
        )
        for characters, fields in _CUTS:
            apis = [_api(one, characters, fields) for one in view.apis]
            yield view.model_copy(update={"apis": tuple(apis)})
    for count in range(len(view.apis) - 1, 0, -1):
        left = tuple(one.id for one in view.apis[count:])
        yield view.model_copy(
            update={
                "apis": tuple(_api(one, 60, 0) for one in view.apis[:count]),
                "left_out": left,
                "next_step": "call describe_apis again with the ids that had no room",
            }
        )


_CUTS = ((1_000, 60), (300, 40), (120, 20), (60, 8), (60, 0))
"""Characters of a description, and lines of an argument's fields."""


def _with_bare_schema(api: ApiView) -> ApiView:
    """Return an API whose schema has no texts, and no fields beside it, which it says too."""
    schema = without_texts(api.arguments_schema)
    parameters = tuple(one.model_copy(update={"fields": ()}) for one in api.parameters)
    return api.model_copy(update={"arguments_schema": schema, "parameters": parameters})


def _api(api: ApiView, characters: int, fields: int) -> ApiView:
    return api.model_copy(
        update={
            "description": one_line(api.description, characters),
            "tool_description": one_line(api.tool_description, characters),
            "parameters": _parameters(api.parameters, characters, fields),
        }
    )


def _parameters(
    parameters: tuple[ParameterView, ...], most: int, fields: int
) -> tuple[ParameterView, ...]:
    return tuple(
        one.model_copy(
            update={
                "description": one_line(one.description, most),
                "fields": _cut(one.fields, fields),
            }
        )
        for one in parameters
    )


def _cut(lines: tuple[str, ...], most: int) -> tuple[str, ...]:
    return lines if len(lines) <= most else (*lines[:most], "…")


def _calls(view: CallView) -> Iterator[CallView]:
    """Cut the response, and the arguments that are repeated here."""
    yield _with_rest(view)
    whole = len(json_text(view.response))
    for characters in (whole, 4_000, 3_000, 2_000, 1_000, 500):
        if characters <= whole:
            arguments = cut_texts(view.arguments, max(100, characters // 10))
            cut = cut_response(view, characters)
            yield _with_rest(cut.model_copy(update={"arguments": arguments}))


def _with_rest(view: CallView) -> CallView:
    """Return a call whose hint says how to get what was cut of its response."""
    if not view.truncated or view.hint:
        return view
    hint = _REST.format(view.next_offset) if view.resource else _MORE
    return view.model_copy(update={"hint": hint})


_MORE = "a larger response_limit shows more of the response"
_REST = (
    "for the rest repeat call_api with response_offset {}: the response is kept, "
    "the call is not made again"
)


def cut_texts(value: Any, most: int) -> Any:
    """Return a JSON value whose texts have at most ``most`` characters each."""
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[: most - 1]}…"
    if isinstance(value, dict):
        return {key: cut_texts(one, most) for key, one in value.items()}
    if isinstance(value, list):
        return [cut_texts(one, most) for one in value]
    return value


def _runs(view: RunView) -> Iterator[RunView]:
    """Cut responses first, then list fewer calls, those that the answer rests on last."""
    view = _few_claims(view, CLAIMS_SHOWN)
    opinions = tuple(
        one.model_copy(update={"reason": one_line(one.reason, 400)}) for one in view.opinions
    )
    view = view.model_copy(update={"opinions": opinions})
    usage = view.usage.model_copy(update={"seconds": round(view.usage.seconds, 1)})
    view = view.model_copy(update={"usage": usage})
    for characters in (600, 300, 150, 80):
        calls = tuple(_evidence(one, characters) for one in view.evidence)
        yield view.model_copy(update={"evidence": calls})
    view = _few_claims(view, 5)
    ordered = sorted(view.evidence, key=lambda one: not one.used)
    for count in range(len(ordered), -1, -1):
        kept = {one.node for one in ordered[:count]}
        calls = tuple(_evidence(one, 80) for one in view.evidence if one.node in kept)
        left = len(view.evidence) - len(calls)
        note = (f"{left} more calls: show_run has them",) * (left > 0)
        yield view.model_copy(update={"evidence": calls, "notes": (*view.notes, *note)})


def _few_claims(view: RunView, most: int) -> RunView:
    left = len(view.unsupported) - most
    notes = (f"{left} more unsupported statements: show_run has them",) * (left > 0)
    return view.model_copy(
        update={"unsupported": view.unsupported[:most], "notes": (*view.notes, *notes)}
    )


def _evidence(one: Evidence, characters: int) -> Evidence:
    arguments = one.arguments
    if len(compact_json(arguments)) > characters:
        arguments = cut_texts(arguments, max(40, characters // 4))
    return cut_evidence(one, characters).model_copy(
        update={
            "arguments": arguments,
            "error": one_line(one.error, characters),
            "seconds": round(one.seconds, 2),
        }
    )


_TREES = ((60, 400), (60, 200), (60, 100), (40, 80), (25, 60), (15, 40), (8, 40), (4, 40))
