"""States of prompt heads on disk: restored exactly, bounded, never from another model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.engine import pools
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.prefix_cache import StateStore, model_fingerprint
from toolsrv_runtime.gguf_models import SHIPPED_MODEL
from toolsrv_runtime.requirements import split_parts

HEAD = Piece("System:\n#1 capital_for_facts(country): Capital\n" * 6, special=True, shared=True)
ASK = Piece("User: the capital of Peru\n")
FREE = "start: /[a-z ]{300,400}/\n"


def reply(folder: Path, model: Path = SHIPPED_MODEL) -> tuple[str, int]:
    """Write with a new engine; return the text and the tokens that were evaluated."""
    store = StateStore(folder, limit=1 << 26)
    engine = LlamaEngine(model, context=1024, threads=1, states=store)
    written = engine.generate((HEAD, ASK), grammar=FREE, max_tokens=20)
    evaluated = engine.counts.tokens
    engine.close()
    assert written.evaluated == evaluated  # the head counts, whoever evaluated it
    return written.text, evaluated


def test_a_stored_head_is_not_evaluated_again_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools.PrefixCache.__init__, "__kwdefaults__", {"worth_s": 0.0})
    first, all_tokens = reply(tmp_path)
    files = list(tmp_path.glob("*.state"))
    assert len(files) == 1
    second, fewer = reply(tmp_path)
    assert second == first
    assert fewer < all_tokens - 60
    files[0].write_bytes(files[0].read_bytes()[:-1] + b"?")
    third, again = reply(tmp_path)
    assert (third, again) == (first, all_tokens)


def test_a_damaged_file_is_a_miss_and_deleted(tmp_path: Path) -> None:
    store = StateStore(tmp_path, limit=1000)
    assert store.put("a", [1, 2], b"state")
    assert store.get("a", [1, 2]) == b"state"
    assert store.get("b", [1, 2]) is None
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"rubbish")
    assert store.get("a", [1, 2]) is None
    assert not file.exists()


def test_the_store_keeps_its_limit_and_drops_the_least_recently_used(tmp_path: Path) -> None:
    store = StateStore(tmp_path, limit=400)
    for number in range(3):
        assert store.put("a", [number], b"x" * 100)
        for path in tmp_path.iterdir():
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    assert store.get("a", [0]) is None
    assert store.get("a", [2]) is not None
    assert not store.put("a", [9], b"x" * 500)


def test_another_model_file_has_another_name(tmp_path: Path) -> None:
    path = tmp_path / "model"
    names = set()
    for content in (b"one", b"two", b"three"):
        path.write_bytes(content)
        names.add(model_fingerprint([path]))
    names.add(model_fingerprint([path], "f16"))
    assert len(names) == 4


def test_a_file_changed_in_its_middle_has_another_name_though_its_time_was_set_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "model"
    path.write_bytes(bytes(4 << 20))
    before, stat = model_fingerprint([path]), path.stat()
    with path.open("r+b") as file:
        file.seek(2 << 20)
        file.write(b"other weights")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_mtime_ns == stat.st_mtime_ns
    assert model_fingerprint([path]) != before


def test_a_changed_second_part_of_a_split_model_meets_no_old_state(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{at}-of-00002.gguf" for at in (1, 2))
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    before = model_fingerprint(split_parts(first))
    stat = second.stat()
    second.write_bytes(b"TWO")
    os.utime(second, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert model_fingerprint(split_parts(first)) != before


def test_an_engine_names_its_states_by_all_parts_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools.PrefixCache.__init__, "__kwdefaults__", {"worth_s": 0.0})
    first, second = (tmp_path / f"m-0000{at}-of-00002.gguf" for at in (1, 2))
    first.symlink_to(SHIPPED_MODEL)  # whole already, so llama.cpp does not open the other
    second.write_bytes(b"two")
    states = tmp_path / "states"
    for _ in range(2):
        reply(states, first)
        assert len(list(states.glob("*.state"))) == 1
    second.write_bytes(b"another two")
    reply(states, first)
    assert len(list(states.glob("*.state"))) == 2


def test_what_a_killed_process_left_half_written_is_dropped(tmp_path: Path) -> None:
    store = StateStore(tmp_path, limit=400)
    left, fresh = tmp_path / ".state-left", tmp_path / ".state-fresh"
    for path in (left, fresh):
        path.write_bytes(b"x" * 200)
    os.utime(left, (0, 0))
    assert store.put("a", [0], b"x" * 100)
    assert not left.exists()
    os.utime(next(tmp_path.glob("*.state")), (0, 0))
    assert store.put("a", [1], b"x" * 100)
    assert fresh.exists()  # another process may be writing it still: it counts, it stays
    assert (store.get("a", [0]), store.get("a", [1])) == (None, b"x" * 100)


def test_a_folder_that_cannot_be_written_is_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = StateStore(tmp_path / "file" / "below", limit=1000)
    assert not store.put("a", [1], b"state")
    assert store.get("a", [1]) is None
