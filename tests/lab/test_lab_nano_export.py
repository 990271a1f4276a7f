"""The exported network is the trained one: the same tokens, the same logits in llama.cpp."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from toolsrv_lab.extras import load
from toolsrv_lab.nano.episodes import Segment
from toolsrv_lab.nano.export import ABOUT, WEIGHTS, export_gguf
from toolsrv_lab.nano.network import Shape, make_network
from toolsrv_lab.nano.vocabulary import MARKERS, Vocabulary, make_vocabulary
from toolsrv_registry.errors import DataError
from toolsrv_runtime.planner import layout

pytest.importorskip("torch", reason="needs the extra `lab`")
pytest.importorskip("gguf", reason="needs the extra `lab`")

STRINGS = (
    "PX-88213-Q",
    "What's 3.5% of 1,200?",
    "Zürich  in\tMay",
    "日本 🎉",
    'say "hi": {x}',
    "a\nb",
    b"caf\xe9 \xff".decode("utf-8", "replace"),
    "\x00\x01\x1b\x7f\u202e\ufeff",
)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return make_vocabulary([[Segment(text) for text in STRINGS * 3]], 360)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, vocabulary: Vocabulary) -> Path:
    folder = tmp_path_factory.mktemp("run")
    shape = Shape(vocabulary=len(vocabulary), width=64, layers=2, heads=4, inner=96, context=512)
    load("torch").manual_seed(3)
    network = make_network(shape)
    load("safetensors.torch").save_file(network.state_dict(), str(folder / WEIGHTS))
    (folder / ABOUT).write_text(json.dumps({"shape": shape.model_dump()}))
    return folder


@pytest.fixture(scope="module")
def exported(run: Path, vocabulary: Vocabulary) -> Path:
    return export_gguf(run, vocabulary, run / "nano.gguf", name="nano")


def test_llama_cpp_computes_the_same_logits(run: Path, exported: Path) -> None:
    torch = load("torch")
    shape = Shape.model_validate(json.loads((run / ABOUT).read_text())["shape"])
    network = make_network(shape).eval()
    network.load_state_dict(load("safetensors.torch").load_file(str(run / WEIGHTS)))
    rng = random.Random(0)
    ids = [1, *rng.choices(range(3, shape.vocabulary), k=60)]
    length = len(ids)
    mask = torch.zeros(1, 1, length, length)
    mask = mask.masked_fill(~torch.ones(length, length, dtype=torch.bool).tril(), -1e4)
    with torch.no_grad():
        expected = network(
            torch.tensor([ids]), torch.arange(length)[None], mask, torch.arange(length)
        ).numpy()
    llama = load("llama_cpp").Llama(
        str(exported), n_ctx=512, logits_all=True, verbose=False, n_threads=1
    )
    llama.eval(ids)
    np.testing.assert_allclose(llama.scores[:length], expected, atol=5e-3)
    assert (llama.scores[:length].argmax(-1) == expected.argmax(-1)).mean() > 0.98
    llama.close()


def test_llama_cpp_reads_text_as_the_vocabulary_does(
    exported: Path, vocabulary: Vocabulary
) -> None:
    llama = load("llama_cpp").Llama(str(exported), vocab_only=True, verbose=False)
    for string in STRINGS:
        read = llama.tokenize(string.encode(), add_bos=False, special=False)
        assert read == vocabulary.encode(Segment(string)), string
    for marker in MARKERS:
        read = llama.tokenize(marker.encode(), add_bos=False, special=True)
        assert read == [vocabulary.id_of(marker)], marker
    both = f"{layout.USE}3{layout.ACTION}get{layout.INPUT}"
    assert llama.tokenize(both.encode(), add_bos=False, special=True) == vocabulary.encode(
        Segment(both, markers=True)
    )
    llama.close()


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with pytest.raises(DataError, match="no finished training"):
        export_gguf(tmp_path, vocabulary, tmp_path / "x.gguf", name="x")
