"""Headers and query parameters that a person fixed for a catalog: sent with each of its live calls.

Where an API has such a parameter itself, the fixed value fills it, and no argument replaces it.
Credentials are no such values. Pure; knows nothing of where they are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import httpx

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.numerals import spell
from toolsrv_registry.security import CONNECTION_HEADERS, TOKEN
from toolsrv_runtime.calls.auth import with_header, with_parameter
from toolsrv_runtime.calls.request import BODILESS, Outgoing, too_long
from toolsrv_runtime.errors import ArgumentError

Kind = Literal["header", "query"]
MOST = 50
"""Values of one catalog."""
NAME_LIMIT, VALUE_LIMIT = 200, 4_000
_CREDENTIALS = frozenset({"authorization", "cookie", "x-rapidapi-key", "x-rapidapi-host"})
_BODY = frozenset({"content-type", "content-encoding"})
_PLACEHOLDER = re.compile(r"\{\{?([^{}]+)\}?\}")


@dataclass(frozen=True, slots=True)
class Fixed:
    """The values of one catalog, by name."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def split(self, api: Api, arguments: Mapping[str, Any]) -> tuple[Api, dict[str, Any]]:
        """Return an API without the parameters that are fixed, and the arguments of the others.

        Raises:
            ArgumentError: an argument says otherwise than the value that is fixed.
        """
        fixed = {one.name: text for one in api.parameters if (text := self._of(api, one))}
        if not fixed:
            return api, dict(arguments)
        left = dict(arguments)
        for key, parameter in parameter_keys(api).items():
            for name in (key, parameter.name):
                if parameter.name in fixed and name in left:
                    _check(api, name, left.pop(name), fixed[parameter.name])
        kept = {
            kind: tuple(one for one in parameters if one.name not in fixed)
            for kind, parameters in (("required", api.required), ("optional", api.optional))
        }
        return api.model_copy(update=kept), left

    def added(self, api: Api, outgoing: Outgoing) -> Outgoing:
        """Return a request with the values in it.

        Raises:
            ArgumentError: the address becomes too long.
        """
        headers, url = dict(outgoing.headers), outgoing.url
        for name, value in self.headers.items():
            headers = with_header(headers, name, value)
        try:
            for name, value in self.query.items():
                url = with_parameter(url, name, value)
        except httpx.InvalidURL:
            raise too_long(api) from None
        return replace(outgoing, url=url, headers=headers)

    def _of(self, api: Api, parameter: Parameter) -> str:
        """Return the value that is fixed for a parameter, ``""`` for none."""
        name = parameter.wire or parameter.name
        if parameter.place == "header":
            return next((v for k, v in self.headers.items() if k.lower() == name.lower()), "")
        open_place = not parameter.place and api.method.upper() in BODILESS
        if parameter.place == "query" or (open_place and name not in _PLACEHOLDER.findall(api.url)):
            return self.query.get(name, "")
        return ""


FixedOf = Callable[[str], Fixed]
"""From a catalog's name to its values."""


def no_fixed(catalog: str) -> Fixed:
    """Return no values."""
    del catalog
    return Fixed()


def fixed_fault(kind: Kind, name: str, value: str) -> str:
    """Return why a value cannot be fixed, ``""`` where it can."""
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        return f"{name[:80]!r} is no name"
    if not value or len(value) > VALUE_LIMIT or not value.isprintable():
        return "the value is empty, too long, or holds a line end or a control character"
    if kind == "query":
        return ""
    if not TOKEN.fullmatch(name):
        return f"{name[:80]!r} is no name of a header"
    if name.lower() in _CREDENTIALS:
        return f"the header {name!r} is for credentials, which are keys: toolsrv keys set"
    if name.lower() in CONNECTION_HEADERS or name.lower().startswith("proxy-"):
        return f"the header {name!r} belongs to the connection"
    if name.lower() in _BODY:
        return f"the header {name!r} is that of the body, and follows from its document"
    return "" if value.isascii() else "a header takes unaccented letters, digits and signs only"


def _check(api: Api, name: str, given: Any, fixed: str) -> None:
    if (given if isinstance(given, str) else spell(given)) != fixed:
        raise ArgumentError(
            f"{api.id}: the argument {name!r} is fixed for its catalog and cannot be given",
            hint=f"leave it out: {fixed[:80]!r} is sent",
        )
