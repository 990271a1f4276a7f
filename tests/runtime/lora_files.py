"""LoRA adapters with random values, as llama.cpp and as PEFT keep them, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from toolsrv_runtime.convert.tiny import write_safetensors

Floats = NDArray[np.float32]
Factors = Mapping[str, tuple[Floats, Floats]]
"""Module or tensor name -> (A of (rank, columns), B of (rows, rank))."""


def factors(shapes: Mapping[str, tuple[int, int]], rank: int, seed: int = 1) -> Factors:
    """Return random factors for matrices of (rows, columns)."""
    rng = np.random.default_rng(seed)

    def values(*shape: int) -> Floats:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    return {
        name: (values(rank, columns), values(rows, rank))
        for name, (rows, columns) in shapes.items()
    }


def write_gguf_adapter(
    path: Path,
    pairs: Factors,
    *,
    alpha: float,
    architecture: str = "llama",
    kind: str = "lora",
    extra: Mapping[str, Floats] | None = None,
) -> Path:
    """Write a GGUF adapter, as llama.cpp's convert_lora_to_gguf.py does."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", kind)
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, (a, b) in pairs.items():
        writer.add_tensor(f"{name}.lora_a", a)
        writer.add_tensor(f"{name}.lora_b", b)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_peft(folder: Path, pairs: Factors, *, rank: int, alpha: float, **config: Any) -> Path:
    """Write a PEFT folder; ``config`` adds to or replaces entries of adapter_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = sorted({name.rpartition(".")[2] for name in pairs})
    given = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": alpha,
        "target_modules": targets, "bias": "none", "modules_to_save": None, **config,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(given))
    tensors = {}
    for name, (a, b) in pairs.items():
        tensors[f"base_model.model.{name}.lora_A.weight"] = a
        tensors[f"base_model.model.{name}.lora_B.weight"] = b
    write_safetensors(folder / "adapter_model.safetensors", tensors)
    return folder
