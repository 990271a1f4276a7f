"""Samples for the matcher: what they say of a text; its figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.errands import errands
from toolsrv_lab.matching.errand_samples import errand_samples
from toolsrv_lab.matching.evaluation import evaluate
from toolsrv_lab.matching.pipeline import (
    TRAINING,
    UNSEEN_TASKS,
    UNSEEN_TOOLS,
    is_kept,
    read_samples,
    write_samples,
)
from toolsrv_lab.matching.samples import LATEST, Plan, Sample
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_registry.matcher import Matcher
from toolsrv_runtime.values import facts

APIS = load_offline_catalog().apis
KNOWN = {api.id: api for api in APIS}
PLAN = Plan(rounds=1, own_rounds=1, errand_rounds=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("samples")
    seen: list[tuple[int, int]] = []
    write_samples(APIS, HashingEncoder(), out, PLAN, progress=lambda *at: seen.append(at))
    assert seen[-1][0] == seen[-1][1]
    return out


@pytest.fixture(scope="module")
def samples(folder: Path) -> list[Sample]:
    return read_samples(folder / TRAINING)


@pytest.mark.nightly
def test_every_value_stands_where_the_sample_says(samples: list[Sample]) -> None:
    told = 0
    for one in samples:
        sources = [one.text, *(value for _, value in one.facts)]
        assert 0 <= one.clause[0] < one.clause[1] <= len(one.text)
        for name, span in one.spans.items():
            assert name in {parameter.name for parameter in KNOWN[one.api].parameters}
            if span is not None:
                words = sources[span[0]][span[1] : span[2]]
                assert words == words.strip() != ""
                told += 1
    assert told > 2_000


@pytest.mark.nightly
def test_values_of_errands_are_as_they_were_written(samples: list[Sample]) -> None:
    written = {
        (errand.task, step.api, name): value.said
        for errand in errands()
        for step in errand.steps
        for name, value in step.arguments.items()
        if not value.key
    }
    found = 0
    for one in samples:
        for name, span in one.spans.items():
            said = written.get((one.text, one.api, name))
            if said is not None and span is not None and span[0] == 0:
                found += one.text[span[1] : span[2]].lower() == said.lower()
    assert found > 2_000


@pytest.mark.nightly
def test_later_steps_know_what_earlier_calls_answered(samples: list[Sample]) -> None:
    referred = [one for one in samples if any(span and span[0] for span in one.spans.values())]
    assert len(referred) > 200
    assert all(one.facts for one in referred)


@pytest.mark.nightly
def test_a_value_that_an_answer_pads_is_found_without_its_blanks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = facts.whole
    monkeypatch.setattr(
        facts, "whole", lambda told: {key: f" {value} " for key, value in whole(told).items()}
    )
    padded = 0
    for one in errand_samples(APIS, {}, lambda _text: (), PLAN, progress=lambda _: None):
        for span in one.spans.values():
            if span and span[0]:
                value = one.facts[span[0] - 1][1]
                assert value[span[1] : span[2]] == value.strip() != value
                padded += 1
    assert padded > 20


def test_the_latest_errands_are_told_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [one for one in errands() if len(one.apis) == 1][:6]
    monkeypatch.setattr("toolsrv_lab.matching.errand_samples.errands", lambda: few)
    plan, done = PLAN._replace(latest=2), list[int]()
    told = list(errand_samples(APIS, {}, lambda _text: (), plan, progress=done.append))
    once = list(errand_samples(APIS, {}, lambda _text: (), PLAN, progress=lambda _: None))
    assert sum(done) == 4 + 2 * LATEST
    for one in few[:4]:
        assert [s for s in told if s.text == one.task] == [s for s in once if s.text == one.task]
    assert len(told) > len(once) + 2 * (LATEST - 1)


@pytest.mark.nightly
def test_a_whole_text_stands_against_nothing_that_it_asks_for(samples: list[Sample]) -> None:
    asked: dict[str, set[str]] = {}
    for one in samples:
        asked.setdefault(one.text, set()).add(one.api)
    whole = [one for one in samples if one.whole]
    assert len(whole) > 2_000
    for one in whole:
        assert one.facts == ()
        assert asked[one.text].isdisjoint(one.others)
        assert all(span is None or span[0] == 0 for span in one.spans.values())


@pytest.mark.nightly
def test_a_clause_with_its_answer_asks_for_nothing_more(samples: list[Sample]) -> None:
    served = {
        (errand.task, step.words): errand.apis
        for errand in errands()
        for step in errand.steps
        if step.api
    }
    answered = 0
    for one in samples:
        asked = served.get((one.text, one.text[slice(*one.clause)]))
        if asked is None or one.api:
            continue
        answered += 1
        assert one.facts
        assert one.others
        assert set(one.others).isdisjoint(asked)
    assert answered > 300


@pytest.mark.nightly
def test_a_whole_task_states_no_value_that_a_call_is_to_answer(samples: list[Sample]) -> None:
    keyed = {
        (errand.task, step.words, step.api): {n for n, one in step.arguments.items() if one.key}
        for errand in errands()
        for step in errand.steps
    }
    found = 0
    for one in samples:
        words = one.text[slice(*one.clause)]
        for name in keyed.get((one.text, words, one.api), ()) if one.whole else ():
            assert one.spans[name] is None
            found += 1
    assert found > 100


@pytest.mark.nightly
def test_no_api_stands_against_itself_and_tasks_are_held_out(
    samples: list[Sample], folder: Path
) -> None:
    for one in samples:
        assert one.api not in one.others
    kept = read_samples(folder / UNSEEN_TASKS)
    assert kept
    assert all(is_kept(one.text) for one in kept)
    own = {errand.task for errand in errands()}
    assert not any(is_kept(one.text) for one in samples if one.text in own)
    assert read_samples(folder / UNSEEN_TOOLS) == []  # none of another catalog is here


@pytest.mark.nightly
def test_needs_that_nothing_serves_have_no_api(samples: list[Sample]) -> None:
    nothing = [one for one in samples if not one.api]
    assert len(nothing) > 50
    assert all(one.others and not one.spans for one in nothing)


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_texts(folder: Path, tmp_path: Path) -> None:
    write_samples(APIS, HashingEncoder(), tmp_path, PLAN, progress=lambda *_: None)
    one, other = read_samples(folder / TRAINING), read_samples(tmp_path / TRAINING)
    assert [(s.text, s.clause, s.api, s.others) for s in one] == [
        (s.text, s.clause, s.api, s.others) for s in other
    ]


def test_without_needs_there_are_no_samples(tmp_path: Path) -> None:
    stranger = APIS[0].model_copy(update={"id": "Nothing/no/need"})
    with pytest.raises(DataError, match="no need is written"):
        write_samples([stranger], HashingEncoder(), tmp_path, PLAN, progress=lambda *_: None)


@pytest.mark.parametrize("line", ["{", "[]", '{"text": 1}'])
def test_a_line_that_is_no_sample_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / TRAINING
    good = Sample(text="x", clause=(0, 1), api="").model_dump_json()
    path.write_text(f"{good}\n{line}\n")
    with pytest.raises(DataError, match="line 2"):
        read_samples(path)
    with pytest.raises(DataError, match="cannot read"):
        read_samples(tmp_path / "missing.jsonl")


def test_apis_that_no_enabled_catalog_has_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    told = Sample(text="t", clause=(0, 1), api="A/b/c", others=("A/b/d", "A/b/e"))
    none = told.model_copy(update={"api": ""})
    path.write_text(f"{told.model_dump_json()}\n{none.model_dump_json()}\n")
    assert read_samples(path) == read_samples(path, {"A/b/c", "A/b/d", "A/b/e"}) == [told, none]
    with pytest.raises(DataError) as caught:
        read_samples(path, {"A/b/d"})
    assert "of the 3 APIs that its samples name 2 are" in caught.value.message
    assert "'A/b/c'" in caught.value.message
    assert "catalog" in caught.value.hint


@pytest.mark.nightly
def test_the_matcher_that_ships_knows_tasks_that_it_has_not_learnt(folder: Path) -> None:
    figures = evaluate(Matcher(), read_samples(folder / UNSEEN_TASKS)[:60], KNOWN)
    assert figures.choice.rate > 0.8
    assert figures.values.rate > 0.7
    assert figures.clause.rate > 0.5
