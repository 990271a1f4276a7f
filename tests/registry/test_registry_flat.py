"""The flat copy of the vectors: exact, and only ever a cache of what Chroma has."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.encoder import HashingEncoder, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.index import vectors
from toolsrv_registry.index.flat import FlatFile, FlatIndex
from toolsrv_registry.registry import Registry

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]
FILE = "vectors.npz"


def some(count: int, seed: int = 0) -> dict[str, Vectors]:
    rows = np.random.default_rng(seed).standard_normal((count, 8), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return {f"hash {at}": row for at, row in enumerate(rows)}


def unread() -> dict[str, Vectors]:
    raise AssertionError("the file should have been enough")


def same(one: FlatIndex, other: FlatIndex) -> bool:
    return one.hashes == other.hashes and np.array_equal(one.integers, other.integers)


def test_it_tells_the_cosines_with_all_texts(tmp_path: Path) -> None:
    known = some(20)
    flat = FlatFile(tmp_path / FILE).get("a", lambda: known)
    asked = np.stack([known["hash 3"], known["hash 17"]])
    wanted = ("hash 3", "absent", "hash 4", "hash 3")
    found = flat.over(wanted)(asked)
    assert found[:, 1].tolist() == [-np.inf, -np.inf]
    for at in (0, 2, 3):
        assert found[:, at] == pytest.approx(asked @ known[wanted[at]], abs=0.01)
    assert flat.over(("absent",))(asked).tolist() == [[-np.inf], [-np.inf]]


def test_of_no_texts_there_are_no_cosines(tmp_path: Path) -> None:
    path = tmp_path / FILE
    for _ in range(2):
        flat = FlatFile(path).get("a", dict)
        assert flat.over(())(np.ones((3, 8), np.float32)).shape == (3, 0)


def test_it_is_read_from_its_file_until_another_collection_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / FILE
    made = FlatFile(path).get("a", lambda: some(5))
    kept = FlatFile(path)
    assert same(kept.get("a", unread), made)
    assert kept.get("a", unread) is kept.get("a", unread)
    assert same(kept.get("b", lambda: some(7, seed=1)), FlatFile(path).get("b", unread))
    assert len(FlatFile(path).get("a", lambda: some(5)).hashes) == 5


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "altered"])
def test_a_damaged_file_is_made_anew(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / FILE
    made = FlatFile(path).get("a", lambda: some(50))
    content = path.read_bytes()
    # The matrix is last: its checksum is the zip archive's.
    altered = content[: len(content) // 2] + b"\xff" * 8 + content[len(content) // 2 + 8 :]
    path.write_bytes(
        {"empty": b"", "cut": content[:-99], "other": b"x" * 99, "altered": altered}[damage]
    )
    with caplog.at_level(logging.WARNING):
        assert same(FlatFile(path).get("a", lambda: some(50)), made)
    assert "damaged" in caplog.text
    assert same(FlatFile(path).get("a", unread), made)


def test_where_it_cannot_be_written_it_is_read_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        flat = FlatFile(tmp_path / "absent" / FILE).get("a", lambda: some(5))
    assert len(flat.hashes) == 5
    assert "cannot keep" in caplog.text


def test_searches_find_what_chroma_finds(
    hashed: Registry, monkeypatch: pytest.MonkeyPatch, catalog: Catalog
) -> None:
    hashed.ensure_index()
    texts = ["weather forecast for a city", "convert money", "count the letters, and hotels too"]
    places: list[dict[str, Any]] = [
        {},
        {"category": "Weather"},
        {"tool": "letters"},
        {"catalog": catalog.name},
    ]
    asked = [(text, place) for text in texts for place in places]
    flat = [hashed.retriever.search(text, 12, **place).hits for text, place in asked]
    monkeypatch.setattr(vectors, "MOST", 0)
    assert hashed.index.flat() is None
    for (text, place), found in zip(asked, flat, strict=True):
        by_graph = hashed.retriever.search(text, 12, **place).hits
        measured = {hit.api.id: hit.similarity for hit in found}
        assert measured == pytest.approx({hit.api.id: hit.similarity for hit in by_graph}, abs=0.01)


def test_a_build_leaves_it_and_a_changed_catalog_another(
    tmp_path: Path, make_api: MakeApi, make_catalog: MakeCatalog, catalog: Catalog
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.ensure_index()
        first = (tmp_path / FILE).read_bytes()
        registry.store.put_catalog(make_catalog(make_api("A", "B", "c", "juggling"), name="more"))
        registry.ensure_index()
        assert (tmp_path / FILE).read_bytes() != first
        flat = registry.index.flat()
        assert flat is not None
        assert len(flat.hashes) == 13
        assert registry.retriever.search("juggling").hits[0].dense_rank == 1


def test_an_index_that_is_out_of_date_is_searched_as_far_as_it_goes(
    tmp_path: Path,
    make_api: MakeApi,
    make_catalog: MakeCatalog,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolsrv_registry.search.recall._BUILD_AT_ONCE", 0)
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.ensure_index()
        registry.store.put_catalog(make_catalog(make_api("A", "B", "juggling"), name="more"))
        found = registry.retriever.search("juggling forecast", 13)
        ranks = {hit.api.name: hit.dense_rank for hit in found.hits}
        assert "out of date" in found.degraded
        assert (ranks["juggling"], ranks["Forecast"] is None) == (None, False)


def test_without_an_index_it_is_a_data_error(hashed: Registry) -> None:
    with pytest.raises(DataError) as caught:
        hashed.index.flat()
    assert "index build" in caught.value.hint


def test_a_search_in_an_indexed_folder_does_not_load_chroma(
    tmp_path: Path, catalog: Catalog
) -> None:
    with Registry.open(tmp_path, [catalog]) as registry:
        registry.ensure_index()
    probe = (
        "import sys; from pathlib import Path\n"
        "from toolsrv_registry.registry import Registry\n"
        "with Registry.open(Path(sys.argv[1])) as registry:\n"
        "    registry.warm().join()\n"
        "    print(registry.retriever.search('weather in Rome').hits[0].dense_rank)\n"
        "print('chromadb' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1:] == ["False"]
    assert done.stdout.split()[0].isdigit()
