"""An API that is called by its tool's and its own name is found, whatever else resembles it."""

from __future__ import annotations

import json
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolsrv_catalogs.toolbench import distinct, read_tool
from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.documents import content_hash
from toolsrv_registry.registry import Registry
from toolsrv_registry.storage.health import HealthEntry, HealthStatus

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]

DATA = Path(__file__).parents[3] / "shared" / "data" / "toolbench" / "toolenv.tar.gz"


@pytest.fixture(scope="module")
def toolbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """All of ToolBench's catalog, without vectors: names are found by words."""
    if not DATA.is_file():
        pytest.skip("ToolBench's data is not here")
    tools = []
    with tarfile.open(DATA) as archive:
        for member in archive:
            parts = Path(member.name).parts
            file = archive.extractfile(member) if parts[1:2] == ("tools",) else None
            if file is not None:
                tools.append(read_tool(json.load(file), parts[2], stem=Path(parts[3]).stem))
    catalog = Catalog(name="toolbench", tools=distinct(tools))
    with Registry.open(tmp_path_factory.mktemp("names"), [catalog]) as opened:
        yield opened


def lost(registry: Registry, text: str, api: Api) -> bool:
    """Whether an API is neither among the first ten nor folded under one of them."""
    hits = registry.retriever.search(text, 10).hits
    return not any(api.id == hit.api.id or api.id in hit.similar for hit in hits)


def test_every_api_that_ships_comes_first_by_its_names(registry: Registry) -> None:
    for api in registry.store.apis():
        result = registry.retriever.search(f"{api.tool} {api.name}", 10)
        assert result.hits[0].api.id == api.id
        assert not result.nothing_fits


def test_toolbenchs_apis_are_found_by_their_names(toolbench: Registry) -> None:
    apis = list(toolbench.store.apis())
    assert len(apis) > 16_000
    sample = random.Random(7).sample(apis, 400)
    # These were lost among their many siblings, or taken for slips.
    known = {
        "Sports/nhl_stats_and_live_data/getdraftprospects",
        "Sports/allsportsapi/basketballleagueshotactionsareasplayoffs",
        "Email/mailslurp_email_testing/getinboxsentemails",
        "Events/demo_project/get_order",
        "Travel/priceline_com_provider/auto_complete",
    }
    sample += [api for api in apis if api.id in known]
    assert len(sample) >= 400 + len(known) - 1
    assert [api.id for api in sample if lost(toolbench, f"{api.tool} {api.name}", api)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Sky Watch Forecast",
        "sky_watch forecast",
        "SkyWatch: Forecast!",
        "Forecast Sky Watch",
        "forecast_for_sky_watch",
        "forecast of Sky Watch",
    ],
)
def test_a_name_is_known_in_any_form(hashed: Registry, text: str) -> None:
    hit = hashed.retriever.search(text).hits[0]
    assert hit.api.id == "Weather/sky_watch/forecast"
    assert hit.clause == text


def test_a_name_is_no_text_to_put_right(
    hashed: Registry, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    odd = make_api("Tools", "Wether Forcast", "getRain", "Nothing of note")
    hashed.store.put_catalog(make_catalog(odd, name="odd"))
    result = hashed.retriever.search("getRain of Wether Forcast")
    assert result.hits[0].api.id == odd.id
    assert result.reading.corrected == ()


def test_a_name_leads_nowhere_outside_the_place_that_is_searched(hashed: Registry) -> None:
    inside = hashed.retriever.search("Sky Watch Forecast", category="Finance")
    assert {hit.api.category for hit in inside.hits} <= {"Finance"}


def test_a_dead_api_is_not_shown_for_its_name(hashed: Registry) -> None:
    forecast = "Weather/sky_watch/forecast"
    entry = HealthEntry(
        api_id=forecast,
        content_hash=content_hash(hashed.get(forecast)),
        checked_at="2026-11-20T10:00:00+00:00",
        verdict=HealthStatus.HTTP_ERROR,
        status=404,
    )
    hashed.store.health.record([entry])
    result = hashed.retriever.search("Sky Watch Forecast")
    assert forecast not in {hit.api.id for hit in result.hits}
    assert result.dead_left_out == 1
