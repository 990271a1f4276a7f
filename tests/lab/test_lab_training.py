"""The encoder's training: it learns, and a killed run goes on where it was."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from toolsrv_lab.checkpoints import CHECKPOINT
from toolsrv_lab.extras import load
from toolsrv_lab.retrieval.training import TrainingOptions
from toolsrv_registry.errors import DataError

pytest.importorskip("sentence_transformers", reason="needs the extra `lab`")

STEPS = 24
THINGS = ("weather", "music", "football", "recipes", "stocks", "trains", "films", "poems")

# One thread: sums over several come in any order, and the two runs are compared bit by bit.
RUN = """
import json, sys
from pathlib import Path
import torch
from toolsrv_lab.retrieval.mining import Pair
from toolsrv_lab.retrieval.training import TrainingOptions, train
torch.set_num_threads(1)
base, out, options, data = sys.argv[1:]
data = json.loads(data)
batches = [
    [Pair(query, place, frozenset({place})) for query, place in batch] for batch in data["batches"]
]
train(
    Path(base), Path(out), batches, data["documents"], TrainingOptions(**json.loads(options)),
    progress=lambda done, total, loss: print(done, loss, flush=True), save_seconds=0,
)
"""


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


def command(base: Path, out: Path, **changed: object) -> list[str]:
    options = TrainingOptions(steps=STEPS, batch_size=4, warmup=2, learning_rate=1e-2)
    rng = random.Random(0)
    places = list(range(len(THINGS)))
    batches = [
        [(f"give me {THINGS[at]}", at) for at in rng.sample(places, 4)] for _ in range(STEPS)
    ]
    documents = [f"an api for the {thing}" for thing in THINGS]
    given = json.dumps(options.model_dump() | changed)
    data = json.dumps({"batches": batches, "documents": documents})
    return [sys.executable, "-c", RUN, str(base), str(out), given, data]


def trained(out: Path) -> dict[str, npt.NDArray[np.float32]]:
    (file,) = (out / "model").rglob("model.safetensors")
    tensors: dict[str, npt.NDArray[np.float32]] = load("safetensors.numpy").load_file(str(file))
    return tensors


def test_a_killed_training_goes_on_and_ends_as_if_nothing_had_been(
    base: Path, tmp_path: Path
) -> None:
    subprocess.run(command(base, tmp_path / "whole"), check=True, capture_output=True, timeout=300)
    rng = random.Random(1)
    seen: list[int] = []
    for _ in range(3):
        stop = rng.randrange(3, 7)
        run = subprocess.Popen(
            command(base, tmp_path / "killed"), stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        with run.stdout:
            for count, line in enumerate(run.stdout, start=1):
                seen.append(int(line.split()[0]))
                if count == stop:
                    run.send_signal(signal.SIGKILL)
                    break
        run.wait(60)
    done = subprocess.run(
        command(base, tmp_path / "killed"), check=True, capture_output=True, text=True, timeout=300
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    # Each run began where the checkpoint was: no step before it was taken again.
    assert int(lines[0][0]) > seen[-1] - 1 > seen[0] + 3
    assert float(lines[-1][1]) < 1.0
    one, other = trained(tmp_path / "whole"), trained(tmp_path / "killed")
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused(
    base: Path, tmp_path: Path
) -> None:
    subprocess.run(command(base, tmp_path), check=True, capture_output=True, timeout=300)
    other = subprocess.run(
        command(base, tmp_path, learning_rate=1e-3),
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert DataError.__name__ in other.stderr
    assert "other settings" in other.stderr
    checkpoint = tmp_path / CHECKPOINT
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    broken = subprocess.run(
        command(base, tmp_path), check=False, capture_output=True, text=True, timeout=300
    )
    assert DataError.__name__ in broken.stderr
    assert "cannot read the checkpoint" in broken.stderr
