"""All arguments of a call together, held against the schema of the tool that takes them.

The schema comes from outside: no reference of it is fetched, and its regular expressions are left
to the tool, because a hostile one takes for ever. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

_LENGTH = 300


def whole_fault(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return why the arguments do not fulfil a schema; ``""`` where they do.

    A schema that is none itself holds nobody: the tool then says what it wants.
    """
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(dict(schema))
        validator = _harmless(kind)(schema, registry=Registry())
        error = best_match(validator.iter_errors(arguments))
    except (SchemaError, Unresolvable, RecursionError):
        return ""
    return "" if error is None else _words(error)


def takes_more(schema: Mapping[str, Any]) -> bool:
    """Whether a schema says that it takes arguments which it does not name."""
    more = schema.get("additionalProperties")
    return more is True or isinstance(more, dict) or "patternProperties" in schema


def _words(error: ValidationError) -> str:
    where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.path)
    place = f"at {where.lstrip('.')[:80]}: " if where else ""
    return f"{place}{error.message}"[:_LENGTH]


@cache
def _harmless(kind: type[Validator]) -> type[Validator]:
    """Return a draft's validator without regular expressions."""
    more = kind.VALIDATORS["additionalProperties"]

    def additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from more(validator, value, instance, schema)

    unread = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties"), _nothing)
    made: type[Validator] = extend(kind, {**unread, "additionalProperties": additional})  # type: ignore[no-untyped-call]
    return made


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    del validator, value, instance, schema
    yield from ()
