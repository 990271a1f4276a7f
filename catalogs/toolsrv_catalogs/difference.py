"""Two versions of an API as a unified diff of what a model would read and a call would do.

Pure; knows nothing about terminals or who accepted what.
"""

from __future__ import annotations

import difflib
import json

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.flat_view import ANNOTATIONS, spelled

_CONTEXT = 1
_ASPECTS = {
    "name": "name",
    "description": "description",
    "tool": "tool",
    "tool_description": "tool description",
    "method": "method",
    "url": "address",
    "required": "arguments",
    "optional": "arguments",
    "body_type": "body",
    "body_required": "body",
    "together": "arguments",
    "accept": "media type",
    "security": "security",
}


def difference(served: Api, new: Api) -> list[str]:
    """Return the lines of a unified diff from ``served`` to ``new``, without line ends."""
    return list(
        difflib.unified_diff(
            _lines(served),
            _lines(new),
            fromfile=f"{served.id} (served)",
            tofile=f"{new.id} (new)",
            n=_CONTEXT,
            lineterm="",
        )
    )


def aspects(served: Api, new: Api) -> tuple[str, ...]:
    """Return what of an API changed: ``description``, ``arguments``, ``address`` and so on.

    Fields of which a call and a model see nothing are told as ``definition``.
    """
    found: dict[str, None] = {}
    for name in Api.model_fields:
        if getattr(served, name) != getattr(new, name):
            found[_ASPECTS.get(name, "definition")] = None
    return tuple(found)


def _lines(api: Api) -> list[str]:
    lines = [
        f"name: {api.name}",
        f"tool: {api.tool}",
        *_block("about the tool", api.tool_description),
        f"call: {api.method} {api.url}",
        *_block("description", api.description),
    ]
    for kind, parameters in (("required", api.required), ("optional", api.optional)):
        for parameter in parameters:
            lines += _parameter(kind, parameter)
    if api.body_type:
        lines.append(f"body: {api.body_type}")
    if api.mcp is not None:
        lines.append(f"definition: sha256 {api.mcp.fingerprint}")
    if api.accept:
        lines.append(f"asks for: {api.accept}")
    if api.body_required:
        lines.append("body: always sent")
    for one in api.together:
        schema = json.dumps(one.json_schema, ensure_ascii=False, indent=1)
        needed = "required" if one.required else "optional"
        lines += _block(f"{one.place} as a whole, {needed}", schema)
    for group in api.security:
        lines.append("security: " + (" and ".join(f"{s.kind} {s.name}" for s in group) or "none"))
        lines += [f"  {s.name}: {s.place} {s.key} {s.scheme}" for s in group]
        lines += [f"  {s.name}: token from {s.token_url}" for s in group if s.token_url]
        lines += [f"  {s.name}: scopes {' '.join(s.scopes)}" for s in group if s.scopes]
    return lines


def _parameter(kind: str, parameter: Parameter) -> list[str]:
    place = f" in {parameter.place}" if parameter.place else ""
    head = f"{kind} {parameter.name} ({parameter.type}){place}"
    if parameter.style:
        head += f", written with {parameter.style}"
    if parameter.reserved:
        head += ", reserved signs as they are"
    if parameter.empty:
        head += ", may be empty"
    if parameter.media:
        head += f", as {parameter.media}"
    if parameter.default != "":
        head += f", default {spelled(parameter.default)}"
    if parameter.enum:
        head += f", one of {', '.join(parameter.enum)}"
    demands = {k: v for k, v in (parameter.json_schema or {}).items() if k not in ANNOTATIONS}
    schema = json.dumps(demands, ensure_ascii=False, indent=1) if demands else ""
    lines = [head, *_block(f"  {parameter.name}", parameter.description)]
    return lines + _block(f"  {parameter.name} schema", schema)


def _block(head: str, text: str) -> list[str]:
    return [f"{head}: {line}" for line in text.splitlines()]
