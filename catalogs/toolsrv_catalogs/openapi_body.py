"""Request bodies of OpenAPI operations: an object's properties, or the whole body, as parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolsrv_catalogs.argument_schema import argument_schema
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi_refs import Node, References
from toolsrv_catalogs.openapi_schema import Shape, parameter, shape
from toolsrv_catalogs.openapi_style import StyleFault, is_json, style
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry.api import Parameter, Style

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_DECLARED = 2
"""The rank from which on a media type is kept: before it application/json is sent."""
WHOLE = "body"
"""The name of the parameter that stands for a body that is no object."""


@dataclass
class Body:
    """What a body brings: media type (``""`` for JSON), parameters, and what is beside them.

    ``is_needed`` says that it is sent without properties too; ``more`` is the schema of
    properties that are not named, None where there are none.
    """

    media: str = ""
    required: list[Parameter] = field(default_factory=list)
    optional: list[Parameter] = field(default_factory=list)
    is_needed: bool = False
    more: dict[str, Any] | None = None


def read_body(refs: References, node: Node, found: FileFindings) -> Body:
    """Return what a body's own schema says.

    Raises ReferenceFault, and ValueError for a needed property that cannot be sent as it must be.
    """
    value, resolver = refs.follow(node)
    body = value if isinstance(value, dict) else {}
    content = body.get("content")
    kinds = content if isinstance(content, dict) else {}
    if not kinds:
        return Body()
    kind = min(kinds, key=_rank)
    entry = refs.follow(Node(kinds[kind], resolver))
    media, resolver = entry.value if isinstance(entry.value, dict) else {}, entry.resolver
    if len(kinds) > 1:
        others = ", ".join(sorted(str(one) for one in kinds if one != kind))
        found.note(f"of several kinds of body {kind!r} is offered, not {others}")
    body_type = "" if _rank(kind) < _DECLARED else found.text(kind, NAME_LIMIT)
    in_json = is_json(str(kind))
    schema = Node(media.get("schema"), resolver)
    flat = shape(refs, schema)
    needed = body.get("required") is True
    form = _plain(kind) if _plain(kind) in _FORMS else ""
    more = _additional(refs, flat, schema)
    if (not flat.properties and more is None) or not (in_json or form):
        about = {"description": body.get("description")} | media
        whole = parameter(refs, schema, found, name=WHOLE, place="payload", about=about, flat=flat)
        if not in_json and not form and flat.structure in {"object", "array", ""}:
            # Of another media type only the text can be given, as the caller writes it.
            whole = whole.model_copy(update={"type": "STRING", "json_schema": {"type": "string"}})
        return Body(body_type, [whole] if needed else [], [] if needed else [whole])
    example = media.get("example")
    examples = example if isinstance(example, dict) else {}
    required: list[Parameter] = []
    optional: list[Parameter] = []
    for name, inner in flat.properties.items():
        inner_flat = shape(refs, inner)
        if inner_flat.words.get("readOnly") is True or not name.strip():
            continue
        about = _about(name, examples, inner_flat.words)
        must = needed and name in flat.required
        encoding = _encoding(media, name)
        told: dict[str, Any] = {}
        try:
            written = _style(encoding, inner_flat.structure) if form == _FORMS[0] else ""
        except StyleFault as fault:
            if must:
                raise ValueError(f"the property {name[:80]!r} of its body: {fault}") from fault
            found.refuse("parameter", str(fault), name=name)
            continue
        if form:
            told = {
                "media": _part_media(refs, encoding, inner_flat, found),
                "reserved": encoding.get("allowReserved") is True,
            }
            if form == _FORMS[0] and is_json(told.pop("media") or "text/plain"):
                written = "json"
        make = partial(
            parameter,
            refs,
            inner,
            found,
            name=name,
            place="body",
            about=about,
            flat=inner_flat,
            style=written,
            **told,
        )
        own = form or name in examples  # then it is said of this body, not of its schema
        one = make() if own else refs.once(f"property {name}", schema, make)
        (required if must else optional).append(one)
    return Body(body_type, required, optional, is_needed=needed, more=more)


def _additional(refs: References, flat: Shape, schema: Node) -> dict[str, Any] | None:
    """Return the schema of properties beside the named ones, None where it names no such."""
    told = flat.words.get("additionalProperties")
    if told is True:
        return {}
    if not isinstance(told, dict):
        return None
    return argument_schema(Node(told, flat.resolver or schema.resolver), refs.peek)


def _encoding(media: Mapping[str, Any], name: str) -> dict[str, Any]:
    encodings = media.get("encoding")
    one = encodings.get(name) if isinstance(encodings, dict) else None
    return one if isinstance(one, dict) else {}


def _part_media(
    refs: References, encoding: Mapping[str, Any], flat: Shape, found: FileFindings
) -> str:
    """Return the media type of a form's part, "" where its type decides."""
    told = encoding.get("contentType")
    if isinstance(told, str):  # of several the first that is one
        kinds = [one.strip() for one in told.split(",") if "*" not in one]
        return found.text(kinds[0] if kinds else "", NAME_LIMIT)
    words = flat.words
    if flat.items is not None:
        words = shape(refs, flat.items).words
        if words.get("format") == "binary":
            return "application/octet-stream"
    media = words.get("contentMediaType")
    return found.text(media, NAME_LIMIT) if isinstance(media, str) else ""


def _style(one: Mapping[str, Any], kind: str) -> Style:
    """Return how a property of a URL-encoded form is written. Raises StyleFault."""
    if not one.keys() & {"style", "explode"}:
        return ""
    return style(one, "body", kind) or ("pairs" if kind == "object" else "")


def _about(name: str, examples: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a property beside its schema."""
    about = {"deprecated": words.get("deprecated")}
    return about | ({"example": examples[name]} if name in examples else {})


def _plain(kind: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return str(kind).split(";")[0].strip().lower()


def _rank(kind: str) -> int:
    """Return 0 for plain JSON, then its other media types, forms, and anything else."""
    plain = _plain(kind)
    if is_json(plain):
        return 0 if str(kind).strip().lower() == "application/json" else 1 if "*" in plain else 2
    return 3 + _FORMS.index(plain) if plain in _FORMS else 9
