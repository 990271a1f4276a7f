"""Request bodies of OpenAPI operations: an object's properties, or the whole body, as parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi_refs import Node, References
from toolsrv_catalogs.openapi_schema import parameter, shape
from toolsrv_catalogs.openapi_style import StyleFault, is_json, style
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry.api import Parameter, Style

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
WHOLE = "body"
"""The name of the parameter that stands for a body that is no object."""


def read_body(
    refs: References, node: Node, found: FileFindings
) -> tuple[str, list[Parameter], list[Parameter]]:
    """Return the media type (``""`` for JSON), the required and the optional parameters of a body.

    Raises ReferenceFault, and ValueError for a needed property that cannot be sent as it must be.
    """
    value, resolver = refs.follow(node)
    body = value if isinstance(value, dict) else {}
    content = body.get("content")
    kinds = content if isinstance(content, dict) else {}
    if not kinds:
        return "", [], []
    kind = min(kinds, key=_rank)
    media = kinds[kind] if isinstance(kinds[kind], dict) else {}
    if len(kinds) > 1:
        others = ", ".join(sorted(str(one) for one in kinds if one != kind))
        found.note(f"of several kinds of body {kind!r} is offered, not {others}")
    body_type = "" if _rank(kind) == 0 else found.text(kind, NAME_LIMIT)
    schema = Node(media.get("schema"), resolver)
    flat = shape(refs, schema)
    needed = body.get("required") is True
    form = _plain(kind) if _plain(kind) in _FORMS else ""
    if not flat.properties or (body_type and not form):
        about = {"description": body.get("description")} | media
        whole = parameter(refs, schema, found, name=WHOLE, place="payload", about=about, flat=flat)
        if body_type and not form and flat.structure in {"object", "array", ""}:
            # Of another media type only the text can be given, as the caller writes it.
            whole = whole.model_copy(update={"type": "STRING", "json_schema": {"type": "string"}})
        return body_type, [whole] if needed else [], [] if needed else [whole]
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
        try:
            written = _style(media, name, inner_flat.structure) if form == _FORMS[0] else ""
        except StyleFault as fault:
            if must:
                raise ValueError(f"the property {name[:80]!r} of its body: {fault}") from fault
            found.refuse("parameter", str(fault), name=name)
            continue
        one = parameter(
            refs, inner, found, name=name, place="body", about=about, flat=inner_flat, style=written
        )
        (required if must else optional).append(one)
    return body_type, required, optional


def _style(media: Mapping[str, Any], name: str, kind: str) -> Style:
    """Return how a property of a URL-encoded form is written. Raises StyleFault."""
    encodings = media.get("encoding")
    one = encodings.get(name) if isinstance(encodings, dict) else None
    if not isinstance(one, dict) or not one.keys() & {"style", "explode"}:
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
    """Return 0 for JSON, then forms in our order, then anything else."""
    if is_json(str(kind)):
        return 0
    plain = _plain(kind)
    return 1 + _FORMS.index(plain) if plain in _FORMS else 9
