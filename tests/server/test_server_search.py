"""What a search shows: pages, detail, reasons, twins, and what was read or left out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from toolsrv.mcp_server.texts import search_text
from toolsrv.settings import load
from toolsrv.views.apis import Detail
from toolsrv.views.search import search_view
from toolsrv.workbench import Workbench
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.search.query import SearchQuery
from toolsrv_registry.search.recall import Recall
from toolsrv_registry.search.retriever import Hit, SearchResult
from toolsrv_runtime.agent.candidates import Candidates

Connect = Callable[[], AbstractAsyncContextManager[Any]]
Run = Callable[..., Result]


def hit(name: str, rank: int, tool: str = "t", **fields: Any) -> Hit:
    api = Api(
        id=f"C/{tool}/{name}",
        category="C",
        tool=tool,
        name=name,
        description=f"About {name}\x1b[2J",
        required=(Parameter(name="city"),),
    )
    given: dict[str, Any] = {
        "matched_words": ("rain",),
        "similarity": 0.61,
        "clause": "rain in Rome",
    }
    return Hit(
        api=api, rank=rank, score=1 - rank / 10, lexical_rank=1, dense_rank=2, **(given | fields)
    )


def result(*hits: Hit, **fields: Any) -> SearchResult:
    given: dict[str, Any] = {"nothing_fits": False, "nearest_categories": ("C",)} | fields
    text = given.pop("text", "rain in Rome")
    reading = given.pop("reading", SearchQuery(text))
    return SearchResult(query=text, hits=hits, reading=reading, **given)


@pytest.fixture
def bench(ready_dir: Path) -> Iterator[Workbench]:
    """A workbench on the indexed offline catalog."""
    made = Workbench(load({"data_dir": str(ready_dir)}).settings)
    yield made
    asyncio.run(made.aclose())


def test_a_search_lists_what_a_solve_offers_in_its_order(bench: Workbench) -> None:
    task = "What is 12 % of 80, and which day of the week was 3 May 2026?"
    retriever = bench.searchable().retriever
    offer = Candidates(retriever, task, 9, None)
    offer.begin()
    found = bench.search(task, 9)
    assert [one.api.id for one in found.hits] == [one.api.id for one in offer.available]
    assert [one.rank for one in found.hits] == list(range(1, 10))
    # The matcher has changed the order, or this shows nothing.
    assert [one.api.id for one in retriever.search(task, 9).hits] != [
        one.api.id for one in found.hits
    ]
    pages = [bench.search(task, 6, offset=offset).hits for offset in range(0, 24, 6)]
    whole = bench.search(task, 24).hits
    assert [one.api.id for page in pages for one in page] == [one.api.id for one in whole]
    assert [one.rank for page in pages for one in page] == list(range(1, 25))


def test_an_api_named_in_full_is_the_first_hit_whatever_the_matcher_says(bench: Workbench) -> None:
    found = bench.search("capital_city_for_country_facts", 3)
    assert found.named
    assert found.hits[0].api.id == "Data/country_facts/capital_city"


def test_hits_stand_in_the_order_of_their_ranks_whatever_tools_they_are_of() -> None:
    view = search_view(result(hit("a", 1), hit("b", 2, "other"), hit("c", 3)), "summary")
    assert [(one.id, one.rank) for one in view.hits] == [
        ("C/t/a", 1),
        ("C/other/b", 2),
        ("C/t/c", 3),
    ]


@pytest.mark.parametrize("detail", ["names", "summary", "full"])
def test_every_hit_says_why_however_little_is_asked_for(detail: Detail) -> None:
    view = search_view(result(hit("a", 1), text="rain in Rome, and a hotel"), detail)
    (shown,) = view.hits
    assert shown.why == "words: rain; meaning: 0.61; for: rain in Rome"
    assert shown.why in search_text(view)
    assert bool(shown.description) is (detail != "names")
    assert bool(shown.parameters) is (detail == "full")


def test_marks_and_twins_are_told_in_both_forms() -> None:
    marked = hit("a", 1, dead="404 on 2026-11-20", changed=True, similar=("C/x/a", "C/y/a"))
    view = search_view(result(marked), "summary")
    text = search_text(view)
    for said in ("dead: 404 on 2026-11-20", "changed", "+2 similar: C/x/a, C/y/a", "accept"):
        assert said in text
    assert view.hits[0].similar == ("C/x/a", "C/y/a")
    assert "\x1b" not in text


def test_what_was_read_and_left_out_is_said() -> None:
    slip = search_view(
        result(hit("a", 1), reading=SearchQuery("rain", (("rian", "rain"),)), dead_left_out=2),
        "names",
    )
    assert "searched for: rain (rian)" in slip.notes
    assert "2 APIs left out" in " ".join(slip.notes)
    assert (slip.searched, slip.dead_left_out) == ("rain", 2)
    german = search_view(
        result(hit("a", 1), reading=SearchQuery("rain", (), "German", translated=True)), "names"
    )
    assert "seems to be German; searched for: rain" in search_text(german)
    korean = search_view(
        result(reading=SearchQuery("비", (), "Korean"), nothing_fits=True), "names"
    )
    assert "nothing could be read" in search_text(korean)
    assert "No API fits." in search_text(korean)


def test_the_next_page_is_named_only_where_there_is_one() -> None:
    first = search_text(search_view(result(hit("a", 1), next_offset=5), "names"))
    assert "offset=5" in first
    assert "offset" not in search_text(search_view(result(hit("a", 1)), "names"))
    assert "No more APIs." in search_text(search_view(result(offset=40), "names"))
    beyond = search_text(search_view(result(offset=40, total=12), "names"))
    assert "no more hits; there are 12" in beyond


def search(run: Run, *words: str) -> dict[str, Any]:
    done = run("search", *words, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("ready_dir")
class TestCommandLine:
    def test_pages_follow_each_other(self, run: Run) -> None:
        whole = search(run, "convert units of time", "--limit", "6", "--detail", "names")
        assert whole["next_offset"] == 6
        pages = [
            search(run, "convert units of time", "--limit", "3", "--offset", str(offset))
            for offset in (0, 3)
        ]
        ranked = {hit["rank"]: hit["id"] for page in pages for hit in page["hits"]}
        assert ranked == {hit["rank"]: hit["id"] for hit in whole["hits"]}
        shown = run("search", "convert units of time", "--limit", "3")
        assert "--offset 3" in shown.stderr

    def test_past_the_last_page_it_says_how_many_there_are(self, run: Run) -> None:
        found = search(run, "convert units of time", "--offset", "900")
        assert (found["hits"], found["next_offset"]) == ([], None)
        shown = run("search", "convert units of time", "--offset", "900")
        assert f"no more hits; there are {found['total']}" in shown.stderr
        assert not shown.stdout.strip()

    def test_names_are_one_id_per_line_with_its_reason(self, run: Run) -> None:
        done = run("search", "sunrise in a city", "--detail", "names", "--limit", "3")
        lines = [line.split("  ") for line in done.stdout.splitlines()]
        assert len(lines) == 3
        assert all(line[0].count("/") == 2 for line in lines)
        assert all("meaning: " in line[1] for line in lines)

    def test_a_catalog_is_a_place_to_search(self, run: Run) -> None:
        found = search(run, "sunrise", "--catalog", "offline", "--limit", "2")
        assert {hit["catalog"] for hit in found["hits"]} == {"offline"}
        wrong = run("search", "sunrise", "--catalog", "offlin")
        assert wrong.exit_code == 2
        assert "'offline'" in wrong.stderr

    @pytest.mark.parametrize(
        ("text", "expected", "said"),
        [
            ("sunrse in Bergen", "Weather/sun_and_moon/sunrise_and_sunset", "sunrise (sunrse)"),
            ("Wie spät ist es in Tokio?", "Location/world_clock/current_time", "German"),
            ("¿Cuál es la capital de Perú?", "Data/country_facts/capital_city", "Spanish"),
        ],
    )
    def test_misspelt_and_foreign_queries_find_it_and_say_so(
        self, run: Run, text: str, expected: str, said: str
    ) -> None:
        assert search(run, text)["hits"][0]["id"] == expected
        assert said in run("search", text).stderr

    def test_nothing_fits_names_the_nearest_categories(self, run: Run) -> None:
        found = search(run, "fold the laundry and feed my hamster Otto")
        assert found["nothing_fits"]
        assert found["nearest_categories"]
        assert "nothing fits" in run("search", "fold the laundry and feed my hamster").stderr

    @pytest.mark.parametrize("bad", [["--offset", "-1"], ["--detail", "all"], ["--limit", "0"]])
    def test_a_wrong_option_is_a_usage_error(self, run: Run, bad: list[str]) -> None:
        assert run("search", "x", *bad).exit_code == 2


@pytest.mark.anyio
async def test_a_client_pages_and_narrows_over_every_transport(
    connect: Connect,
) -> None:
    async with connect() as client:
        query = {"query": "convert a time between time zones", "limit": 2, "detail": "names"}
        first = (await client.call_tool("search_apis", query)).structured_content
        second = await client.call_tool(
            "search_apis", query | {"offset": first["next_offset"], "catalog": "offline"}
        )
        ranks = [hit["rank"] for hit in [*first["hits"], *second.structured_content["hits"]]]
        assert sorted(ranks) == [1, 2, 3, 4]
        wrong = await client.call_tool("search_apis", {"query": "x", "catalog": "nowhere"})
        assert wrong.is_error
        assert "offline" in wrong.content[0].text
        misspelt = await client.call_tool("search_apis", {"query": "sunrse in Bergen"})
        assert "sunrise (sunrse)" in misspelt.content[0].text


def test_a_search_and_a_solve_say_that_every_catalog_is_disabled(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    assert run("catalog", "disable", "offline").exit_code == 0
    for words in (("search", "sunrise"), ("solve", "-q", "When does the sun rise in Rome?")):
        told = run(*words)
        assert told.exit_code == 2
        assert "every catalog is disabled" in told.stderr
        assert "toolsrv catalog enable offline" in told.stderr
    assert run("catalog", "enable", "offline").exit_code == 0
    assert run("search", "sunrise").exit_code == 0


def test_a_search_that_the_matcher_reads_ranks_its_text_once(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, times = Recall.read, []

    def counted(self: Recall, *given: Any, **more: Any) -> Any:
        times.append(given)
        return read(self, *given, **more)

    monkeypatch.setattr(Recall, "read", counted)
    text = "What is the capital of Peru?"
    kinds: tuple[dict[str, Any], ...] = (
        {}, {"offset": 5}, {"callable_only": True}, {"without_matcher": True}
    )  # fmt: skip
    for more in kinds:
        times.clear()
        assert bench.search(text, 5, **more).hits
        assert len(times) == 1, more


def test_the_longer_list_beside_a_page_is_that_of_a_search_for_as_many(bench: Workbench) -> None:
    retriever = bench.searchable().retriever
    for text in ("time in Tokyo and the weather there", "Data/country_facts/capital_city", "zzz"):
        page = retriever.search(text, 3, offset=2, longer=20)
        assert page.longer == retriever.search(text, 20).hits
        assert page.model_dump() == retriever.search(text, 3, offset=2).model_dump()
