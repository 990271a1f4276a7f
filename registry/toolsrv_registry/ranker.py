"""The learned ranker: the signals of a candidate to the probability that it is needed.

Gradient-boosted trees (LambdaMART, trained in ``lab``) as one ONNX tree ensemble of some 100 KB,
checked against the hash on its card when it loads, which is with the first search. Thread-safe.
"""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.errors import DataError
from toolsrv_registry.onnx_runtime import onnxruntime
from toolsrv_registry.search.signals import SIGNALS, Floats

SHIPPED_RANKER = Path(__file__).parent / "models" / "ranker"
MODEL_FILE = "ranker.onnx"


class RankerCard(BaseModel):
    """What ``card.json`` beside a ranker says of it (further fields are for people).

    The trees' sum s becomes a probability by 1 / (1 + exp(-(``slope`` * s + ``offset``))).
    """

    model_config = ConfigDict(frozen=True)

    name: str
    signals: tuple[str, ...]
    slope: float
    offset: float
    files: dict[str, str]


class Ranker:
    """A ranker from a folder with ``card.json`` and ``ranker.onnx``; the shipped one by default."""

    def __init__(self, folder: Path = SHIPPED_RANKER) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._model: tuple[RankerCard, Any] | None = None

    def load(self) -> None:
        """Read the trees now rather than with the first search; raises DataError as ``score``."""
        self._loaded()

    def score(self, signals: Floats) -> Floats:
        """Return for rows (n, len(SIGNALS)) the probabilities (n,) that they are needed.

        Raises DataError when the ranker's files are missing, altered or of another version.
        """
        card, session = self._loaded()
        if not len(signals):
            return np.zeros(0, np.float32)
        total = session.run(None, {"signals": signals})[0][:, 0]
        scores: Floats = 1.0 / (1.0 + np.exp(-(card.slope * total + card.offset)))
        return scores.astype(np.float32)

    def _loaded(self) -> tuple[RankerCard, Any]:
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder)
            return self._model


def _load(folder: Path) -> tuple[RankerCard, Any]:
    try:
        card = RankerCard.model_validate(json.loads((folder / "card.json").read_text("utf-8")))
        content = (folder / MODEL_FILE).read_bytes()
    except (OSError, ValueError, ValidationError) as error:
        raise DataError(
            f"cannot read the ranker in {folder}: {error}", hint="reinstall toolsrv"
        ) from error
    if hashlib.sha256(content).hexdigest() != card.files.get(MODEL_FILE):
        raise DataError(
            f"the ranker in {folder} is not the one its card describes", hint="reinstall toolsrv"
        )
    if card.signals != SIGNALS:
        raise DataError(
            f"the ranker in {folder} was trained on other signals", hint="reinstall toolsrv"
        )
    runtime = onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return card, runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
