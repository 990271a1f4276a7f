"""Samples of APIs as ToolLLM draws them: one tool, one category, related tools."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from toolsrv.cli.main import cli
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.samples import KINDS, Deck, Kind, Sample, needed
from toolsrv_lab.instructions.writer import write_sampled
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_registry.errors import UsageError

APIS = load_offline_catalog().apis
TOOLS = {(api.category, api.tool) for api in APIS}
DECK = Deck(APIS)


def test_samples_are_as_large_as_the_papers() -> None:
    for sample in DECK.samples(2, 1):
        by_tool = Counter((api.category, api.tool) for api in sample.apis)
        assert len({api.id for api in sample.apis}) == len(sample.apis)
        if sample.kind == "tool":
            assert len(by_tool) == 1
            assert len(sample.apis) <= 10
        else:
            assert 2 <= len(by_tool) <= 5
            assert max(by_tool.values()) <= 3
            categories = {category for category, _ in by_tool}
            assert (len(categories) == 1) == (sample.kind == "category")


def test_every_tool_leads_each_round_of_single_tools() -> None:
    deck = Deck(APIS, ("tool",))
    assert len(deck) == len(TOOLS)
    drawn = [sample.tools[0] for sample in deck.samples(2, 3)]
    assert Counter(drawn) == dict.fromkeys(TOOLS, 2)


def test_a_sample_depends_on_seed_and_place_alone() -> None:
    whole = list(DECK.samples(2, 5))
    assert list(islice(Deck(APIS).samples(2, 5), 90, None)) == whole[90:]
    assert list(DECK.samples(1, 6)) != whole[: len(DECK)]


def test_a_collection_holds_tools_that_share_words() -> None:
    near = [sample for sample in DECK.samples(3, 2) if sample.kind == "collection"]
    weather = [one for one in near if ("Weather", "Weather Formulas") in one.tools]
    assert weather
    partners = Counter(key for one in near for key in one.tools)
    assert len(partners) > len(TOOLS) / 2


def test_one_tool_alone_makes_no_collection() -> None:
    alone = [api for api in APIS if api.tool == APIS[0].tool]
    assert len(Deck(alone)) == 1
    with pytest.raises(UsageError) as raised:
        Deck(alone, ("category", "collection"))
    assert raised.value.hint


@given(st.sampled_from(list(DECK.samples(1, 0))), st.integers(0, 99))
def test_a_task_needs_some_of_what_is_offered(sample: Sample, seed: int) -> None:
    chosen = needed(sample, random.Random(seed))
    offered = sample.apis
    assert {api.id for api in chosen} <= {api.id for api in offered}
    assert len({api.id for api in chosen}) == len(chosen) <= 5
    tools = {(api.category, api.tool) for api in chosen}
    assert len(tools) >= min(2, len({(api.category, api.tool) for api in offered}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_sampled_tasks_tells_what_was_offered(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    total = write_sampled(APIS, path, kinds=(kind,), rounds=1, seed=4)
    queries = read_queries(path)
    assert len(queries) == total > 10
    for query in queries:
        assert set(query.relevant_ids) <= {one.id for one in query.candidates}
        assert len(query.needs) == len(query.relevant)


def test_no_api_no_sampled_tasks(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_sampled([], tmp_path / "x", kinds=KINDS, rounds=1, seed=0)


def test_the_command_samples_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    out = tmp_path / "some.jsonl"
    words = ["lab", "instructions", "--kind", "category", "--hold-out", "0", "--out", str(out)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.stderr
    assert all(len({one.category for one in query.candidates}) == 1 for query in read_queries(out))
