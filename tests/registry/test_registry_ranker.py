"""Signals of candidates, the ranker over them, and what happens without it."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_registry.index.lexicon import Entry, Lexicon, make_lexicon
from toolsrv_registry.ranker import MODEL_FILE, SHIPPED_RANKER, Ranker
from toolsrv_registry.registry import Registry
from toolsrv_registry.search.retriever import Retriever
from toolsrv_registry.search.signals import (
    PLAIN,
    SIGNALS,
    VectorHits,
    candidate_signals,
    word_candidates,
)

WORDS = ("weather", "forecast", "city", "convert", "currency", "euro", "joke", "random")
DEPTH = 5


def lexicon(names: list[list[str]]) -> Lexicon:
    return make_lexicon(
        Entry(
            f"c/t{at % 3}/{at}",
            str(at),
            "c",
            f"t{at % 3}",
            "one",
            (" ".join(one), "", "", "", "", ""),
        )
        for at, one in enumerate(names)
    )


@given(
    names=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=12
    ),
    parts=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        min_size=1,
        max_size=4,
    ),
    data=st.data(),
)
def test_every_candidate_is_judged_once_and_within_bounds(
    names: list[list[str]], parts: list[str], data: st.DataObject
) -> None:
    known = lexicon(names)
    near = data.draw(
        st.one_of(
            st.just([]),
            st.lists(
                st.lists(st.integers(0, len(names) - 1), unique=True, max_size=DEPTH),
                min_size=len(parts),
                max_size=len(parts),
            ),
        )
    )
    rows = [
        VectorHits(np.asarray(one, np.int64), np.linspace(0.9, 0.1, len(one), dtype=np.float32))
        for one in near
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judged = candidate_signals(known, word_candidates(known.fit(parts), DEPTH), rows)
    found = {at for one in near for at in one}
    assert found <= set(judged.places.tolist())
    assert len(set(judged.places.tolist())) == len(judged.places)
    assert judged.signals.shape == (len(judged.places), len(SIGNALS))
    assert judged.signals.dtype == np.float32
    shares = [at for at, name in enumerate(SIGNALS) if "rank" in name or "name in" in name]
    values = judged.signals[:, shares]
    assert ((values >= 0) & (values <= 1 + 1e-5))[~np.isnan(values)].all()
    assert ((judged.parts >= 0) & (judged.parts < len(parts))).all()
    if not rows:
        assert np.isnan(judged.signals[:, 0]).all()
        assert (judged.vector_ranks == 0).all()
    scores = judged.signals[:, PLAIN]
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_place_leaves_out_what_lies_elsewhere() -> None:
    known = lexicon([["weather"], ["weather"], ["weather"], ["joke"]])
    near = [VectorHits(np.asarray([0, 1, 3]), np.asarray([0.9, 0.8, 0.1], np.float32))]
    within = known.within(None, "t1", None)
    judged = candidate_signals(
        known, word_candidates(known.fit(["weather"]), DEPTH, within), near, within
    )
    assert judged.places.tolist() == [1]


def test_nothing_to_judge_is_judged() -> None:
    known = lexicon([["weather"]])
    judged = candidate_signals(known, word_candidates(known.fit(["zzz"]), DEPTH), [])
    assert judged.signals.shape == (0, len(SIGNALS))
    assert Ranker().score(judged.signals).shape == (0,)


def test_the_shipped_ranker_gives_probabilities_with_and_without_vectors() -> None:
    rng = np.random.default_rng(1)
    signals = rng.random((200, len(SIGNALS)), np.float32)
    blind = signals.copy()
    blind[:, :4] = np.nan
    for rows in (signals, blind):
        scores = Ranker().score(rows)
        assert scores.shape == (200,)
        assert ((scores > 0) & (scores < 1)).all()
        assert len(set(scores.tolist())) > 20


@pytest.mark.parametrize("damage", ["gone", "altered", "card", "signals"])
def test_a_damaged_ranker_is_refused(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "ranker"
    shutil.copytree(SHIPPED_RANKER, folder)
    if damage == "gone":
        (folder / MODEL_FILE).unlink()
    elif damage == "altered":
        (folder / MODEL_FILE).write_bytes((folder / MODEL_FILE).read_bytes() + b" ")
    elif damage == "card":
        (folder / "card.json").write_text("{")
    else:
        card = json.loads((folder / "card.json").read_text())
        (folder / "card.json").write_text(json.dumps(card | {"signals": ["other"]}))
    with pytest.raises(DataError) as caught:
        Ranker(folder).score(np.zeros((1, len(SIGNALS)), np.float32))
    assert "ranker" in caught.value.message
    assert caught.value.hint


def test_a_search_without_the_ranker_goes_on_in_a_plain_order_and_says_so(tmp_path: Path) -> None:
    encoder = HashingEncoder()
    with Registry.open(tmp_path, [load_offline_catalog()], encoder=encoder) as registry:
        registry.ensure_index()
        without = Retriever(
            registry.store, registry.index, encoder, Ranker(tmp_path / "no such folder")
        )
        result = without.search("convert a currency amount")
    assert result.hits
    assert "plain order" in result.degraded
    assert "reinstall" in result.degraded
