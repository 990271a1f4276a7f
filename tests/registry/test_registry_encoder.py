"""Encoders: the one that ships, its guard against altered files, and the fake."""

from __future__ import annotations

import importlib.util
import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.encoder import (
    SHIPPED_ENCODER,
    Encoder,
    HashingEncoder,
    OnnxEncoder,
    SentenceTransformersEncoder,
    Vectors,
)
from toolsrv_registry.errors import DataError, UsageError


@pytest.fixture(scope="module")
def shipped() -> OnnxEncoder:
    return OnnxEncoder()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED_ENCODER, tmp_path / "encoder"))


@pytest.mark.parametrize("encoder", [OnnxEncoder(), HashingEncoder(32)], ids=lambda e: e.name)
def test_vectors_have_the_promised_shape_and_length(encoder: Encoder) -> None:
    vectors = encoder.encode(["What time is it?", "", "\0\ud800", "好" * 30_000, "word " * 9_000])
    assert vectors.shape == (5, encoder.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-4)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_near_meanings_are_near(shipped: OnnxEncoder) -> None:
    rain, weather, money = shipped.encode(
        ["Will it rain tomorrow?", "Weather forecast for a city", "Convert euros to dollars"]
    )
    assert rain @ weather > rain @ money + 0.2


def test_a_vector_does_not_depend_on_its_neighbours(shipped: OnnxEncoder) -> None:
    texts = ["short", "a rather longer text about the weather in Lisbon " * 4, "x"]
    together = shipped.encode(texts)
    alone = np.concatenate([shipped.encode([text]) for text in texts])
    np.testing.assert_array_equal(together, alone)


def test_several_threads_get_the_same_vectors() -> None:
    encoder = OnnxEncoder(threads=2)
    texts = [f"text number {n}" for n in range(20)]
    results: list[Vectors] = []
    threads = [
        threading.Thread(target=lambda: results.append(encoder.encode(texts))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_progress_counts_to_the_end(shipped: OnnxEncoder) -> None:
    seen: list[tuple[int, int]] = []
    shipped.encode(["a", "b", "c"], progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (3, 3)
    assert all(0 < done <= total == 3 for done, total in seen)


@pytest.mark.parametrize("name", ["model.int8.onnx", "tokenizer.json"])
def test_an_altered_file_is_refused(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(DataError) as caught:
        OnnxEncoder(folder).encode(["text"])
    assert name in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("name", ["model.int8.onnx", "tokenizer.json", "card.json"])
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(DataError):
        OnnxEncoder(folder).encode(["text"])


@pytest.mark.parametrize("name", ["model.int8.onnx", "tokenizer.json", "card.json"])
def test_a_check_finds_what_is_missing_or_altered(folder: Path, name: str) -> None:
    OnnxEncoder(folder).check()
    (folder / name).write_bytes(b"{}")
    with pytest.raises(DataError) as caught:
        OnnxEncoder(folder).check()
    assert caught.value.hint
    (folder / name).unlink()
    with pytest.raises(DataError):
        OnnxEncoder(folder).check()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 1}'])
def test_an_unreadable_card_is_refused(folder: Path, text: str) -> None:
    (folder / "card.json").write_text(text)
    with pytest.raises(DataError):
        _ = OnnxEncoder(folder).digest


def test_the_digest_follows_the_files(folder: Path) -> None:
    card = json.loads((folder / "card.json").read_text())
    before = OnnxEncoder(folder).digest
    assert before == OnnxEncoder().digest
    card["files"]["model.int8.onnx"] = "0" * 64
    (folder / "card.json").write_text(json.dumps(card))
    assert OnnxEncoder(folder).digest != before


def test_no_threads_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        OnnxEncoder(threads=0)


def test_sentence_transformers_says_what_to_install_when_it_is_absent() -> None:
    if importlib.util.find_spec("sentence_transformers"):
        pytest.skip("sentence-transformers is installed")
    with pytest.raises(UsageError) as caught:
        SentenceTransformersEncoder("any").encode(["text"])
    assert "lab" in caught.value.hint


def test_a_local_model_folder_is_named_and_hashed_without_loading_it(folder: Path) -> None:
    encoder = SentenceTransformersEncoder(str(folder))
    before = encoder.digest
    (folder / "extra").write_text("x")
    assert encoder.name == "encoder"
    assert SentenceTransformersEncoder(str(folder)).digest != before


@given(st.lists(st.text(max_size=50), max_size=5))
def test_the_fake_is_deterministic_and_normalised(texts: list[str]) -> None:
    first, second = HashingEncoder(16).encode(texts), HashingEncoder(16).encode(texts)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0, atol=1e-5)
