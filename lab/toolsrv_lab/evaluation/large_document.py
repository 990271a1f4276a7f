"""A large OpenAPI document, made: many operations over schemas that lead to each other.

Shaped like the largest public ones: entities with properties and links to other entities, lists of
them as responses, shared and own parameters, bodies by reference. The same numbers give the same
document.
"""

from __future__ import annotations

from typing import Any

_TYPES = ("string", "integer", "boolean", "number")
_OPTIONS = ("top", "skip", "filter", "count")


def large_document(
    operations: int, *, entities: int | None = None, properties: int = 30
) -> dict[str, Any]:
    """Return a document with so many operations.

    Args:
        operations: how many there are, four of a path.
        entities: schemas with ``properties`` each; one for 12 operations where it is not given.
        properties: of an entity; a fifth of them lead to other entities.
    """
    entities = max(1, operations // 12) if entities is None else entities
    paths: dict[str, Any] = {}
    for at in range(-(-operations // 4)):
        item = _item(at, at % entities)
        left = operations - 4 * at
        paths[f"/areas/{{area_id}}/things{at}/{{thing_id}}"] = dict(list(item.items())[:left])
    return {
        "openapi": "3.0.3",
        "info": {"title": "Large", "version": "1"},
        "servers": [{"url": "https://large.example/v1"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(entities, properties),
            "parameters": {
                name: {
                    "name": f"${name}",
                    "in": "query",
                    "description": f"The {name} of the list",
                    "schema": {"type": "integer"},
                }
                for name in _OPTIONS
            },
        },
    }


def _item(at: int, entity: int) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/entity{entity}"}
    own = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("area_id", "thing_id")
    ]
    shared = [{"$ref": f"#/components/parameters/{name}"} for name in _OPTIONS]
    many = {"type": "object", "properties": {"value": {"type": "array", "items": reference}}}
    body = {"required": True, "content": {"application/json": {"schema": reference}}}
    tags = [f"area {entity % 20}"]

    def operation(verb: str, schema: Any, parameters: list[Any], **more: Any) -> dict[str, Any]:
        answer = {"description": "Done", "content": {"application/json": {"schema": schema}}}
        return {
            "operationId": f"{verb}_thing{at}",
            "summary": f"{verb.title()} the things of kind {at} in an area",
            "tags": tags,
            "parameters": parameters,
            "responses": {"200": answer},
            **more,
        }

    return {
        "get": operation("list", many, [*own, *shared]),
        "post": operation("add", reference, own, requestBody=body),
        "patch": operation("change", reference, own, requestBody=body),
        "delete": operation("remove", {}, own),
    }


def _schemas(entities: int, properties: int) -> dict[str, Any]:
    base = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("id", "name", "created")},
    }
    found: dict[str, Any] = {"base": base}
    for at in range(entities):
        own: dict[str, Any] = {}
        for number in range(properties):
            other = {"$ref": f"#/components/schemas/entity{(at * 7 + number + 1) % entities}"}
            plain = {
                "type": _TYPES[number % len(_TYPES)],
                "description": f"Property {number} of entity {at}, as it is kept",
            }
            own[f"property{number}"] = other if number % 5 == 4 else plain
        found[f"entity{at}"] = {
            "allOf": [
                {"$ref": "#/components/schemas/base"},
                {"type": "object", "properties": own, "required": ["property0"]},
            ]
        }
    return found
