"""The store: catalogs in and out, ids, filters, word search, and two catalogs with one id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolsrv_registry import documents
from toolsrv_registry.api import ORIGINAL, RESPONSE_SCHEMA, Api, Catalog, Tool
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_registry.storage.entries import Origin
from toolsrv_registry.storage.name_index import fts_query
from toolsrv_registry.storage.response_schemas import MadeSchema
from toolsrv_registry.storage.store import Store

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]


def test_a_catalog_comes_back_as_it_was_put(filled: Store, catalog: Catalog) -> None:
    assert tuple(filled.apis()) == catalog.apis
    assert [filled.get(api.id) for api in catalog.apis] == list(catalog.apis)
    stats = filled.stats()
    assert (stats.catalogs, stats.tools, stats.apis, stats.categories) == (1, 8, 12, 6)
    assert stats.bytes > 0
    assert filled.names.categories()["Weather"] == 3
    assert [tool.apis for tool in filled.tools(category="Weather")] == [2, 1]


def test_putting_a_catalog_again_changes_only_what_changed(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    a, b, c = (make_api("Tools", "T", name, f"does {name}") for name in ("one", "two", "three"))
    assert store.put_catalog(make_catalog(a, b)).added == (a.id, b.id)
    assert store.put_catalog(make_catalog(a, b)).unchanged == 2
    b2 = b.model_copy(update={"description": "does it differently"})
    changes = store.put_catalog(make_catalog(c, b2))
    assert (changes.added, changes.changed, changes.removed) == ((c.id,), (b.id,), (a.id,))
    assert store.apis() == [c, b2]
    assert store.names.match(["differently"], 5) == [b.id]
    assert store.names.match(["one"], 5) == []


def test_a_changed_text_shows_until_it_is_accepted(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    api = make_api("Tools", "T", "one", "harmless")
    new = api.model_copy(update={"description": "other words"})
    store.put_catalog(make_catalog(api))
    assert store.put_catalog(make_catalog(new), hold=True).changed == (api.id,)
    assert store.changed("small") == [api.id]
    assert store.catalogs()[0].changed == 1
    assert [(one.served, one.new) for one in store.pending("small")] == [(api, new)]
    assert store.get(api.id) == api
    assert store.names.match(["other"], 5) == []
    before = store.content_hash()
    assert store.accept("small") == 1
    assert store.changed("small") == []
    assert store.get(api.id) == new
    assert store.content_hash() != before
    assert len(store.names.match(["other"], 5)) == 1


def test_a_change_that_is_taken_back_waits_no_more(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    api = make_api("Tools", "T", "one", "harmless")
    new = api.model_copy(update={"description": "other words"})
    store.put_catalog(make_catalog(api))
    store.put_catalog(make_catalog(new), hold=True)
    assert store.put_catalog(make_catalog(new), hold=True).unchanged == 1
    assert store.put_catalog(make_catalog(api), hold=True).unchanged == 1
    assert store.changed("small") == []
    store.put_catalog(make_catalog(new), hold=True)
    store.put_catalog(make_catalog(new))
    assert (store.changed("small"), store.get(api.id)) == ([], new)


def test_some_changes_can_be_accepted_alone(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    old = [make_api("Tools", "T", name, "harmless") for name in ("one", "two")]
    new = [api.model_copy(update={"description": "other"}) for api in old]
    store.put_catalog(make_catalog(*old))
    store.put_catalog(make_catalog(*new), hold=True)
    assert store.accept("small", [old[1].id, "no/such/id"]) == 1
    assert store.apis() == [old[0], new[1]]


def test_an_api_that_was_away_is_compared_with_its_accepted_text(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    stays, api = make_api("Tools", "T", "stays"), make_api("Tools", "T", "one", "harmless")
    new = api.model_copy(update={"description": "other words"})
    store.put_catalog(make_catalog(stays, api))
    assert store.put_catalog(make_catalog(stays), hold=True).removed == (api.id,)
    assert store.accepted("small", [api.id, "no/such/id"]) == {api.id: api}
    for put in (store.preview, lambda catalog: store.put_catalog(catalog, hold=True)):
        changes = put(make_catalog(stays, new))
        assert (changes.added, changes.changed, changes.unchanged) == ((), (api.id,), 1)
    assert (store.get(api.id), store.changed("small")) == (api, [api.id])
    assert store.names.match(["other"], 5) == []

    store.put_catalog(make_catalog(stays), hold=True)
    assert store.preview(make_catalog(stays, api)).added == (api.id,)
    assert store.put_catalog(make_catalog(stays, api), hold=True).added == (api.id,)
    assert (store.apis(), store.changed("small")) == ([stays, api], [])

    store.put_catalog(make_catalog(stays), hold=True)
    assert store.put_catalog(make_catalog(stays, new)).changed == (api.id,)
    assert store.get(api.id) == new
    store.put_catalog(make_catalog(stays), hold=True)
    store.remove_catalog("small")
    assert store.put_catalog(make_catalog(stays, api), hold=True).added == (stays.id, api.id)


def test_a_whole_catalog_comes_back_with_what_an_export_needs(
    store: Store, make_api: MakeApi
) -> None:
    apis = (make_api("Tools", "T", "one"), make_api("Tools", "T", "two"))
    tools = (
        Tool(category="Tools", name="T", apis=apis[:1], extra={"score": None}),
        Tool(category="Tools", name="T", apis=apis[1:], api_extras=({"keys": {"code": "x"}},)),
        Tool(category="Tools", name="Empty"),
    )
    whole = Catalog(name="whole", tools=tools)
    store.put_catalog(whole, source="somewhere")
    assert store.catalog("whole") == whole
    assert store.catalogs()[0].source == "somewhere"
    with pytest.raises(NotFoundError):
        store.catalog("none")


def test_what_was_read_goes_where_its_text_goes(store: Store, make_api: MakeApi) -> None:
    old = make_api("Tools", "T", "one", "harmless")
    new = old.model_copy(update={"description": "other words"})

    def put(api: Api, original: str) -> None:
        extras = ({ORIGINAL: original},) if original else ()
        tool = Tool(category="Tools", name="T", apis=(api,), api_extras=extras)
        store.put_catalog(Catalog(name="small", tools=(tool,)), hold=True)

    def kept() -> tuple[str, str]:
        (tool,) = store.catalog("small").tools
        return tool.apis[0].description, tool.api_extras[0][ORIGINAL] if tool.api_extras else ""

    put(old, "as the first was read")
    put(new, "as the second was read")
    assert kept() == ("harmless", "as the first was read")
    (last,) = store.catalog("small", waiting=True).tools
    assert (last.apis, last.api_extras) == ((new,), ({ORIGINAL: "as the second was read"},))
    put(new, "as the second was read again")
    assert kept() == ("harmless", "as the first was read")
    assert store.accept("small") == 1
    assert kept() == ("other words", "as the second was read again")
    put(new, "as the same text was read")
    assert kept() == ("other words", "as the same text was read")
    put(old, "as a third was read")
    put(new, "")
    assert store.changed("small") == []
    assert kept() == ("other words", "")
    put(old, "")
    assert store.accept("small") == 1
    assert kept() == ("harmless", "")
    put(old, "as the last was read")
    store.remove_catalog("small")
    assert store._database.read("SELECT * FROM originals") == []


def test_only_a_whole_catalog_has_what_was_read(store: Store, make_api: MakeApi) -> None:
    api = make_api("Tools", "T", "one", "harmless")
    beside = {ORIGINAL: "tainted", "keys": {"code": "x"}}
    tool = Tool(category="Tools", name="T", apis=(api,), api_extras=(beside,))
    store.put_catalog(Catalog(name="small", tools=(tool,)))
    told = (store.get(api.id), store.apis(), store.home(api.id), store.tools(), store.word_rows())
    assert "tainted" not in repr((*told, store.documents(), store.pending("small")))
    assert store.names.match(["tainted"], 5) == []
    assert store.catalog("small").tools == (tool,)


def test_the_origin_of_a_catalog_is_kept_until_it_is_put_from_elsewhere(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    catalog = make_catalog(make_api("Tools", "T", "one"), name="a")
    origin = Origin(title="T", address="o/n", file="t.zip", size_bytes=9, sha256="0" * 64)
    store.put_catalog(catalog, source="hub", origin=origin)
    assert store.catalogs()[0].origin == origin
    licensed = origin.model_copy(update={"licence": "MIT"})
    assert store.put_catalog(catalog, source="hub", origin=licensed).unchanged == 1
    assert store.catalogs()[0].origin == licensed
    store.put_catalog(catalog)
    assert store.catalogs()[0].origin == licensed
    store.put_catalog(catalog, source="/a/file")
    assert store.catalogs()[0].origin is None


def test_an_id_in_two_catalogs_means_the_first_enabled_one(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    first = make_api("Tools", "T", "one", "from the first")
    second = make_api("Tools", "T", "one", "from the second")
    store.put_catalog(make_catalog(first, name="a"))
    store.put_catalog(make_catalog(second, name="b"))
    assert store.get(first.id) == first
    assert store.get(first.id, catalog="b") == second
    assert store.apis() == [first]
    assert len(store.names.match(["first", "second"], 9)) == 1
    assert store.labels.hidden_behind("b") == {"a": 1}
    assert store.labels.hidden_behind("a") == {}
    assert store.labels.hidden_behind("c", [first.id, "no/such/id"]) == {"a": 1}
    assert store.labels.hidden_behind("a", [first.id]) == {}
    with pytest.raises(NotFoundError, match="in 'b'"):
        store.get("no/such/id", catalog="b")
    store.set_enabled("a", enabled=False)
    assert store.labels.hidden_behind("b") == {}
    assert store.get(first.id) == second
    assert store.get_many([first.id, "no/such/id"]) == {first.id: second}
    store.set_enabled("a", enabled=True)
    store.remove_catalog("a")
    assert store.get(first.id) == second
    assert [entry.name for entry in store.catalogs()] == ["b"]


def test_a_catalog_with_an_id_twice_is_refused_whole(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    with pytest.raises(DataError):
        store.put_catalog(make_catalog(make_api("A", "T", "x"), make_api("A", "T", "x")))
    assert store.catalogs() == []


def test_text_that_is_not_unicode_is_refused_whole(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    with pytest.raises(DataError):
        store.put_catalog(make_catalog(make_api("A", "T", "x", "half a \ud83d")))
    assert store.catalogs() == []


def test_an_unknown_id_names_the_nearest_ones(filled: Store) -> None:
    with pytest.raises(NotFoundError) as caught:
        filled.get("Weather/sky_watch/forecasts")
    assert "'Weather/sky_watch/forecast'" in caught.value.hint
    with pytest.raises(NotFoundError):
        filled.get("\0\ud800" * 1000)


@pytest.mark.parametrize("form", ["News_Media", "news, media", " NEWS_MEDIA "])
def test_a_category_is_known_in_any_form(filled: Store, form: str) -> None:
    assert [api.name for api in filled.apis(category=form)] == ["Headlines"]


def test_unknown_places_name_near_matches(filled: Store) -> None:
    with pytest.raises(NotFoundError) as caught:
        filled.apis(category="Wether")
    assert "'Weather'" in caught.value.hint
    with pytest.raises(NotFoundError) as caught:
        filled.apis(tool="Sky Wach")
    assert "'sky_watch'" in caught.value.hint
    with pytest.raises(NotFoundError) as caught:
        filled.apis(catalog="smal")
    assert "'small'" in caught.value.hint


def test_words_are_found_stemmed_and_split(filled: Store) -> None:
    assert filled.names.match(["forecasting"], 9)[0] == "Weather/sky_watch/forecast"
    assert "Tools/units/convertunit" in filled.names.match(["unit"], 9)
    assert "Finance/money/convert_currency" in filled.names.match(["convert"], 9)
    assert filled.names.match(["city"], 0) == []
    assert filled.names.frequency("city") == 4


@given(terms=st.lists(st.text(max_size=30), max_size=80))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_is_ever_read_as_a_query(filled: Store, terms: list[str]) -> None:
    filled.names.match(terms, 5)
    filled.names.frequency(" ".join(terms))


@pytest.mark.parametrize(
    "term",
    [
        '"',
        "a OR b",
        "name:x",
        "NEAR(a b)",
        "a*",
        "^a",
        "-a",
        "(",
        "\0",
        "'; DROP TABLE apis",
        'a"b',
    ],
)
def test_query_syntax_and_sql_are_mere_words(filled: Store, term: str) -> None:
    filled.names.match([term], 5)
    assert fts_query([term]).startswith('"') or not fts_query([term])
    assert filled.stats().apis == 12


def test_the_content_hash_follows_what_a_search_can_find(
    filled: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    before = filled.content_hash()
    assert filled.content_hash() == before
    filled.put_catalog(make_catalog(make_api("Tools", "T", "extra"), name="more"))
    more = filled.content_hash()
    assert more != before
    filled.set_enabled("more", enabled=False)
    assert filled.content_hash() == before


def test_pages_of_apis_join_to_the_whole(filled: Store, catalog: Catalog) -> None:
    pages = [filled.apis(limit=5, offset=at) for at in (0, 5, 10)]
    assert tuple(api for page in pages for api in page) == catalog.apis


def test_hidden_apis_take_no_place_among_the_best(
    store: Store, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    hidden = [make_api("Tools", "T", f"word {n}") for n in range(30)]
    shown = [make_api("Tools", "U", f"other {n}", "a word among many others") for n in range(3)]
    store.put_catalog(make_catalog(*hidden, name="hidden"))
    store.put_catalog(make_catalog(*shown, name="shown"))
    store.set_enabled("hidden", enabled=False)
    assert set(store.names.match(["word"], 3)) == {api.id for api in shown}


def test_a_made_response_schema_comes_before_the_source_s_until_the_text_changes(
    tmp_path: Path, make_api: MakeApi
) -> None:
    api = make_api("Tools", "T", "one")
    extras = ({RESPONSE_SCHEMA: {"a": "int"}},)
    tool = Tool(category="Tools", name="T", apis=(api,), api_extras=extras)
    entry = MadeSchema(
        api_id=api.id,
        content_hash=documents.content_hash(api),
        response_schema=[{"b": True}],
        model="m",
        identity="i",
        prompt="p",
        version="1",
        made_at="2026-01-01T00:00:00+00:00",
        seed=0,
        source="document",
        keys=2,
        kept=1,
        tokens_before=9,
        tokens_after=4,
    )
    with Store.open(tmp_path / "registry.sqlite3") as store:
        catalog = Catalog(name="small", tools=(tool,))
        store.put_catalog(catalog)
        store.response_schemas.put(entry)
        assert store.home(api.id)[2] == [{"b": True}]
        assert store.response_schemas.of([api.id, "other"]) == {api.id: entry}
        assert store.response_schemas.of_source(api.id) == {"a": "int"}
        assert store.catalog("small") == catalog  # an export has the source's
        store.response_schemas.put(entry.model_copy(update={"response_schema": None}))
        assert store.home(api.id)[2] == {"a": "int"}
        store.response_schemas.put(entry.model_copy(update={"content_hash": "other"}))
        assert store.home(api.id)[2] == {"a": "int"}
        assert store.response_schemas.remove([api.id, "other"]) == 1
        assert store.response_schemas.of([api.id]) == {}
        assert store.response_schemas.of_source("other") is None
