"""The retriever's workshop: metrics, query files, neighbours, the ranker's training, evaluation."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_lab.retrieval import ranking
from toolsrv_lab.retrieval.evaluation import ALL, estimate, evaluate, ndcg, recall
from toolsrv_lab.retrieval.examples import neighbours
from toolsrv_lab.retrieval.queries import Named, Query, read_queries
from toolsrv_registry.errors import DataError
from toolsrv_registry.ranker import Ranker
from toolsrv_registry.search.signals import SIGNALS

VECTORS = Path(__file__).parents[1] / "registry" / "data" / "toolbench_vectors.json"
SHARED = Path(__file__).parents[3] / "shared"
SPEC = SHARED / "spec" / "toolbench_vectors.json"
EXAMPLES = SHARED / "data" / "toolbench" / "examples.tar.gz"
DEVELOPMENT = SHARED / "data" / "toolbench" / "queries_dev.jsonl"


# Metrics


@pytest.mark.parametrize("tied", [1, 2, 3, 6])
def test_equal_scores_share_the_places_of_their_tie(tied: int) -> None:
    ranking_ = [(name, 1.0 if at < tied else -float(at)) for at, name in enumerate("abcdef")]
    mean = sum(ndcg([(name, -float(at)) for at, name in enumerate("abcdef")], {one}, 5)
               for one in "abcdef"[:tied]) / tied  # fmt: skip
    assert ndcg(ranking_, {"a"}, 5) == pytest.approx(mean)


def test_ndcg_of_known_rankings() -> None:
    ranked = [(name, -float(at)) for at, name in enumerate("abcdef")]
    assert ndcg(ranked, {"a"}, 5) == 1.0
    assert ndcg(ranked, {"b"}, 3) == pytest.approx(0.630929753571)
    assert ndcg(ranked, {"a", "c"}, 5) == pytest.approx(0.919720789148)
    assert ndcg(ranked, {"b", "d", "f"}, 5) == pytest.approx(0.498189257466)
    assert ndcg(ranked, {"f"}, 5) == 0.0
    assert ndcg([], {"a"}, 5) == 0.0
    assert ndcg(ranked, set(), 5) == 0.0


@pytest.mark.skipif(not SPEC.exists(), reason="the table of ToolBench's vectors is not here")
def test_ndcg_is_toolbenchs() -> None:
    cases = json.loads(SPEC.read_text("utf-8"))["groups"]["ndcg"]["cases"]
    assert len(cases) >= 8
    for case in cases:
        ranked = sorted(case["scores"].items(), key=lambda item: -item[1])
        for k in (1, 3, 5):
            got = ndcg(ranked, case["relevant"], k)
            assert got == pytest.approx(case[f"ndcg@{k}"], abs=1e-9), case["note"]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.sets(st.integers(0, 19), min_size=1))
def test_metrics_stay_between_nothing_and_all(scores: list[float], wanted: set[int]) -> None:
    ranked = sorted(((str(at), one) for at, one in enumerate(scores)), key=lambda item: -item[1])
    relevant = {str(at) for at in wanted}
    for k in (1, 3, 5):
        assert 0.0 <= ndcg(ranked, relevant, k) <= 1.0 + 1e-9
        assert 0.0 <= recall(ranked, relevant, k) <= 1.0


def test_an_estimate_holds_its_mean_and_repeats_itself() -> None:
    values = [0.0, 1.0] * 50
    one = estimate(values)
    assert one == estimate(values)
    assert one.low < one.mean == 50.0 < one.high


# Query files


def test_queries_are_read_from_lines_compressed_or_not(tmp_path: Path) -> None:
    entry = {"query_id": 7, "query": "rain?", "set": "s", "relevant": [{"id": "A/b/c"}]}
    plain = tmp_path / "q.jsonl"
    plain.write_text(json.dumps(entry) + "\n\n" + json.dumps(entry | {"query": "snow?"}))
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_queries(plain) == read_queries(packed)
    assert [one.query for one in read_queries(plain)] == ["rain?", "snow?"]
    assert read_queries(plain)[0].relevant_ids == ("A/b/c",)


def test_an_api_may_be_named_by_its_bare_id(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"query": "rain?", "relevant": ["A/b/c", {"id": "A/b/d"}]}))
    assert read_queries(path)[0].relevant_ids == ("A/b/c", "A/b/d")


def test_toolbenchs_instruction_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "G1_query.json"
    api = {"category_name": "Data", "tool_name": "My Tool", "api_name": "Get It!"}
    other = api | {"api_name": "Other"}
    entry = {
        "query": "get it",
        "query_id": 5,
        "api_list": [api, other],
        "relevant APIs": [["My Tool", "Get It!"]],
    }
    path.write_text(json.dumps([entry]))
    (query,) = read_queries(path)
    assert query.set == "G1_query"
    assert query.relevant_ids == ("Data/my_tool/get_it",)
    assert len(query.candidates) == 2


def test_toolbenchs_retriever_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "G1"
    folder.mkdir()
    document = json.dumps({"category_name": "Data", "tool_name": "T", "api_name": "One"})
    quoted = '"' + document.replace('"', '""') + '"'
    (folder / "corpus.tsv").write_text(f"docid\tdocument_content\n1\t{quoted}\n1\t{quoted}\n")
    (folder / "test.query.txt").write_text("3\tone please\n3\tone please\n")
    (folder / "qrels.test.tsv").write_text("3\t0\t1\t1\n")
    (query,) = read_queries(folder)
    assert (query.query, query.relevant_ids, query.set) == ("one please", ("Data/t/one",), "G1")


@pytest.mark.parametrize(
    "content",
    ["{", '{"query": 1}', "[{}]", "[1]", '[{"query": "x", "api_list": 3}]', "[", '"x"', "[[]]"],
)
def test_what_is_no_query_file_is_refused_with_its_place(tmp_path: Path, content: str) -> None:
    path = tmp_path / "queries.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read_queries(path)
    assert "queries.json" in caught.value.message
    assert caught.value.hint


def test_a_query_is_of_one_half_for_ever() -> None:
    queries = [Query(query_id="1", query=f"query {at}", relevant=()) for at in range(200)]
    halves = [one.tuning for one in queries]
    assert halves == [one.tuning for one in queries]
    assert 60 < sum(halves) < 140


@pytest.mark.skipif(not DEVELOPMENT.exists(), reason="ToolBench's data is not here")
def test_the_development_queries_are_read() -> None:
    assert len(read_queries(DEVELOPMENT)) == 617


# Neighbours


def test_neighbours_leave_out_equals() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((80, 16)).astype(np.float32)
    vectors[1] = vectors[0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = neighbours(vectors)
    assert 1 not in near[0]
    assert 0 not in near[1]
    scores = vectors @ vectors[2]
    assert near[2][0] == int(np.argsort(-scores)[1])


# The ranker


def lists(count: int) -> list[ranking.List]:
    rng = np.random.default_rng(4)
    made = []
    for _ in range(count):
        signals = rng.random((40, len(SIGNALS)), np.float32)
        needed = signals[:, 0] + 0.3 * signals[:, 5] > np.float32(1.15)
        needed[signals[:, 0].argmax()] = True
        made.append(ranking.List(signals, needed))
        blind = signals.copy()
        blind[:, 1:3] = np.nan
        made.append(ranking.List(blind, needed, 0.5))
    return made


def test_a_ranker_learns_is_exported_and_loads(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="the extra lab is not installed")
    pytest.importorskip("onnx", reason="the extra lab is not installed")
    known = lists(30)
    booster = ranking.train_ranker(known, trees=20)
    card = ranking.export_ranker(booster, known, tmp_path / "ranker", {"trained_on": "noise"})
    assert card["trained_on"] == "noise"
    ranker = Ranker(tmp_path / "ranker")
    fresh = lists(40)[-1 - 1]
    scores = ranker.score(fresh.signals)
    assert np.allclose(np.argsort(scores)[-1], np.argsort(booster.predict(fresh.signals))[-1])
    assert scores[fresh.needed].mean() > 2 * scores[~fresh.needed].mean()
    assert (tmp_path / "ranker" / "ranker.onnx").stat().st_size < 1_000_000


def test_lists_without_an_answer_train_nothing() -> None:
    pytest.importorskip("lightgbm", reason="the extra lab is not installed")
    empty = ranking.List(np.zeros((3, len(SIGNALS)), np.float32), np.zeros(3, np.bool_))
    with pytest.raises(DataError):
        ranking.train_ranker([empty])


def test_the_logistic_curve_meets_the_shares() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=4_000).astype(np.float32)
    needed = rng.random(4_000) < 1 / (1 + np.exp(-(2 * x - 1)))
    slope, offset = ranking.calibrate(x, needed)
    assert slope == pytest.approx(2, abs=0.25)
    assert offset == pytest.approx(-1, abs=0.2)


# Evaluation


def query(text: str, *ids: str, name: str = "s", candidates: tuple[str, ...] = ()) -> Query:
    return Query(
        query_id=text,
        query=text,
        set=name,
        relevant=tuple(Named(id=one) for one in ids),
        candidates=tuple(Named(id=one) for one in candidates),
    )


def test_an_evaluation_counts_per_set_and_leaves_out_the_unknown() -> None:
    pools: list[frozenset[str] | None] = []

    def rank(text: str, pool: frozenset[str] | None) -> list[tuple[str, float]]:
        pools.append(pool)
        return [("a", 2.0), ("b", 1.0)] if text == "good" else [("b", 2.0), ("c", 1.0)]

    queries = [query("good", "a"), query("bad", "a", name="t"), query("lost", "zzz")]
    found = evaluate(queries, rank, frozenset("abc"))
    assert found.left_out == 1
    assert found.sets["s"].ndcg[5].mean == 100.0
    assert found.sets["t"].recall[10].mean == 0.0
    assert found.sets[ALL].queries == 2
    assert pools == [None, None]


def test_an_evaluation_over_sets_ranks_what_the_queries_of_a_set_came_with() -> None:
    asked: list[tuple[str, frozenset[str] | None]] = []

    def rank(text: str, among: frozenset[str] | None) -> list[tuple[str, float]]:
        asked.append((text, among))
        return [("a", 1.0)]

    queries = [
        query("one", "a", candidates=("a", "b")),
        query("two", "c", candidates=("c", "gone")),
        query("other", "d", name="t", candidates=("d", "e")),
        query("none offered", "a"),
    ]
    found = evaluate(queries, rank, frozenset("abcde"), corpus="set")
    first, second = frozenset(("a", "b", "c", "gone")), frozenset("de")
    assert asked == [("one", first), ("two", first), ("other", second)]
    assert found.corpora == {"s": 3, "t": 2}
    assert found.left_out == 1


def test_an_evaluation_over_candidates_ranks_only_those() -> None:
    pools: list[frozenset[str] | None] = []

    def rank(_: str, pool: frozenset[str] | None) -> list[tuple[str, float]]:
        pools.append(pool)
        return [("a", 1.0)]

    queries = [query("one", "a", candidates=("a", "b")), query("none offered", "a")]
    found = evaluate(queries, rank, frozenset("ab"), corpus="candidates")
    assert pools == [frozenset("ab")]
    assert found.left_out == 1
