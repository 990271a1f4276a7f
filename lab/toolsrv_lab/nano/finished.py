"""The files of a finished training: weights, vocabulary, and what they were made of.

``training.json`` is what a model card is written from. Knows no optimiser.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from toolsrv_lab.bench.machine import machine
from toolsrv_lab.extras import load
from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.rows import about_shards
from toolsrv_lab.nano.vocabulary import VOCABULARY, Vocabulary
from toolsrv_lab.versions import versions
from toolsrv_registry.errors import DataError

WEIGHTS = "weights.safetensors"
ABOUT = "training.json"

_PACKAGES = ("torch", "numpy", "tokenizers", "safetensors")


def finish(
    out: Path,
    network: Any,
    vocabulary: Vocabulary,
    files: Sequence[Path],
    about: Mapping[str, Any],
) -> Path:
    """Write the files of a finished run, each whole or not at all; return that of the weights."""
    vocabulary.save(out / VOCABULARY)
    fresh = out / f".{WEIGHTS}.new"
    tensors = {name: one.cpu() for name, one in network.state_dict().items()}
    load("safetensors.torch").save_file(tensors, str(fresh))
    fresh.replace(out / WEIGHTS)
    here = machine()
    whole = dict(about) | {
        "machine": {key: here[key] for key in ("cpu", "cores")},
        "versions": versions(*_PACKAGES),
        "data": about_shards(files),
    }
    told = out / f".{ABOUT}.new"
    told.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    told.replace(out / ABOUT)
    return out / WEIGHTS


def read_about(run: Path) -> tuple[Shape, dict[str, Any]]:
    """Return the shape and all that ``training.json`` says of a finished run; raises DataError."""
    try:
        about: dict[str, Any] = json.loads((run / ABOUT).read_text("utf-8"))
        return Shape.model_validate(about["shape"]), about
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{str(run)!r} holds no finished training: {reason}",
            hint="finish it with the command that began it: toolsrv lab train model --out of this "
            "folder",
        ) from error
