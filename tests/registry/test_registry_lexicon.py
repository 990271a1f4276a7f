"""The word index in memory: what it counts, and that its file is only ever a cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.index import lexicon as lexicon_file
from toolsrv_registry.index.lexicon import Entry, Lexicon, LexiconCache, make_lexicon
from toolsrv_registry.storage.store import Store

ALL = np.arange(8)
WORDS = ("weather", "forecast", "city", "convert", "currency", "euro", "joke", "random")


def entry(api_id: str, name: str, tool: str = "tool", description: str = "") -> Entry:
    return Entry(
        api_id, f"hash {api_id}", "Cat", tool, "c", (name, tool, "cat", description, "", "")
    )


def catalog(*names: str) -> Catalog:
    apis = tuple(
        Api(id=f"Cat/tool/{name}", category="Cat", tool="Tool", name=name) for name in names
    )
    return Catalog(name="one", tools=(Tool(category="Cat", name="Tool", apis=apis),))


def test_an_api_with_more_of_the_words_fits_better() -> None:
    lexicon = make_lexicon(
        [
            entry("a", "weather forecast", description="the weather of a city for some days"),
            entry("b", "city list", description="all cities"),
            entry("c", "joke", description="a random joke"),
        ]
    )
    fit = lexicon.fit(["weather forecast of a city"])
    assert fit.words[0].argmax() == 0
    assert fit.words[0][1] > fit.words[0][2] == 0.0
    named = lexicon.named(fit, ALL[:3])[0]
    assert named[0] == pytest.approx(1.0)
    assert 1.0 > named[1] > named[2] == 0.0
    assert fit.full[0] > fit.words[0].max()


def test_stems_meet_and_empty_words_do_not_count_for_names() -> None:
    lexicon = make_lexicon([entry("a", "converting currencies api v2"), entry("b", "joke")])
    fit = lexicon.fit(["convert a currency"])
    assert lexicon.named(fit, ALL[:1])[0][0] == pytest.approx(1.0)


def test_the_tools_share_is_taken_of_the_whole_text() -> None:
    lexicon = make_lexicon([entry("a", "x", tool="numbers trivia"), entry("b", "y", tool="other")])
    fit = lexicon.fit(["a fact from numbers trivia, and a joke", "a joke"])
    assert lexicon.tool_named(fit, ALL[:2]).tolist() == [pytest.approx(1.0), 0.0]


def test_a_catalog_without_apis_fits_nothing() -> None:
    lexicon = make_lexicon([])
    fit = lexicon.fit(["anything"])
    assert fit.words.shape == lexicon.named(fit, ALL[:0]).shape == (1, 0)
    assert lexicon.tool_named(fit, ALL[:0]).shape == (0,)


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=8),
    st.text(max_size=60),
)
def test_shares_and_scores_stay_within_their_bounds(names: list[list[str]], text: str) -> None:
    lexicon = make_lexicon([entry(str(at), " ".join(one)) for at, one in enumerate(names)])
    fit = lexicon.fit([text + " weather city", "weather"])
    assert (fit.words >= 0).all()
    assert (fit.words <= fit.full[:, None] + 1e-4).all()
    places = ALL[: len(names)][::-1]
    shares, tools = lexicon.named(fit, places), lexicon.tool_named(fit, places)
    assert ((shares >= 0) & (shares <= 1 + 1e-5)).all()
    assert ((tools >= 0) & (tools <= 1 + 1e-5)).all()
    # By the names' words or by the places that are asked about: the same sums.
    everywhere = lexicon.names.totals(fit.terms, len(lexicon))
    assert np.allclose(shares, everywhere[:, places])


def same(one: Lexicon, other: Lexicon) -> bool:
    texts = ("ids", "hashes", "categories", "tool_keys", "catalogs", "terms")
    arrays = ("idf", "tool_numbers", "tool_weights", "name_lengths", "described")
    postings = ("words", "names", "tools")
    return (
        all(getattr(one, name) == getattr(other, name) for name in texts)
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and all(
            np.array_equal(a, b)
            for name in postings
            for a, b in zip(getattr(one, name), getattr(other, name), strict=True)
        )
    )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon_file, "_WORTH_KEEPING", 1)


@pytest.mark.usefixtures("kept")
def test_a_lexicon_read_from_its_file_is_the_one_that_was_made(tmp_path: Path) -> None:
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(catalog("weather", "größe", "joke"))
        made = LexiconCache(store).current()
        assert (tmp_path / lexicon_file.LEXICON_FILE).exists()
        assert same(made, LexiconCache(store).current())


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "other"])
def test_a_lost_or_damaged_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / lexicon_file.LEXICON_FILE
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(catalog("weather", "joke"))
        made = LexiconCache(store).current()
        content = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(
                {"empty": b"", "cut": content[: len(content) // 2], "other": b"x" * 99}[damage]
            )
        assert same(made, LexiconCache(store).current())
        assert path.read_bytes()[:2] == b"PK"


@pytest.mark.usefixtures("kept")
def test_it_follows_the_catalogs(tmp_path: Path) -> None:
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(catalog("weather"))
        lexicons = LexiconCache(store)
        assert lexicons.current() is lexicons.current()
        store.put_catalog(catalog("weather", "joke"))
        assert len(lexicons.current()) == 2
        store.set_enabled("one", enabled=False)
        assert len(lexicons.current()) == 0


@pytest.mark.usefixtures("kept")
def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    old, young = tmp_path / ".lexicon.npz-old", tmp_path / ".lexicon.npz-young"
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (1_000_000, 1_000_000))
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(catalog("weather"))
        LexiconCache(store).current()
    assert not old.exists()
    assert young.exists()


@pytest.mark.usefixtures("kept")
def test_a_folder_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with Store.open(tmp_path / "registry.sqlite3") as store:
        store.put_catalog(catalog("weather"))
        assert len(LexiconCache(store).current()) == 1
    assert not list(tmp_path.glob(".lexicon*"))
