"""Targets about what others recorded or asked for: packs, StableToolBench's keys, secrets, pauses."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from toolsrv_lab.fuzzing.strategies import NASTY, SCALARS, TEXTS, json_values
from toolsrv_lab.fuzzing.target import Target, hold
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.calls.rate_limits import pause_seconds
from toolsrv_runtime.calls.recordings import Recording, mask_arguments, mask_secrets
from toolsrv_runtime.calls.recordings.storage import RecordingStore, read_pack, write_pack
from toolsrv_runtime.calls.result import CallResult
from toolsrv_runtime.toolbench.cache import cache_key, read_key

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

TARGETS = (
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
