"""The encoder's training: it learns, and a killed run goes on where it was."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from toolsrv_lab.extras import load
from toolsrv_lab.retrieval import contrastive, training
from toolsrv_lab.retrieval.contrastive.options import Options
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_lab.retrieval.training import Material, make_pairs
from toolsrv_lab.training_runs import CHECKPOINT
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, ToolsrvError

pytest.importorskip("sentence_transformers", reason="needs the extra `lab`")

STEPS = 24
THINGS = ("weather", "music", "football", "recipes", "stocks", "trains", "films", "poems")
OPTIONS = Options(steps=STEPS, batch_size=4, warmup=2, learning_rate=1e-2, mine_every=5)

# One thread: sums over several come in any order, and the two runs are compared bit by bit.
RUN = """
import json, sys
from pathlib import Path
import torch
from toolsrv_lab.retrieval.contrastive.files import read_pairs
from toolsrv_lab.retrieval.contrastive.options import Options
from toolsrv_lab.retrieval.training import train
torch.set_num_threads(1)
base, data, out, options = sys.argv[1:]
train(
    Path(base), Path(out), read_pairs(Path(data)), Options(**json.loads(options)),
    progress=lambda done, spent, loss: print(done, loss, flush=True), save_seconds=0,
)
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Several threads wait for each other on busy cores, and a tiny network needs none."""
    torch = load("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a tiny BERT with a vocabulary of its own, as a sentence-transformers folder."""
    library, torch, transformers = map(load, ("sentence_transformers", "torch", "transformers"))
    folder = tmp_path_factory.mktemp("base")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "give", "me", "the", "an", "api", "for"]
    (folder / "vocab.txt").write_text("\n".join([*words, *THINGS]) + "\n")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words) + len(THINGS), hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(str(folder))
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(str(folder))
    # A bare BERT gets mean pooling.
    whole = library.SentenceTransformer(str(folder))
    whole.save(str(folder / "st"))
    return folder / "st"


@pytest.fixture(scope="module")
def data(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two texts for each of eight documents, and one text that needs two of them."""
    apis = [
        Api(
            # Of one tool: the untrained network takes all texts for the same.
            id=f"Data/things/{thing}", category="Data", tool="things", name=thing,
            description=f"an api for the {thing}",
        )
        for thing in THINGS
    ]  # fmt: skip
    queries = [
        Query(query_id="", query=text, relevant=(Named(id=api.id),))
        for api in apis
        for text in (f"give me {api.name}", f"the {api.name}")
    ]
    both = tuple(Named(id=one.id) for one in apis[:2])
    needs = ("weather for me", "music for me")
    queries.append(Query(query_id="", query=" the ".join(needs), relevant=both, needs=needs))
    folder = tmp_path_factory.mktemp("data") / "pairs"
    training.export_pairs(folder, base, make_pairs(Material(tuple(apis), tuple(queries)), base))
    return folder


def command(base: Path, data: Path, out: Path, **changed: object) -> list[str]:
    given = {"steps": STEPS, "batch_size": 4, "warmup": 2, "learning_rate": 1e-2, "mine_every": 5}
    options = json.dumps(given | changed)
    return [sys.executable, "-c", RUN, str(base), str(data), str(out), options]


def trained(out: Path) -> dict[str, npt.NDArray[np.float32]]:
    (file,) = (out / "model").rglob("model.safetensors")
    tensors: dict[str, npt.NDArray[np.float32]] = load("safetensors.numpy").load_file(str(file))
    return tensors


def ranks(model: Path) -> list[int]:
    """Return how many documents stand before the one that a text asks for."""
    encoder = load("sentence_transformers").SentenceTransformer(str(model), device="cpu")
    documents = encoder.encode([f"an api for the {thing}" for thing in THINGS])
    texts = encoder.encode([f"give me {thing}" for thing in THINGS])
    scores = texts @ documents.T
    return [int((row > row[at]).sum()) for at, row in enumerate(scores)]


def test_a_killed_training_goes_on_and_ends_as_if_nothing_had_been(
    base: Path, data: Path, tmp_path: Path
) -> None:
    whole, killed = (command(base, data, tmp_path / name) for name in ("whole", "killed"))
    whole_run = subprocess.run(whole, check=True, capture_output=True, text=True, timeout=300)
    rng = random.Random(1)
    seen: list[int] = []
    for _ in range(2):
        stop = rng.randrange(3, 7)
        run = subprocess.Popen(killed, stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        with run.stdout:
            for count, line in enumerate(run.stdout, start=1):
                seen.append(int(line.split()[0]))
                if count == stop:
                    run.send_signal(signal.SIGKILL)
                    break
        run.wait(60)
    done = subprocess.run(killed, check=True, capture_output=True, text=True, timeout=300)
    lines = [line.split() for line in done.stdout.splitlines()]
    # Each run began where the checkpoint was: no step before it was taken again.
    assert int(lines[0][0]) > seen[-1] - 1 > seen[0] + 2
    assert int(lines[-1][0]) == STEPS
    losses = [float(line.split()[1]) for line in whole_run.stdout.splitlines()]
    assert losses[0] > 1.2 * losses[-1] > 0
    one, other = trained(tmp_path / "whole"), trained(tmp_path / "killed")
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)
    about = json.loads((tmp_path / "killed" / "training.json").read_text("utf-8"))
    assert about["steps"] == about["options"]["steps"] == STEPS
    assert about["data"] == {"documents": 8, "texts": 19, "needs": 18, "wholes": 2}


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused(
    base: Path, data: Path, tmp_path: Path
) -> None:
    pairs = load("toolsrv_lab.retrieval.contrastive.files").read_pairs(data)
    training.train(base, tmp_path, pairs, OPTIONS)
    with pytest.raises(DataError) as caught:
        training.train(base, tmp_path, pairs, Options(steps=STEPS, batch_size=4))
    assert "other settings" in caught.value.message
    checkpoint = tmp_path / CHECKPOINT
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(DataError) as caught:
        training.train(base, tmp_path, pairs, OPTIONS)
    assert "cannot read the checkpoint" in caught.value.message


def test_a_training_ends_with_its_seconds(base: Path, data: Path, tmp_path: Path) -> None:
    pairs = load("toolsrv_lab.retrieval.contrastive.files").read_pairs(data)
    spent: list[float] = []
    options = Options(seconds=2, batch_size=4)
    training.train(
        base, tmp_path, pairs, options, progress=lambda _, share, __: spent.append(share)
    )
    assert spent == sorted(spent)
    assert spent[-1] >= 1
    assert all(one < 1 for one in spent[:-1])


def test_it_runs_alone_and_its_pieces_make_a_model_that_has_learnt(
    base: Path, data: Path, tmp_path: Path
) -> None:
    """With the folder ``contrastive`` and nothing of toolsrv on the path."""
    shutil.copytree(Path(contrastive.__file__).parent, tmp_path / "contrastive")
    probe = (
        "import runpy, sys; sys.argv[0] = 'contrastive'; "
        "runpy.run_module('contrastive', run_name='__main__'); "
        "sys.exit(any(one.startswith('toolsrv') for one in sys.modules))"
    )
    run = tmp_path / "run"
    given = (
        "--data",
        data,
        "--out",
        run,
        "--steps",
        60,
        "--batch-size",
        8,
        "--learning-rate",
        1e-2,
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *map(str, given)],
        cwd=tmp_path, env={"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert training.has_pieces(run)
    model = training.model_folder(run, base)
    assert sum(ranks(model)) < sum(ranks(base)) / 4
    piece = run / "weights.part0"
    piece.write_bytes(piece.read_bytes()[:-100])
    with pytest.raises(DataError):
        training.model_folder(run, base)


def test_pieces_of_another_base_are_refused(base: Path, data: Path, tmp_path: Path) -> None:
    files = load("toolsrv_lab.retrieval.contrastive.files")
    tensors = {name: one[:1] for name, one in files.read_weights(data).tensors.items()}
    files.write_run(tmp_path, files.Trained(tensors, {}))
    with pytest.raises(ToolsrvError):
        training.model_folder(tmp_path, base)
