"""Targets about what becomes of calls: the key of a recording, a response made short."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from toolsrv_lab.fuzzing.catalogs import hidden
from toolsrv_lab.fuzzing.strategies import CALLS, TEXTS, json_values
from toolsrv_lab.fuzzing.target import Target, hold
from toolsrv_registry.api import Api
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.compress import TextBudget, compress, filter_by_schema
from toolsrv_runtime.calls.recordings import call_key, canonical_arguments
from toolsrv_runtime.errors import ArgumentError

_JSON_FROM = 40
"""Characters of a budget from which what is shown is JSON."""
_MEASURES: Mapping[str, tuple[Callable[[str], int], int]] = {
    "characters": (len, 1),
    "quarters": (lambda text: -(-len(text) // 4), 4),
    "bytes": (lambda text: len(text.encode("utf-8", "surrogatepass")), 1),
}


def _check_key(case: Any) -> None:
    api, given = Api.model_validate(case["api"]), case["arguments"]
    try:
        key = call_key(api, given)
    except ArgumentError:
        return
    hold(len(key) == 64 and key == key.lower(), "a key is a SHA-256", key)
    backwards = dict(reversed(given.items()))
    hold(call_key(api, json.loads(json.dumps(given))) == key, "a key outlives JSON", given)
    try:
        bound = bind(api, given)
        if bind(api, backwards) != bound:  # two names of one parameter: the last one counts
            return
    except ArgumentError:
        return
    hold(call_key(api, backwards) == key, "order does not count", given)
    names = {parameter.name: name for name, parameter in parameter_keys(api).items()}
    typed = {names[name]: value for name, value in bound.items()}
    try:
        bind(api, typed)
    except ArgumentError:  # a default that does not fit its own type
        return
    hold(call_key(api, typed) == key, "typed and untyped values meet", given, typed)
    meant = canonical_arguments(api, given)
    spelt = {
        names[name]: str(value) if type(value) is int else value for name, value in meant.items()
    }
    hold(call_key(api, spelt) == key, "defaults and numbers as text meet", given, spelt)


def _check_compressed(case: Any) -> None:
    measure, reach = _MEASURES[case["measure"]]
    budget = TextBudget(case["most"], measure, reach)
    text = compress(case["value"], budget, case["schema"])
    hold(measure(text) <= case["most"], "a response fits its budget", text)
    hold(not hidden(text), "what is shown is clean", text)
    if case["most"] * reach >= _JSON_FROM and case["measure"] != "bytes":
        json.loads(text)


def _check_by_schema(case: Any) -> None:
    before = json.dumps(case)
    kept = filter_by_schema(case["value"], case["schema"])
    hold(json.dumps(case) == before, "a response is never changed", case)
    hold(kept.keys() <= case["value"].keys(), "nothing is added", kept)
    again = filter_by_schema(kept, case["schema"])
    hold(json.dumps(again) == json.dumps(kept), "taking the named part is idempotent", kept, again)


def _call(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call without arguments of an API with these parameters."""
    api = {"id": "C/t/a", "category": "C", "tool": "t", "name": "a", "url": "https://api.test"}
    return {"api": {**api, **parameters}, "arguments": {}}


_KEYS = st.sampled_from(["a", "b", "items", "name", "str"])
_VALUES = json_values(_KEYS, leaves=20) | st.lists(json_values(_KEYS, leaves=3), max_size=30)
_LONG = st.builds(lambda text, times: text * times, TEXTS, st.integers(1, 200))
_OBJECTS = st.dictionaries(_KEYS | TEXTS, _VALUES | _LONG, max_size=4)
_SCHEMAS = json_values(_KEYS, leaves=6) | st.dictionaries(_KEYS, json_values(_KEYS, leaves=3))

TARGETS = (
    Target(
        "recording-keys",
        "keys of recordings",
        CALLS,
        _check_key,
        known=(
            _call({"required": [{"name": "a", "default": False, "place": "query"}]}),
            _call({"optional": [{"name": "a", "type": "NUMBER", "default": 10**304 + 1}]}),
        ),
    ),
    Target(
        "compression",
        "responses within a budget",
        st.fixed_dictionaries(
            {
                "value": _VALUES | _LONG | _OBJECTS,
                "schema": st.none() | _SCHEMAS,
                "most": st.integers(0, 400),
                "measure": st.sampled_from(sorted(_MEASURES)),
            }
        ),
        _check_compressed,
    ),
    Target(
        "by-schema",
        "the part of a response that a schema names",
        st.fixed_dictionaries({"value": _OBJECTS, "schema": _SCHEMAS}),
        _check_by_schema,
    ),
)
