"""What the responses of an OpenAPI operation look like, in the form of ToolBench's schemas.

Of the first success that is JSON: keys with ``"str"``, ``"int"`` …, objects nested, lists as a list
of one item; ``True`` where anything may stand, so that nothing of it is taken for unneeded. Deep and
wide schemas end in ``True``. Whatever is wrong with a schema costs the schema and not the API. Its
example is kept beside it, where ToolBench's layout has one.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from toolsrv_catalogs import fields
from toolsrv_catalogs.fields import listed, mapping
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.layout import EXAMPLE, SCHEMA
from toolsrv_catalogs.openapi.body import is_json_media
from toolsrv_catalogs.openapi.references import Node, ReferenceFault, References, node_at
from toolsrv_catalogs.openapi.schema import Shape, shape
from toolsrv_catalogs.text import NAME_LIMIT, clean
from toolsrv_registry.media import JSON

DEPTH = 6
EXAMPLE_LIMIT = 16_384
"""Characters of an example that is kept: whoever chooses among its keys sees fewer."""
FIELDS = 200
"""Of one schema; an object that would bring more stays as it comes."""
_MEDIA = re.compile(r"[\w.+*-]+/[\w.+*-]+(\s*;\s*[\w.+-]+=[\w.+-]+)*", re.ASCII)
_LEAVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


class _Open(NamedTuple):
    """A place in the result that is still to be filled."""

    holder: Any
    key: Any
    node: Node
    depth: int


def read_response(
    refs: References, node: Node, found: FileFindings, *, name: str
) -> dict[str, Any]:
    """Return what is kept beside an API for the ``responses`` at ``node``; empty where nothing is."""

    def kept(schema: Node) -> dict[str, Any]:
        mirrored = _mirrored(refs, schema)
        if not isinstance(mirrored, dict | list) or mirrored in ({}, [], [True]):
            return {}
        return fields.kept({SCHEMA: mirrored}, found, what=repr(name))

    try:
        media = _success(refs, node)
        if media is None:
            return {}
        example = _example(refs, media)
        result = {} if example is None else _beside(refs, example, found, name)
        if "schema" not in media.value:
            return result
        schema = node_at(media.value["schema"], media.resolver)
        return result | refs.once("response", schema, partial(kept, schema))
    except (ReferenceFault, RecursionError) as fault:
        found.note(f"{name!r}: no response schema: {str(fault)[:200] or 'nested too deep'}")
        return {}


def accepted(refs: References, node: Node) -> str:
    """Return what to ask for: JSON where a success offers it, else all types of successes."""
    try:
        kinds = dict.fromkeys(kind for kind, _ in _successes(refs, node) if _MEDIA.fullmatch(kind))
    except ReferenceFault:
        return ""
    as_json = [kind for kind in kinds if is_json_media(kind) and "*" not in kind]
    plain = [kind for kind in as_json if kind.lower() == JSON]
    return (plain or as_json or [", ".join(kinds)])[0]


def _success(refs: References, node: Node) -> Node | None:
    """Return what is said of the first success that is JSON, one with a schema before others."""
    told = [
        Node(media, resolver)
        for kind, (media, resolver) in _successes(refs, node)
        if is_json_media(kind) and isinstance(media, dict)
    ]
    return next((one for one in told if "schema" in one.value), told[0] if told else None)


def _example(refs: References, media: Node) -> Any:
    """Return an example response, an object or a list; None where there is none."""

    def target(value: Any) -> dict[str, Any]:
        try:
            return mapping(refs.follow(node_at(value, media.resolver)).value)
        except ReferenceFault:
            return {}

    named = islice(mapping(media.value.get("examples")).values(), 1)
    schema = target(media.value.get("schema"))
    found = [
        media.value.get("example"),
        *(target(one).get("value") for one in named),
        schema.get("example"),
        *listed(schema.get("examples"))[:1],
    ]
    return next((one for one in found if isinstance(one, dict | list) and one), None)


def _beside(refs: References, example: Any, found: FileFindings, name: str) -> dict[str, Any]:
    """Return an example where ToolBench's layout keeps one, while the document has room for it."""
    try:
        size = len(json.dumps(example, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return {}
    if size > EXAMPLE_LIMIT or size > refs.example_room:
        return {}
    refs.example_room -= size
    keys = fields.kept({EXAMPLE: example}, found, what=repr(name))
    return {"keys": keys} if keys else {}


def _successes(refs: References, node: Node) -> Iterator[tuple[str, Node]]:
    """Yield media types of successes with what is said of them. Raises ReferenceFault."""
    value, resolver = refs.follow(node)
    for status, entry in mapping(value).items():
        if str(status)[:1] == "2" and len(str(status)) == 3:
            answer, inside = refs.follow(Node(entry, resolver))
            for kind, media in mapping(mapping(answer).get("content")).items():
                yield str(kind).strip(), Node(media, inside)


def _mirrored(refs: References, node: Node) -> Any:
    """Mirror a schema level by level, so that what is wide takes no room from what stands above."""
    result = [True]
    waiting, room = deque([_Open(result, 0, node, 0)]), FIELDS
    while waiting:
        place = waiting.popleft()
        try:
            flat = shape(refs, place.node)
            named = {} if _varies(refs, place.node, flat) else _named(flat)
        except ReferenceFault:
            if place.depth == 0:
                raise
            continue  # stays True
        if flat.type == "array" and flat.items is not None and place.depth < DEPTH:
            items = [True]
            place.holder[place.key] = items
            waiting.append(_Open(items, 0, flat.items, place.depth + 1))
        elif named and len(named) <= room and place.depth < DEPTH:
            room -= len(named)
            inner: dict[str, Any] = dict.fromkeys(named, True)
            place.holder[place.key] = inner
            waiting.extend(_Open(inner, key, one, place.depth + 1) for key, one in named.items())
        elif flat.type in _LEAVES and not flat.properties:
            place.holder[place.key] = _LEAVES[flat.type]
    return result[0]


def _named(flat: Shape) -> dict[str, Node]:
    """Return the properties of an object that has no others; empty where any may come."""
    more = flat.words.get("additionalProperties") or flat.words.get("patternProperties")
    odd = any(clean(name, NAME_LIMIT) != name for name in flat.properties)
    return {} if more or odd or flat.type not in {"object", ""} else flat.properties


def _varies(refs: References, node: Node, flat: Shape) -> bool:
    """Whether a value may also be of a kind whose keys are not named."""
    kinds = flat.words.get("type")
    if isinstance(kinds, list) and len([one for one in kinds if one != "null"]) > 1:
        return True
    value, resolver = refs.follow(node)
    for key in ("oneOf", "anyOf"):
        for one in listed(mapping(value).get(key)):
            variant = shape(refs, Node(one, resolver))
            if variant.type != "null" and not _named(variant):
                return True
    return False
