"""Tool results: one typed value as ``structuredContent`` and as text, within a byte limit.

Clients pass on one half only, so nothing is added to one half alone. A value that is too large
loses its least informative parts first, and says what was cut and how to get it. Hints name tools
instead of commands; what else needs a terminal is addressed to the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from toolsrv.mcp_server.run_pages import NodePart, RunsView, TreePart, cut_node, cut_runs, cut_tree
from toolsrv.mcp_server.texts import render
from toolsrv.plain import compact_json, one_line
from toolsrv.views.apis import (
    ApiView,
    CallView,
    DescribeView,
    ParameterView,
    cut_response,
    json_text,
)
from toolsrv.views.runs import RunView, cut_evidence
from toolsrv.views.search import HitView, SearchView
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.schema_view import without_texts
from toolsrv_runtime.outcome import Evidence

_TOOLS = (
    (re.compile(r'toolsrv search(?: "…")?'), "search_apis"),
    (re.compile(r"toolsrv describe(?: ID| [^\s/]+/[^\s/]+/\S+)?"), "describe_apis"),
    (re.compile(r"toolsrv run show(?: \S+)?"), "show_run"),
    (re.compile(r"toolsrv run list"), "list_runs"),
)
_COMMAND_LINE = re.compile(r"\btoolsrv [a-z]|(?<![\w-])--[a-z]")
_ASIDE = re.compile(r"\(([^()]*)\)")
_USER = "for the user, in a terminal: "


def hint_for_client(hint: str) -> str:
    """Return a hint without commands that have a tool; what else needs a terminal says who.

    A command that stands in parentheses is marked there, any other at the beginning. Idempotent.
    """
    for command, tool in _TOOLS:
        hint = command.sub(tool, hint)
    hint = _ASIDE.sub(lambda found: f"({_marked(found[1])})", hint)
    return hint if not _COMMAND_LINE.search(_ASIDE.sub("", hint)) else _marked(hint)


def _marked(text: str) -> str:
    """Return a text, marked as the user's where it names a command and is not marked yet."""
    named = _COMMAND_LINE.search(text) and not text.startswith(_USER)
    return f"{_USER}{text}" if named else text


View = TypeVar("View", bound=BaseModel)

QUERY_CHARACTERS = 200
SIMILAR_SHOWN = 5
CLAIMS_SHOWN = 20


def fit_to_limit(view: View, limit: int) -> View:
    """Return a value that is at most ``limit`` bytes as JSON and as text, as far as it can be cut."""
    return _fitting(view, limit)[0]


def _fitting(view: View, limit: int) -> tuple[View, dict[str, Any], str]:
    """Return the value that fits, as it is and as both halves of a result."""
    shown, data, text = view, dict[str, Any](), ""
    for shown in _shorter_forms(view):
        data, text = json_data(shown), render(shown)
        if _bytes(data, text) <= limit:
            break
    return shown, data, text


def json_data(view: BaseModel) -> dict[str, Any]:
    """Return a value as JSON; of a tree's nodes without what is not set, as most of it is."""
    value = view.model_dump(mode="json")
    if isinstance(view, TreePart):
        value["nodes"] = [one.model_dump(mode="json", exclude_defaults=True) for one in view.nodes]
    return value


def rendered_bytes(view: BaseModel) -> int:
    """Return the bytes of the larger half of a result, in UTF-8."""
    return _bytes(json_data(view), render(view))


def _bytes(data: dict[str, Any], text: str) -> int:
    halves = json.dumps(data, ensure_ascii=False), text
    return max(len(half.encode(errors="replace")) for half in halves)


def _shorter_forms(view: Any) -> Iterator[Any]:
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


RESULT_BYTES = 6_000
"""About 2,000 tokens: three bytes of JSON or of other scripts than Latin make a token."""
MESSAGE_CHARACTERS = 1_500

_WORDS = frozenset({"hint", "next_step", "degraded", "notes", "lacks"})
"""Fields that say what to do next, in words of the command line where they come from."""


class ErrorView(BaseModel):
    """Why a tool could not answer."""

    error: str = Field(description="Set when the tool failed: what is wrong.")
    hint: str = Field(default="", description="What to do next.")


def success(view: BaseModel, limit: int = RESULT_BYTES) -> CallToolResult:
    """Return a value as data and as text, each of at most ``limit`` bytes where it can be cut."""
    return _result(view, limit, is_error=False)


def failure(view: BaseModel, limit: int = RESULT_BYTES) -> CallToolResult:
    """Return a tool error with what is known, as data and as text."""
    return _result(view, limit, is_error=True)


def refusal(message: str, hint: str = "") -> CallToolResult:
    """Return a tool error that says what is wrong and what to do next."""
    view = ErrorView(
        error=one_line(message, MESSAGE_CHARACTERS), hint=one_line(hint, MESSAGE_CHARACTERS)
    )
    return failure(view)


def refused(error: ToolsrvError) -> CallToolResult:
    """Return an error that a user or a model can act on."""
    return refusal(error.message, error.hint)


def with_ignored_arguments(result: CallToolResult, ignored: list[str]) -> CallToolResult:
    """Return a result that also says which arguments were ignored."""
    if not ignored:
        return result
    line = f"Ignored arguments: {', '.join(ignored)}"
    told = [
        TextContent(type="text", text=f"{one.text}\n{line}")
        if isinstance(one, TextContent)
        else one
        for one in result.content
    ]
    return result.model_copy(
        update={
            "content": told,
            "structured_content": {
                **(result.structured_content or {}),
                "ignored_arguments": ignored,
            },
        }
    )


def _result(view: BaseModel, limit: int, *, is_error: bool) -> CallToolResult:
    _, data, text = _fitting(_for_client(view), limit)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=data,
        is_error=is_error,
    )


def _for_client(view: View) -> View:
    """Return a value whose hints name tools instead of commands; itself where it has none."""
    update: dict[str, Any] = {}
    for name in type(view).model_fields:
        value = getattr(view, name)
        if name in _WORDS or (name == "reason" and isinstance(view, RunView | TreePart)):
            told: Any = (
                hint_for_client(value)
                if isinstance(value, str)
                else tuple(map(hint_for_client, value))
            )
            changed = told != value
        elif isinstance(value, tuple) and any(isinstance(one, BaseModel) for one in value):
            told = tuple(_for_client(one) if isinstance(one, BaseModel) else one for one in value)
            changed = any(new is not old for new, old in zip(told, value, strict=True))
        elif isinstance(value, BaseModel):
            told = _for_client(value)
            changed = told is not value
        else:
            continue
        if changed:
            update[name] = told
    return view.model_copy(update=update) if update else view
