"""Form of an API's arguments: fields from its JSON Schema, and arguments from what was typed.

A field that is left empty is an argument that is not given. Whether a value is acceptable is for
the call to say, not for the form.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from toolsrv.plain import compact_json, one_line
from toolsrv.views.apis import ApiView, ParameterView
from toolsrv_registry.errors import UsageError
from toolsrv_registry.schema_view import alternatives
from toolsrv_runtime.calls.serialization import is_binary_schema

FieldKind = Literal["text", "long", "number", "choice", "json", "file"]
MOST_CHOICES = 500
MARK = "arg."
"""Before the name of an argument, so that none is taken for a field of the page's own."""
FILE_MARK = "file."
"""Before the name of an argument whose file was chosen."""


class FormField(BaseModel):
    """One argument. ``value`` is what stands in the field, ``hint`` an example or the default.

    Of a ``file`` one is chosen (``several``: any number), or its text is typed; ``sent`` names those
    that were sent.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    kind: FieldKind
    required: bool = False
    type: str = ""
    description: str = ""
    lines: tuple[str, ...] = ()
    hint: str = ""
    choices: tuple[str, ...] = ()
    value: str = ""
    several: bool = False
    sent: str = ""

    @property
    def file_key(self) -> str:
        """The name of the field that a file is chosen in."""
        return FILE_MARK + self.name

    @property
    def key(self) -> str:
        """The name of the field in the form."""
        return MARK + self.name

    @property
    def element(self) -> str:
        """The id of its element, which has no characters that an id must not have."""
        return f"field-{zlib.crc32(self.name.encode('utf-8', 'replace')):08x}"


def form_fields(view: ApiView, typed: Mapping[str, str] | None = None) -> tuple[FormField, ...]:
    """Return the fields of an API that was described with its schema, required ones first.

    ``typed`` is a form that was sent: its values stand in the fields again.
    """
    schemas = (view.arguments_schema or {}).get("properties", {})
    return tuple(
        _argument_field(one, schemas.get(one.name, {}), typed or {}) for one in view.parameters
    )


def _argument_field(shown: ParameterView, schema: Any, typed: Mapping[str, str]) -> FormField:
    value = typed.get(MARK + shown.name, "")
    field = schema_field(shown.name, schema, required=shown.required, shown=shown, value=value)
    items = schema.get("items") if isinstance(schema, dict) else None
    several = isinstance(items, dict) and _takes_file(items)
    if not (several or _takes_file(schema) or shown.type == "BINARY"):
        return field
    sent = typed.get(FILE_MARK + shown.name, "")
    return field.model_copy(update={"kind": "file", "several": several, "sent": sent})


def _takes_file(schema: Any) -> bool:
    """Whether a value is bytes, in whatever form."""
    if not isinstance(schema, dict):
        return False
    parts = (schema, *alternatives(schema), *schema.get("allOf", ()))
    return any(is_binary_schema(one) for one in parts if isinstance(one, dict))


def schema_field(
    name: str,
    schema: Any,
    *,
    required: bool,
    shown: ParameterView | None = None,
    value: str = "",
) -> FormField:
    """Return the field of one value."""
    schema = schema if isinstance(schema, dict) else {}
    kind, choices = _kind(schema)
    hints = []
    if shown is not None:
        hints += [f"default: {compact_json(shown.default)}"] * (shown.default not in ("", None))
        hints += [f"for example: {compact_json(shown.example)}"] * (shown.example not in ("", None))
    return FormField(
        name=name,
        kind=kind,
        required=required,
        type=_type_name(schema) or (shown.type.lower() if shown else ""),
        description=shown.description if shown else one_line(str(schema.get("description", ""))),
        lines=shown.fields if shown and kind == "json" else (),
        hint="; ".join(one_line(one, 200) for one in hints),
        choices=choices,
        value=value,
    )


def _kind(schema: Mapping[str, Any]) -> tuple[FieldKind, tuple[str, ...]]:
    values = schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MOST_CHOICES:
        return "choice", tuple(_spelled(one) for one in values)
    kind = schema.get("type")
    if kind == "boolean":
        return "choice", ("true", "false")
    if kind == "string":
        most = schema.get("maxLength")
        return ("long" if isinstance(most, int) and most > 500 else "text"), ()
    return ("number" if kind in ("integer", "number") else "json"), ()


def _type_name(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    return kind if isinstance(kind, str) else ""


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed_example(view: ApiView) -> dict[str, str]:
    """Return a form with the API's example arguments, as a person would type them."""
    return {MARK + name: _spelled(value) for name, value in view.example.items()}


def parse_arguments(view: ApiView, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a form that was sent.

    Raises:
        UsageError: a list, an object or another value is not written as JSON.
    """
    schemas = (view.arguments_schema or {}).get("properties", {})
    return dict(_given(form_fields(view, typed), schemas))


def _given(fields: tuple[FormField, ...], schemas: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for one in fields:
        if one.value.strip():
            yield one.name, parse_value(one, schemas.get(one.name, {}))


def parse_value(field: FormField, schema: Any) -> Any:
    """Return what was typed into a field as the value that it stands for.

    Raises:
        UsageError: it must be JSON and is not.
    """
    schema = schema if isinstance(schema, dict) else {}
    values = schema.get("enum")
    if field.kind == "choice" and isinstance(values, list):
        return next((one for one in values if _spelled(one) == field.value), field.value)
    if field.kind in ("text", "long") or (field.kind == "file" and not field.several):
        return field.value
    try:
        return json.loads(field.value)
    except (ValueError, RecursionError) as error:
        if field.kind == "number" or not _is_json_only(schema):
            return field.value  # the call says what is wrong with it
        raise UsageError(
            f"{field.name}: this is no JSON: {one_line(field.value, 80)}",
            hint='write a list as ["a", "b"] and an object as {"name": "value"}',
        ) from error


def _is_json_only(schema: Mapping[str, Any]) -> bool:
    """Whether only a list or an object can be meant."""
    return schema.get("type") in ("array", "object")
