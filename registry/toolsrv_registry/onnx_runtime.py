"""Load onnxruntime on first use, without telemetry, and shipped ONNX models with their tokenizers.

A model's files are compared with the checksums of its card before they are loaded.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolsrv_registry.errors import DataError


def onnxruntime(module: str = "onnxruntime") -> Any:
    """Return the library, or the module of it that is named."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return importlib.import_module(module)


_MODEL, _TOKENISER = "model.int8.onnx", "tokenizer.json"


def read_onnx(folder: Path, digests: Mapping[str, str], *, of: str) -> dict[str, bytes]:
    """Return the files of a model by name, compared with their card; loads nothing heavy.

    ``digests`` are the SHA-256 of the files by name; ``of`` names the model in messages.

    Raises:
        DataError: a file is missing, or is not the one of the digest.
    """
    contents: dict[str, bytes] = {}
    for name in (_MODEL, _TOKENISER):
        try:
            contents[name] = (folder / name).read_bytes()
        except OSError as error:
            raise DataError(
                f"cannot read the {of}'s file {folder / name}: {error.strerror}",
                hint="reinstall toolsrv",
            ) from error
        if hashlib.sha256(contents[name]).hexdigest() != digests.get(name):
            raise DataError(
                f"the {of}'s file {folder / name} is not the one its card describes",
                hint="reinstall toolsrv",
            )
    return contents


def load_onnx(folder: Path, digests: Mapping[str, str], *, of: str) -> tuple[Any, Any]:
    """Return the session, one thread a run, and the tokeniser, without padding.

    Raises as ``read_onnx`` does.
    """
    contents = read_onnx(folder, digests, of=of)
    runtime = onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(
        contents[_MODEL],
        options,
        providers=["CPUExecutionProvider"],
        # This fused kernel is three times as slow as the sum and the norm that it replaces.
        disabled_optimizers=["SkipLayerNormFusion"],
    )
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(
        contents[_TOKENISER].decode("utf-8")
    )
    tokenizer.no_padding()
    return session, tokenizer
