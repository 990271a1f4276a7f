"""Annotated answers as rows of the compact format: what is learnt of a path, what is left out."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.annotation import APIS, CAPITAL, METHOD, oracle, solve

from toolsrv.cli.main import cli
from toolsrv_lab.annotation.assignments import Assignment, from_errands
from toolsrv_lab.instructions.errands import ErrandStep, Value
from toolsrv_lab.nano.episodes import Row
from toolsrv_lab.nano.pipeline import HELD_OUT_ROWS
from toolsrv_lab.nano.rows import read_shard
from toolsrv_lab.nano.vocabulary import VOCABULARY, read_vocabulary
from toolsrv_lab.training_data.compact import NOT_SAID, OTHER_THOUGHTS, UnfitError, row_of
from toolsrv_registry.registry import Registry
from toolsrv_runtime.planner import layout
from toolsrv_runtime.toolbench.answer_files import parse_answer, read_answer


def asked(said: str, value: str, *, fails: bool = False) -> Assignment:
    step = ErrandStep(f"the capital of {said}", CAPITAL, {"country": Value(value, said)})
    down = (CAPITAL,) if fails else ()
    return Assignment("t", f"What is the capital of {said}?", (step,), fails=down)


def row(registry: Registry, out: Path, assignment: Assignment) -> Row:
    solve(registry, out, [assignment], oracle())
    return row_of(read_answer(out / f"t_{METHOD}.json"))


def told(row: Row, *, learned: bool) -> str:
    return "".join(one.text for one in row.episodes[0].segments if one.learned or not learned)


def test_a_path_is_told_as_the_compact_format_tells_it(registry: Registry, tmp_path: Path) -> None:
    found = row(registry, tmp_path, asked("Peru", "Peru"))
    (clause, number), *_ = found.episodes[0].aims
    name = "capital_city_for_country_facts"
    assert clause == "the capital of Peru"
    assert found.functions[number].text.startswith(f"#{number} {name}(country)")
    assert told(found, learned=False).startswith(
        f"{layout.USER}What is the capital of Peru?{layout.THOUGHT}the capital of Peru"
        f'{layout.USE}{number}{layout.ACTION}{name}{layout.INPUT}{{"country": "Peru"}}'
        f'{layout.OBSERVATION}{{"country": "Peru", "capital": "Lima"'
    )
    assert "Lima" in told(found, learned=True)
    assert layout.OBSERVATION not in told(found, learned=True)
    assert told(found, learned=True).endswith('"}')


def test_what_failed_without_another_ends_with_a_give_up(
    registry: Registry, tmp_path: Path
) -> None:
    found = told(row(registry, tmp_path, asked("Peru", "Peru", fails=True)), learned=True)
    assert layout.GIVE_UP in found
    assert found.endswith(layout.QUIT)


def test_a_value_that_was_said_otherwise_gives_no_row(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(UnfitError, match=NOT_SAID):
        row(registry, tmp_path, asked("the land of the Incas", "Peru"))


def test_thoughts_of_another_kind_give_no_row(registry: Registry, tmp_path: Path) -> None:
    solve(registry, tmp_path, [asked("Peru", "Peru")], oracle())
    text = (tmp_path / f"t_{METHOD}.json").read_text()
    value = json.loads(text.replace(" use #", " by way of "))
    with pytest.raises(UnfitError, match="thoughts"):
        row_of(parse_answer(value, "here"))
    assert "thoughts" in OTHER_THOUGHTS


def test_a_partial_answer_of_a_solve_gives_no_row(registry: Registry, tmp_path: Path) -> None:
    row(registry, tmp_path, asked("Peru", "Peru"))
    value = json.loads((tmp_path / f"t_{METHOD}.json").read_text())
    value |= {"win": False, "toolsrv": {"status": "partial", "answer": "x"}}
    value["answer_generation"] |= {"valid_data": False}
    with pytest.raises(UnfitError, match="only a part of an answer"):
        row_of(parse_answer(value, "here"))


def test_a_mistake_that_was_mended_is_read_but_not_learnt(
    registry: Registry, tmp_path: Path
) -> None:
    solve(registry, tmp_path, list(islice(from_errands(APIS.keys(), 0), 120)), oracle(1.0))
    seen = 0
    for path in sorted(tmp_path.glob("*.json")):
        try:
            found = row_of(read_answer(path))
        except UnfitError:
            continue
        if re.search(r": the argument '", told(found, learned=False)):  # what is wrong is cut off
            seen += 1
            whole = told(found, learned=False).count(layout.ACTION)
            assert told(found, learned=True).count(layout.ACTION) < whole
            assert " failed. " in told(found, learned=True)
    assert seen


def test_a_folder_of_answers_becomes_rows_to_train_on(registry: Registry, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    answers, out = tmp_path / "answers", tmp_path / "rows"
    solve(registry, answers, list(islice(from_errands(APIS.keys(), 1), 20)), oracle(0.3))
    words = ["lab", "convert", str(answers), "--format", "compact", "--out"]
    done = CliRunner().invoke(cli, [*words, str(out), "--json"])
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert made["files"] == 20
    assert made["rows"] + made["held_out"] + len(made["left_out"]) == 20
    rows = read_shard(out / "rows-0000.npz")
    assert rows.shape == (made["rows"], 5, 1_024)
    assert made["rows"] >= 8
    assert len(read_shard(out / HELD_OUT_ROWS)) == made["held_out"] >= 1
    vocabulary = read_vocabulary(out / VOCABULARY)
    text = vocabulary.decode([one for one in rows[0, 0].tolist() if one > 2])
    assert layout.SYSTEM in text
    assert layout.USER in text

    known = ["--vocabulary", str(out / VOCABULARY)]
    again = CliRunner().invoke(cli, [*words, str(tmp_path / "more"), *known])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "more" / VOCABULARY).read_bytes() == (out / VOCABULARY).read_bytes()
    assert (read_shard(tmp_path / "more" / "rows-0000.npz") == rows).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "compact", "--keep-thoughts"), "--keep-thoughts"),
        (("--vocabulary", "x.json"), "--format compact"),
        (("--format", "compact"), "does not exist"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    here = [str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    refused = CliRunner().invoke(cli, ["lab", "convert", *here, *words])
    assert refused.exit_code == 2
    assert said in refused.stderr
