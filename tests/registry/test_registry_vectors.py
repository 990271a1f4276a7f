"""The vector index: what is built, what is reused, what happens when it breaks."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.encoder import HashingEncoder, Progress, Vectors
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.index.vectors import Index
from toolsrv_registry.registry import Registry
from toolsrv_registry.storage.store import Store

MakeApi = Callable[..., Api]
MakeCatalog = Callable[..., Catalog]


class CountingEncoder(HashingEncoder):
    """The fake, remembering what it was asked to encode."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        self.texts.extend(texts)
        return super().encode(texts, progress=progress)


class FailingEncoder(HashingEncoder):
    """The fake, failing like a damaged model."""

    def encode(
        self,
        texts: Sequence[str],  # noqa: ARG002  (the port's signature)
        *,
        progress: Progress | None = None,  # noqa: ARG002  (the port's signature)
    ) -> Vectors:
        raise DataError("the model is damaged", hint="reinstall")


def many(make_api: MakeApi, count: int) -> list[Api]:
    return [make_api("Tools", f"T {n % 7}", f"api {n}", f"number {n}") for n in range(count)]


def test_a_new_index_is_missing_then_ready_then_stale(
    hashed: Registry, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    assert hashed.index.status().state == "missing"
    with pytest.raises(DataError) as caught:
        hashed.index.query(np.ones((1, 64), dtype=np.float32), 3)
    assert "index build" in caught.value.hint
    status = hashed.index.build()
    assert (status.state, status.apis, status.encoder) == ("ready", 12, "hashing")
    assert status.bytes > 0
    hashed.store.put_catalog(make_catalog(make_api("A", "B", "c"), name="more"))
    assert hashed.index.status().state == "stale"


def test_the_nearest_documents_come_back_with_their_cosine(hashed: Registry) -> None:
    hashed.index.build()
    documents = hashed.store.documents()
    vectors = hashed.index.encoder.encode([document.text for document in documents])
    rows = hashed.index.query(vectors, 3)
    for document, row in zip(documents, rows, strict=True):
        assert row[0][0] == document.hash
        assert row[0][1] == pytest.approx(1.0, abs=1e-5)
    assert set(hashed.index.vectors([documents[0].hash, "absent"])) == {documents[0].hash}


def test_a_query_can_be_kept_to_a_place(hashed: Registry) -> None:
    hashed.index.build()
    probe = hashed.index.encoder.encode(["Find hotels in a city"])
    (everywhere,) = hashed.index.query(probe, 99)
    (there,) = hashed.index.query(probe, 99, category="Weather", tool="sky_watch")
    assert (len(everywhere), len(there)) == (12, 2)


def test_only_changed_texts_are_encoded_again(
    tmp_path: Path, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    encoder = CountingEncoder()
    apis = many(make_api, 30)
    with Registry.open(tmp_path, [make_catalog(*apis)], encoder=encoder) as registry:
        registry.ensure_index()
        assert len(encoder.texts) == 30
        first = registry.index.status().collection
        encoder.texts.clear()
        apis[3] = apis[3].model_copy(update={"description": "entirely new"})
        apis[4] = apis[4].model_copy(update={"url": "https://example.org/moved"})
        registry.store.put_catalog(make_catalog(*apis[:-1]))
        status = registry.ensure_index()
    assert len(encoder.texts) == 1
    assert "entirely new" in encoder.texts[0]
    assert (status.state, status.apis) == ("ready", 29)
    assert status.collection != first


def test_building_twice_changes_nothing(hashed: Registry) -> None:
    assert hashed.index.build() == hashed.index.build()


def test_an_empty_store_has_an_empty_index(tmp_path: Path) -> None:
    with Registry.open(tmp_path, encoder=HashingEncoder()) as registry:
        assert registry.index.build().state == "ready"
        assert registry.retriever.search("anything").hits == ()


def test_progress_runs_from_what_is_reused_to_the_whole(hashed: Registry) -> None:
    seen: list[tuple[int, int]] = []
    hashed.index.build(lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)
    assert seen == sorted(seen)


def test_each_encoder_has_its_own_index(tmp_path: Path, catalog: Catalog) -> None:
    for dimensions in (16, 32, 16):
        encoder = HashingEncoder(dimensions)
        with Registry.open(tmp_path, [catalog], encoder=encoder) as registry:
            assert registry.ensure_index().state == "ready"
            assert registry.retriever.search("weather").degraded == ""
    with Registry.open(tmp_path) as registry:
        assert len(registry.store.pointers.at("embedded")) == 2


def test_a_failed_build_leaves_the_old_index_in_use(
    tmp_path: Path, catalog: Catalog, make_api: MakeApi, make_catalog: MakeCatalog
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        before = registry.ensure_index()
    more = make_catalog(make_api("A", "B", "c"), name="more")
    with Registry.open(tmp_path, [catalog, more], encoder=FailingEncoder()) as registry:
        with pytest.raises(DataError):
            registry.index.build()
        assert registry.index.status().collection == before.collection
    with Registry.open(tmp_path, encoder=HashingEncoder()) as registry:
        assert registry.index.status().state == "stale"
        assert registry.index.build().apis == 13
        assert len(registry.index._chroma.names(registry.store.owner())) == 1


@pytest.mark.parametrize("damage", ["garbage", "truncated", "emptied", "deleted"])
def test_a_damaged_database_is_noticed_and_built_anew(
    tmp_path: Path, catalog: Catalog, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        registry.ensure_index()
    file = tmp_path / "chroma" / "chroma.sqlite3"
    if damage == "garbage":
        file.write_bytes(os.urandom(file.stat().st_size))
    elif damage == "deleted":
        file.unlink()
    else:
        os.truncate(file, 5_000 if damage == "truncated" else 0)
    with (
        caplog.at_level(logging.WARNING),
        Registry.open(tmp_path, encoder=HashingEncoder()) as registry,
    ):
        result = registry.retriever.search("weather forecast")
        assert result.degraded == ""
        assert result.hits[0].dense_rank is not None
        assert registry.index.status().state == "ready"
    assert caplog.records or damage == "deleted"


@pytest.mark.parametrize("damage", ["truncated", "garbage", "deleted"])
def test_a_damaged_graph_file_is_noticed_before_it_is_read(
    tmp_path: Path, make_api: MakeApi, make_catalog: MakeCatalog, damage: str
) -> None:
    apis = many(make_api, 1_200)
    with Registry.open(tmp_path, [make_catalog(*apis)], encoder=HashingEncoder(16)) as registry:
        registry.ensure_index()
    file = next((tmp_path / "chroma").glob("*/data_level0.bin"))
    if damage == "truncated":
        os.truncate(file, 100)
    elif damage == "garbage":
        file.write_bytes(os.urandom(file.stat().st_size))
    else:
        shutil.rmtree(file.parent)
    with Registry.open(tmp_path, encoder=HashingEncoder(16)) as registry:
        with pytest.raises(DataError) as caught:
            registry.index.query(np.ones((1, 16), dtype=np.float32), 3)
        assert "index build" in caught.value.hint
        assert registry.index.build().state == "ready"
        assert registry.retriever.search("api 7").degraded == ""


def test_an_index_folder_that_cannot_be_made_is_a_data_error(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError):
        Index(store, HashingEncoder(), folder=tmp_path / "file").build()


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x:1", "http://host", "http://h:x", ""])
def test_a_malformed_server_url_is_a_usage_error(store: Store, tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError):
        Index(store, HashingEncoder(), folder=tmp_path, url=url)


def test_a_server_that_does_not_answer_leaves_words_only(tmp_path: Path, catalog: Catalog) -> None:
    with Registry.open(
        tmp_path, [catalog], encoder=HashingEncoder(), chroma_url="http://127.0.0.1:9"
    ) as registry:
        result = registry.retriever.search("weather forecast")
        assert result.hits
        assert "127.0.0.1:9" in result.degraded
        with pytest.raises(DataError):
            registry.index.build()
