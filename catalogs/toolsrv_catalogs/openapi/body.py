"""Request bodies and parameter styles of OpenAPI operations.

The properties of an object become parameters; any other body is one parameter. ``style``,
``explode`` and ``content`` decide how a value is serialized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from toolsrv_catalogs.argument_schema import NODES_LIMIT, argument_schema
from toolsrv_catalogs.fields import mapping
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi.references import Node, References, node_at
from toolsrv_catalogs.openapi.schema import Shape, parameter, shape
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry import media as media_types
from toolsrv_registry.api import Parameter, Place, PlaceSchema, Style
from toolsrv_registry.flat_view import ANNOTATIONS
from toolsrv_registry.media import FORM, JSON, MULTIPART, bare

_DEFAULTS: dict[str, str] = {
    "query": "form",
    "cookie": "form",
    "path": "simple",
    "header": "simple",
}
_DELIMITED: dict[str, Style] = {
    "spaceDelimited": "spaces",
    "pipeDelimited": "pipes",
    "tabDelimited": "tabs",  # of Swagger 2, which has them all in paths and headers too
}
_JOINED: dict[str, Style] = {"form": "commas", **_DELIMITED}
_PREFIXED: dict[tuple[str, bool], Style] = {
    ("label", False): "label",
    ("label", True): "label_each",
    ("matrix", False): "matrix",
    ("matrix", True): "matrix_each",
}
_BYTE_FORMATS = frozenset(
    f"application/{kind}"
    for kind in (
        *("octet-stream", "binary", "pdf", "zip", "gzip", "x-gzip", "x-tar", "x-7z-compressed"),
        *("x-bzip2", "x-xz", "zstd", "msword", "wasm", "vnd.rar", "x-protobuf", "protobuf", "cbor"),
        *("msgpack", "x-msgpack", "java-archive", "vnd.sqlite3", "vnd.apache.parquet"),
    )
)
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


class StyleFault(Exception):  # noqa: N818 - a fault of the document, told to its author
    """A parameter is to be written in a way that is not sent."""


def parameter_style(about: Mapping[str, Any], place: Place, kind: str) -> Style:
    """Return how a parameter is written, ``""`` where the place's own way does.

    Args:
        about: the parameter object, or a property's encoding object.
        place: where it goes; a property of a form is written as a query is.
        kind: the type of its schema, ``""`` where that is open.

    Raises:
        StyleFault: it cannot be sent so; says why.
    """
    default = _DEFAULTS.get(place, "form")
    told, explode = about.get("style"), about.get("explode")
    name = told if isinstance(told, str) and told else default
    explode = explode if isinstance(explode, bool) else name == "form"
    if place == "path" and name in ("label", "matrix"):
        return _PREFIXED[name, explode and kind not in _SCALARS]
    if place in {"path", "header"}:
        if name in _DELIMITED and kind != "object":
            return "" if kind in _SCALARS else _DELIMITED[name]
        if name != "simple":
            ways = "'simple', 'label' and 'matrix'" if place == "path" else "'simple'"
            raise StyleFault(f"style {name[:40]!r} cannot be sent; in a {place} {ways} can")
        if kind != "object":
            return ""
        return "pairs" if explode else "commas"
    if name == "cookie" and place == "cookie" and about.get("explode") is not False:
        return "cookie"
    if name in _JOINED and place != "cookie":
        return "" if explode or kind in _SCALARS else _JOINED[name]
    if name == "form":  # lists too stand in one cookie: there is no other way to send them
        if explode and kind == "object":
            return "pairs"  # a cookie for each entry
        return "commas" if kind == "object" else ""
    if name == "deepObject" and place != "cookie":
        return "" if kind in _SCALARS else "brackets"
    raise StyleFault(f"style {name[:40]!r} cannot be sent in a {place}")


def content_style(media: str, kind: str) -> Style:
    """Return how a parameter is written whose ``content`` has a media type, in place of a style.

    JSON is written as JSON, texts and numbers too; of any other media type those alone can be.

    Raises:
        StyleFault: it cannot be sent so; says why.
    """
    if is_json_media(media):
        return "json"
    if kind in {"array", "object"}:
        raise StyleFault(f"its content {media[:40]!r} cannot be sent; JSON can")
    return ""


def whole_query_style(media: str, kind: str) -> Style:
    """Return how a query is written that is one value. Raises StyleFault as ``content_style``."""
    if bare(media) == FORM:
        raise StyleFault("a form as a whole query needs properties")
    return "whole_json" if content_style(media, kind) == "json" else "whole"


def is_json_media(media: str) -> bool:
    """Whether a media type is JSON, or anything."""
    return bare(media) in {"*/*", "application/*"} or media_types.is_json(media)


def is_byte_media(media: str) -> bool:
    """Whether a media type is that of bytes and not of text."""
    plain = bare(media)
    family, _, kind = plain.partition("/")
    if family in {"image", "audio", "video", "font"}:
        return not kind.endswith("+xml")
    return plain in _BYTE_FORMATS or kind.startswith(("vnd.openxmlformats-", "vnd.ms-"))


_FORMS = (FORM, MULTIPART)
_BYTES = "application/octet-stream"
_ABOUT = frozenset({"title", "description", "example", "examples", "deprecated", "default"})
"""Words of a schema that say nothing of its values: such a part is bytes (OpenAPI 3.1, 4.8.14)."""
_DECLARED = 2
"""The rank from which on a media type is kept: before it application/json is sent."""
_PROPERTIES_LIMIT = 4_000
"""Properties of a body that are arguments; one with more is one argument."""
_NODES_EACH, _NODES_OF_BODY = 32, 1_200
"""Schemas that are kept of each property of a body at least, and of all about."""
_OF_EACH = frozenset({"type", "properties", "additionalProperties"})
"""What a body's schema says of single properties; their own schemas say it too."""
_OF_NAMED = frozenset({"patternProperties", "unevaluatedProperties"})
"""What depends on which properties are named."""
WHOLE = "body"
"""The name of the parameter that stands for a body that is no object."""


@dataclass
class Body:
    """What a body brings: media type (``""`` for JSON), parameters, and what is beside them.

    ``is_needed`` says that it is sent without properties too; ``together`` is what properties
    have to fulfil together, those that are not named among them.
    """

    media: str = ""
    required: list[Parameter] = field(default_factory=list)
    optional: list[Parameter] = field(default_factory=list)
    is_needed: bool = False
    together: PlaceSchema | None = None


def read_body(refs: References, node: Node, found: FileFindings) -> Body:
    """Return what a body's own schema says.

    Raises ReferenceFault, and ValueError for a needed property that cannot be sent as it must be.
    """
    value, resolver = refs.follow(node)
    body = mapping(value)
    kinds = mapping(body.get("content"))
    if not kinds:
        return Body()
    kind = min(kinds, key=_rank)
    entry = refs.follow(Node(kinds[kind], resolver))
    media, resolver = mapping(entry.value), entry.resolver
    if len(kinds) > 1:
        others = ", ".join(sorted(str(one) for one in kinds if one != kind))
        found.note(f"of several kinds of body {kind!r} is offered, not {others}")
    body_type = "" if _rank(kind) < _DECLARED else found.text(kind, NAME_LIMIT)
    schema = node_at(media.get("schema"), resolver)
    flat = shape(refs, schema)
    in_json = is_json_media(str(kind))
    if "*" in str(kind) and flat.words.get("format") == "binary":
        in_json, body_type = False, found.text(kind, NAME_LIMIT)
    needed = body.get("required") is True
    form = bare(str(kind)) if bare(str(kind)) in _FORMS else ""
    is_old = str(mapping(refs.root.value).get("openapi")).startswith("3.0")
    styled = (FORM,) if is_old else _FORMS
    more = _additional(refs, flat, schema)
    if more is None and flat.properties and not flat.required <= flat.properties.keys():
        more = {}  # it demands what it does not describe
    other = set(flat.types) - {"object"}
    is_wide = len(flat.properties) > _PROPERTIES_LIMIT
    if other or (not flat.properties and more is None) or not (in_json or form) or is_wide:
        about = {"description": body.get("description")} | media
        whole = parameter(refs, schema, found, name=WHOLE, place="payload", about=about, flat=flat)
        if not in_json and not form:
            whole = _as_text(whole, kind, flat)
        return Body(body_type, [whole] if needed else [], [] if needed else [whole])
    examples = mapping(media.get("example"))
    required: list[Parameter] = []
    optional: list[Parameter] = []
    nodes = max(_NODES_EACH, min(NODES_LIMIT, _NODES_OF_BODY // max(1, len(flat.properties))))
    for name, inner in flat.properties.items():
        inner_flat = shape(refs, inner)
        if inner_flat.words.get("readOnly") is True or not name.strip():
            continue
        about = _about(name, examples, inner_flat.words)
        must = needed and name in flat.required
        encoding = mapping(mapping(media.get("encoding")).get(name))
        told: dict[str, Any] = {}
        try:
            written = _style(encoding, inner_flat.structure) if form in styled else ""
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
            if form == FORM and is_json_media(told.pop("media") or "text/plain"):
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
            nodes=nodes,
            **told,
        )
        own = form or name in examples  # then it is said of this body, not of its schema
        one = make() if own else refs.once(f"property {name}", schema, make)
        (required if must else optional).append(one)
    together = place_schema(refs, schema, "body", required=needed, more=more, named=flat.properties)
    return Body(body_type, required, optional, is_needed=needed, together=together)


def place_schema(
    refs: References,
    schema: Node,
    place: Literal["body", "query"],
    *,
    required: bool,
    more: dict[str, Any] | None = None,
    named: Iterable[str] = (),
) -> PlaceSchema | None:
    """Return what the properties of a schema have to fulfil together, None where that is nothing.

    ``more`` is the schema of properties that are not ``named``, None where none are taken.
    """
    whole = refs.once("whole", schema, partial(argument_schema, schema, refs.part))
    beyond = whole.keys() - _OF_EACH - ({"required"} if required else set())
    if not beyond and more is None:
        return None
    each = frozenset({"type"}) if beyond & _OF_NAMED else _OF_EACH
    told = {key: one for key, one in whole.items() if key not in each}
    others = (told.get("additionalProperties"), told.get("unevaluatedProperties", False))
    if more is not None and others == (None, False):
        told["additionalProperties"] = more or True
        if more:
            told["properties"] = {name: {} for name in named} | told.get("properties", {})
    return PlaceSchema(place=place, json_schema=told, required=required)


def _as_text(whole: Parameter, kind: str, flat: Shape) -> Parameter:
    """Return the parameter of a body that is no JSON: the text or the bytes that a caller gives."""
    if whole.type == "BINARY" or is_byte_media(str(kind)):
        schema = {"type": "string", "format": "binary"}
    elif flat.structure in {"object", "array", ""}:
        schema = {"type": "string"}
    else:
        return whole
    told = {key: one for key, one in (whole.json_schema or {}).items() if key in ANNOTATIONS}
    told |= {"description": whole.description} if whole.description else {}  # with its fields
    return Parameter(name=whole.name, place=whole.place, json_schema=told | schema)


def _additional(refs: References, flat: Shape, schema: Node) -> dict[str, Any] | None:
    """Return the schema of properties beside the named ones, None where it names no such."""
    told = flat.others
    if not flat.takes_more:
        return None
    if not isinstance(told, dict) or "patternProperties" in flat.words:
        return {}
    return argument_schema(Node(told, flat.resolver or schema.resolver), refs.part)


def _part_media(
    refs: References, encoding: Mapping[str, Any], flat: Shape, found: FileFindings
) -> str:
    """Return the media type of a form's part, "" where its type decides."""
    told = encoding.get("contentType")
    if isinstance(told, str):  # several are kept: the file that is given decides
        return found.text(told, NAME_LIMIT)
    words = flat.words
    if flat.items is not None:
        words = shape(refs, flat.items).words
        if words.get("format") == "binary":
            return _BYTES
    media = words.get("contentMediaType")
    if isinstance(media, str):
        return found.text(media, NAME_LIMIT)
    says_nothing = not flat.types and not flat.enum and not words.keys() - _ABOUT
    return _BYTES if says_nothing else ""


def _style(one: Mapping[str, Any], kind: str) -> Style:
    """Return how a property of a URL-encoded form is written. Raises StyleFault."""
    if not one.keys() & {"style", "explode"}:
        return ""
    return parameter_style(one, "body", kind) or ("pairs" if kind == "object" else "")


def _about(name: str, examples: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a property beside its schema."""
    about = {"deprecated": words.get("deprecated")}
    return about | ({"example": examples[name]} if name in examples else {})


def _rank(kind: str) -> int:
    """Return 0 for plain JSON, then its other media types, forms, and anything else."""
    plain = bare(str(kind))
    if is_json_media(plain):
        return 0 if str(kind).strip().lower() == JSON else 1 if "*" in plain else 2
    return 3 + _FORMS.index(plain) if plain in _FORMS else 9
