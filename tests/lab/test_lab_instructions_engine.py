"""An engine as the writer of instructions: runs, stops and faults.

The model that ships writes for real; what a better model says is scripted.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.full_disk import full_disk
from tests.model_server import GIVE_UP, ModelServer

from toolsrv.cli.main import cli
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.execution import LocalPool, stateless
from toolsrv_lab.instructions import replies
from toolsrv_lab.instructions.engine_writer import (
    Options,
    WriterReply,
    WriterRun,
    record_path,
    write_with_engine,
)
from toolsrv_lab.instructions.prompts import label
from toolsrv_lab.instructions.samples import Deck, Sample
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.file_lock import lock_beside
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError, ModelError
from toolsrv_runtime.gguf_models import SHIPPED_MODEL, load_engine

APIS = load_offline_catalog().apis
TEXT = "My cousin gets married in Porto on the third of June and I still know nothing about it"


@pytest.fixture(scope="module")
def nano() -> Iterator[Engine]:
    engine, _ = load_engine(threads=1)
    yield engine
    engine.close()


def item(text: str, sample: Sample, count: int = 2) -> dict[str, Any]:
    named = [label(api, sample.kind) for api in sample.apis[:count]]
    return {"query": text, "relevant APIs": json.loads(json.dumps(named))}


def said(at: int, options: Options, tasks: int = 2) -> str:
    """Return a good reply to the prompt of a place."""
    sample = list(Deck(APIS, options.kinds).samples(1, options.seed))[at]
    return json.dumps([item(f"{TEXT}, part {at}-{n}.", sample) for n in range(tasks)])


def scripted(options: Options, count: int, begin: int = 0) -> ScriptedEngine:
    return ScriptedEngine([said(at, options) for at in range(begin, count)])


def test_the_model_that_ships_writes_within_the_grammar(nano: Engine, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=1, calls=2, kinds=("tool", "category"))
    run = write_with_engine(APIS, path, nano, options)
    assert (run.calls, run.total) == (2, 2)
    assert run.tokens > 0
    assert run.instructions + sum(run.left_out.values()) == 2
    assert not {replies.NO_JSON, replies.NO_TASK, replies.NOT_OFFERED} & set(run.left_out)
    assert len(read_queries(path)) == run.instructions
    assert path.stat().st_size == run.size
    assert WriterRun.model_validate_json(record_path(path).read_text()) == run


def test_what_an_engine_says_becomes_queries(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=3, calls=4)
    told: list[tuple[int, int]] = []
    run = write_with_engine(
        APIS, path, scripted(options, 4), options, progress=lambda *one: told.append(one)
    )
    assert (run.instructions, run.left_out) == (8, {})
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    queries = read_queries(path)
    assert len({query.query_id for query in queries}) == 8
    for query in queries:
        assert set(query.relevant_ids) <= {one.id for one in query.candidates}
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert set(kinds) <= {"tool", "category", "collection"}


def test_texts_that_come_again_and_more_than_asked_for_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=3, kinds=("tool",))
    samples = list(Deck(APIS, ("tool",)).samples(1, options.seed))
    first_ = json.dumps([item(TEXT, samples[0]), item(f"{TEXT.upper()}!", samples[0])])
    second = json.dumps([item(f"{TEXT} {n}", samples[1]) for n in range(3)])
    engine = ScriptedEngine([first_, second, "I would rather not."])
    run = write_with_engine(APIS, path, engine, options)
    assert run.instructions == 3
    assert run.left_out == {replies.REPEATED: 1, replies.TOO_MANY: 1, replies.NO_JSON: 1}


def test_an_engine_that_fails_leaves_what_is_written_and_the_run_goes_on(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=5)
    write_with_engine(APIS, whole, scripted(options, 5), options)
    with pytest.raises(ModelError) as raised:
        write_with_engine(APIS, path, scripted(options, 2), options)
    assert "prompt 3 of 5" in raised.value.message
    assert "4 instructions" in raised.value.message
    assert "again" in raised.value.hint
    assert len(read_queries(path)) == 4
    run = write_with_engine(APIS, path, scripted(options, 5, begin=2), options)
    assert run.calls == 5
    assert path.read_bytes() == whole.read_bytes()
    assert record_path(path).read_bytes() == record_path(whole).read_bytes()


def test_an_engine_that_fails_at_once_can_be_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=1)
    with pytest.raises(ModelError):
        write_with_engine(APIS, path, ScriptedEngine([]), options)
    assert write_with_engine(APIS, path, scripted(options, 1), options).instructions == 2


def test_what_a_kill_left_half_done_is_asked_for_again(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=3)
    write_with_engine(APIS, whole, scripted(options, 3), options)
    write_with_engine(APIS, path, scripted(options, 2), options.model_copy(update={"calls": 2}))
    # The third prompt's lines were on their way and its record was not.
    with path.open("ab") as file:
        file.write(whole.read_bytes()[path.stat().st_size :][:-20])
    write_with_engine(APIS, path, scripted(options, 3, begin=2), options)
    assert path.read_bytes() == whole.read_bytes()


def test_a_run_that_is_done_asks_nothing_and_can_grow(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=2)
    run = write_with_engine(APIS, path, scripted(options, 2), options)
    assert write_with_engine(APIS, path, ScriptedEngine([]), options) == run
    more = options.model_copy(update={"calls": 3})
    grown = write_with_engine(APIS, path, scripted(options, 3, begin=2), more)
    assert grown.instructions == run.instructions + 2


def test_a_full_disk_leaves_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=3)
    write_with_engine(APIS, path, scripted(options, 2), options.model_copy(update={"calls": 2}))
    before, record = path.read_bytes(), record_path(path).read_bytes()
    with full_disk(len(before) + 10), pytest.raises(DataError) as raised:
        write_with_engine(APIS, path, scripted(options, 3, begin=2), options)
    assert "space" in raised.value.hint
    assert path.read_bytes()[: len(before)] == before
    assert record_path(path).read_bytes() == record
    write_with_engine(APIS, path, scripted(options, 3, begin=2), options)
    assert len(read_queries(path)) == 6


def test_files_of_other_settings_and_other_makers_are_left_alone(tmp_path: Path) -> None:
    path, other = tmp_path / "out.jsonl", tmp_path / "mine.jsonl"
    options = Options(tasks=2, calls=1)
    write_with_engine(APIS, path, scripted(options, 1), options)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="temperature"):
        write_with_engine(
            APIS, path, ScriptedEngine([]), options.model_copy(update={"temperature": 0.1})
        )
    with pytest.raises(UsageError, match="apis"):
        write_with_engine(APIS[:-1], path, ScriptedEngine([]), options)
    assert path.read_bytes() == before
    other.write_text("mine\n")
    with pytest.raises(UsageError):
        write_with_engine(APIS, other, ScriptedEngine([]), options)
    assert other.read_text() == "mine\n"


@pytest.mark.parametrize("damage", ["record", "text", "end", "gone"])
def test_a_damaged_file_or_record_is_told(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=2)
    write_with_engine(APIS, path, scripted(options, 1), options.model_copy(update={"calls": 1}))
    if damage == "record":
        record_path(path).write_text("{")
    elif damage == "text":
        path.write_bytes(b"\xff" + path.read_bytes()[1:])
    elif damage == "end":
        path.write_bytes(path.read_bytes()[:-5])
    else:
        path.unlink()
    with pytest.raises(DataError) as raised:
        write_with_engine(APIS, path, ScriptedEngine([]), options)
    assert "delete" in raised.value.hint


def test_a_model_without_room_for_the_prompt_is_told_before_anything_is_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.jsonl"
    narrow = ScriptedEngine(["[]"])
    narrow.context = 2_048
    with pytest.raises(ContextError) as raised:
        write_with_engine(APIS, path, narrow, Options(tasks=20, calls=1))
    assert re.search(r"context of \d+", raised.value.message)
    assert "--tasks" in raised.value.hint
    assert not list(tmp_path.iterdir())


def test_documents_are_shortened_until_the_reply_has_room(tmp_path: Path) -> None:
    options = Options(tasks=2, calls=3, kinds=("collection",))
    engine = scripted(options, 3)
    write_with_engine(APIS, tmp_path / "wide.jsonl", engine, options)
    narrow = ScriptedEngine(['[{"query": "'], loop=True)
    narrow.context = max(map(len, map(str.split, engine.prompts))) + 2 * 120 - 30
    run = write_with_engine(APIS, tmp_path / "narrow.jsonl", narrow, options)
    assert min(map(len, narrow.prompts)) < max(map(len, engine.prompts))
    assert run.left_out == {replies.BROKEN_OFF: 3}


def test_no_api_no_instructions(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_with_engine([], tmp_path / "x", ScriptedEngine([]), Options())


def test_replies_that_come_in_another_order_make_the_same_file(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    options = Options(tasks=2, calls=6)
    write_with_engine(APIS, whole, scripted(options, 6), options)
    begun: list[int] = []

    async def late(at: int) -> WriterReply:
        begun.append(at)
        await asyncio.sleep(0.05 * (6 - at))
        text = said(at, options)
        return WriterReply(apis=10, text=text, tokens=len(text.split()))

    pool = LocalPool(stateless(late), 3)
    run = write_with_engine(APIS, path, ScriptedEngine([]), options, pool=pool)
    assert (begun[:3], run.calls) == ([0, 1, 2], 6)
    assert path.read_bytes() == whole.read_bytes()


def test_only_one_run_writes_a_file(tmp_path: Path) -> None:
    path, options = tmp_path / "out.jsonl", Options(tasks=2, calls=1)
    with lock_beside(record_path(path)), pytest.raises(BusyError, match=r"out\.jsonl"):
        write_with_engine(APIS, path, scripted(options, 1), options)
    assert not path.exists()
    assert write_with_engine(APIS, path, scripted(options, 1), options).calls == 1


# The command


@pytest.mark.parametrize("model", [str(SHIPPED_MODEL), "nano"], ids=["file", "name"])
def test_the_command_runs_the_model_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    out = tmp_path / "out.jsonl"
    words = ["lab", "instructions", "--engine", model, "--tasks", "1", "--kind", "tool",
             "--out", str(out), "--json"]  # fmt: skip
    done = CliRunner().invoke(cli, [*words, "--calls", "1"])
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["calls"] == 1
    assert document["instructions"] + sum(document["left_out"].values()) == 1
    again = CliRunner().invoke(cli, [*words, "--calls", "1"])
    assert json.loads(again.stdout) == document


def test_a_model_at_a_server_cannot_be_held_to_the_grammar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    with ModelServer([GIVE_UP]) as server:
        words = ["--engine", server.url, "--out", str(tmp_path / "out.jsonl")]
        done = CliRunner().invoke(cli, ["lab", "instructions", *words])
    assert done.exit_code == 2
    assert "needs a model of this machine" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_options_of_a_model_want_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    words = ["lab", "instructions", "--out", str(tmp_path / "out.jsonl"), "--tasks", "3"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert "--engine" in done.stderr
