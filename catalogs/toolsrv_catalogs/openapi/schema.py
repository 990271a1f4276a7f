"""JSON schemas of OpenAPI documents as parameters: each keeps its own, with its annotations.

To see what may be given where, a schema is flattened one level deep: ``allOf`` is merged, a property
of several parts has to fit all of them; of ``oneOf`` and ``anyOf`` everything is possible and only
what all demand is required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolsrv_catalogs import fields
from toolsrv_catalogs.argument_schema import NODES_LIMIT, TYPES, argument_schema
from toolsrv_catalogs.fields import listed, mapping
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi.references import (
    Node,
    ReferenceFault,
    References,
    all_of,
    split_reference,
    variants,
)
from toolsrv_catalogs.text import DESCRIPTION_LIMIT, NAME_LIMIT, PARAMETER_DESCRIPTION_LIMIT
from toolsrv_registry.api import Parameter, Place, Style
from toolsrv_registry.flat_view import spelled
from toolsrv_registry.schema_view import kinds, narrower

_DEPTH_LIMIT = 24
_CHOICES = frozenset({"oneOf", "anyOf"})


@dataclass
class Shape:
    """A flattened schema. ``words`` are its own keywords; the rest comes from all its parts.

    ``types`` are the types that a value may have, without null; none where that is open;
    ``resolver`` is that of the schema of properties that are not named; ``is_base`` says that
    other schemas, which it does not list, add properties to it. Not altered once ``shape`` has
    returned it.
    """

    words: dict[str, Any] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    enum: list[Any] = field(default_factory=list)
    properties: dict[str, Node] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    items: Node | None = None
    resolver: Any = None
    is_base: bool = False

    @property
    def type(self) -> str:
        """The one type that a value is taken for: text where it may be text or something else."""
        types = self.types or tuple(one for one in kinds({"enum": self.enum}) if one != "null")
        return "string" if "string" in types else types[0] if types else ""

    @property
    def structure(self) -> str:
        """The type that decides how a value is written: that of an object or a list, if it may be."""
        return next((kind for kind in ("object", "array") if kind in self.types), self.type)

    @property
    def others(self) -> Any:
        """What it says of properties that it does not name."""
        words = self.words
        return words.get("additionalProperties", words.get("unevaluatedProperties"))

    @property
    def takes_more(self) -> bool:
        """Whether it says that it takes properties which it does not name."""
        told = self.others
        named = bool(self.words.get("patternProperties"))
        return self.is_base or named or told is True or isinstance(told, dict)


def shape(refs: References, node: Node, depth: int = 0, *, inherited: bool = False) -> Shape:
    """Return a schema flattened; what cannot be followed is any value, and ``refs.missed`` tells.

    ``inherited``: it stands under the ``allOf`` of another one (``references.variants``).
    """
    make = partial(_shape, refs, node, depth, inherited=inherited)
    kind = "inherited shape" if inherited else "shape"
    try:
        # Within the variants of a schema it depends on which: that schema is not looked into again.
        return make() if refs.open else refs.once(kind, node, make)
    except ReferenceFault as fault:
        refs.miss(fault)
        return Shape()


def _shape(refs: References, node: Node, depth: int, *, inherited: bool) -> Shape:
    """Return a schema flattened. Raises ReferenceFault for tangles and dead references."""
    if depth > _DEPTH_LIMIT:
        raise ReferenceFault(f"its schemas are nested deeper than {_DEPTH_LIMIT} levels")
    refs.step()
    reference, beside = split_reference(node)
    if beside is not None:
        both = (beside, reference)
        return _all_of([shape(refs, one, depth + 1, inherited=inherited) for one in both])
    value, resolver = refs.follow(node)
    if not isinstance(value, dict):
        return Shape()
    here = Node(value, resolver)
    parts = [_own(value, resolver)]
    if "allOf" in value:
        parts += [
            shape(refs, one, depth + 1, inherited=inherited or inherits)
            for one, inherits in all_of(here)
        ]
    chooses = value.keys() & _CHOICES or "discriminator" in value
    if chooses and id(value) not in refs.open:
        refs.open.add(id(value))
        for key in ("oneOf", "anyOf"):
            each = variants(here, key, inherited=inherited)
            chosen = [shape(refs, one, depth + 1) for one in each]
            chosen = [one for one in chosen if one.words.get("type") not in ("null", ["null"])]
            if chosen:
                parts.append(_any_of(chosen))
        refs.open.discard(id(value))
    elif chooses and "discriminator" not in value:
        refs.miss(ReferenceFault("a schema is one of its own variants"))
    result = _all_of(parts)
    for one in _conditional(here):
        for name in shape(refs, one, depth + 1).properties:
            result.properties.setdefault(name, Node({}, None))  # its value too has a condition
    told = value.get("discriminator")
    alone = not (isinstance(told, dict) and told.get("mapping")) and not value.keys() & _CHOICES
    result.is_base = bool(told) and alone and not refs.open
    if not result.types:
        result.types = ("object",) if result.properties else ("array",) if result.items else ()
    return result


def parameter(
    refs: References,
    node: Node,
    found: FileFindings,
    *,
    name: str,
    place: Place,
    about: Mapping[str, Any],
    flat: Shape | None = None,
    style: Style = "",
    nodes: int = NODES_LIMIT,
    **more: Any,
) -> Parameter:
    """Return a parameter with the schema at ``node``, flattened already as ``flat`` perhaps.

    ``about`` is the object that holds the schema, with description and examples of its own;
    ``style`` is how it is written into a request; ``nodes`` is the limit of its schema
    (``argument_schema``); ``more`` is kept as it is. Raises ReferenceFault.
    """
    flat = shape(refs, node) if flat is None else flat
    fields.check_enum(flat.enum, found)
    make = partial(argument_schema, node, refs.part, nodes)
    schema = refs.once(f"argument of {nodes}", node, make)
    text = found.text(about.get("description"), DESCRIPTION_LIMIT).strip()
    text = text or found.text(flat.words.get("description"), DESCRIPTION_LIMIT).strip()
    told = _default(schema, flat, found) | _example(refs, node, about, flat, found)
    if text:
        told["description"] = found.text(text, PARAMETER_DESCRIPTION_LIMIT)
    if about.get("deprecated") is True:
        told["deprecated"] = True
    return Parameter(
        name=found.text(name, NAME_LIMIT),
        place=place,
        style=style,
        json_schema=told | schema,
        **more,
    )


def _own(value: Mapping[str, Any], resolver: Any) -> Shape:
    kinds = value.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    required = value.get("required")
    return Shape(
        words={k: v for k, v in value.items() if k not in {"allOf", "oneOf", "anyOf"}},
        types=tuple(kind for kind in kinds if isinstance(kind, str) and kind in TYPES - {"null"}),
        enum=[value["const"]] if "const" in value else list(listed(value.get("enum"))),
        properties={
            str(name): Node(one, resolver) for name, one in mapping(value.get("properties")).items()
        },
        required={one for one in listed(required) if isinstance(one, str)},
        items=Node(value["items"], resolver) if "items" in value else None,
        resolver=resolver,
    )


def _all_of(parts: list[Shape]) -> Shape:
    """Return what a value has to be that fits all parts; of words the first part's count."""
    if len(parts) == 1:
        return parts[0]
    result = Shape(properties=_together("allOf", parts))
    for one in parts:
        if "additionalProperties" not in result.words:
            result.resolver = one.resolver
        result.words = one.words | result.words
        result.types = narrower(result.types, one.types)
        if result.enum and one.enum:
            result.enum = [value for value in result.enum if value in one.enum] or result.enum
        result.enum = result.enum or one.enum
        result.required |= one.required
        result.items = result.items or one.items
    return result


def _any_of(parts: list[Shape]) -> Shape:
    """Return what a value may be that fits one of the parts."""
    if len(parts) == 1:
        return parts[0]
    result = Shape(properties=_together("anyOf", parts))
    result.required = set.intersection(*(one.required for one in parts))
    if all(one.types or one.enum for one in parts):
        kinds = [kind for one in parts for kind in (one.types or (one.type,))]
        result.types = tuple(dict.fromkeys(kinds))
    every = all(one.enum for one in parts)
    result.enum = [value for one in parts for value in one.enum] if every else []
    items = [one.items for one in parts if one.items is not None]
    if items:
        result.items = items[0] if len(items) == 1 else Node({"anyOf": items}, None)
    # What one variant says of itself is not true of all.
    for key in ("example", "examples"):
        found = [one.words[key] for one in parts if key in one.words]
        result.words |= {key: found[0]} if found else {}
    if any(one.takes_more for one in parts):
        result.words["additionalProperties"] = True
    return result


def _together(key: str, parts: list[Shape]) -> dict[str, Node]:
    """Return the properties of several schemas; one that several have is a schema of theirs."""
    found: dict[str, list[Node]] = {}
    for part in parts:
        for name, node in part.properties.items():
            others = found.setdefault(name, [])
            if all(node.value is not other.value for other in others):
                others.append(node)
    return {
        name: nodes[0] if len(nodes) == 1 else Node({key: nodes}, None)
        for name, nodes in found.items()
    }


def _default(schema: Mapping[str, Any], flat: Shape, found: FileFindings) -> dict[str, Any]:
    """Return the default of an argument as its schema's keyword; nothing where there is none.

    One that the cleaning would alter, or that null cannot be, is none.
    """
    value = _as_meant(flat.words.get("default"), flat)
    if value is None:
        is_one = "default" in flat.words and "null" in kinds(schema)
        return {"default": None} if is_one else {}
    if fields.default(value, found) == value:
        return {"default": value}
    found.note("a default that is too long or holds hidden characters is not kept")
    return {}


def _example(
    refs: References, node: Node, about: Mapping[str, Any], flat: Shape, found: FileFindings
) -> dict[str, Any]:
    """Return the first example of an argument as its schema's keyword; nothing without one."""
    examples: list[Any] = [about.get("example")]
    named = about.get("examples")
    for one in list(named.values())[:1] if isinstance(named, dict) else []:
        try:
            value = refs.peek(Node(one, node.resolver)).value
        except ReferenceFault:  # an example that nothing needs
            continue
        examples.append(value.get("value") if isinstance(value, dict) else None)
    examples.append(flat.words.get("example"))
    examples += listed(flat.words.get("examples"))[:1]
    example = _as_meant(next((one for one in examples if one is not None), None), flat)
    return {} if example is None else {"examples": [fields.default(example, found)]}


def _as_meant(value: Any, flat: Shape) -> Any:
    """Return a number or a boolean as text where only texts are taken."""
    if flat.types == ("string",) and isinstance(value, bool | int | float):
        return spelled(value)
    return value


def _conditional(node: Node) -> list[Node]:
    """Return the schemas that hold under a condition: what they name may be given."""
    value, resolver = node
    found = [value[key] for key in ("if", "then", "else") if key in value and "if" in value]
    found += mapping(value.get("dependentSchemas")).values()
    return [Node(one, resolver) for one in found]
