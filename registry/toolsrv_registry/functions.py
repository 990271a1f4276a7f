"""APIs as functions a model can call: names, keys, function objects, argument schemas.

Follows ToolBench's function list. Two modes:

- ``literal=True`` reproduces ToolBench byte for byte, quirks included: optional parameters
  vanish when there is no required one, the API's raw name is replaced blindly inside its own
  description, NUMBER reads ``integer``, and a parameter key used twice keeps its last meaning.
  What a checkpoint was trained on, and what evaluation against released files needs.
- the default keeps the shape and mends the quirks: optional parameters always show, the
  provider's description is left as it is, NUMBER reads ``number``, allowed values are listed,
  and every parameter has a key of its own.

Pure: knows nothing about stores, prompts or how a call is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from toolsrv_registry import names
from toolsrv_registry.api import Api, Parameter, PlaceSchema
from toolsrv_registry.schema_view import ENUM_LIMIT, model_schema

FINISH = "Finish"
DESCRIPTION_LIMIT = 256
TOOL_DESCRIPTION_LIMIT = 512
CODE = "^[+0-9][0-9 ,.:%+-]*$"
"""Texts that ToolBench's NUMBER stands for beside numbers: ZIP and telephone codes, lists."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OF_ALL = frozenset(
    ["additionalProperties", "propertyNames", "patternProperties", "minProperties", "maxProperties"]
)
"""Keywords that speak of all properties of an object."""

_LITERAL_TYPES = {"NUMBER": "integer", "STRING": "string", "BOOLEAN": "boolean"}
_TYPES = {"NUMBER": "number", "BOOLEAN": "boolean"}


def finish_object() -> dict[str, Any]:
    """Return the entry that ends a task, in ToolBench's shape and our own words.

    A checkpoint trained on ToolBench's wording needs the entry of the user's own artefact
    instead: pass that to ``FunctionList.to_json``.
    """
    return {
        "name": FINISH,
        "description": (
            "Ends the task. Call it with give_answer and the complete answer for the user as "
            "soon as the results so far answer the task. Call it with give_up_and_restart when "
            "this line of attempts cannot lead to an answer. It is the only way to reply."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "return_type": {
                    "type": "string",
                    "enum": ["give_answer", "give_up_and_restart"],
                },
                "final_answer": {
                    "type": "string",
                    "description": "The whole answer as the user will read it (with give_answer).",
                },
            },
            "required": ["return_type"],
        },
    }


def parameter_keys(api: Api, *, literal: bool = False) -> dict[str, Parameter]:
    """Return key -> parameter, required first: the table to translate a model's arguments.

    By default keys are unique and never empty: a second ``array[]`` beside ``array`` becomes
    ``array_2``, a name without usable characters ``parameter``. Two entries under the very same
    provider name are one parameter on the wire, so the first stands for both. In literal mode
    the later of two equal keys replaces the earlier.
    """
    if literal:
        return {parameter.key: parameter for parameter in api.parameters}
    distinct: dict[str, Parameter] = {}
    for parameter in api.parameters:
        distinct.setdefault(parameter.name, parameter)
    # One whose key is its own name keeps it: that name is what a caller knows.
    order = sorted(distinct.values(), key=_stands_back)
    wanted = [names.readable_api_name(parameter.name) or "parameter" for parameter in order]
    keys = dict(zip((one.name for one in order), _unique(wanted, wanted), strict=True))
    return {keys[name]: parameter for name, parameter in distinct.items()}


def _stands_back(parameter: Parameter) -> tuple[bool, str]:
    """Return the place of a parameter among those of one key: its own name, ToolBench's, others."""
    respelled = names.is_respelled(parameter.name)
    return parameter.key != parameter.name, parameter.name if respelled else ""


def function_object(
    api: Api, tool_key: str | None = None, *, name: str | None = None, literal: bool = False
) -> dict[str, Any]:
    """Return the function object a model reads: ``name``, ``description``, ``parameters``.

    ``tool_key`` is the tool's standardised name (the API's own when None); ``name`` overrides
    ``{api}_for_{tool}`` where that is taken by another API.
    """
    tool_key = api.tool_key if tool_key is None else tool_key
    named = names.function_name if literal else names.plain_function_name
    name = named(api.name, tool_key) if name is None else name
    description = f'This is the subfunction for tool "{tool_key}", you can use this tool.'
    text = api.description.strip()
    if text:
        # str.replace("") would insert the name between all characters.
        shown = text.replace(api.name, name) if literal and api.name else text
        description += f'The description of this function is: "{shown[:DESCRIPTION_LIMIT]}"'
    return {"name": name, "description": description, "parameters": _parameters(api, literal)}


def argument_schema(api: Api, *, literal: bool = False) -> dict[str, Any]:
    """Return a JSON Schema (object, closed) for the arguments of one call.

    Property names are the keys of ``parameter_keys``; NUMBER is ``number`` in both modes,
    because ToolBench's ``integer`` stands for floats too, and where the entry has no schema also
    a text of digits, because providers declare codes and lists as NUMBER. Types are read in any case
    (``number`` occurs); everything else is a string, dates and lists included.
    """
    keys = parameter_keys(api, literal=literal)
    return {
        "type": "object",
        "properties": {key: _property_schema(parameter) for key, parameter in keys.items()},
        "required": _required_keys(api, keys, literal=literal),
        "additionalProperties": False,
    }


def whole_schema(api: Api) -> dict[str, Any]:
    """Return all that is known of an API's arguments as one JSON Schema 2020-12 object.

    Property names are the keys of ``parameter_keys``. Unlike ``argument_schema`` it has every
    bound, and what arguments have to fulfil together; a call enforces it.
    """
    if api.mcp is not None and api.together:
        return {"$schema": _DIALECT} | api.together[0].json_schema
    keys = parameter_keys(api)
    required = _required_keys(api, keys, literal=False)
    found: dict[str, Any] = {
        "$schema": _DIALECT,
        "type": "object",
        "properties": {key: _described(parameter) for key, parameter in keys.items()},
        "required": [key for key in required if not keys[key].has_default],
        "additionalProperties": False if api.others is None else api.others,
    }
    parts = [_of_place(rule, keys) for rule in api.together]
    return found | ({"allOf": parts} if parts else {})


def _described(parameter: Parameter) -> dict[str, Any]:
    if parameter.json_schema is not None:
        return parameter.json_schema
    about: dict[str, Any] = {"description": parameter.description} if parameter.description else {}
    if parameter.default not in ("", None):
        about["examples"] = [parameter.default]
    return about | _property_schema(parameter)


def _of_place(rule: PlaceSchema, keys: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return what the arguments of a place fulfil together, under the names of a call."""
    here = {key: one for key, one in keys.items() if one.place == rule.place}
    names_of = {one.wire or one.name: key for key, one in here.items()}
    schema = _renamed(rule.json_schema, names_of, alone=len(here) == len(keys))
    if rule.required:
        return schema
    given = {"anyOf": [{"required": [key]} for key in here]}
    return {"if": given, "then": schema}


def _renamed(
    schema: Mapping[str, Any], names_of: Mapping[str, str], *, alone: bool
) -> dict[str, Any]:
    """Return a schema of the object of arguments with other names for some of them.

    Not ``alone``, it says nothing of arguments that it does not name: they go elsewhere.
    """
    found: dict[str, Any] = {}
    for key, one in schema.items():
        if key in ("properties", "dependentRequired", "dependentSchemas"):
            inner = {names_of.get(name, name): part for name, part in one.items()}
            if key == "dependentRequired":
                inner = {name: [names_of.get(x, x) for x in part] for name, part in inner.items()}
            if key == "dependentSchemas":
                inner = {
                    name: _renamed(part, names_of, alone=alone) for name, part in inner.items()
                }
            found[key] = inner
        elif key == "required":
            found[key] = [names_of.get(name, name) for name in one]
        elif key in ("allOf", "anyOf", "oneOf"):
            found[key] = [_renamed(part, names_of, alone=alone) for part in one]
        elif key in ("not", "if", "then", "else"):
            found[key] = _renamed(one, names_of, alone=alone)
        elif alone or key not in _OF_ALL:
            found[key] = one
    return found


def tool_list_block(descriptions: Iterable[tuple[str, str]]) -> str:
    """Return the numbered tool list of ToolBench's task text from (tool key, description) pairs.

    One line per distinct tool in order of first appearance; a tool's last description wins; the
    first 512 characters count; newlines are deleted; an empty one reads ``None``.
    """
    lines = []
    for number, (tool, text) in enumerate(dict(descriptions).items(), start=1):
        short = text[:TOOL_DESCRIPTION_LIMIT].replace("\n", "").strip()
        lines.append(f"{number}.{tool}: {short or None}\n")
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of a function list: an API under the name and keys the model uses."""

    name: str
    api: Api
    parameters: Mapping[str, Parameter]
    literal: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the function object."""
        return function_object(self.api, name=self.name, literal=self.literal)

    def argument_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return argument_schema(self.api, literal=self.literal)

    def original_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments under the provider's parameter names.

        A key that belongs to no parameter stays as it is, for the caller to refuse by name.
        """
        known = self.parameters
        return {known[k].name if k in known else k: value for k, value in arguments.items()}


class FunctionList:
    """The APIs offered for one task, each under a name of its own.

    A name is looked up here and never split. Where ToolBench's names collide (they keep their
    last 64 characters, and tools recur across categories) the first API keeps the name and each
    later one gets another of at most 64 characters: the head of its full name if that is free,
    else a numbered one. Depends only on the APIs and their order. An API listed twice counts
    once.
    """

    def __init__(self, apis: Sequence[Api], *, literal: bool = False) -> None:
        distinct = [api for at, api in enumerate(apis) if api not in apis[:at]]
        named = names.function_name if literal else names.plain_function_name
        wanted = [named(api.name, api.tool) for api in distinct]
        heads = [_full_name(api, literal)[: names.FUNCTION_NAME_LIMIT] for api in distinct]
        self._functions = {
            name: Function(
                name, api, MappingProxyType(parameter_keys(api, literal=literal)), literal
            )
            for name, api in zip(_unique(wanted, heads), distinct, strict=True)
        }

    def __len__(self) -> int:
        return len(self._functions)

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    @property
    def names(self) -> tuple[str, ...]:
        """All function names in order, without ``Finish``."""
        return tuple(self._functions)

    def lookup(self, name: str) -> Api | None:
        """Return the API behind a function name, or None (also for ``Finish``)."""
        function = self._functions.get(name)
        return function.api if function else None

    def function(self, name: str) -> Function | None:
        """Return the entry behind a function name, or None (also for ``Finish``)."""
        return self._functions.get(name)

    def to_json(self, *, finish: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return all function objects, ``Finish`` last (``finish`` replaces our wording)."""
        last = finish_object() if finish is None else dict(finish)
        return [function.to_json() for function in self] + [last]

    def tool_list_block(self) -> str:
        """Return the numbered tool list for the APIs of this list."""
        return tool_list_block((f.api.tool_key, f.api.tool_description) for f in self)


def _full_name(api: Api, literal: bool) -> str:
    if not literal:
        return names.full_function_name(api.name, api.tool)
    return f"{names.api_name(api.name)}_for_{names.standardize(api.tool)}"


def _unique(wanted: Sequence[str], heads: Sequence[str]) -> list[str]:
    """Return one distinct name per wanted name; the first of equals keeps it.

    All undisputed names are given out before any replacement, so no replacement can take a name
    that belongs to a later entry.
    """
    taken = set(wanted)
    seen: set[str] = set()
    result = []
    for name, head in zip(wanted, heads, strict=True):
        chosen, number = name, 1
        if name in seen:
            chosen = head
            while chosen in taken:
                number += 1
                suffix = f"_{number}"
                chosen = name[-(names.FUNCTION_NAME_LIMIT - len(suffix)) :] + suffix
        seen.add(name)
        taken.add(chosen)
        result.append(chosen)
    return result


def _parameters(api: Api, literal: bool) -> dict[str, Any]:
    keys = parameter_keys(api, literal=literal)
    if literal:
        required = [parameter.key for parameter in api.required]
        optional = [parameter.key for parameter in api.optional] if required else []
    else:
        required = _required_keys(api, keys, literal=False)
        optional = [key for key in keys if key not in required]
    shown = set(required) | set(optional)
    properties = {k: _property(p, literal) for k, p in keys.items() if k in shown}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "optional": optional,
    }


def _required_keys(api: Api, keys: Mapping[str, Parameter], *, literal: bool) -> list[str]:
    if literal:
        return list(dict.fromkeys(parameter.key for parameter in api.required))
    names_required = {parameter.name for parameter in api.required}
    return [key for key, parameter in keys.items() if parameter.name in names_required]


def _property(parameter: Parameter, literal: bool) -> dict[str, Any]:
    kind = _LITERAL_TYPES.get(parameter.type, "string") if literal else _kind(parameter)
    shown = {"type": kind, "description": parameter.description[:DESCRIPTION_LIMIT]}
    if not literal and parameter.enum:
        shown |= _enum(parameter, kind)
    if len(str(parameter.default)) > 0:
        shown["example_value"] = parameter.default
    elif parameter.example is not None:
        shown["example_value"] = parameter.example
    return shown


def _property_schema(parameter: Parameter) -> dict[str, Any]:
    kind = _kind(parameter)
    if kind == "number" and parameter.json_schema is None and not parameter.enum:
        return {"type": ["number", "string"], "pattern": CODE}
    if kind in ("array", "object") and parameter.json_schema is not None:
        shown = model_schema(parameter.json_schema, texts=True, optional=True)
        shown.pop("description", None)
        return shown if "anyOf" in shown else shown | {"type": kind}
    return {"type": kind} | _enum(parameter, kind)


def _kind(parameter: Parameter) -> str:
    """Return the JSON type that a model writes; ToolBench's lists and objects are texts."""
    kind = _TYPES.get(parameter.type.strip().upper(), "string")
    if parameter.json_schema is None:
        return kind
    if parameter.json_schema.get("type") == "integer":
        return "integer"
    return {"ARRAY": "array", "OBJECT": "object"}.get(parameter.type, kind)


def _enum(parameter: Parameter, kind: str) -> dict[str, Any]:
    """Return ``{"enum": [...]}`` in the property's type, or nothing where that cannot hold."""
    if (
        not parameter.enum
        or kind not in ("string", "number", "integer")
        or len(parameter.enum) > ENUM_LIMIT
    ):
        return {}
    if kind == "string":
        return {"enum": list(parameter.enum)}
    try:
        values = [float(text) for text in parameter.enum]
    except ValueError:
        return {}
    if not all(map(math.isfinite, values)):
        return {}
    return {"enum": [int(v) if v.is_integer() else v for v in values]}
