"""StableToolBench's cache: where replies lie, which are real, and the way in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.calls.recordings import Recording, call_key
from toolsrv_runtime.calls.recordings.storage import RecordingStore
from toolsrv_runtime.toolbench import cache as files
from toolsrv_runtime.toolbench import cache as stb

VECTORS = json.loads((Path(__file__).parent / "data" / "recording_vectors.json").read_text())
GROUPS: dict[str, Any] = VECTORS["groups"]

FORECAST = Api(
    id="Weather/weather_api/forecast", category="Weather", tool="Weather API", name="Forecast",
    url="https://weather.test/", required=(Parameter(name="city"),),
    optional=(Parameter(name="days", type="NUMBER"),),
)  # fmt: skip


@pytest.mark.parametrize("case", GROUPS["stb_cache_location"]["cases"])
def test_a_request_is_looked_for_where_the_reference_looks(case: dict[str, Any]) -> None:
    found = stb.cache_file(case["category"], case["tool_name"], case["api_name"])
    assert found == case["cache_file"]
    arguments = json.loads(case["tool_input"])
    assert stb.cache_key(arguments) == case["cache_key"]
    assert stb.read_key(case["cache_key"]) == arguments


@pytest.mark.parametrize("case", GROUPS["stb_check_result"]["cases"])
def test_a_reply_is_usable_when_the_reference_uses_it(case: dict[str, Any]) -> None:
    assert stb.is_usable(case["reply"]) == case["usable"]


@pytest.mark.parametrize(
    ("error", "response", "judgement"),
    [
        ("", "{'city': 'Oslo', 'up': True}", "real"),
        ("", "[{'a': None}]", "real"),
        ("", "x" * 2048, "real"),
        ("Unauthorized error...", "", "real"),
        ("Message error...", "{'message': 'error'}", "real"),
        ("Function executing from my_tools error...\nbad", "", "real"),
        ("", {"city": "Oslo"}, "simulated"),
        ("", ["Oslo"], "simulated"),
        ("Failed to generate fake response", "", "simulated"),
        ("The city is not known.", "", "simulated"),
        ("", "", "simulated"),
        ("", "It rains in Oslo.", "unclear"),
        ("", '{"city": "Oslo"}', "unclear"),
        ("", "The parameter is wrong.", "simulated"),
    ],
)
def test_real_replies_are_told_from_simulated_ones(
    error: str, response: Any, judgement: str
) -> None:
    assert stb.judge_reply({"error": error, "response": response}) == judgement


@pytest.mark.parametrize("key", ["", "[1]", "{'a': ", "__import__('os')", "{1: 2}", "{" * 9_999])
def test_what_is_no_key_is_none(key: str) -> None:
    assert stb.read_key(key) is None


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9),
              st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_a_key_can_be_read_back(arguments: dict[str, Any]) -> None:
    assert stb.read_key(stb.cache_key(arguments)) == arguments


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    stb.read_key(text)
    stb.judge_reply({"error": "", "response": text})


CACHE: dict[str, Any] = {
    "Weather/weather_api_for_Weather/forecast.json": {
        "{'city': 'Paris', 'days': 3}": {"error": "", "response": "{'rain': True}"},
        "{'city': 'Paris', 'days': '3'}": {"error": "", "response": {"rain": False}},
        "{'days': 1, 'city': 'Rome'}": {"error": "Unauthorized error...", "response": ""},
        "{'town': 'Rome'}": {"error": "Function executing it error...\nx", "response": ""},
        "not a key": {"error": "", "response": "x"},
        "{'city': 'Bern'}": "no reply",
    },
    "Weather/weather_api_for_Weather/past.json": {"{}": {"error": "", "response": "x"}},
    "Weather/weather_api_for_Weather/broken.json": None,
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    for name, content in CACHE.items():
        path = tmp_path / "cache" / "tool_response_cache" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{" if content is None else json.dumps(content, indent=4))
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with RecordingStore.open(tmp_path / "recordings.sqlite3") as opened:
        yield opened


def read(cache: Path, seen: files.CacheReadout) -> Iterator[Recording]:
    known = {FORECAST.id: FORECAST, "Weather/weather_api/broken": FORECAST}
    return files.read_cache(files.cache_files(cache), known.get, seen, lambda _done, _total: None)


def test_a_cache_is_imported_with_what_is_real_told_apart(
    cache: Path, store: RecordingStore
) -> None:
    seen = files.CacheReadout()
    assert store.add_all(read(cache, seen)) == 4
    assert seen.judged == {"real": 3, "simulated": 1}
    assert sum(seen.left_out.values()) == 4
    assert seen.unknown == {"Weather/weather_api_for_Weather/past"}
    stats = store.stats()
    assert stats.provenances == {"imported": 3, "simulated": 1}
    assert stats.kinds == {"ok": 2, "server_error": 1, "unauthorized": 1}


def test_real_replies_are_given_before_simulated_ones_of_the_same_call(
    cache: Path, store: RecordingStore
) -> None:
    store.add_all(read(cache, files.CacheReadout()))
    found = store.find(call_key(FORECAST, {"days": 3.0, "city": "Paris"}))
    assert found is not None
    assert (found.provenance, found.response) == ("imported", "{'rain': True}")
    assert found.origin == "StableToolBench: real"
    wrong = store.find(call_key(FORECAST, {"town": "Rome"}))
    assert wrong is not None
    assert wrong.error.startswith("Function executing")


def test_a_cache_comes_out_as_it_went_in(
    cache: Path, store: RecordingStore, tmp_path: Path
) -> None:
    store.add_all(read(cache, files.CacheReadout()))
    out = tmp_path / "out"
    assert files.write_cache(out, store.entries()) == 4
    [path] = [one for one in out.rglob("*") if one.is_file()]
    assert path.relative_to(out).as_posix() == f"tool_response_cache/{next(iter(CACHE))}"
    whole = next(iter(CACHE.values()))
    assert whole is not None
    wanted = {key: whole[key] for key in list(whole)[:4]}
    assert json.loads(path.read_text()) == wanted
    assert list(json.loads(path.read_text())) == list(wanted)
    assert store.add_all(read(out, files.CacheReadout())) == 0


def test_a_live_entry_is_exported_as_the_service_would_say_it(
    cache: Path, store: RecordingStore, tmp_path: Path
) -> None:
    [first, *_] = read(cache, files.CacheReadout())
    live = first.model_copy(
        update={"origin": "live", "provenance": "live", "response": {"é": [1, None]}}
    )
    store.add(live)
    files.write_cache(tmp_path / "out", store.entries())
    [path] = list((tmp_path / "out").rglob("*.json"))
    reply = json.loads(path.read_text())["{'city': 'Paris', 'days': 3}"]
    assert reply == {"error": "", "response": "{'é': [1, None]}"}


@pytest.mark.parametrize("api_id", ["a/b/../../../c", "a/../b", "a/b", "..", "a/b/c\\d", "/etc/x"])
def test_no_export_leaves_its_folder(cache: Path, tmp_path: Path, api_id: str) -> None:
    [first, *_] = read(cache, files.CacheReadout())
    out = tmp_path / "out"
    with pytest.raises(DataError):
        files.write_cache(out, [first.model_copy(update={"api_id": api_id})])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


def test_a_cache_can_be_written_on_windows(cache: Path, tmp_path: Path) -> None:
    [first, *_] = read(cache, files.CacheReadout())
    files.write_cache(tmp_path / "out", [first.model_copy(update={"api_id": "aux/a:b/nul.x"})])
    [path] = (tmp_path / "out").rglob("*.json")
    assert path.relative_to(tmp_path / "out").parts[-3:] == ("aux_", "a_b_for_aux_", "nul_.x.json")


def test_places_that_will_not_do(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        files.cache_files(tmp_path)
    with pytest.raises(NotFoundError):
        files.cache_files(tmp_path / "none")
    with pytest.raises(UsageError):
        files.write_cache(tmp_path, [])
    with pytest.raises(UsageError):
        files.write_cache(tmp_path / "no" / "folder", [])
