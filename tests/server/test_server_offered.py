"""What a solve is offered where other catalogs are served beside the one it can call."""

from __future__ import annotations

from pathlib import Path

from toolsrv.calls.callable_apis import CallableRetriever
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.registry import Registry

SUN = "sunrise and sunset of a city"


def foreign() -> Catalog:
    apis = tuple(
        Api(id=f"Weather/sun/{at}", category="Weather", tool="Sun", name=f"{SUN} {at}")
        for at in range(20)
    )
    return Catalog(name="other", tools=(Tool(category="Weather", name="Sun", apis=apis),))


def test_a_solve_is_offered_only_what_it_can_call(tmp_path: Path) -> None:
    with Registry.open(
        tmp_path, [load_offline_catalog(), foreign()], encoder=HashingEncoder()
    ) as registry:
        everywhere = {hit.api.tool for hit in registry.retriever.search(SUN, 5).hits}
        assert "Sun" in everywhere
        hits = CallableRetriever(registry).search(SUN, 5, category="Weather").hits
        assert hits
        assert all(hit.catalog == "offline" for hit in hits)


def test_without_the_offline_catalog_a_solve_is_offered_what_there_is(tmp_path: Path) -> None:
    with Registry.open(
        tmp_path, [load_offline_catalog(), foreign()], encoder=HashingEncoder()
    ) as registry:
        registry.store.set_enabled("offline", enabled=False)
        assert CallableRetriever(registry).search(SUN, 5).hits[0].catalog == "other"


def test_an_imported_api_that_can_be_called_is_offered_with_the_others(tmp_path: Path) -> None:
    with Registry.open(
        tmp_path, [load_offline_catalog(), foreign()], encoder=HashingEncoder()
    ) as registry:
        can = {"Weather/sun/3", "Weather/sun/4"}
        offered = CallableRetriever(
            registry, lambda api: api.id in can or api.id.startswith("Weather/sun_")
        )
        hits = offered.search(SUN, 5, category="Weather").hits
        assert len(hits) == 5
        assert can <= {hit.api.id for hit in hits}
        assert {hit.catalog for hit in hits} == {"offline", "other"}
        nothing = CallableRetriever(registry, lambda _: False)
        own = nothing.search(SUN, 5, category="Weather").hits
        assert own
        assert all(hit.catalog == "offline" for hit in own)


def test_what_fits_best_and_needs_consent_is_named(tmp_path: Path) -> None:
    with Registry.open(
        tmp_path, [load_offline_catalog(), foreign()], encoder=HashingEncoder()
    ) as registry:
        best = registry.retriever.search(SUN, 20, category="Weather").hits
        assert all(hit.catalog == "other" for hit in best[:3])
        refused = {hit.api.id for hit in best[:3]}
        on_a_yes = refused - {best[1].api.id}
        offered = CallableRetriever(
            registry, lambda api: api.id not in refused, lambda api: api.id in on_a_yes
        )
        found = offered.search(SUN, 5, category="Weather")
        assert found.need_consent == (best[0].api.id, best[2].api.id)
        assert not refused & {hit.api.id for hit in found.hits}
        assert not CallableRetriever(registry, lambda _: True).search(SUN, 5).need_consent
        nothing = CallableRetriever(registry, lambda _: False, lambda api: api.id == best[0].api.id)
        assert nothing.search(SUN, 5, category="Weather").need_consent == (best[0].api.id,)


def test_what_fits_and_lacks_a_key_is_named(tmp_path: Path) -> None:
    with Registry.open(
        tmp_path, [load_offline_catalog(), foreign()], encoder=HashingEncoder()
    ) as registry:
        best = registry.retriever.search(SUN, 20, category="Weather").hits
        lacks = {best[0].api.id: "a key", best[1].api.id: ""}
        offered = CallableRetriever(
            registry, lambda api: api.id not in lacks, lacks=lambda api: lacks.get(api.id, "")
        )
        found = offered.search(SUN, 5, category="Weather")
        assert found.need_keys == {best[0].api.id: "a key"}
        assert best[0].api.id not in {hit.api.id for hit in found.hits}
        none = CallableRetriever(registry, lambda _: False, lacks=lambda _: "")
        assert none.search(SUN, 5, category="Weather").need_keys == {}
        every = CallableRetriever(registry, lambda _: False, lacks=lambda _: "a key")
        assert 0 < len(every.search(SUN, 5, category="Weather").need_keys) <= 3
        registry.store.set_enabled("offline", enabled=False)
        assert best[0].api.id in every.search(SUN, 5, category="Weather").need_keys


def test_a_parameter_that_is_fixed_is_not_offered(tmp_path: Path) -> None:
    with Registry.open(tmp_path, [foreign()], encoder=HashingEncoder()) as registry:
        shown = CallableRetriever(
            registry, lambda _: True, as_called=lambda api: api.model_copy(update={"method": "PUT"})
        )
        assert {hit.api.method for hit in shown.search(SUN, 5).hits} == {"PUT"}
