"""Swagger 2.0 documents turned into OpenAPI 3, so that one reader reads both.

References stay as they are: what they lead to stays where it is. Parameters of a body and of a
form become request bodies, ``collectionFormat`` a style, host and schemes servers. Pure; what has
no known form is left out and missed by the reader, which tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsrv_catalogs.fields import listed, mapping
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
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


def is_swagger(document: Mapping[str, Any]) -> bool:
    """Whether a document says that it is Swagger 2."""
    return str(document.get("swagger", "")).startswith("2")


def as_openapi(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Swagger 2.0 document as OpenAPI 3.0."""
    result = {key: one for key, one in document.items() if key not in {"swagger", "responses"}}
    produces = _texts(document.get("produces"))
    return result | {
        "openapi": "3.0.4",
        "servers": _servers(document),
        "components": {
            "securitySchemes": {
                name: _scheme(one)
                for name, one in mapping(document.get("securityDefinitions")).items()
            }
        },
        "responses": {
            name: _response(one, produces)
            for name, one in mapping(document.get("responses")).items()
        },
        "paths": {
            path: _path(item, document) for path, item in mapping(document.get("paths")).items()
        },
    }


def _servers(document: Mapping[str, Any]) -> list[dict[str, str]]:
    host, base = document.get("host"), document.get("basePath")
    base = base if isinstance(base, str) and base != "/" else ""
    if not isinstance(host, str) or not host:
        return [{"url": base}] if base else []
    schemes = _texts(document.get("schemes")) or ["https"]
    return [{"url": f"{scheme}://{host}{base}"} for scheme in schemes if scheme.startswith("http")]


def _path(item: Any, document: Mapping[str, Any]) -> Any:
    if not isinstance(item, dict):
        return item
    shared = _parameters(item.get("parameters"), document)
    rest = [one for one in shared if not _in_body(one)]
    result = {key: one for key, one in item.items() if key != "parameters"}
    result["parameters"] = [_parameter(one) for one in rest]
    for method in _METHODS:
        if isinstance(operation := item.get(method), dict) and "$ref" not in operation:
            inherited = [one for one in shared if _in_body(one)]
            result[method] = _operation(operation, inherited, document)
    return result


def _operation(
    operation: Mapping[str, Any], inherited: list[Any], document: Mapping[str, Any]
) -> dict[str, Any]:
    own = _parameters(operation.get("parameters"), document)
    names = {(one.get("name"), one.get("in")) for one in own if isinstance(one, dict)}
    body = [one for one in inherited if (one.get("name"), one.get("in")) not in names]
    body += [one for one in own if _in_body(one)]
    consumes = operation.get("consumes", document.get("consumes"))
    produces = _texts(operation.get("produces", document.get("produces")))
    responses = mapping(operation.get("responses"))
    result = dict(operation)
    result["parameters"] = [_parameter(one) for one in own if not _in_body(one)]
    result["responses"] = {code: _response(one, produces) for code, one in responses.items()}
    if body:
        result["requestBody"] = _body(body, _texts(consumes))
    schemes = _texts(operation.get("schemes"))
    if schemes and isinstance(document.get("host"), str):
        result["servers"] = _servers({**document, "schemes": schemes})
    return result


def _parameters(value: Any, document: Mapping[str, Any]) -> list[Any]:
    """Return parameters, those of the document itself in place of references to them."""
    found = []
    known = mapping(document.get("parameters"))
    for one in listed(value):
        target = one.get("$ref") if isinstance(one, dict) else None
        name = target.removeprefix("#/parameters/") if isinstance(target, str) else ""
        found.append(known.get(name.replace("~1", "/").replace("~0", "~"), one))
    return found


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


def _body(parameters: list[Any], consumes: list[str]) -> dict[str, Any]:
    whole = next((one for one in parameters if one.get("in") == "body"), None)
    if whole is not None:
        kinds = [kind for kind in consumes if kind not in (FORM, MULTIPART)]
        media = {"schema": whole.get("schema", {})}
        return {
            "description": whole.get("description"),
            "required": whole.get("required") is True,
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


def _response(one: Any, produces: list[str]) -> Any:
    if not isinstance(one, dict) or "$ref" in one:
        return one
    media = {"schema": one["schema"]} if "schema" in one else {}
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
