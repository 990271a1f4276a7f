"""The files that go in and come out: pairs and base weights, trained weights in pieces.

Weights are safetensors in half precision, arrays a NumPy archive; neither runs code when read.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .network import Shape, Weights, torch
from .pairs import Pairs

safetensors: Any = importlib.import_module("safetensors")
tensor_files: Any = importlib.import_module("safetensors.torch")

PAIRS = "pairs.npz"
BASE = "base.safetensors"
ABOUT = "training.json"
PIECE = 15 << 20
"""Bytes of one file that comes back: some ways between machines take no larger ones."""
_PIECES = "weights.part*"


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run came to: the tensors by name, and what ``training.json`` says."""

    tensors: Weights
    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Base:
    """The weights that a training begins with."""

    tensors: Weights
    shape: Shape


def write_pairs(folder: Path, pairs: Pairs) -> None:
    """Write what ``read_pairs`` reads."""
    small = {
        name: array.astype(np.uint16) if name.endswith("_ids") and array.max(initial=0) < 1 << 16
        else array
        for name, array in pairs.arrays().items()
    }  # fmt: skip
    np.savez_compressed(folder / PAIRS, **small)  # type: ignore[arg-type]


def read_pairs(folder: Path) -> Pairs:
    """Return the pairs in a folder of ``write_pairs``."""
    with np.load(folder / PAIRS) as file:
        return Pairs.of({name: file[name] for name in file.files})


def write_weights(folder: Path, base: Base) -> None:
    """Write what ``read_weights`` reads, in half precision."""
    tensor_files.save_file(_half(base.tensors), folder / BASE, {"heads": str(base.shape.heads)})


def read_weights(folder: Path) -> Base:
    """Return the base in a folder of ``write_weights``."""
    with safetensors.safe_open(folder / BASE, "pt") as file:
        heads = int(file.metadata()["heads"])
    tensors = tensor_files.load_file(folder / BASE)
    return Base(tensors, Shape.of(tensors, heads))


def write_run(folder: Path, trained: Trained) -> None:
    """Write the trained weights in pieces, and what they are trained with."""
    folder.mkdir(parents=True, exist_ok=True)
    data = tensor_files.save(_half(trained.tensors), {"format": "pt"})
    for old in folder.glob(_PIECES):
        old.unlink()
    for at in range(0, len(data), PIECE):
        (folder / f"weights.part{at // PIECE}").write_bytes(data[at : at + PIECE])
    (folder / ABOUT).write_text(json.dumps(trained.about, indent=2) + "\n", "utf-8")


def has_pieces(folder: Path) -> bool:
    """Return whether a folder is one of ``write_run``."""
    return any(folder.glob(_PIECES))


def read_run(folder: Path) -> Weights:
    """Return the trained weights in a folder of ``write_run``."""
    pieces = sorted(folder.glob(_PIECES), key=lambda one: int(one.suffix.removeprefix(".part")))
    data = b"".join(one.read_bytes() for one in pieces)
    tensors: Weights = tensor_files.load(data)
    return tensors


def _half(tensors: Weights) -> Weights:
    return {
        name: one.detach().to("cpu", torch.float16).contiguous()
        for name, one in tensors.items()
        if one.is_floating_point()
    }
