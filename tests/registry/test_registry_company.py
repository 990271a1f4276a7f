"""What the others of a candidate's tool and category say about it, on small sets done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.search.signals import GROUP_SIGNALS, Floats, OwnSignals, group_signals


def judged(
    plain: list[float],
    tools: list[int],
    categories: list[int],
    *,
    nearest: list[float] | None = None,
    measured: bool = True,
) -> Floats:
    size = len(plain)
    alone = OwnSignals(
        nearest=np.asarray(nearest if nearest is not None else plain, np.float32),
        vector_rank=np.arange(1, size + 1),
        words=np.asarray(plain, np.float32),
        leads=np.asarray([[at == 0 for at in range(size)]]),
        plain=np.asarray(plain, np.float32),
    )
    columns = group_signals(alone, tools, categories, measured=measured)
    return np.column_stack([np.broadcast_to(np.asarray(one, np.float32), size) for one in columns])


def column(found: Floats, name: str) -> list[float]:
    values: list[float] = found[:, GROUP_SIGNALS.index(name)].tolist()
    return values


def test_others_of_tool_and_category_are_told_from_the_candidate_itself() -> None:
    # Tools 7 and 9 lie in one category, tool 8 alone in another.
    found = judged([0.9, 0.5, 0.7, 0.1], [7, 7, 9, 8], [2, 2, 2, 5])
    assert column(found, "best other of its tool, behind the best") == pytest.approx(
        [-0.4, 0.0, np.nan, np.nan], nan_ok=True, abs=1e-6
    )
    assert column(found, "best other of its category, behind the best") == pytest.approx(
        [-0.2, 0.0, 0.0, np.nan], nan_ok=True, abs=1e-6
    )
    assert column(found, "place in its tool") == [0, 1, 0, 0]
    assert column(found, "plain place") == [0, 2, 1, 3]
    assert column(found, "tool's candidates") == [2, 2, 1, 1]
    assert column(found, "clauses that its tool leads") == [1, 1, 0, 0]
    assert column(found, "its category's among the first ten") == [3, 3, 3, 1]
    assert column(found, "its tool's among the first ten") == [2, 2, 1, 1]


def test_shares_of_a_candidate_its_tool_and_its_category_make_one() -> None:
    plain = [0.9, 0.5, 0.7]
    found = judged(plain, [1, 1, 2], [3, 3, 3])
    weights = np.exp(6.0 * np.asarray(plain))
    own = weights / weights.sum()
    tool = np.asarray(column(found, "share of the others of its tool"))
    category = np.asarray(column(found, "share of the other tools of its category"))
    assert tool == pytest.approx([own[1], own[0], 0.0], abs=1e-6)
    assert own + tool + category == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)


def test_a_tool_s_three_best_cosines() -> None:
    found = judged([0.1] * 5, [1, 1, 1, 1, 2], [1] * 5, nearest=[0.9, 0.3, 0.6, 0.0, np.nan])
    assert column(found, "tool's best cosine")[3:] == pytest.approx([0.9, np.nan], nan_ok=True)
    assert column(found, "tool's mean of three best cosines")[0] == pytest.approx(0.6)
    assert np.isnan(column(found, "tool's mean of three best cosines")[4])


def test_without_vectors_no_share_of_the_nearest_is_claimed() -> None:
    alone = judged([0.4, 0.2], [1, 2], [1, 1], nearest=[np.nan, np.nan], measured=False)
    assert np.isnan(column(alone, "tool's share of the nearest twenty")).all()
    assert np.isnan(column(alone, "tool's best cosine")).all()


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 1, width=32), st.integers(0, 4), st.integers(0, 2)),
        min_size=1,
        max_size=30,
    )
)
def test_the_best_other_agrees_with_a_plain_search(rows: list[tuple[float, int, int]]) -> None:
    plain, tools, categories = (list(one) for one in zip(*rows, strict=True))
    found = judged(plain, tools, categories)
    top = max(plain)
    for name, groups in (("tool", tools), ("category", categories)):
        got = column(found, f"best other of its {name}, behind the best")
        for at, group in enumerate(groups):
            others = [plain[k] for k, other in enumerate(groups) if other == group and k != at]
            wanted = max(others) - top if others else np.nan
            assert got[at] == pytest.approx(wanted, nan_ok=True, abs=1e-5)
