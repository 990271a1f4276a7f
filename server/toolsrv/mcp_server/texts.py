"""Results as text that a model or a person reads with ease; the typed result says the same."""

from __future__ import annotations

import json
from typing import Any

from toolsrv.key_view import key_words
from toolsrv.mcp_server.hints import for_client
from toolsrv.plain import compact_json, one_line, plain
from toolsrv.run_views import (
    RunView,
    opinion_line,
    returned,
    status_words,
    unsupported_line,
)
from toolsrv.search_view import HitView, SearchView
from toolsrv.trees.drawing import badge
from toolsrv.trees.shown import ShownRun
from toolsrv.views import ApiView, CallView, DescribeView, call_line, check_line, shorten

RESPONSE_LIMIT = 20_000
EVIDENCE_LIMIT = 600
SIMILAR_LIMIT = 5
TREE_LIMIT = 200


def search_text(view: SearchView) -> str:
    """Return a search as a list, numbered by rank."""
    lines = [f"Note: {note}" for note in view.notes]
    if view.degraded:
        lines.append(f"Note: {view.degraded}")
    lines.append(_found(view))
    for hit in view.hits:
        lines += _hit_lines(hit)
    if view.nothing_fits and view.nearest_categories:
        lines.append(f"Nearest categories: {', '.join(view.nearest_categories)}")
    if view.next_offset is not None:
        lines.append(f"More: search_apis with offset={view.next_offset}.")
    if view.hits:
        lines.append("Next: describe_apis for parameters, then call_api.")
    return "\n".join(lines)


def _found(view: SearchView) -> str:
    if not view.hits:
        if view.hidden_behind:
            return "No API of this catalog is found."
        return "No more APIs." if view.offset else "No API fits."
    if view.nothing_fits:
        return "Nothing fits well; these are only the nearest:"
    return "Found:"


def _hit_lines(hit: HitView) -> list[str]:
    marks = [f"dead: {hit.dead}"] * bool(hit.dead) + ["changed"] * hit.changed
    lines = [f"{hit.rank}. {hit.id}" + (f" [{'; '.join(marks)}]" if marks else "")]
    if hit.description:
        lines.append(f"   {one_line(hit.description, 400)}")
    if hit.parameters:
        lines += [f"   {line}" for line in _parameter_lines(hit.parameters)]
    elif hit.required:
        lines.append(f"   required: {', '.join(hit.required)}")
    if hit.why:
        lines.append(f"   why: {hit.why}")
    if hit.similar:
        lines.append(f"   +{len(hit.similar)} similar: {', '.join(hit.similar[:SIMILAR_LIMIT])}")
    return lines


def describe_text(view: DescribeView) -> str:
    """Return APIs with their parameters, and the ids that do not exist."""
    parts = [_api_text(api) for api in view.apis]
    parts += [f"{one.error}. Hint: {for_client(one.hint)}" for one in view.not_found]
    return "\n\n".join(parts)


def call_text(view: CallView) -> str:
    """Return a response as data, with where it came from."""
    took = f"{view.seconds:.2f} s"
    head = f"{view.id}: status {view.status}, source {view.source}, {took}"
    if not view.status:
        head = f"{view.id}: no response, source {view.source}, {took}"
    lines = [head]
    if view.error:
        lines.append(f"Error: {view.error}")
    if view.hint:
        lines.append(f"Hint: {for_client(view.hint)}")
    if view.page:
        lines.append(f"Page: {view.page}")
    if view.response not in (None, ""):
        lines.append(_data(view.response))
    if view.truncated:
        lines.append("Note: the response was cut.")
    return "\n".join(lines)


def run_text(view: RunView) -> str:
    """Return a run: its answer and evidence, or how far it is."""
    if view.status in ("queued", "working"):
        return f"Run {view.run_id} is {view.status}: {view.phase}.\nNext: {view.next_step}."
    lines = []
    if view.answer:
        title = "Answer" if view.status == "answered" else "Best partial answer"
        lines.append(f"{title}: {view.answer}")
    if view.status != "answered":
        lines.append(f"Status: {view.status}. {view.reason}")
    lines += [f"Note: {note}" for note in view.notes]
    if line := unsupported_line(view.unsupported, view.unread):
        lines.append(f"{line}.")
    lines += [opinion_line(one) for one in view.opinions]
    if view.evidence:
        lines.append("Evidence (* the answer rests on it):")
    for one in view.evidence:
        mark = "*" if one.used else "-"
        lines.append(
            f"{mark} {one.api_id} {compact_json(one.arguments)} -> "
            f"{status_words(one)} ({one.source}): "
            f"{one_line(returned(one), EVIDENCE_LIMIT)}"
        )
    usage = view.usage
    lines.append(f"Cost: {usage.seconds:.1f} s, {usage.calls} calls. Run: {view.run_id}")
    if view.next_step:
        lines.append(f"Next: {view.next_step}.")
    return "\n".join(lines)


def tree_text(run: ShownRun) -> str:
    """Return the tree of an ended run: a line per node, with the node that it follows."""
    lines = [f"Task: {run.task}", f"Status: {run.status}. {run.answer or run.reason}".rstrip()]
    if run.answer and run.reason and run.status != "answered":
        lines.append(f"Why: {run.reason}")
    lines.append("Nodes (* on the path of the answer, - pruned):")
    for node in run.nodes[1:]:
        mark = "*" if node.winning else "-" if node.pruned else " "
        lines.append(f"{mark} #{node.id} after #{node.parent}: {node.title} [{badge(node)}]")
        for name, text in (("thinks", node.thought), ("with", node.arguments)):
            lines += [f"    {name}: {one_line(text, TREE_LIMIT)}"] * bool(text)
        if node.kind == "call":
            lines.append(f"    returned: {one_line(node.observation, TREE_LIMIT)}")
    lines.append("; ".join(f"{name}: {value}" for name, value in run.facts.items()))
    if any(node.has_response for node in run.nodes):
        lines.append(f"Whole responses: resource toolsrv://runs/{run.name}/responses/NODE")
    return "\n".join(lines)


def _api_text(api: ApiView) -> str:
    lines = [api.id, f"{api.name}, of {api.tool}: {api.tool_description}", api.description]
    lines.append(f"Request: {call_line(api)}")
    if api.keys:
        lines.append(f"Key: {key_words(api.keys)}")
    if api.check is not None:
        lines.append(f"Checked: {check_line(api.check)}")
    lines += _parameter_lines(api.parameters) or ["No parameters."]
    lines.append(f"Example: call_api(id={api.id!r}, arguments={compact_json(api.example)})")
    return "\n".join(line for line in lines if line)


def _parameter_lines(parameters: tuple[Any, ...]) -> list[str]:
    lines = []
    for one in parameters:
        needed = "required" if one.required else "optional"
        word = "for example" if one.required else "default"
        extra = "" if one.default == "" else f", {word} {compact_json(one.default)}"
        allowed = f" One of: {', '.join(one.allowed)}." if one.allowed else ""
        lines.append(f"- {one.name} ({one.type}, {needed}{extra}): {one.description}{allowed}")
    return lines


def _data(response: Any) -> str:
    text = (
        response
        if isinstance(response, str)
        else json.dumps(response, ensure_ascii=False, indent=1)
    )
    return plain(str(shorten(text, RESPONSE_LIMIT)[0]))
