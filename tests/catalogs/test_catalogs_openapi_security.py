"""Security requirements of OpenAPI and Swagger documents."""

from __future__ import annotations

from typing import Any

import pytest
from tests import openapi_documents

from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_registry.security import needs_unsupported


def read(security: Any, schemes: dict[str, Any], **more: Any) -> tuple[Api, list[str]]:
    """Return the one API of a document and what was noted; ``general`` holds for all."""
    operation = {"operationId": "a", "security": security, "responses": {"200": {}}}
    about = {"security": more.pop("general", []), "components": {"securitySchemes": schemes}}
    tool, found = openapi_documents.read(openapi_documents.document(operation, **about, **more))
    return tool.apis[0], found.notes


def test_client_credentials_keep_their_token_address_and_the_scopes_of_the_operation() -> None:
    flow = {"clientCredentials": {"tokenUrl": "https://login.test/token", "scopes": {"r": "read"}}}
    api, notes = read([{"oa": ["r", 7]}], {"oa": {"type": "oauth2", "flows": flow}})
    wanted = SecurityScheme(
        name="oa", kind="oauth2", token_url="https://login.test/token", scopes=("r", "7")
    )
    assert api.security == ((wanted,),)
    assert notes == []


def test_swagger_2_has_the_same_flow_under_another_name() -> None:
    swagger = {
        "swagger": "2.0",
        "openapi": None,
        "host": "api.test",
        "securityDefinitions": {
            "app": {"type": "oauth2", "flow": "application", "tokenUrl": "https://t.test/x"},
            "user": {"type": "oauth2", "flow": "password", "tokenUrl": "https://t.test/x"},
        },
    }
    api, _ = read([{"app": []}, {"user": []}], {}, **swagger)
    assert [group[0].token_url for group in api.security] == ["https://t.test/x", ""]


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "http", "scheme": "hmac"},
        {"type": "http"},
        {"type": "mutualTLS"},
        {"type": "x-signature"},
        {"type": "apiKey", "name": "X-Key", "in": "body"},
        {"type": "apiKey", "name": "", "in": "query"},
        {"type": "apiKey", "name": "Host", "in": "header"},
        {"type": "apiKey", "name": "two words", "in": "cookie"},
        {"$ref": "#/components/securitySchemes/nowhere"},
        "text",
    ],
)
def test_what_cannot_be_sent_is_noted_and_stays_a_requirement(entry: Any) -> None:
    schemes = {"odd": entry, "key": {"type": "apiKey", "name": "k", "in": "query"}}
    groups: list[dict[str, list[str]]] = [{"odd": []}, {"key": [], "odd": []}]
    for group in groups:
        api, notes = read([group], schemes)
        assert needs_unsupported(api)
        assert any("'odd'" in note and "not supported" in note for note in notes)
    free, _ = read([{"odd": []}, {}], schemes)
    assert not needs_unsupported(free)


def test_a_scheme_that_is_nowhere_described_is_not_passed_over() -> None:
    wanted: list[Any] = [[{"lost": []}], ["lost"]]
    for security in wanted:
        api, notes = read(security, {})
        assert api.security == ((SecurityScheme(name="lost", kind="unknown"),),)
        assert len(notes) == 1


def test_an_operation_may_need_nothing_and_what_is_no_list_inherits() -> None:
    schemes = {"k": {"type": "http", "scheme": "bearer"}}
    general: list[dict[str, list[str]]] = [{"k": []}]
    none: list[Any] = [[], [{}]]
    for security in none:
        api, notes = read(security, schemes, general=general)
        assert (api.security, notes) == ((), [])
    odd: list[Any] = [None, 7]
    for security in odd:
        api, _ = read(security, schemes, general=general)
        assert [one.name for group in api.security for one in group] == ["k"]
