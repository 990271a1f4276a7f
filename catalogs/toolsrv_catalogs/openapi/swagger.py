"""Swagger 2.0 documents turned into OpenAPI 3, so that one reader reads both.

Parameters of a body and of a form become request bodies, wherever in the source they are described,
``collectionFormat`` a style, host and schemes servers. Pure; what has no known form is left out and
missed by the reader, which tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsrv_catalogs.fields import listed, mapping
from toolsrv_catalogs.openapi.references import Node, ReferenceFault, References
from toolsrv_registry.media import FORM, MULTIPART

_BESIDE_SCHEMA = frozenset(
    ["name", "in", "description", "required", "collectionFormat", "allowEmptyValue"]
)
_STYLES: dict[str, dict[str, Any]] = {
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "multi": {"style": "form", "explode": True},
}


def is_swagger(document: Mapping[str, Any]) -> bool:
    """Whether a document says that it is Swagger 2."""
    return str(document.get("swagger", "")).startswith("2")


def as_openapi(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Swagger 2.0 document with what OpenAPI 3.1 says of it as a whole.

    Its path items and operations stay as they are: ``as_operation`` turns them, once it is known
    what they refer to.
    """
    schemes = mapping(document.get("securityDefinitions")).items()
    return {key: one for key, one in document.items() if key != "swagger"} | {
        "openapi": "3.1.2",  # from 3.1 on parts of forms have a style, as here
        "servers": _servers(document),
        "components": {"securitySchemes": {name: _scheme(one) for name, one in schemes}},
    }


def as_operation(
    document: Mapping[str, Any], refs: References, items: list[Node], operation: Node
) -> tuple[list[Node], Node]:
    """Return the parts of a path item and its operation as OpenAPI 3.1.

    Schemas in them are nodes: they may stand in other files.

    Args:
        document: the Swagger 2.0 document.
        refs: follows what stands in its files; a dead reference stays as it is.
        items: the parts of the path item.
        operation: one of its operations.
    """
    shared = [_parameters(refs, one) for one in items]
    own = _parameters(refs, operation)
    names = {_identity(one.value) for one in own if _in_body(one.value)}
    body = [one for one in own if _in_body(one.value)]
    for one in (one for part in shared for one in part if _in_body(one.value)):
        body += [] if _identity(one.value) in names else [one]
    about = operation.value
    produces = _texts(about.get("produces", document.get("produces")))
    result = about | {
        "parameters": _outside_body(own),
        "responses": {
            code: _response(_followed(refs, Node(one, operation.resolver)), produces)
            for code, one in mapping(about.get("responses")).items()
        },
    }
    if body:
        result["requestBody"] = _body(body, _texts(about.get("consumes", document.get("consumes"))))
    schemes = _texts(about.get("schemes"))
    if schemes and isinstance(document.get("host"), str):
        result["servers"] = _servers({**document, "schemes": schemes})
    parts = [
        Node(one.value | {"parameters": _outside_body(found)}, one.resolver)
        for one, found in zip(items, shared, strict=True)
    ]
    return parts, Node(result, operation.resolver)


def _servers(document: Mapping[str, Any]) -> list[dict[str, str]]:
    host, base = document.get("host"), document.get("basePath")
    base = base if isinstance(base, str) and base != "/" else ""
    if not isinstance(host, str) or not host:
        return [{"url": base}] if base else []
    schemes = _texts(document.get("schemes")) or ["https"]
    return [{"url": f"{scheme}://{host}{base}"} for scheme in schemes if scheme.startswith("http")]


def _parameters(refs: References, owner: Node) -> list[Node]:
    """Return the parameters of a path item or an operation, with what they refer to."""
    found = _followed(refs, Node(owner.value.get("parameters"), owner.resolver))
    return [_followed(refs, Node(one, found.resolver)) for one in listed(found.value)]


def _followed(refs: References, node: Node) -> Node:
    try:
        return refs.peek(node)
    except ReferenceFault:  # who reads the result tells it
        return node


def _outside_body(parameters: list[Node]) -> list[Any]:
    return [_parameter(one.value) for one in parameters if not _in_body(one.value)]


def _identity(one: Mapping[str, Any]) -> tuple[str, str]:
    """Return what tells a parameter from others: name and place, of whatever type they are."""
    return str(one.get("name")), str(one.get("in"))


def _in_body(one: Any) -> bool:
    return isinstance(one, dict) and one.get("in") in ("body", "formData")


def _parameter(one: Any) -> Any:
    if not isinstance(one, dict) or "$ref" in one:
        return one
    result = {key: value for key, value in one.items() if key in _BESIDE_SCHEMA}
    result["schema"] = _schema(one)
    if one.get("type") == "array":
        result |= _style(one)
    return result


def _style(one: Mapping[str, Any]) -> dict[str, Any]:
    told = one.get("collectionFormat", "csv")
    return _STYLES.get(told if isinstance(told, str) else "", {"style": str(told)})


def _schema(one: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in one.items() if key not in _BESIDE_SCHEMA}
    return schema | {"type": "string", "format": "binary"} if one.get("type") == "file" else schema


def _body(nodes: list[Node], consumes: list[str]) -> dict[str, Any]:
    parameters = [one.value for one in nodes]
    whole = next((one for one in nodes if one.value.get("in") == "body"), None)
    if whole is not None:
        kinds = [kind for kind in consumes if kind not in (FORM, MULTIPART)]
        media = {"schema": Node(whole.value.get("schema", {}), whole.resolver)}
        return {
            "description": whole.value.get("description"),
            "required": whole.value.get("required") is True,
            "content": dict.fromkeys(kinds or ["application/json"], media),
        }
    files = any(one.get("type") == "file" for one in parameters)
    kind = MULTIPART if files or (MULTIPART in consumes and FORM not in consumes) else FORM
    named = [one for one in parameters if isinstance(one.get("name"), str)]
    described = {
        one["name"]: _schema(one) | {"description": one.get("description")} for one in named
    }
    required = [one["name"] for one in named if one.get("required") is True]
    schema = {"type": "object", "properties": described, "required": required}
    lists = {one["name"]: _style(one) for one in named if one.get("type") == "array"}
    return {
        "required": bool(required),
        "content": {kind: {"schema": schema, "encoding": lists}},
    }


def _response(node: Node, produces: list[str]) -> Any:
    one = node.value
    if not isinstance(one, dict) or "$ref" in one:
        return one
    media = {"schema": Node(one["schema"], node.resolver)} if "schema" in one else {}
    examples = mapping(one.get("examples"))
    kinds = produces or (["application/json"] if media else [])
    content = {
        kind: media | ({"example": examples[kind]} if kind in examples else {}) for kind in kinds
    }
    return {**one, "content": content}


def _scheme(one: Any) -> Any:
    if isinstance(one, dict) and one.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if isinstance(one, dict) and one.get("type") == "oauth2" and one.get("flow") == "application":
        return {**one, "flows": {"clientCredentials": {"tokenUrl": one.get("tokenUrl")}}}
    return one


def _texts(value: Any) -> list[str]:
    return [one for one in listed(value) if isinstance(one, str)]
