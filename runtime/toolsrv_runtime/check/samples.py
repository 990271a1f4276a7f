"""Arguments to call an API with, made from its catalog entry alone.

In this order: the provider's default or example, an allowed value, an example in the description, a sample
of the declared type or of a well-known name. The first two are the provider's word; the others
are guesses, and a reply to a guess proves less. What has none of these stays unknown: an
invented id or name would only produce a 404. Secrets are never invented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Sample:
    """``values`` by parameter key; ``guessed`` when any is a guess; ``missing`` has no value."""

    values: Mapping[str, Any]
    guessed: bool
    missing: tuple[str, ...]


def sample(api: Api) -> Sample:
    """Return values for the required parameters, and for optional ones that the path needs."""
    in_path = set(PLACEHOLDER.findall(api.url))
    values: dict[str, Any] = {}
    guessed = False
    missing: list[str] = []
    for key, parameter in parameter_keys(api).items():
        own = parameter.wire or parameter.name
        if parameter not in api.required and own not in in_path:
            continue
        value = _given(parameter)
        if value is None:
            value = _guess(parameter)
            guessed = guessed or value is not None
        if value is None:
            missing.append(parameter.name)
        else:
            values[key] = value
    return Sample(values, guessed, tuple(missing))


def addressed(api: Api) -> Api:
    """Return the API with its URL's placeholders under the parameters' own names.

    ToolBench writes them as keys: ``/team/{is_id}`` for the parameter ``id``.
    """
    names = {parameter.wire or parameter.name for parameter in api.parameters}
    by_key = {
        key: parameter.wire or parameter.name for key, parameter in parameter_keys(api).items()
    }

    def rename(match: re.Match[str]) -> str:
        name = match[1] if match[1] in names else by_key.get(match[1], match[1])
        return f"{{{name}}}"

    url = PLACEHOLDER.sub(rename, api.url)
    return api if url == api.url else api.model_copy(update={"url": url})


def unknown_placeholders(api: Api) -> tuple[str, ...]:
    """Return the placeholders of an addressed API's URL that no parameter fills."""
    names = {parameter.wire or parameter.name for parameter in api.parameters}
    return tuple(name for name in PLACEHOLDER.findall(api.url) if name not in names)


def _given(parameter: Parameter) -> Any:
    """Return the provider's own value, ``None`` when there is none."""
    for value in (parameter.default, parameter.example):
        if isinstance(value, str):
            if value.strip() and not _STAND_IN.fullmatch(value.strip()):
                return value
        elif value is not None:
            return value
    return parameter.enum[0] if parameter.enum else None


def _guess(parameter: Parameter) -> Any:
    if _SECRET.search(parameter.name):
        return None
    kind = parameter.type.upper()
    for start, value in _BY_TYPE.items():
        if kind.startswith(start):
            return value
    if (shown := _shown(parameter)) is not None:
        return shown
    name = re.sub(r"[^a-z]", "", parameter.name.lower())
    value = _BY_NAME.get(name)
    numeric = isinstance(value, int | float) or (isinstance(value, str) and value.isdigit())
    return None if kind == "NUMBER" and not numeric else value


def _shown(parameter: Parameter) -> str | None:
    """Return the example that a description shows, when it plainly is a value."""
    match = _EXAMPLE.search(parameter.description)
    if match is None:
        return None
    quoted = match["quoted"]
    value = (quoted or match["bare"] or "").strip().rstrip(".")
    likely = bool(quoted) or match["colon"] is not None or any(c.isdigit() for c in value)
    if not likely or _ODD.search(value) or value.startswith(f"{parameter.name}="):
        return None
    if value.endswith(":") or not any(character.isalnum() for character in value):
        return None
    if parameter.type.upper() == "NUMBER" and not re.fullmatch(r"-?\d+(?:\.\d+)?", value):
        return None
    return value


_STAND_IN = re.compile(
    r"<.*>|\{.*\}|\[.*\]|(?i:required|string|your[_ -].*|null|none|undefined|x+)"
)
_SECRET = re.compile(
    r"(?i)key$|key\b|token|secret|passw|cookie|session|auth|credential|creds|signature"
)
_EXAMPLE = re.compile(
    r"(?i:\b(?:for example|examples?(?: values?)?|e\.g\.?|ex(?=[.:])))"
    r"\.?\s{0,3}(?P<colon>[:=])?\s{0,3}"
    r"(?:[`'\"*]{1,3}(?P<quoted>[^`'\"*\n]{1,60})[`'\"*]|(?P<bare>[^\s`'\"*,;()<>|]{1,60})(?=[\s`'\"*,;()<>|]|$))"
)
_ODD = re.compile(r"[\\<>{}|\s]|\.\.\.|…")
_BY_TYPE = {
    "BOOLEAN": True,
    "DATE": "2024-06-14",
    "TIME": "12:00",
    "GEOPOINT": "51.5074,-0.1278",
}
_BY_NAME: Mapping[str, Any] = {
    **dict.fromkeys(("page", "pagenumber", "pagenum"), 1),
    **dict.fromkeys(("limit", "count", "size", "pagesize", "perpage", "take"), 5),
    **dict.fromkeys(("skip", "offset"), 0),
    **dict.fromkeys(("lat", "latitude"), 51.5074),
    **dict.fromkeys(("lon", "lng", "long", "longitude"), -0.1278),
    **dict.fromkeys(("lang", "language", "locale"), "en"),
    **dict.fromkeys(("q", "query", "keyword", "keywords", "search", "term"), "london"),
    **dict.fromkeys(("text", "sentence", "phrase"), "Hello world"),
    **dict.fromkeys(("country", "countrycode"), "US"),
    **dict.fromkeys(("date", "startdate", "fromdate"), "2024-06-14"),
    **dict.fromkeys(("enddate", "todate"), "2024-06-15"),
    **dict.fromkeys(("symbol", "ticker"), "AAPL"),
    **dict.fromkeys(("ip", "ipaddress"), "8.8.8.8"),
    **dict.fromkeys(("domain", "domainname"), "example.com"),
    "url": "https://example.com",
    "city": "London",
    "location": "London",
    "currency": "USD",
    "timezone": "Europe/London",
    "radius": 10,
    "year": 2023,
    "month": 6,
    "day": 14,
}
