"""Example requests: what is near them, what they know nothing of, files that are damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.documents import document_hash, document_text
from toolsrv_registry.encoder import HashingEncoder, OnnxEncoder, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.index.lexicon import LexiconCache
from toolsrv_registry.similarity import ApiScorer, Examples, spread_out, write_examples
from toolsrv_registry.storage.store import Store


def unit(*rows: list[float]) -> Vectors:
    found = np.asarray(rows, np.float32)
    normed: Vectors = found / np.linalg.norm(found, axis=1, keepdims=True)
    return normed


def test_the_nearest_request_counts(tmp_path: Path) -> None:
    path = tmp_path / "examples.npz"
    write_examples(path, {"a": unit([1, 0], [0, 1]), "b": unit([1, 1])}, {}, "encoder")
    examples = Examples(path)
    (vector,) = unit([0.1, 1])
    assert examples.nearest(vector, "a", "encoder") == pytest.approx(vector[1], abs=0.01)
    assert examples.nearest(vector, "b", "encoder") == pytest.approx(0.77, abs=0.02)


def test_other_documents_and_other_encoders_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "examples.npz"
    write_examples(path, {"a": unit([1, 0])}, {}, "encoder")
    (vector,) = unit([1, 0])
    assert Examples(path).nearest(vector, "c", "encoder") is None
    assert Examples(path).nearest(vector, "a", "another") is None


def test_requests_far_apart_are_kept() -> None:
    rows = unit([1, 0], [1, 0.01], [0, 1], [1, 0.02], [-1, 0])
    assert spread_out(rows, 3) == [0, 4, 2]
    assert spread_out(rows, 9) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_a_damaged_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "examples.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot read the example requests"):
        Examples(path).nearest(unit([1, 0])[0], "a", "encoder")


def test_the_examples_that_ship_are_of_the_catalog_and_the_encoder_that_ship() -> None:
    apis = load_offline_catalog().apis
    documents = {document_hash(document_text(api)) for api in apis}
    examples = Examples()
    assert examples.documents == documents
    encoder = OnnxEncoder()
    vector = np.zeros(encoder.dimensions, np.float32)
    assert examples.nearest(vector, next(iter(documents)), encoder.digest) == 0.0


def test_a_request_in_other_words_than_the_document_is_like_its_api(tmp_path: Path) -> None:
    apis = {api.id: api for api in load_offline_catalog().apis}
    wanted = apis["Data/country_facts/capital_city"]
    others = [api for api in apis.values() if api.id != wanted.id]
    with Store.open(tmp_path / "store.sqlite3") as store:
        store.put_catalog(load_offline_catalog())
        like = ApiScorer(LexiconCache(store).current, OnnxEncoder()).similarities(
            "which city does the government of Peru sit in", [wanted, *others]
        )
    assert like[0] == max(like)


def test_without_examples_the_affinity_says_what_to_expect(tmp_path: Path) -> None:
    apis = load_offline_catalog().apis[:5]
    with Store.open(tmp_path / "store.sqlite3") as store:
        store.put_catalog(load_offline_catalog())
        measured = ApiScorer(LexiconCache(store).current, HashingEncoder())
        broken = ApiScorer(
            LexiconCache(store).current, OnnxEncoder(), Examples(tmp_path / "none.npz")
        )
        order = np.argsort(measured.scores("capital of Peru", apis))
        assert (np.argsort(measured.similarities("capital of Peru", apis)) == order).all()
        assert all(0.1 < one < 0.8 for one in broken.similarities("capital of Peru", apis))
