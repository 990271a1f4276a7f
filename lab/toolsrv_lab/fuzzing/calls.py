"""Targets about calls: arguments, requests, replies.

The properties are told from outside, with the standard library's own readers where there are any.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
from hypothesis import strategies as st

from toolsrv_lab.fuzzing.strategies import (
    BROKEN_CALLS,
    CALLS,
    NASTY,
    TEXTS,
    Target,
    hold,
    json_values,
)
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.numerals import spell
from toolsrv_runtime.calls import response_body
from toolsrv_runtime.calls.arguments import bind, parse
from toolsrv_runtime.calls.policy import check_address
from toolsrv_runtime.calls.request import BODILESS, OutgoingRequest, build_request
from toolsrv_runtime.errors import ArgumentError, PolicyError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DATE = re.compile(r"\d{4,}-\d\d-\d\d|")
_TIME = re.compile(r"\d\d:\d\d|")


def _bound(case: Mapping[str, Any]) -> tuple[Api, dict[str, Any]] | None:
    api = Api.model_validate(case["api"])
    try:
        return api, bind(api, case["arguments"])
    except ArgumentError:
        return None


def _fits(parameter: Parameter, value: Any) -> bool:
    match parameter.type.upper().partition(" ")[0]:
        case "NUMBER" | "INTEGER":
            return type(value) is int or (type(value) is float and math.isfinite(value))
        case "BOOLEAN":
            return isinstance(value, bool)
        case "DATE":
            return isinstance(value, str) and _DATE.fullmatch(value) is not None
        case "TIME":
            return isinstance(value, str) and _TIME.fullmatch(value) is not None
        case "ARRAY":
            return isinstance(value, list)
        case "OBJECT":
            return isinstance(value, dict)
    return isinstance(value, str) and (not parameter.enum or value in parameter.enum)


def _check_arguments(case: Any) -> None:
    found = _bound(case)
    if found is None:
        return
    api, bound = found
    keys = {parameter.name: key for key, parameter in parameter_keys(api).items()}
    parameters = {parameter.name: parameter for parameter in api.parameters}
    defaults = {
        one.name
        for one in api.required
        if one.place and one.default not in ("", None) and bound.get(one.name) == one.default
    }
    for name, value in bound.items():
        hold(name in parameters, "a bound name is the provider's own", name)
        if name not in defaults:
            hold(_fits(parameters[name], value), "a value has the declared type", name, value)
    missing = [one.name for one in api.required if bound.get(one.name, "") == ""]
    hold(not missing, "what is required is there", missing)
    given = {keys[name]: value for name, value in bound.items() if name not in defaults}
    hold(bind(api, given) == bound, "coercion is idempotent", given, bound)


def _check_parse(case: Any) -> None:
    try:
        value = parse(case)
    except ArgumentError:
        return
    hold(isinstance(value, dict), "arguments are an object", value)


def _check_request(case: Any) -> None:
    found = _bound(case)
    if found is None:
        return
    api, bound = found
    try:
        out = build_request(api, bound)
    except (ArgumentError, PolicyError):
        return
    named = urlsplit(api.url)
    hold(
        (out.url.scheme, out.url.host, out.url.port, out.url.userinfo)
        == (named.scheme, named.hostname, named.port, b""),
        "the host is the API's own",
        out.url,
    )
    check_address(api, out.url, None)
    request = httpx.Request(out.method, out.url, headers=dict(out.headers), content=out.content)
    parts = [str(out.url), out.url.raw_path.decode("ascii"), *out.headers, *out.headers.values()]
    parts += [one.decode("latin-1") for pair in request.headers.raw for one in pair]
    hold(not any(map(_CONTROL.search, parts)), "no part holds a line end", parts)
    _check_path(api, bound, out)
    _check_query(api, bound, out)


def _check_path(api: Api, bound: Mapping[str, Any], out: OutgoingRequest) -> None:
    template = re.match(r"[a-z]+://[^/?]*([^?]*)", api.url)
    wanted = (template[1] if template else "").split("/")
    sent = out.url.raw_path.decode("ascii").partition("?")[0].split("/")
    hold(len(sent) == max(2, len(wanted)), "the path keeps its segments", wanted, sent)
    for hole, text in zip(wanted, sent, strict=False):
        name = hole[1:-1]
        if hole == f"{{{name}}}" and name in bound:
            value = bound[name]
            said = ",".join(map(spell, value)) if isinstance(value, list) else spell(value)
            hold(unquote(text) == said, "a path parameter arrives as it is", text, said)


def _check_query(api: Api, bound: Mapping[str, Any], out: OutgoingRequest) -> None:
    if api.method not in BODILESS:
        return
    pairs = parse_qsl(out.url.query.decode("ascii"), keep_blank_values=True)
    for parameter in api.parameters:
        free = parameter.place == "" and f"{{{parameter.name}}}" not in api.url
        if free and parameter.name in bound and "{" not in api.url:
            pair = (parameter.name, spell(bound[parameter.name]))
            hold(pair in pairs, "a query parameter arrives as it is", pair, pairs)


_PLANTED = "k3y-4/7+é"


def _escaped(which: list[bool]) -> str:
    """Return JSON that spells the planted key with escapes for some of its characters."""
    escape = dict(enumerate(which))
    spelt = (f"\\u{ord(one):04x}" if escape.get(at) else one for at, one in enumerate(_PLANTED))
    return f'{{"a": ["{"".join(spelt)}"]}}'


def _check_reply(case: Any) -> None:
    data = case["text"].encode("utf-8", "surrogatepass") + case["tail"].encode("latin-1")
    headers = httpx.Headers({"content-type": case["type"]})
    found = response_body.parse_body(data, headers, too_large=case["large"], secrets=(_PLANTED,))
    told = json.dumps(found.value, allow_nan=False, ensure_ascii=False)
    hold(_PLANTED not in told, "a key comes back from nowhere", told)
    hold(len(told) <= 8 * len(data) + 100, "a reply does not grow", len(told), len(data))


_TYPES = ("application/json", "text/html", "text/plain; charset=utf-16", "x; charset=idna", "")

TARGETS = (
    Target("arguments", "coercion of arguments", CALLS, _check_arguments),
    Target(
        "argument-text",
        "arguments as text",
        TEXTS | json_values().map(json.dumps) | st.text(alphabet='{}[]",:0\\ue-'),
        _check_parse,
    ),
    Target(
        "requests",
        "URLs, headers and bodies of calls",
        CALLS,
        _check_request,
        known=BROKEN_CALLS,
    ),
    Target(
        "replies",
        "bodies of responses",
        st.fixed_dictionaries(
            {
                "text": TEXTS
                | json_values().map(json.dumps)
                | st.lists(st.sampled_from([_PLANTED, *NASTY]), max_size=4).map("".join)
                | st.lists(st.booleans(), max_size=len(_PLANTED)).map(_escaped),
                "tail": st.binary(max_size=6).map(lambda one: one.decode("latin-1")),
                "type": st.sampled_from(_TYPES),
                "large": st.booleans(),
            }
        ),
        _check_reply,
        known=({"text": _escaped([True]), "tail": "", "type": "", "large": False},),
    ),
)
