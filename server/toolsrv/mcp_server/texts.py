"""Render typed results as text for models and people.

Whatever the value holds stands in the text, and nothing else: a client may pass on either half.
Nothing is cut here; ``results`` does that.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from toolsrv.mcp_server.run_pages import NodePart, RunsView, TreePart
from toolsrv.plain import compact_json, plain
from toolsrv.trees.shown import ShownNode
from toolsrv.views.apis import (
    ApiView,
    CallView,
    DescribeView,
    allowed_words,
    call_line,
    check_line,
    describe_keys,
)
from toolsrv.views.runs import RunView, opinion_line, status_words
from toolsrv.views.search import HitView, SearchView
from toolsrv_runtime.outcome import Claim, Evidence

ROOMY = 1_000
"""Characters up to which a JSON response is shown with a line for each value."""


def render(view: BaseModel) -> str:
    """Return a result, or an error, as text."""
    match view:
        case SearchView():
            return search_text(view)
        case DescribeView():
            return describe_text(view)
        case CallView():
            return call_text(view)
        case RunView():
            return run_text(view)
        case TreePart():
            return tree_text(view)
        case NodePart():
            return node_text(view)
        case RunsView():
            return runs_text(view)
    return "\n".join(_named(view))


def _named(view: BaseModel) -> list[str]:
    """Return the fields that are set, a line each."""
    return [
        f"{name.replace('_', ' ').capitalize()}: {value}"
        for name, value in view.model_dump(mode="json", exclude_defaults=True).items()
    ]


def search_text(view: SearchView) -> str:
    """Return a search as a list, numbered by rank."""
    lines = [f"Query: {view.query}"]
    if view.searched:
        lines.append(f"Searched for: {view.searched}")
    if view.language:
        lines.append(f"Language: {view.language}")
    lines += [f"Note: {note}" for note in view.notes]
    if view.degraded:
        lines.append(f"Note: {view.degraded}")
    lines.append(_found(view))
    for hit in view.hits:
        lines += _hit_lines(hit)
    if view.nearest_categories:
        lines.append(f"Nearest categories: {', '.join(view.nearest_categories)}")
    if view.offset:
        lines.append(f"Offset: {view.offset}")
    if view.total is not None:
        lines.append(f"Hits in all: {view.total}")
    if view.next_offset is not None:
        lines.append(f"More: search_apis with offset={view.next_offset}.")
    if view.next_step:
        lines.append(f"Next: {view.next_step}.")
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
    marks = [f"score {hit.score}"] + [f"catalog {hit.catalog}"] * bool(hit.catalog)
    marks += [f"dead: {hit.dead}"] * bool(hit.dead) + ["changed"] * hit.changed
    if hit.now is not None:
        marks += [one for one in (hit.now.words, hit.now.terms.words) if one]
    lines = [f"{hit.rank}. {hit.id} [{'; '.join(marks)}]"]
    if hit.description:
        lines.append(f"   {hit.description}")
    if hit.parameters:
        lines += [f"   {line}" for line in _parameter_lines(hit.parameters)]
    elif hit.required:
        lines.append(f"   required: {', '.join(hit.required)}")
    if hit.why:
        lines.append(f"   why: {hit.why}")
    if hit.similar:
        more = f" and {hit.more_similar} more" if hit.more_similar else ""
        lines.append(f"   +{len(hit.similar)} similar: {', '.join(hit.similar)}{more}")
    return lines


def describe_text(view: DescribeView) -> str:
    """Return APIs with their parameters, and the ids that do not exist."""
    parts = [_api_text(api) for api in view.apis]
    parts += [f"Not found: {one.id}: {one.error}\nHint: {one.hint}" for one in view.not_found]
    if view.left_out:
        parts.append(f"No room here for: {', '.join(view.left_out)}")
    if view.next_step:
        parts.append(f"Next: {view.next_step}.")
    return "\n\n".join(parts)


def call_text(view: CallView) -> str:
    """Return a response as data, with where it came from."""
    came = f"status {view.status}" if view.status else "no response"
    lines = [f"Error: {view.error}"] * bool(view.error)
    lines += [f"Hint: {view.hint}"] * bool(view.hint)
    lines.append(f"{view.id}: {came}, {view.kind}, source {view.source}, {view.seconds} s")
    if view.arguments:
        lines.append(f"Arguments: {compact_json(view.arguments)}")
    if view.retry_after is not None:
        lines.append(f"Retry after: {view.retry_after} s")
    lines += [f"{name.capitalize()}: {one}" for name, one in view.headers.items()]
    if view.consent is not None:
        wanted = view.consent
        reason = f" ({wanted.reason})" if wanted.reason else ""
        said = "Declined by the person" if view.kind == "declined" else "Needs a person's consent"
        lines.append(
            f"{said}: {wanted.api_id}: {wanted.method} {wanted.host}{wanted.path} "
            f"{compact_json(wanted.arguments)}{reason}"
        )
    if view.page:
        lines.append(f"Page: {view.page}")
    for one in view.files:
        named = f" {one.name!r}" if one.name else ""
        where = f"{one.uri} ({one.path})" if one.uri and one.path else one.uri or one.path
        lines.append(f"File{named}: {one.bytes:,} bytes, {one.media_type}: {where}")
    if view.response not in (None, ""):
        lines.append(_data(view.response))
    if view.characters:
        end = view.characters if view.next_offset is None else view.next_offset
        was = "was cut" if view.truncated else "ends here"
        lines.append(f"The response {was}: characters {view.offset} to {end} of {view.characters}.")
    if view.resource:
        lines.append(f"Whole response: {view.resource}")
    return "\n".join(lines)


def run_text(view: RunView) -> str:
    """Return a run: its answer and evidence, or how far it is."""
    lines = []
    if view.status == "failed":
        lines.append(f"Error: {view.reason}")
    if view.answer:
        title = "Answer" if view.status in {"answered", "replied"} else "Best partial answer"
        lines.append(f"{title}: {view.answer}")
    for file in (file for one in view.evidence if one.used for file in one.files):
        kind = plain(file.media_type)
        lines.append(f"File {file.name}: {file.bytes:,} bytes, {kind}: {file.uri} ({file.path})")
    lines.append(f"Run {view.run_id} is {view.status}.")
    if view.reason and view.status != "failed":
        lines.append(f"Reason: {view.reason}")
    if view.phase:
        lines.append(f"Now: {view.phase}.")
    if view.queue_position:
        lines.append(f"Runs that come first: {view.queue_position}")
    lines += [f"Question for the user: {one}" for one in view.questions]
    lines += [f"Still open: {one}" for one in view.missing]
    lines += [f"Note: {note}" for note in view.notes]
    if view.unsupported:
        told = "; ".join(map(_claim_words, view.unsupported))
        lines.append(f"No response says: {told}.")
    if view.unread:
        lines.append(f"Not looked at, as the answer is so long: {view.unread} more statements.")
    if view.supported:
        lines.append(f"Supported statements: {view.supported} (show_run has them)")
    lines += [opinion_line(one) for one in view.opinions]
    if view.evidence:
        lines.append("Evidence (* the answer rests on it):")
        lines += map(_evidence_line, view.evidence)
    if cost := _cost(view):
        lines.append(f"Cost: {cost}")
    if view.more:
        lines.append(f"More: {view.more}")
    if view.next_step:
        lines.append(f"Next: {view.next_step}.")
    return "\n".join(lines)


def _claim_words(claim: Claim) -> str:
    """Return a statement of an answer with its place and what supports it."""
    by: list[str] = [claim.how] * bool(claim.how)
    by += [f"node {', '.join(map(str, claim.nodes))}"] * bool(claim.nodes)
    by += ["the task"] * claim.in_task
    return f"{plain(claim.text)} ({claim.kind} at {claim.start}{': ' * bool(by)}{', '.join(by)})"


def _evidence_line(one: Evidence) -> str:
    mark = "*" if one.used else "-"
    body = one.response
    if body not in (None, "") and not isinstance(body, str):
        body = compact_json(body)
    came = ": ".join(plain(part) for part in (one.error, body) if part)
    came += f" ({one.characters} characters in all)" if one.characters else ""
    kind = f"{one.kind}, " if one.kind not in ("", "ok") else ""
    files = "".join(f"; file {file.name}, {file.media_type}: {file.uri}" for file in one.files)
    return (
        f"{mark} #{one.node} {one.api_id} as {one.function} {compact_json(one.arguments)} -> "
        f"{status_words(one)} ({kind}{one.source}, {one.seconds} s): {came}{files}"
    )


def _cost(view: RunView) -> str:
    """Return what a run has cost, without what is zero."""
    used = view.usage.model_dump(exclude_defaults=True)
    seconds = used.pop("seconds", None)
    parts = [f"{seconds} s"] * (seconds is not None)
    return ", ".join(parts + [f"{count} {name.replace('_', ' ')}" for name, count in used.items()])


def tree_text(run: TreePart) -> str:
    """Return the tree of an ended run: a line per node, with the node that it follows."""
    lines = [f"Task: {run.task}", f"Run {run.name} is {run.status}."]
    lines += [f"Answer: {run.answer}"] * bool(run.answer)
    lines += [f"Reason: {run.reason}"] * bool(run.reason)
    lines += [f"Still open: {one}" for one in run.missing]
    if run.unsupported:
        lines.append(f"No response says: {'; '.join(map(_claim_words, run.unsupported))}.")
    if run.supported:
        lines.append(f"Supported: {'; '.join(map(_claim_words, run.supported))}.")
    lines.append("Nodes (* on the path of the answer, - pruned):")
    for node in run.nodes:
        lines += _node_lines(node)
    lines += [f"{name}: {value}" for name, value in run.facts.items()]
    if run.next_offset is not None or run.offset:
        after = f" after the first {run.offset}" if run.offset else ""
        lines.append(f"This is a part of {run.total_nodes} nodes{after}.")
    else:
        lines.append(f"Nodes in all: {run.total_nodes}")
    lines.append(f"Whole run: {run.resource}")
    lines += [f"Next: {run.next_step}."] * bool(run.next_step)
    return "\n".join(lines)


def node_text(page: NodePart) -> str:
    """Return a part of a response, with the call that it came from."""
    end = page.offset + len(page.text)
    kept = ", kept whole" if page.kept_whole else "; the end was not kept"
    lines = [
        f"Response of #{page.node} of {page.run_id}: {page.api_id}, status {page.status}, {page.source}",
        f"Characters {page.offset} to {end} of {page.total_characters}{kept}",
        page.text,
    ]
    lines += [f"Next: {page.next_step}."] * bool(page.next_step)
    return "\n".join(lines)


def runs_text(view: RunsView) -> str:
    """Return a list of runs, a line each."""
    lines = [
        f"{one.run_id} [{one.status}{f', ended {one.ended}' * bool(one.ended)}]: {one.task}"
        for one in view.runs
    ]
    lines += [f"Next: {view.next_step}."] * bool(view.next_step)
    return "\n".join(lines) or "No runs."


def _node_lines(node: ShownNode) -> list[str]:
    mark = "*" if node.winning else " "
    mark += "-" if node.pruned else " "
    about = [node.kind] + [f"of {node.api_id}"] * bool(node.api_id)
    about += [f"status {node.status}"] * bool(node.status)
    about += [node.source] * bool(node.source) + ["not ok"] * (not node.ok)
    about += [f"code {node.code} {node.outcome}".rstrip()] * (node.code is not None)
    about += [f"{node.tokens} tokens"] * (node.tokens is not None)
    about += [f"{node.seconds} s"] * (node.seconds is not None)
    about += ["whole response kept"] * node.has_response
    after = f" after #{node.parent}" if node.parent >= 0 else ""
    name = f": {node.function}" if node.function else ""
    lines = [f"{mark}#{node.id}{after}{name} [{', '.join(about)}]"]
    for what, text in (
        ("thinks", node.thought),
        ("with", node.arguments),
        ("returned", node.observation),
    ):
        lines += [f"    {what}: {text}"] * bool(text)
    return lines


def _api_text(api: ApiView) -> str:
    lines = [
        api.id,
        f"{api.name}, of {api.tool}: {api.tool_description}".removesuffix(": "),
        api.description,
    ]
    lines.append(f"Category: {api.category}")
    lines.append(f"Request: {call_line(api)}")
    if api.keys:
        lines.append(f"Key: {describe_keys(api.keys)}")
    if api.now is not None:
        lines.append(f"Call now: {api.now.words}")
        if terms := api.now.terms.words:
            lines.append(f"Terms: {terms}")
    if api.check is not None:
        lines.append(f"Checked: {check_line(api.check)}")
        lines.append(
            f"Last check: {api.check.verdict}, status {api.check.status}, at {api.check.checked_at}"
        )
    lines += _parameter_lines(api.parameters) or ["No parameters."]
    if api.arguments_schema is not None:
        lines.append(f"Arguments as JSON Schema: {compact_json(api.arguments_schema)}")
    lines.append(f"Example: call_api(id={api.id!r}, arguments={compact_json(api.example)})")
    return "\n".join(line for line in lines if line)


def _parameter_lines(parameters: tuple[Any, ...]) -> list[str]:
    lines = []
    for one in parameters:
        needed = "required" if one.required else "optional"
        word = "for example" if one.required else "default"
        extra = "" if one.default == "" else f", {word} {compact_json(one.default)}"
        extra += "" if one.example is None else f", for example {compact_json(one.example)}"
        allowed = f" {allowed_words(one)}".rstrip()
        lines.append(f"- {one.name} ({one.type}, {needed}{extra}): {one.description}{allowed}")
        lines += [f"    {line}" for line in one.fields]
    return lines


def _data(response: Any) -> str:
    if isinstance(response, str):
        return plain(response)
    short = compact_json(response)
    if len(short) > ROOMY:
        return short
    return plain(json.dumps(response, ensure_ascii=False, indent=1))
