"""Fuzzing targets and their input strategies: nasty text, JSON values, APIs with arguments.

A target makes cases and states the properties that must hold for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from toolsrv_registry.api import Place

NASTY = (
    "", " ", ".", "..", "../..", "%2e%2e", "%", "%0d%0a", "a\r\nX-A: b", "\n", "\x00", "\x7f",
    "\u0085", "\u2028", "\u200b", "\u202eabc", "\ufeff", "\ud800", "\U000e0041", "é", "ß", "İ",
    "日本", "\U0001f469\u200d\U0001f680", "{a}", "{{b}}", "a/b", "a\\b", "//evil.test/", "?x=1",
    "#f", "&a=b", "a;b", "a,b", ":80", "@evil.test", "me:you@evil.test", "http://evil.test",
    "javascript:alert(1)", "-1", "+1", "1,234", "3%", "1e308", "1e999", "nan", "-inf", "0x1f",
    "٣", "½", "9" * 40, "9" * 400, "true", "FALSE", "on", "null", "[1,2]", "[", "{}", '{"a":1}',
    "2026-02-29", "2026-03-01", "March 3, 2026", "24:00", "12:30 pm", "<b>", "' OR 1=1 --",
)  # fmt: skip
"""Text that has broken readers: line ends, hidden characters, parts of addresses, odd numbers."""

TEXTS = st.sampled_from(NASTY) | st.text(max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([-0.0, 1e308, 10**400])
    | TEXTS
)
TYPES = (
    "STRING", "NUMBER", "INTEGER", "BOOLEAN", "DATE (YYYY-MM-DD)", "TIME (24-hour HH:MM)", "ARRAY",
    "OBJECT", "ENUM", "BINARY", "", "string",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
BODY_TYPES = (
    "",
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
    "text/plain; é",
)
HOSTS = (
    "https://api.test",
    "http://api.test:8080",
    "https://a-b.api.test",
    "https://[2001:db8::1]",
)
_NAMES = st.sampled_from(
    ["a", "b", "A", "id", "from", "is_id", "q[]", "x y", "X-Key", "Host", "Cookie", "é", "a_2"]
) | st.text(min_size=1, max_size=4)


def json_values(
    keys: st.SearchStrategy[str] | None = None, *, leaves: int = 8
) -> st.SearchStrategy[Any]:
    """Return a strategy of JSON values whose objects have the given keys."""
    named = TEXTS if keys is None else keys | TEXTS
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(named, inner, max_size=4),
        max_leaves=leaves,
    )


PARAMETERS = st.fixed_dictionaries(
    {"name": _NAMES},
    optional={
        "type": st.sampled_from(TYPES),
        "default": SCALARS,
        "enum": st.lists(TEXTS, min_size=1, max_size=3),
        "place": st.sampled_from(get_args(Place)),
    },
)


_AT = st.integers(0, 5)
_RAW = st.fixed_dictionaries(
    {
        "parameters": st.lists(PARAMETERS, max_size=3, unique_by=lambda one: one["name"]),
        "required": _AT,
        "method": st.sampled_from(METHODS),
        "host": st.sampled_from(HOSTS),
        "segments": st.lists(_AT, max_size=3),
        "query": st.sampled_from(["", "", "?fixed=1", "?a=2&a=3"]),
        "body_type": st.sampled_from(BODY_TYPES),
        "arguments": st.lists(st.tuples(_AT, TEXTS, SCALARS | json_values(leaves=3)), max_size=3),
    }
)


def _call(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Put a call together: segments and arguments by number mean parameters that are there."""
    parameters = raw["parameters"]
    names = [one["name"] for one in parameters]
    fixed = ["v1", "x%20y", "a.json"]
    segments = [
        f"{{{names[at]}}}" if at < len(names) else fixed[at % len(fixed)] for at in raw["segments"]
    ]
    return {
        "api": {
            "id": "C/t/a",
            "category": "C",
            "tool": "t",
            "name": "a",
            "method": raw["method"],
            "url": "/".join([raw["host"], *segments]) + raw["query"],
            "required": parameters[: raw["required"]],
            "optional": parameters[raw["required"] :],
            "body_type": raw["body_type"],
        },
        "arguments": {
            names[at] if at < len(names) else text: value for at, text, value in raw["arguments"]
        },
    }


CALLS = _RAW.map(_call)
"""An API in the catalog's own shape, and arguments that a model might give it."""


def _defaulting(**parameter: Any) -> dict[str, Any]:
    """Return a call without arguments of an API that has a default for its one parameter."""
    api = {"id": "C/t/a", "category": "C", "tool": "t", "name": "a", "url": "https://api.test"}
    return {"api": {**api, "required": [{"name": "a", **parameter}]}, "arguments": {}}


BROKEN_CALLS = (
    _defaulting(place="path", enum=[""], default="\ud800"),
    _defaulting(place="header", default="\u0085"),
)
"""Calls whose default no encoding has, or no header: each once broke the request."""


@dataclass(frozen=True)
class Target:
    """One reader under test.

    ``check`` raises for a case that breaks a property: AssertionError, or whatever the reader let
    out that its contract does not name. ``known`` are cases that once failed; they come first.
    """

    name: str
    about: str
    cases: SearchStrategy[Any]
    check: Callable[[Any], None]
    known: tuple[Any, ...] = ()


class BrokenPropertyError(AssertionError):
    """A property does not hold; the message says which, with the values."""


def hold(truth: object, told: str, *values: object) -> None:
    """Raise unless a property holds. Unlike ``assert`` it stays under ``python -O``."""
    if not truth:
        raise BrokenPropertyError(f"{told}: {', '.join(repr(one)[:200] for one in values)}")
