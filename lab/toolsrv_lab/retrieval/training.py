"""The encoder's training in a folder: checkpoints, and a sentence-transformers folder at the end.

The training itself is ``contrastive``, which runs on its own too, on a machine with nothing of toolsrv;
``export_pairs`` writes what it reads there, and ``model_folder`` takes what comes back.

A checkpoint is written every two minutes, whole or not at all; a run that is started again with the same
settings and data goes on from it.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv_lab.checkpoints import SAVE_SECONDS, read_checkpoint, write_checkpoint, written
from toolsrv_lab.extras import load
from toolsrv_lab.memory import keep_freed_memory
from toolsrv_lab.retrieval.contrastive.options import Options
from toolsrv_lab.retrieval.contrastive.pairs import Pairs
from toolsrv_lab.retrieval.encoder_data import MAX_TOKENS
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv_lab.retrieval.contrastive.files import Base
    from toolsrv_lab.retrieval.contrastive.mining import Counted
    from toolsrv_lab.retrieval.contrastive.training import Progress

MODEL = "model"


def has_gpu() -> bool:
    """Return whether a training would run on a GPU."""
    return bool(load("torch").cuda.is_available())


def train(
    base: Path,
    out: Path,
    pairs: Pairs,
    options: Options,
    *,
    progress: Progress | None = None,
    counted: Counted | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Path:
    """Train the encoder in ``base`` and return the folder of the trained one, ``out``/model.

    A checkpoint is written every ``save_seconds``: a kill loses no more than that, and the search for
    hard negatives that it interrupts.

    Raises:
        DataError: a checkpoint of other settings or data, or no room for one.
        UsageError: ``base`` is no BERT, or a batch is too large for the device.
    """
    device = "cuda" if has_gpu() else "cpu"
    if device == "cpu":
        keep_freed_memory()
    out.mkdir(parents=True, exist_ok=True)
    settings = json.dumps({"options": dataclasses.asdict(options), "data": pairs.digest()})
    training = _contrastive("training")
    try:
        trained = training.train(
            pairs,
            _read_base(base),
            options,
            device,
            progress=progress,
            counted=counted,
            state=read_checkpoint(out, settings, device),
            save=lambda state: write_checkpoint(out, settings, state),
            save_seconds=save_seconds,
        )
    except load("torch").OutOfMemoryError as error:
        raise UsageError(
            f"batches of {options.batch_size} are too large for this device's memory",
            hint="give a smaller --batch-size",
        ) from error
    with written(out):
        (out / "training.json").write_text(json.dumps(trained.about, indent=2) + "\n", "utf-8")
        return _assemble(trained.tensors, base, out)


def export_pairs(folder: Path, base: Path, pairs: Pairs) -> None:
    """Write what ``python -m contrastive --data FOLDER`` reads: pairs and the base's weights.

    Raises DataError where there is no room, UsageError where ``base`` is no BERT.
    """
    files = _contrastive("files")
    with written(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files.write_pairs(folder, pairs)
        files.write_weights(folder, _read_base(base))


def has_pieces(folder: Path) -> bool:
    """Return whether a folder is a run of ``python -m contrastive``."""
    return bool(_contrastive("files").has_pieces(folder))


def model_folder(folder: Path, base: Path) -> Path:
    """Make the model's folder of a run of ``python -m contrastive`` from its pieces; return it.

    Raises DataError for pieces that are not whole, or not of this base.
    """
    files = _contrastive("files")
    try:
        tensors = files.read_run(folder)
    except (load("safetensors").SafetensorError, OSError, ValueError) as error:
        raise DataError(
            f"the weights in {str(folder)!r} are not whole: {error}",
            hint="copy all of the run's files again",
        ) from error
    return _assemble(tensors, base, folder)


def _read_base(base: Path) -> Base:
    files = _contrastive("files")
    network = _contrastive("network")
    bert = _library(base)[0].auto_model
    if bert.config.model_type != "bert":
        raise UsageError(
            f"{str(base)!r} cannot be trained: it is {bert.config.model_type!r}",
            hint="take a sentence-transformers folder of a BERT, such as all-MiniLM-L6-v2",
        )
    tensors = {name: one.detach() for name, one in bert.state_dict().items()}
    shape = network.Shape.of(tensors, int(bert.config.num_attention_heads))
    made: Base = files.Base(tensors, shape)
    return made


def _assemble(tensors: dict[str, Any], base: Path, out: Path) -> Path:
    """Write the folder of a model with the base's tokeniser and these weights."""
    library = _library(base)
    library.max_seq_length = MAX_TOKENS
    weights = {name: one.detach().float().cpu() for name, one in tensors.items()}
    try:
        library[0].auto_model.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(
            f"the weights are not those of {str(base)!r}",
            hint="name the base that the run began with: --base DIR",
        ) from error
    library.save(str(out / MODEL))
    return out / MODEL


def _library(base: Path) -> Any:
    return load("sentence_transformers").SentenceTransformer(str(base), device="cpu")


def _contrastive(name: str) -> Any:
    """Return a module of ``contrastive``; raises UsageError where torch is not installed."""
    load("torch")
    return load(f"toolsrv_lab.retrieval.contrastive.{name}")
