"""Plan of a check: which APIs are called with which sample arguments, and why others are left out.

Pure: catalog entries and earlier checks in, a plan out. The sample depends on the seed and the
catalog alone, so a check that was stopped continues with the same one. Arguments come from the
catalog entry, in this order: the provider's default or example, an allowed value, an example in the
description, a sample of the declared type or of a well-known name. The first two are the
provider's; the others are guesses, and a reply to a guess proves less. Secrets are never invented.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolsrv_registry import documents
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.storage.health import HealthEntry, HealthStatus
from toolsrv_runtime.check.replies import host_of

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class SampleArguments:
    """``values`` by parameter key; ``guessed`` when any is a guess; ``missing`` has no value."""

    values: Mapping[str, Any]
    guessed: bool
    missing: tuple[str, ...]


def sample_arguments(api: Api) -> SampleArguments:
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
    return SampleArguments(values, guessed, tuple(missing))


def name_placeholders(api: Api) -> Api:
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


@dataclass(frozen=True, slots=True)
class CheckItem:
    """One API to call: with its URL's placeholders under its parameters' own names."""

    api: Api
    content_hash: str
    host: str
    arguments: Mapping[str, Any]
    guessed: bool


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """``items`` to call; ``not_checked`` id -> why; ``recent`` were checked lately."""

    items: tuple[CheckItem, ...]
    not_checked: Mapping[str, str]
    recent: int


def make_plan(
    apis: Iterable[Api],
    *,
    latest: Mapping[tuple[str, str], HealthEntry],
    since: str,
    refuses: Callable[[Api], str],
    size: int | None = None,
    seed: int = 0,
) -> CheckPlan:
    """Return the plan for these APIs.

    Args:
        apis: the APIs to choose from, in catalog order.
        latest: the checks that are kept, by id and content hash.
        since: ISO time; an API that was checked after it is left out, unless its provider only
            said that it was called too often.
        refuses: why the backend cannot call an API, "" when it can.
        size: take a sample of that many of the APIs that can be called.
        seed: of the sample.
    """
    items: list[CheckItem] = []
    not_checked: dict[str, str] = {}
    for api in apis:
        item = _item(api, refuses)
        if isinstance(item, CheckItem):
            items.append(item)
        else:
            not_checked[api.id] = item
    if size is not None and size < len(items):
        chosen = sorted(random.Random(seed).sample(range(len(items)), size))  # noqa: S311 - no secret
        items = [items[place] for place in chosen]
    due = [one for one in items if not _recent(latest.get((one.api.id, one.content_hash)), since)]
    return CheckPlan(tuple(due), not_checked, recent=len(items) - len(due))


def _item(api: Api, refuses: Callable[[Api], str]) -> CheckItem | str:
    if why := refuses(api):
        return why
    if api.security and all(api.security):
        return "it needs credentials"
    target = name_placeholders(api)
    if unknown := unknown_placeholders(target):
        return f"nothing fills {unknown[0]!r} in its address"
    found = sample_arguments(target)
    if found.missing:
        return f"no value known for {found.missing[0]!r}"
    return CheckItem(
        api=target,
        content_hash=documents.content_hash(api),
        host=host_of(target),
        arguments=found.values,
        guessed=found.guessed,
    )


def _recent(entry: HealthEntry | None, since: str) -> bool:
    if entry is None or entry.verdict is HealthStatus.RATE_LIMITED:
        return False
    return entry.checked_at > since
