"""Packs of recordings: written, read, and refused when they are not as they say."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.calls.recordings import Recording
from toolsrv_runtime.calls.recordings import storage as packs
from toolsrv_runtime.calls.recordings.storage import RecordingStore, read_pack, write_pack

API = Api(
    id="Data/t/a", category="Data", tool="t", name="a", url="https://a.test/",
    optional=(Parameter(name="q"),),
)  # fmt: skip


def entry(number: int) -> Recording:
    made = CallResult(
        api_id=API.id, arguments={"q": str(number)}, url="", status=200,
        response={"n": number, "odd": "\ud800 é"}, error="", source="live", seconds=0.5,
    )  # fmt: skip
    return Recording.from_result(API, made)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with RecordingStore.open(tmp_path / "recordings.sqlite3") as opened:
        yield opened


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[Recording]]:
    entries = [entry(number) for number in range(20)]
    path = tmp_path / "calls.pack"
    write_pack(path, entries, {"rapidapi"})
    return path, entries


def test_a_pack_comes_back_whole_as_imported(
    made: tuple[Path, list[Recording]], store: RecordingStore
) -> None:
    path, entries = made
    heard: list[tuple[int, int]] = []
    got = read_pack(path, store, progress=lambda done, total: heard.append((done, total)))
    assert (got.entries, got.added) == (20, 20)
    assert heard[-1] == (20, 20)
    back = list(store.entries())
    assert {one.provenance for one in back} == {"imported"}
    assert [one.model_copy(update={"provenance": "live"}) for one in back] == entries
    assert store.key_names() == {"rapidapi"}


def test_importing_again_or_into_its_source_adds_nothing(
    made: tuple[Path, list[Recording]], store: RecordingStore
) -> None:
    path, entries = made
    store.add_all(entries)
    assert read_pack(path, store).added == 0
    assert {one.provenance for one in store.entries()} == {"live"}


def test_the_same_entries_make_the_same_file(made: tuple[Path, list[Recording]]) -> None:
    path, entries = made
    other = path.with_name("other.pack")
    write_pack(other, entries, ["rapidapi"])
    assert other.read_bytes() == path.read_bytes()


def test_simulated_entries_stay_simulated(tmp_path: Path, store: RecordingStore) -> None:
    write_pack(tmp_path / "p", [entry(1).model_copy(update={"provenance": "simulated"})], ())
    read_pack(tmp_path / "p", store)
    assert store.stats().provenances == {"simulated": 1}


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Write the pack anew with changed members; None leaves one out."""
    other = path.with_name("changed.pack")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return other


def manifest_with(**fields: object) -> Callable[[str, bytes], bytes]:
    def change(name: str, content: bytes) -> bytes:
        if name != "manifest.json":
            return content
        return json.dumps(json.loads(content) | fields).encode()

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda _name, content: content.replace(b'"n":7', b'"n":8'),
        lambda _name, content: content.replace(b'"n":7', b'"n":70'),
        lambda name, content: content + content[: content.index(b"\n") + 1]
        if name == "entries.jsonl" else content,
        lambda name, content: content[: content.rindex(b"{")] if name == "entries.jsonl" else content,
        lambda name, content: b"" if name == "entries.jsonl" else content,
        lambda name, content: None if name == "entries.jsonl" else content,
        lambda name, content: None if name == "manifest.json" else content,
        lambda name, content: b"{}" if name == "manifest.json" else content,
        lambda name, content: b"[" * 100_000 if name == "manifest.json" else content,
        manifest_with(entries=19),
        manifest_with(bytes=10**12),
        manifest_with(sha256="0" * 64),
        manifest_with(digests="0" * 64),
        manifest_with(version=2),
        manifest_with(format="other"),
        manifest_with(more=1),
    ],
)  # fmt: skip
def test_a_tampered_pack_is_refused_and_nothing_is_taken(
    made: tuple[Path, list[Recording]],
    store: RecordingStore,
    change: Callable[[str, bytes], bytes | None],
) -> None:
    other = rewritten(made[0], change)
    with pytest.raises(DataError) as caught:
        read_pack(other, store)
    assert caught.value.hint
    assert store.stats().entries == 0
    assert store.key_names() == set()


def test_what_is_in_no_manifest_is_refused(
    made: tuple[Path, list[Recording]], store: RecordingStore
) -> None:
    with zipfile.ZipFile(made[0], "a") as pack:
        pack.writestr("../evil", b"x")
    with pytest.raises(DataError):
        read_pack(made[0], store)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_cut_or_flipped_file_is_refused(
    made: tuple[Path, list[Recording]], store: RecordingStore, place: float
) -> None:
    path, whole = made[0], made[0].read_bytes()
    at = int(len(whole) * place)
    for content in (whole[:at], whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]):
        path.write_bytes(content)
        with pytest.raises(DataError):
            read_pack(path, store)
    assert store.stats().entries == 0


def test_an_oversized_pack_is_refused(
    made: tuple[Path, list[Recording]], store: RecordingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "LINE_LIMIT", 100)
    with pytest.raises(DataError):
        read_pack(made[0], store)
    monkeypatch.setattr(packs, "MAX_PACK_BYTES", 1_000)
    with pytest.raises(DataError):
        read_pack(made[0], store)
    assert store.stats().entries == 0


def test_a_bomb_ends_at_its_announced_size(
    made: tuple[Path, list[Recording]], store: RecordingStore
) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content + b"\n" * 50_000_000 if name == "entries.jsonl" else content

    with pytest.raises(DataError):
        read_pack(rewritten(made[0], change), store)


def test_the_hash_that_is_asked_for_counts(
    made: tuple[Path, list[Recording]], store: RecordingStore
) -> None:
    with pytest.raises(DataError):
        read_pack(made[0], store, sha256="0" * 64)
    right = write_pack(made[0], made[1], ()).sha256
    assert read_pack(made[0], store, sha256=right.upper()).added == 20


def test_no_file_no_place_and_no_pack(tmp_path: Path, store: RecordingStore) -> None:
    with pytest.raises(NotFoundError):
        read_pack(tmp_path / "none", store)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UsageError):  # a file of another kind is wrong use
        read_pack(tmp_path / "text", store)
    with pytest.raises(DataError):
        read_pack(tmp_path, store)
    with pytest.raises(UsageError):
        write_pack(tmp_path / "no" / "p", [], ())
    with pytest.raises(UsageError):
        write_pack(tmp_path, [], ())


def test_a_failing_export_leaves_the_old_file(made: tuple[Path, list[Recording]]) -> None:
    before = made[0].read_bytes()

    def entries() -> Iterator[Recording]:
        yield entry(1)
        raise DataError("damaged")

    with pytest.raises(DataError):
        write_pack(made[0], entries(), ())
    assert made[0].read_bytes() == before
    assert sorted(path.name for path in made[0].parent.iterdir()) == ["calls.pack"]


def test_a_recording_with_half_a_pair_is_kept_as_it_is_and_replayed_well_formed() -> None:
    kept = entry(1)
    assert kept.response["odd"] == "\ud800 é"
    assert kept.result({"q": "1"}, "").response == {"n": 1, "odd": "\ufffd é"}
