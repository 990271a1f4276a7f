"""Checks kept with the APIs: which are dead, since when, and when that no longer counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry import documents
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.errors import DataError
from toolsrv_registry.storage.health import HealthEntry, HealthStatus
from toolsrv_registry.storage.store import Store

FORECAST = "Weather/sky_watch/forecast"
HASH = "Tools/hash/sha_256"


def found(api: Api, verdict: str, **more: Any) -> HealthEntry:
    return HealthEntry(
        api_id=api.id,
        content_hash=documents.content_hash(api),
        checked_at="2026-11-20T10:00:00+00:00",
        verdict=HealthStatus(verdict),
        **more,
    )


def test_a_dead_api_is_told_with_its_reason_and_day(filled: Store) -> None:
    assert filled.dead() == {}
    filled.health.record(
        [
            found(filled.get(FORECAST), "http_error", status=404),
            found(filled.get(HASH), "ok", status=200),
        ]
    )
    assert filled.dead() == {FORECAST: "404 on 2026-11-20"}
    entry = filled.health_of(HASH)
    assert entry is not None
    assert (entry.verdict, entry.standing) == (HealthStatus.OK, "alive")
    assert filled.health_of("Weather/sky_watch/current_conditions") is None


def test_a_later_check_replaces_the_earlier_one(filled: Store) -> None:
    api = filled.get(FORECAST)
    filled.health.record([found(api, "html")])
    assert filled.dead()
    filled.health.record([found(api, "ok")])
    assert not filled.dead()
    assert len(filled.health.latest()) == 1


def test_a_changed_api_is_no_longer_dead(
    filled: Store, catalog: Catalog, make_catalog: Callable[..., Catalog]
) -> None:
    filled.health.record([found(filled.get(FORECAST), "html")])
    changed = [
        api.model_copy(update={"description": "new"}) if api.id == FORECAST else api
        for api in catalog.apis
    ]
    filled.put_catalog(make_catalog(*changed, name=catalog.name))
    assert not filled.dead()
    assert filled.health_of(FORECAST) is None
    filled.put_catalog(catalog)
    assert filled.dead()
    filled.put_catalog(make_catalog(*changed, name=catalog.name))
    filled.health.record([found(filled.get(FORECAST), "ok")])
    assert len(filled.health.latest()) == 1


def test_apis_of_a_hidden_catalog_are_not_told(filled: Store, catalog: Catalog) -> None:
    filled.health.record([found(filled.get(FORECAST), "empty")])
    filled.set_enabled(catalog.name, enabled=False)
    assert not filled.dead()
    filled.set_enabled(catalog.name, enabled=True)
    assert filled.dead()


def test_a_check_is_told_of_just_the_text_that_it_was_made_of(
    filled: Store, catalog: Catalog
) -> None:
    api = filled.get(FORECAST)
    filled.health.record([found(api, "html")])
    filled.set_enabled(catalog.name, enabled=False)
    checks = filled.checks(catalog.apis)
    assert {api_id: check.verdict for api_id, check in checks.items()} == {
        FORECAST: HealthStatus.HTML
    }
    assert filled.checks([api.model_copy(update={"description": "new"})]) == {}
    assert filled.checks([]) == {}


def test_the_checks_of_a_catalog_are_those_of_its_apis_as_they_stand(
    filled: Store, catalog: Catalog, make_catalog: Callable[..., Catalog]
) -> None:
    filled.health.record([found(filled.get(FORECAST), "html")])
    filled.set_enabled(catalog.name, enabled=False)
    (check,) = filled.health.of_catalog(catalog.name).values()
    assert (check.api_id, check.verdict) == (FORECAST, HealthStatus.HTML)
    assert filled.health.of_catalog("another") == {}
    changed = [api.model_copy(update={"description": "new"}) for api in catalog.apis]
    filled.put_catalog(make_catalog(*changed, name=catalog.name))
    assert filled.health.of_catalog(catalog.name) == {}


def test_what_another_process_finds_shows_at_once(filled: Store) -> None:
    assert not filled.dead()
    with Store.open(filled.path) as other:
        other.health.record([found(other.get(FORECAST), "timed_out")])
    assert filled.dead() == {FORECAST: "no answer in time on 2026-11-20"}
    assert filled.dead() is filled.dead()


def test_all_of_a_batch_is_kept_or_none(filled: Store) -> None:
    good = found(filled.get(FORECAST), "html")
    bad = good.model_copy(update={"api_id": HASH, "status": None})
    with pytest.raises(DataError):
        filled.health.record([good, bad])
    assert not filled.health.latest()


def test_nobody_can_change_the_list_of_the_dead(filled: Store) -> None:
    with pytest.raises(TypeError):
        filled.dead()["x"] = "y"  # type: ignore[index]


@given(
    checks=st.lists(
        st.tuples(
            st.sampled_from([FORECAST, HASH, "gone/from/here"]),
            st.sampled_from(list(HealthStatus)),
            st.integers(0, 599),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_the_dead_are_those_whose_last_check_says_so(
    checks: list[tuple[str, HealthStatus, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("health")
    apis = {
        name: Api(id=name, category=name.split("/")[0], tool="t", name="n")
        for name in (FORECAST, HASH)
    }
    with Store.open(Path(folder) / "r.sqlite3") as store:
        tools = tuple(
            Tool(category=api.category, name=api.tool, apis=(api,)) for api in apis.values()
        )
        store.put_catalog(Catalog(name="c", tools=tools))
        last: dict[str, HealthEntry] = {}
        for api_id, verdict, status, guessed in checks:
            api = apis.get(api_id) or Api(id=api_id, category="c", tool="t", name="n")
            entry = found(api, verdict, status=status, guessed=guessed)
            store.health.record([entry])
            last[api_id] = entry
        expected = {i for i, one in last.items() if i in apis and one.standing == "dead"}
        assert set(store.dead()) == expected
