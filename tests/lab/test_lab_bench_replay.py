"""The recorded tree: the same tokens in every way, and the figures that come of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import llama_cpp
import pytest

from toolsrv_lab.bench.replay import comparison, random_model
from toolsrv_lab.bench.replay.comparison import measure_ways, way_figures
from toolsrv_lab.bench.replay.ours import ReplayEngine, solve
from toolsrv_lab.bench.replay.tree import distinct, record
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.engine import sampling
from toolsrv_runtime.engine.context import open_model
from toolsrv_runtime.engine.vocabulary import Vocabulary
from toolsrv_runtime.gguf_models import SHIPPED_MODEL


@pytest.fixture(scope="module")
def vocabulary() -> Iterator[Vocabulary]:
    model = open_model(SHIPPED_MODEL)
    yield Vocabulary(model)
    llama_cpp.llama_model_free(model)


def test_the_tree_has_twenty_steps_with_four_branchings(vocabulary: Vocabulary) -> None:
    recording = record(vocabulary)
    assert len(recording.steps) >= 20
    prompts = [tuple(step.prompt) for step in recording.steps]
    assert len(prompts) - len(set(prompts)) == 4
    assert recording.context <= 2048


def test_distinct_tokens_are_those_of_a_prefix_tree() -> None:
    assert distinct([[1, 2, 3], [1, 2, 4, 5], [1, 2]]) == 5
    assert distinct([[1], [2]]) == 2


def test_ours_evaluates_little_more_than_the_distinct_tokens_of_the_tree(
    vocabulary: Vocabulary,
) -> None:
    recording = record(vocabulary)
    engine = ReplayEngine(
        SHIPPED_MODEL, context=recording.context, threads=1, cells=3 * recording.context
    )
    assert solve(engine, recording) == 0
    counts = engine.counts
    assert counts.tokens <= 1.05 * recording.distinct
    assert counts.tokens - counts.missed <= recording.distinct
    engine.close()


def test_guessed_tokens_spare_decodes(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = record(vocabulary)
    steps = []
    for credit in (0, 4):
        monkeypatch.setattr(sampling, "MOST_MISSES", credit)
        engine = ReplayEngine(
            SHIPPED_MODEL, context=recording.context, threads=1, cells=3 * recording.context
        )
        assert solve(engine, recording) == 0
        steps.append(engine.counts.steps)
        assert (engine.counts.missed > 0) is (credit > 0)
        engine.close()
    without, with_guesses = steps
    assert with_guesses < 0.85 * without


@pytest.mark.nightly
def test_every_way_is_measured_and_compared(tmp_path: Path) -> None:
    found = measure_ways(SHIPPED_MODEL, tmp_path, threads=1, solves=2, steps=2)
    assert {"scratch", "prefix", "ours"} <= found.ways.keys()
    assert found.ways.keys() | found.skipped.keys() == {"scratch", "prefix", "server", "ours"}
    assert found.ways["ours"]["wrong"] == 0
    assert found.ways["ours"]["tokens"] < found.ways["scratch"]["tokens"]
    assert found.ways["ours"]["steps"] < found.ways["prefix"]["steps"]
    ratios = way_figures(found)
    assert ratios["evaluated / distinct tokens"] <= 1.05
    assert ratios["decode / floor"] > 0
    if not importlib.util.find_spec("matplotlib"):
        return
    path = tmp_path / "ways.svg"
    comparison.draw([found], path)
    assert path.read_text(encoding="utf-8").count("tokens evaluated") == 1


def test_a_picture_that_could_not_be_written_is_refused_first(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(UsageError, match="picture"):
        comparison.check(tmp_path / "ways.txt")
    with pytest.raises(UsageError, match="missing"):
        comparison.check(tmp_path / "missing" / "ways.png")


def test_a_random_model_takes_the_vocabulary_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random_model, "PARAMETERS", 14_000_000)
    path = tmp_path / "random.gguf"
    assert random_model.build(path, vocabulary_of=SHIPPED_MODEL) > 10_000_000
    handle = open_model(path)
    theirs = Vocabulary(handle).text("Grüße aus Peru use #1", special=False)
    llama_cpp.llama_model_free(handle)
    handle = open_model(SHIPPED_MODEL)
    assert Vocabulary(handle).text("Grüße aus Peru use #1", special=False) == theirs
    llama_cpp.llama_model_free(handle)


def test_a_file_without_a_vocabulary_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    with pytest.raises(DataError, match="broken"):
        random_model.build(tmp_path / "random.gguf", vocabulary_of=broken)
