"""Validate values against untrusted JSON Schemas, with one clear message for a fault.

Builds on jsonschema. No reference is fetched, patterns are searched for a limited time,
``multipleOf`` is exact and ``uniqueItems`` linear. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from toolsrv_registry.numerals import spell
from toolsrv_registry.schema_view import CHOICES, merged
from toolsrv_runtime.calls.schema_keywords import format_fault, is_known_format, pattern_matches

_SHOWN = 20
_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a JSON object",
    "null": "null",
}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "a list of at least {} items",
    "maxItems": "a list of at most {} items",
    "minProperties": "an object of at least {} properties",
    "maxProperties": "an object of at most {} properties",
    "minContains": "a list of at least {} items that its schema asks for",
    "maxContains": "a list of at most {} items that its schema asks for",
    "pattern": "text that matches {}",
}
_OUR_WORDS = frozenset(
    [
        "additionalProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "dependentRequired",
        "format",
        "oneOf",
    ]
)
"""Keywords whose errors say what is wrong in words of ours."""


class SchemaFault(NamedTuple):
    """Where a value does not fulfil a schema, and how: a sentence without its subject."""

    path: tuple[str | int, ...]
    text: str
    is_of_kind: bool = False
    """Whether the type is wrong, and with it all else."""

    def message(self, skip: int = 0) -> str:
        """Return place and reason, without the first steps of the place."""
        where = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step[:80]}" for step in self.path[skip:]
        )
        return f"at {where.lstrip('.')[:200]} {self.text}" if where else self.text


def schema_fault(schema: Mapping[str, Any], value: Any) -> SchemaFault | None:
    """Return why a value does not fulfil a JSON Schema; None where it does, or nobody can tell."""
    try:
        # Of several errors the first of those that are nearest to the top.
        return _fault(min(build_validator(schema).iter_errors(value), key=_steps, default=None))
    except (Unresolvable, RecursionError):
        return None


def build_validator(schema: Mapping[str, Any]) -> Validator:
    """Return a validator of a JSON Schema from outside: of the draft that it names, or 2020-12."""
    kind = validator_for(schema, default=Draft202012Validator)
    made: Validator = _guarded(kind)(schema, registry=Registry())
    return made


def matches_several_variants(error: ValidationError) -> bool:
    """Whether a value as a whole fits more than the one variant that it may."""
    return error.validator == "oneOf" and not error.context and not error.path


def mismatch(value: Any, wanted: str) -> str:
    """Return the text of a value that is not what is wanted."""
    return f"must be {wanted}, not {repr(value)[:80]}"


def list_choices(allowed: list[str]) -> str:
    """Return allowed values as an error lists them."""
    more = f", … ({len(allowed)} in all)" if len(allowed) > _SHOWN else ""
    return f"one of {', '.join(allowed[:_SHOWN])}{more}"


def _steps(error: ValidationError) -> int:
    return len(error.path)


def _fault(error: ValidationError | None) -> SchemaFault | None:
    if error is None:
        return None
    error, union = _clearest(error)
    of_kind = error.validator == "type" or (error.validator in CHOICES and bool(error.context))
    return SchemaFault(tuple(error.absolute_path), union or _text(error), of_kind)


def _clearest(error: ValidationError) -> tuple[ValidationError, str]:
    """Return the error of the variant that is meant; where none is, what all of them want."""
    while error.validator in CHOICES and error.context:
        variants: dict[Any, list[ValidationError]] = {}
        for one in error.context:
            variants.setdefault(one.relative_schema_path[0], []).append(one)
        kinds = [one for group in variants.values() for one in group if _is_kind(one)]
        meant = [group for group in variants.values() if not any(map(_is_kind, group))]
        if not meant:
            return error, mismatch(error.instance, _kinds(kinds))
        tags = _tags(error.validator_value)
        missed = [one for group in meant for one in group if _is_tag(one, tags)]
        fitting = [group for group in meant if not any(_is_tag(one, tags) for one in group)]
        if not fitting:
            values = [spell(one) for each in missed for one in _allowed(each)]
            return missed[0], mismatch(
                missed[0].instance, list_choices(list(dict.fromkeys(values)))
            )
        group = min(fitting, key=len)
        error = min(group, key=_steps)
    return error, ""


def _is_kind(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _kinds(errors: list[ValidationError]) -> str:
    named = [kind for one in errors for kind in _listed(one.validator_value)]
    return " or ".join(dict.fromkeys(_NAMES.get(kind, str(kind)) for kind in named))


def _is_tag(error: ValidationError, tags: set[str]) -> bool:
    path = error.relative_path
    of_value = error.validator in ("enum", "const")
    return of_value and (not path or (len(path) == 1 and path[0] in tags))


def _tags(variants: Any) -> set[str]:
    """Return the properties whose allowed values tell variants apart."""
    found: list[str] = []
    for variant in variants if isinstance(variants, list) else []:
        if isinstance(variant, dict):
            parts = [variant, *(one for one in variant.get("allOf", ()) if isinstance(one, dict))]
            found += {
                name
                for part in parts
                for name, one in part.get("properties", {}).items()
                if isinstance(one, dict) and one.keys() & {"enum", "const"}
            }
    return {name for name in found if found.count(name) > 1}


def _allowed(error: ValidationError) -> list[Any]:
    value: Any = error.validator_value
    return list(value) if error.validator == "enum" else [value]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _text(error: ValidationError) -> str:
    """Return what is wrong with a value, as a sentence without its subject."""
    given: Any = error.instance
    named: Any = error.validator_value
    keyword = str(error.validator)
    match keyword:
        case "type":
            return mismatch(given, _kinds([error]))
        case "enum" | "const":
            return mismatch(given, list_choices([spell(one) for one in _allowed(error)]))
        case "required":
            missing = [name for name in named if name not in given]
            return f"lacks {', '.join(missing)[:200]}"
        case "contains":
            return mismatch(given, "a list with an item that its schema asks for")
        case _ if keyword in _OUR_WORDS:
            return error.message[:300]
        case "uniqueItems":
            return "must have no item twice"
        case _ if keyword in _BOUNDS:
            shown = f"/{named[:100]}/" if keyword == "pattern" else spell(named)
            return mismatch(given, _BOUNDS[keyword].format(shown))
        case _:
            return mismatch(given, "what its schema describes")


@cache
def _guarded(kind: type[Validator]) -> Any:
    """Return a draft's validator with the keywords that are read otherwise here."""
    made: Any = extend(  # type: ignore[no-untyped-call]
        kind,
        {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional,
            "dependentRequired": _dependent,
            "oneOf": _one_of,
            "unevaluatedProperties": _unevaluated,
            "unevaluatedItems": _unevaluated_items,
            "uniqueItems": _unique,
            "multipleOf": _multiple,
            "format": _format,
        },
    )
    made.evolve = _evolve
    return made


def _evolve(checked: Any, **changes: Any) -> Any:
    """Return a validator of a schema within; the library's leaves ours where that names a draft."""
    kept = {"schema": checked.schema, "_resolver": checked._resolver}  # noqa: SLF001 - it has no other
    return type(checked)(**(kept | {"registry": Registry()} | changes))


_Errors = Iterator[ValidationError]
_looks_through: ContextVar[bool] = ContextVar("_looks_through", default=False)
"""Set while an unevaluated keyword asks which parts a value fulfils."""


def _pattern(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del schema
    if checked.is_type(instance, "string") and pattern_matches(value, instance) is False:
        yield ValidationError("does not match")


def _pattern_properties(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del schema
    if checked.is_type(instance, "object"):
        for pattern, inner in value.items():
            for name, one in instance.items():
                if pattern_matches(pattern, name):
                    yield from checked.descend(one, inner, path=name, schema_path=pattern)


def _additional(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    if checked.is_type(instance, "object"):
        yield from _others(checked, value, instance, _named(instance, schema))


def _named(instance: Any, schema: Any) -> set[str]:
    """Return the properties that a schema names, or may name by a pattern."""
    patterns = schema.get("patternProperties", ())
    return {
        name
        for name in instance
        if name in schema.get("properties", ())
        or any(pattern_matches(one, name) is not False for one in patterns)
    }


def _others(checked: Any, value: Any, instance: Any, known: set[str]) -> _Errors:
    """Yield what is wrong with properties that are not known."""
    others = [name for name in instance if name not in known]
    if value is False and others:
        yield ValidationError(f"takes no {', '.join(map(repr, others))[:200]}")
    elif checked.is_type(value, "object"):
        for name in others:
            yield from checked.descend(instance[name], value, path=name)


def _dependent(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del schema
    if checked.is_type(instance, "object"):
        for name, needed in value.items():
            missing = [one for one in needed if name in instance and one not in instance]
            if missing:
                yield ValidationError(f"lacks {', '.join(missing)[:200]}, which {name!r} needs")


def _one_of(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del schema
    found = [list(checked.descend(instance, one, schema_path=at)) for at, one in enumerate(value)]
    fitting = [at for at, errors in enumerate(found) if not errors]
    if not fitting:
        yield ValidationError("fits none", context=[one for errors in found for one in errors])
    elif len(fitting) > 1 and not any(_is_open(value[at]) for at in fitting):
        told = " and ".join(f"{at + 1} ({_variant_label(value[at])})" for at in fitting[:_SHOWN])
        yield ValidationError(f"must fit one variant alone, and fits {told}")


def _is_open(variant: Any) -> bool:
    """Whether a variant demands a format that is not checked here, so that it may not fit."""
    form = variant.get("format") if isinstance(variant, dict) else None
    return form is not None and not is_known_format(form)


def _variant_label(variant: Any) -> str:
    """Return what tells a variant from others: its description, or types and properties."""
    if not isinstance(variant, dict):
        return "anything"
    whole = merged(variant)
    names = whole.get("required") or whole.get("properties") or ()
    kinds = " or ".join(_NAMES.get(one, str(one)) for one in _listed(whole.get("type", ())) if one)
    told = whole.get("title") or whole.get("description") or kinds or "any value"
    return f"{str(told)[:80]}{' with ' if names else ''}{', '.join(map(str, names))[:80]}"


def _unevaluated(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    if not _looks_through.get() and checked.is_type(instance, "object"):
        yield from _others(checked, value, instance, _evaluated(checked, instance, schema))


def _evaluated(checked: Any, instance: Any, schema: Any) -> set[str]:
    """Return the properties that a schema names in one of its parts that the object fulfils."""
    if not isinstance(schema, dict):
        return set()
    if "additionalProperties" in schema or "$ref" in schema or "$dynamicRef" in schema:
        return set(instance)  # what a reference names is left to whoever is called
    names = _named(instance, schema)
    for part in _parts(checked, instance, schema):
        names |= _evaluated(checked, instance, part)
        if isinstance(part, dict) and part.get("unevaluatedProperties", False) is not False:
            return set(instance)
    return names


def _unevaluated_items(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    if _looks_through.get() or not checked.is_type(instance, "array"):
        return
    others = sorted(set(range(len(instance))) - _evaluated_items(checked, instance, schema))
    if value is False and others:
        yield ValidationError(f"takes no item {', '.join(str(at + 1) for at in others)[:200]}")
    elif checked.is_type(value, "object"):
        for at in others:
            yield from checked.descend(instance[at], value, path=at)


def _evaluated_items(checked: Any, instance: Any, schema: Any) -> set[int]:
    """Return the items that a schema describes in one of its parts that the list fulfils."""
    every = set(range(len(instance)))
    if not isinstance(schema, dict):
        return set()
    if schema.keys() & {"items", "additionalItems", "$ref", "$dynamicRef"}:
        return every
    found = set(range(min(len(schema.get("prefixItems", ())), len(instance))))
    if "contains" in schema:
        found |= {at for at in every if _fulfils(checked, instance[at], schema["contains"])}
    for part in _parts(checked, instance, schema):
        found |= _evaluated_items(checked, instance, part)
        if isinstance(part, dict) and part.get("unevaluatedItems", False) is not False:
            return every
    return found


def _parts(checked: Any, instance: Any, schema: Mapping[str, Any]) -> list[Any]:
    """Return the parts of a schema that a value fulfils, and those that hold for it anyway."""
    parts = list(schema.get("allOf", ()))
    if isinstance(instance, dict):
        depending = schema.get("dependentSchemas", {}).items()
        parts += [one for name, one in depending if name in instance]
    chosen = [one for key in CHOICES for one in schema.get(key, ())]
    parts += [one for one in chosen if _fulfils(checked, instance, one)]
    if "if" in schema:
        holds = _fulfils(checked, instance, schema["if"])
        parts += [schema["if"], schema.get("then")] if holds else [schema.get("else")]
    return parts


def _fulfils(checked: Any, instance: Any, schema: Any) -> bool:
    """Whether a value fulfils a part; what parts within say of what they do not name is left out.

    Looked through again at every level, they would take time exponential in their depth.
    """
    token = _looks_through.set(True)
    try:
        return bool(checked.evolve(schema=schema).is_valid(instance))
    finally:
        _looks_through.reset(token)


def _unique(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del schema
    is_list = value is True and checked.is_type(instance, "array")
    if is_list and len({_hashable(one) for one in instance}) < len(instance):
        yield ValidationError("has an item twice")


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return ("list", *map(_hashable, value))
    if isinstance(value, dict):
        return frozenset((name, _hashable(one)) for name, one in value.items())
    return (isinstance(value, bool), value)  # 1 is 1.0, and is not true


def _multiple(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del schema
    if checked.is_type(instance, "number") and Fraction(spell(instance)) % Fraction(spell(value)):
        yield ValidationError("is no multiple")


def _format(checked: Any, value: Any, instance: Any, schema: Any) -> _Errors:
    del checked, schema
    if fault := format_fault(value, instance):
        yield ValidationError(fault)
