"""An operation's security requirements: the schemes of a document as its operations need them.

A scheme that a document names and does not describe stays, as ``unknown``: without it the operation
would look as if it needed nothing. Holds no secrets; whether a scheme can be served is said by
``toolsrv_registry.security``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from toolsrv_catalogs.fields import URL_LIMIT, mapping
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.openapi.references import Node, ReferenceFault, References
from toolsrv_catalogs.text import NAME_LIMIT
from toolsrv_registry.api import SecurityScheme
from toolsrv_registry.security import unsupported

SCOPES_LIMIT = 100
"""Scopes of one requirement that are kept."""


class Schemes:
    """The security schemes of one document; each is read once."""

    def __init__(self, document: Mapping[str, Any], refs: References, found: FileFindings) -> None:
        components = mapping(document.get("components"))
        self._entries = mapping(components.get("securitySchemes"))
        self._general = document.get("security")
        self._refs = refs
        self._found = found
        self._read: dict[str, SecurityScheme] = {}

    def of(self, operation: Mapping[str, Any]) -> tuple[tuple[SecurityScheme, ...], ...]:
        """Return an operation's requirements as alternatives; ``()`` where nothing is needed."""
        wanted = operation.get("security")
        wanted = wanted if isinstance(wanted, list) else self._general
        groups = tuple(
            tuple(self._required(str(name), scopes) for name, scopes in _named(one).items())
            for one in (wanted if isinstance(wanted, list) else [])
        )
        return groups if any(groups) else ()

    def _required(self, name: str, scopes: Any) -> SecurityScheme:
        scheme = self._read.get(name)
        if scheme is None:
            scheme = self._read[name] = self._scheme(name)
        if not scheme.token_url or not isinstance(scopes, list):  # asked for with a token alone
            return scheme
        told = (self._found.text(one, NAME_LIMIT) for one in scopes[:SCOPES_LIMIT])
        return scheme.model_copy(update={"scopes": tuple(filter(None, told))})

    def _scheme(self, name: str) -> SecurityScheme:
        text = self._found.text
        try:
            root = self._refs.root.resolver
            value = mapping(self._refs.follow(Node(self._entries.get(name), root)).value)
        except ReferenceFault:
            value = {}
        client = mapping(mapping(value.get("flows")).get("clientCredentials"))
        try:
            scheme = SecurityScheme.model_validate(
                {
                    "name": text(name, NAME_LIMIT),
                    "kind": value.get("type"),
                    "place": value.get("in", ""),
                    "key": text(value.get("name"), NAME_LIMIT),
                    "scheme": text(value.get("scheme"), NAME_LIMIT).lower(),
                    "token_url": text(client.get("tokenUrl"), URL_LIMIT),
                }
            )
        except ValidationError:
            scheme = SecurityScheme(name=text(name, NAME_LIMIT), kind="unknown")
        if fault := unsupported(scheme):
            self._found.note(
                f"the security scheme {scheme.name[:80]!r} asks for {fault}, which is not "
                "supported: what needs it is not called"
            )
        return scheme


def _named(requirement: Any) -> Mapping[str, Any]:
    """Return a requirement by names; a bare name, which no version allows, is one too."""
    return {requirement: []} if isinstance(requirement, str) else mapping(requirement)
