"""Fuzzing targets of recordings and responses: keys, packs, masked secrets, pauses, compression."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from toolsrv_lab.fuzzing.catalogs import hidden
from toolsrv_lab.fuzzing.strategies import CALLS, NASTY, SCALARS, TEXTS, Target, hold, json_values
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.compress import TextBudget, compress, filter_by_schema
from toolsrv_runtime.calls.rate_limits import pause_seconds
from toolsrv_runtime.calls.recordings import (
    Recording,
    call_key,
    canonical_arguments,
    mask_arguments,
    mask_secrets,
)
from toolsrv_runtime.calls.recordings.storage import RecordingStore, read_pack, write_pack
from toolsrv_runtime.calls.result import CallResult
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.toolbench.cache import cache_key, read_key

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


def _invented_call(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call without arguments of an API with these parameters."""
    api = {"id": "C/t/a", "category": "C", "tool": "t", "name": "a", "url": "https://api.test"}
    return {"api": {**api, **parameters}, "arguments": {}}


_KEYS = st.sampled_from(["a", "b", "items", "name", "str"])
_VALUES = json_values(_KEYS, leaves=20) | st.lists(json_values(_KEYS, leaves=3), max_size=30)
_LONG = st.builds(lambda text, times: text * times, TEXTS, st.integers(1, 200))
_OBJECTS = st.dictionaries(_KEYS | TEXTS, _VALUES | _LONG, max_size=4)
_SCHEMAS = json_values(_KEYS, leaves=6) | st.dictionaries(_KEYS, json_values(_KEYS, leaves=3))

RESPONSE_TARGETS = (
    Target(
        "recording-keys",
        "keys of recordings",
        CALLS,
        _check_key,
        known=(
            _invented_call({"required": [{"name": "a", "default": False, "place": "query"}]}),
            _invented_call({"optional": [{"name": "a", "type": "NUMBER", "default": 10**304 + 1}]}),
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


_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_PLANTED = "s3cret-value-42"


@functools.cache
def _pack() -> bytes:
    """Return a small pack, the same every time but for the time it was recorded."""
    api = Api(id="C/t/a", category="C", tool="t", name="a", url="https://api.test/x")
    said = CallResult(
        api_id=api.id, arguments={"a": 1}, url=api.url, status=200, response={"b": "c" * 50},
        error="", source="live", seconds=0.1,
    )  # fmt: skip
    entry = Recording.from_result(api, said).model_copy(update={"recorded_at": ""})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pack"
        write_pack(path, [entry], ())
        return path.read_bytes()


def _check_pack(case: Any) -> None:
    data = bytearray(_pack())
    for at, byte in case["bytes"]:
        data[at % len(data)] = byte
    with (
        tempfile.TemporaryDirectory() as folder,
        RecordingStore.open(Path(folder) / "store.sqlite") as store,
    ):
        path = Path(folder) / "x.pack"
        path.write_bytes(bytes(data[: len(data) * case["share"] // 100]))
        with contextlib.suppress(DataError, UsageError):
            packed = read_pack(path, store)
            hold(packed.entries == 1 == packed.added, "a pack is taken whole", packed)


def _check_stable_key(case: Any) -> None:
    found = read_key(case["text"])
    hold(found is None or json.dumps(found), "arguments are JSON", found)
    written = read_key(cache_key(case["arguments"]))
    hold(written == case["arguments"], "a key is read as it was written", case["arguments"])


def _check_masking(case: Any) -> None:
    given = {case["name"]: case["value"], "password": _PLANTED}
    arguments, secrets = mask_arguments(given)
    response = mask_secrets(case["response"], secrets)
    told = json.dumps([arguments, response], ensure_ascii=False)
    hold(_PLANTED not in told, "a credential is nowhere in a recording", told)
    hold(mask_secrets(response, secrets) == response, "masking is idempotent", response)


def _check_pause(case: Any) -> None:
    pause = pause_seconds({"retry-after": case["text"]}, case["tries"], _NOW)
    hold(pause >= 0 and math.isfinite(pause), "a pause is a time", pause)


_DATES = st.lists(
    st.sampled_from(
        ["Wed,", "21", "Oct", "2026", "9999", "0", "07:28:00", "99:99:99", "GMT", "+9999", "-2400"]
    )
    | TEXTS,
    max_size=7,
).map(" ".join)
_PYTHON = st.lists(
    st.sampled_from(["{", "}", "'a'", ":", ",", "1", "(", ")", "-", "b'x'", "1j", "...", *NASTY]),
    max_size=10,
).map("".join)
_PLAIN = st.booleans() | st.integers() | st.text(max_size=8) | st.none()
_SAID = TEXTS | st.just(f"you said {_PLANTED}") | st.just(f"Authorization: Bearer {_PLANTED}/a+b==")

RECORDING_TARGETS = (
    Target(
        "packs",
        "damaged packs of recordings",
        st.fixed_dictionaries(
            {
                "bytes": st.lists(
                    st.tuples(st.integers(0, 2_000), st.integers(0, 255)).map(list), max_size=4
                ),
                "share": st.just(100) | st.integers(1, 100),
            }
        ),
        _check_pack,
    ),
    Target(
        "stable-keys",
        "keys in StableToolBench's cache",
        st.fixed_dictionaries(
            {
                "text": _PYTHON,
                "arguments": st.dictionaries(
                    st.text(max_size=6), _PLAIN | st.lists(_PLAIN, max_size=3), max_size=3
                ),
            }
        ),
        _check_stable_key,
    ),
    Target(
        "masking",
        "credentials in recordings",
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(["a", "token", "X-Api-Key", "q", "Authorization"]) | TEXTS,
                "value": SCALARS,
                "response": _SAID | st.dictionaries(_SAID, _SAID | json_values(leaves=3)),
            }
        ),
        _check_masking,
    ),
    Target(
        "pauses",
        "Retry-After",
        st.fixed_dictionaries({"text": _DATES, "tries": st.integers(0, 100)}),
        _check_pause,
    ),
)
