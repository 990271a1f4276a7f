"""The report on instruction files: figures against counts by hand, and what always holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from toolsrv.cli.main import cli
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.report import (
    compare,
    distinct,
    overlaps,
    shared_edges,
    spread,
)
from toolsrv_lab.instructions.writer import write_instructions
from toolsrv_lab.retrieval.queries import Named, Query, read_queries
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import UsageError

APIS = load_offline_catalog().apis
API = Api(
    id="Food/larder/find_recipe",
    category="Food",
    tool="Larder",
    name="Find Recipe",
    description="Search dishes by ingredient.",
    required=(Parameter(name="ingredient", description="What is left over"),),
)

TEXTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=12), min_size=1, max_size=12)


def query(text: str, *ids: str, needs: tuple[str, ...] = ()) -> Query:
    named = tuple(Named(id=one) for one in ids)
    return Query(query_id="1", query=text, relevant=named, needs=needs)


def test_the_figures_are_those_counted_by_hand() -> None:
    found = compare(
        {
            "mine": [
                query("find dishes for 2 tired parents", API.id),
                query("find dishes for 2 guests", API.id, "Food/other/one"),
                query("Recipes, please!", API.id, "Food/other/one", "Food/other/two"),
            ]
        },
        [API],
    )
    one = found.files["mine"]
    assert (found.tokens, found.sampled, found.overlap_sampled) == (13, 3, 3)
    assert one.texts == 3
    assert (one.words.min, one.words.median, one.words.max) == (2, 5, 6)
    # 13 words of which find, dishes, for, 2 come twice; 10 pairs, 7 triples, 5 fours.
    assert one.distinct == pytest.approx({1: 9 / 13, 2: 7 / 10, 3: 5 / 7, 4: 4 / 5})
    assert one.same_start == pytest.approx(2 / 3)
    assert one.same_end == 0
    # Stems: find, dish of find, dish, tire, parent, 2; find, dish of find, dish, guest, 2; recipe.
    assert one.in_document == pytest.approx((2 / 5 + 2 / 4 + 1) / 3)
    assert one.judged == 3
    assert one.needs == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    assert one.needs_mean == 2
    assert one.lower_case == pytest.approx(2 / 3)
    assert one.with_digits == pytest.approx(2 / 3)


def test_needs_are_counted_where_they_are_told_and_apis_where_they_are_not() -> None:
    told = query("one thing and another of it", API.id, needs=("one thing",))
    assert compare({"a": [told]}, []).files["a"].needs == {1: 1}
    many = query("everything", *(f"a/b/{number}" for number in range(7)))
    assert compare({"a": [many]}, []).files["a"].needs == {5: 1}


def test_texts_whose_apis_nobody_knows_are_judged_by_no_document() -> None:
    figures = compare({"a": [query("something to do", "x/y/z")]}, [API]).files["a"]
    assert figures.in_document is None
    assert figures.judged == 0


def test_files_are_compared_on_samples_of_one_size() -> None:
    short = [query(f"tell me about number {number}", API.id) for number in range(4)]
    long = [query(f"what about thing {number} now, say", API.id) for number in range(90)]
    both = compare({"short": short, "long": long}, [API])
    assert both.tokens == 20
    assert both.sampled == both.overlap_sampled == 4
    # The long file alone is judged on all of it: the more text, the fewer new words.
    alone = compare({"long": long}, [API]).files["long"]
    assert alone.distinct[1] < both.files["long"].distinct[1]


def test_the_same_seed_draws_the_same_samples() -> None:
    files = {
        "few": [query("a b c d e f", API.id)],
        "many": [query(f"what of {one} in {one % 7}", API.id) for one in range(50)],
    }
    assert compare(files, [API], seed=3) == compare(files, [API], seed=3)


@pytest.mark.parametrize("files", [{}, {"a": []}, {"a": [query("  ", API.id)]}])
def test_a_file_without_text_is_an_error(files: dict[str, list[Query]]) -> None:
    with pytest.raises(UsageError) as raised:
        compare(files, [API])
    assert raised.value.hint


def test_overlap_finds_the_text_most_alike() -> None:
    one, two, other = list("abcdef"), list("xbcdef"), list("pqrst")
    assert overlaps([one, two, other, ["a"]]) == [0.5, 0.5, 0.0, 0.0]


@given(TEXTS, st.integers(0, 60))
def test_distinct_shares_lie_between_none_and_all(texts: list[list[str]], tokens: int) -> None:
    found = distinct(texts, tokens)
    assert all(0 < share <= 1 for share in found.values())
    once = distinct([[f"{at}/{number}" for number in range(9)] for at in range(3)], tokens)
    assert set(once.values()) == {1.0}


@given(TEXTS)
def test_a_file_twice_over_shares_every_edge_and_every_gram(texts: list[list[str]]) -> None:
    assert shared_edges(texts + texts) == (1.0, 1.0)
    found = overlaps(texts + texts)
    assert [share for text, share in zip(texts + texts, found, strict=True) if len(text) > 4] == [
        1.0 for text in texts + texts if len(text) > 4
    ]


@given(TEXTS)
def test_overlap_is_a_share_and_none_in_a_single_text(texts: list[list[str]]) -> None:
    assert all(0 <= share <= 1 for share in overlaps(texts))
    assert overlaps(texts[:1]) == [0.0]


@given(st.lists(st.integers(0, 500), min_size=1))
def test_a_spread_rises(values: list[float]) -> None:
    found = spread(values)
    steps = [found.min, found.p10, found.median, found.p90, found.max]
    assert steps == sorted(steps)
    assert (found.min, found.max) == (min(values), max(values))


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_any_text_has_figures(texts: list[str]) -> None:
    if not any(text.split() for text in texts):
        return
    figures = compare({"a": [query(text, API.id) for text in texts]}, [API]).files["a"]
    assert figures.in_document is not None
    assert 0 <= figures.in_document <= 1
    assert sum(figures.needs.values()) == pytest.approx(1)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two files of instructions over the catalog that ships."""
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    write_instructions(APIS[:40], tmp_path / "one.jsonl", rounds=2, seed=1)
    write_instructions(APIS[40:80], tmp_path / "two.jsonl", rounds=1, seed=2)
    return tmp_path


def test_the_command_sets_files_side_by_side_in_a_narrow_table(data: Path) -> None:
    words = ["lab", "report", "instructions", str(data / "one.jsonl")]
    done = CliRunner().invoke(cli, [*words, "--beside", str(data / "two.jsonl")])
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 110
    assert "one" in lines[1]
    assert "two" in lines[1]
    assert any("distinct-4" in line for line in lines)


def test_the_commands_document_is_what_the_library_says(data: Path) -> None:
    words = ["lab", "report", "instructions", str(data / "one.jsonl"), "--json", "--seed", "4"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    wanted = compare({"one": read_queries(data / "one.jsonl")}, APIS, seed=4)
    assert json.loads(done.stdout) == json.loads(wanted.model_dump_json())
    assert wanted.files["one"].judged == wanted.files["one"].texts == 80


def test_files_of_one_name_are_told_apart(data: Path) -> None:
    (data / "sub").mkdir()
    other = data / "sub" / "one.jsonl"
    other.write_bytes((data / "two.jsonl").read_bytes())
    words = ["lab", "report", "instructions", str(data / "one.jsonl"), "--beside", str(other)]
    done = CliRunner().invoke(cli, [*words, "--json"])
    assert list(json.loads(done.stdout)["files"]) == [str(data / "one.jsonl"), str(other)]
