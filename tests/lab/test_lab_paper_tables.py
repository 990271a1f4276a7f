"""The tables of the paper: subsets, published numbers, the cost of ReACT@N, baselines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsrv_lab.evaluation.cells import CellLog, cell_backend, run_on_pool
from toolsrv_lab.evaluation.result_log import ResultLog
from toolsrv_lab.evaluation.statistics import mean, share
from toolsrv_lab.execution import LocalPool
from toolsrv_lab.paper_tables import published
from toolsrv_lab.paper_tables.solves import (
    SolveCell,
    TableSolve,
    TableTask,
    base_options,
    failed_solve,
    tree_replies,
)
from toolsrv_lab.paper_tables.subsets import SUBSETS, draw_subsets, ordered, subset_of, type_of
from toolsrv_lab.paper_tables.table import (
    AVERAGE,
    HERE,
    PaperTable,
    Provenance,
    Row,
    Value,
    markdown,
    mean_value,
    share_value,
)
from toolsrv_lab.retrieval import encoding as encoding_module
from toolsrv_lab.retrieval.baselines import bm25, cosines
from toolsrv_lab.retrieval.encoding import Encoded, Parts, cell_of, encoding, vectors_of
from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.encoder import HashingEncoder, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_runtime.outcome import Usage
from toolsrv_runtime.solve import SolveOptions


def query(set_: str, number: str = "1") -> Query:
    return Query(query_id=number, query="What is the wind in Lima?", set=set_, relevant=())


# ---------------------------------------------------------------- subsets
@pytest.mark.parametrize(
    ("set_", "number", "subset", "kind"),
    [
        ("G1_instruction", "7", "I1-Inst", "I1"),
        ("G1_tool", "7", "I1-Tool", "I1"),
        ("G2_category_test", "7", "I2-Cat", "I2"),
        ("ToolEval-2023 I2-Cat", "i2_cat/102", "I2-Cat", "I2"),
        ("some examples", "G3_query/2", "I3", "I3"),
        ("G12_query", "7", "G12_query", "G12_query"),
        ("BIG1 data", "7", "BIG1 data", "BIG1 data"),
    ],
)
def test_a_subset_is_what_the_set_or_the_id_says(
    set_: str, number: str, subset: str, kind: str
) -> None:
    found = subset_of(query(set_, number))
    assert (found, type_of(found)) == (subset, kind)


def test_each_subset_gives_so_many_queries_and_a_smaller_draw_is_part_of_a_larger_one() -> None:
    every = [query(name, str(at)) for at in range(9) for name in ("mine", "G2_category", "G1_tool")]
    small, large = (draw_subsets(every, limit, seed=3) for limit in (2, 5))
    assert list(large) == ["I1-Tool", "I2-Cat", "mine"]
    assert {len(some) for some in large.values()} == {5}
    for name, some in small.items():
        assert {one.query_id for one in some} < {one.query_id for one in large[name]}


def test_columns_begin_with_those_of_the_paper() -> None:
    assert ordered(["x", "I2", "I3-Inst", "I1-Cat"], SUBSETS) == ["I1-Cat", "I3-Inst", "I2", "x"]


# ---------------------------------------------------------------- the paper's numbers
@pytest.mark.parametrize(
    "rows",
    [published.PASS_RATES, published.WIN_RATES, published.STRATEGIES,
     published.TUNED_PASS, published.TUNED_WIN],
)  # fmt: skip
def test_published_averages_are_those_of_the_subsets(rows: tuple[Row, ...]) -> None:
    for row in rows:
        parts = [one.value for name, one in row.cells.items() if name != AVERAGE]
        if parts:
            assert row.cells[AVERAGE].value == pytest.approx(sum(parts) / len(parts), abs=0.15)


def test_published_wins_with_half_of_the_ties_are_the_published_win_rates() -> None:
    rates = {row.name: row.cells for row in published.WIN_RATES}
    for won, tied in zip(published.WINS, published.TIES, strict=True):
        halved = won.cells[AVERAGE].value + tied.cells[AVERAGE].value / 2
        assert rates[won.name][AVERAGE].value == pytest.approx(halved, abs=0.15)


# ---------------------------------------------------------------- values
def test_a_value_is_read_with_its_interval_and_none_of_nothing() -> None:
    half = share_value(share([True, False]))
    assert half is not None
    assert half.text == "1/2 = 50.0 (9-91)"
    assert share_value(share([])) is None
    assert mean_value(mean([]), 0) is None
    one = mean_value(mean([2.0]), 1)
    assert one is not None
    assert one.text == "2.0"


def test_a_name_with_a_bar_does_not_break_the_markdown() -> None:
    made = Provenance(command="toolsrv lab tables", seed=4, world="live", simulated=share([False]))
    row = Row(name="a|b", source=HERE, cells={"x": Value(value=1, made=made)})
    table = PaperTable(number="9", title="t", columns=("x",), rows=(row,), published="theirs")
    text = markdown([table])
    assert "| here | a/b | 1.0 |" in text
    assert "seed 4; world: live; simulated responses: 0/1" in text
    assert "*paper*" not in text


# ---------------------------------------------------------------- strategies
def test_react_at_n_may_cost_as_many_replies_as_the_tree() -> None:
    cell = SolveCell("m", "m", "react-n", "oracle")
    options = base_options(SolveOptions(), cell)
    assert (options.strategy, options.chains) == ("cot", 32)
    tree = failed_solve(TableTask(query("G1_tool")), DataError("gone"))
    solved = tree.solved.model_copy(update={"status": "answered", "usage": Usage(model_calls=7)})
    with ResultLog(None, {}) as log:
        kept = CellLog(log, TableSolve)
        row = SolveCell("m", "m", "dfsdt", "oracle").cell
        kept.add(row, "failed", tree)
        kept.add(row, "solved", tree.model_copy(update={"solved": solved}))
        found = [tree_replies(cell, one, kept) for one in ("none", "failed", "solved")]
    assert found == [None, None, 7]


# ---------------------------------------------------------------- baselines
class Counting(HashingEncoder):
    """An encoder that fails after so many texts."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def encode(self, texts: Sequence[str], *, progress: Any = None) -> Vectors:
        self.left -= len(texts)
        if self.left < 0:
            raise DataError("killed")
        return super().encode(texts, progress=progress)


def encoded(encoder: Counting, texts: Sequence[str], path: Path) -> Vectors:
    parts = Parts.of(texts)
    with ResultLog(path, {}) as log:
        kept = CellLog(log, Encoded)
        cells = {cell_of(parts, encoder): None}
        pool = LocalPool(cell_backend(encoding(encoder, encoder.digest), parts.texts, cells), 1)
        asyncio.run(run_on_pool(parts.texts, cells, kept, pool))
        return vectors_of(parts, encoder, kept)


def test_encoding_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_module, "PART", 2)
    texts = ["the wind in a city, by the hour", "sun", "moon rises", "tides of the sea", "a parcel"]
    kept = tmp_path / "vectors.jsonl"
    with pytest.raises(DataError, match="killed"):
        encoded(Counting(4), texts, kept)
    rest = Counting(2)
    vectors = encoded(rest, texts, kept)
    assert rest.left == 1
    assert vectors == pytest.approx(HashingEncoder().encode(texts), abs=1e-7)
    assert int(cosines(vectors, HashingEncoder())("moon rises").argmax()) == 2
    other = Counting(5)
    encoded(other, ["moon", *texts[1:]], kept)
    assert other.left == 0, "vectors of other texts are not taken"
    with pytest.raises(DataError, match="another one than the command's"):
        encoding(HashingEncoder(), "of a node")


def test_vectors_that_are_cut_are_not_taken_for_whole_ones(tmp_path: Path) -> None:
    parts, encoder = Parts.of(["sun"]), HashingEncoder()
    with ResultLog(tmp_path / "vectors.jsonl", {}) as log:
        kept = CellLog(log, Encoded)
        for damaged in ("", "AAAA", "no vectors"):
            kept.add(cell_of(parts, encoder), "0", Encoded(vectors=damaged))
            with pytest.raises(DataError, match="part 0"):
                vectors_of(parts, encoder, kept)


def test_bm25_finds_the_text_with_the_rare_word() -> None:
    scores = bm25(["the wind in a city", "the sun in a city", "the parcel"])("wind of the city")
    assert [int(at) for at in np.argsort(-scores)] == [0, 1, 2]
