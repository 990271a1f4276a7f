"""LoRA adapters: llama.cpp's GGUF files, and PEFT folders in GGUF's names and row order.

An adapter adds ``scale * B @ A`` to matrices of its base model. Sources: llama.cpp's
``llama-adapter.cpp`` and ``convert_lora_to_gguf.py``; PEFT's ``LoraConfig``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_runtime.convert.errors import AdapterError
from toolsrv_runtime.convert.lora import HINT, Adapter, Base, paired
from toolsrv_runtime.convert.shards import Floats, Stored
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_header import AGAIN, Header, read_header
from toolsrv_runtime.suitable import check_header, parts

OTHER_BASE = "name the model that the adapter was trained on"
_ALORA = "adapter.alora.invocation_tokens"
_EMBEDDING = "token_embd.weight"


def open_base(path: Path) -> Base:
    """Return a dense model in one GGUF file.

    Raises:
        ModelError: No such file, damaged, no model, or incomplete.
        AdapterError: A mixture of experts, or a model in several files.
    """
    header = read_header(path)
    check_header(header)
    if len(parts(path)) > 1:
        raise AdapterError(
            f"{path.name!r} is one part of a model in several files",
            hint="join them first: llama-gguf-split --merge",
        )
    if header.own("expert_count"):
        raise AdapterError(
            f"{path.name!r} is a mixture of experts ({header.architecture}), and adapters of those "
            "are not supported",
            hint="use a merged checkpoint, converted to GGUF",
        )
    reader = open_reader(path)
    return Base(path, header, reader, {one.name: one for one in reader.tensors})


def open_reader(path: Path) -> Any:
    """Return gguf's reader of a file. Raises ModelError: damaged or incomplete."""
    import gguf  # noqa: PLC0415 - only when an adapter is read

    try:
        return gguf.GGUFReader(path)
    except (OSError, ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise ModelError(
            f"{str(path)!r} is damaged or incomplete: {str(error)[:200]}", hint=AGAIN
        ) from None


def read_adapter(path: Path, base: Base) -> Adapter:
    """Return an adapter, checked against the base that it is for.

    ``path`` is a GGUF file, a PEFT folder or its file with weights.

    Raises:
        AdapterError: It is none, of a kind that is not supported, or of another base.
        ModelError: It is missing or damaged.
        UsageError: Weights in a PyTorch file and no torch.
    """
    if is_peft(path):
        from toolsrv_runtime.convert.peft import read_peft  # noqa: PLC0415 - only for such a folder

        found = read_peft(path, base)
    else:
        found = _read_gguf(path, base)
    _check(found, base)
    return found


def is_peft(path: Path) -> bool:
    """Whether a path names a folder or PEFT's file with weights, and no GGUF file."""
    return path.is_dir() or path.suffix in (".safetensors", ".bin")


def check_adapter_file(path: Path) -> Header:
    """Return the head of a GGUF file that is a LoRA adapter.

    Raises:
        AdapterError: It is something else, or of a kind that is not supported.
        ModelError: It is missing, damaged or no GGUF file.
    """
    header = read_header(path, what="adapter", hint=HINT)
    own = header.metadata
    if own.get("general.type") != "adapter":
        what = f"a model ({header.architecture})" if header.tensors else "something else"
        raise AdapterError(f"{str(path)!r} is no adapter but {what}", hint=HINT)
    kind = own.get("adapter.type")
    if kind != "lora":
        raise AdapterError(
            f"{str(path)!r} is an adapter of the type {str(kind)[:80]!r}; only lora is supported",
            hint=HINT,
        )
    if _ALORA in own:
        raise AdapterError(
            f"{str(path)!r} is an activated LoRA, which works on a part of the text only",
            hint="only plain LoRA adapters are supported",
        )
    alpha = own.get("adapter.lora.alpha", 0.0)
    if not isinstance(alpha, float) or not np.isfinite(alpha):
        raise AdapterError(f"{str(path)!r}: adapter.lora.alpha is no number", hint=HINT)
    return header


class AdapterInfo(BaseModel):
    """What a GGUF adapter is. ``matrices`` counts those that it changes."""

    model_config = ConfigDict(frozen=True)

    path: str
    name: str
    alpha: float
    rank: int
    matrices: int
    size_bytes: int


def inspect_adapter(path: Path) -> AdapterInfo:
    """Return what a GGUF adapter that is applied while a model runs is.

    Raises:
        AdapterError: It is none, or a PEFT folder, which has to be merged.
        ModelError: It is missing or damaged.
    """
    if is_peft(path):
        raise AdapterError(
            f"{str(path)!r} is a PEFT adapter; only GGUF adapters are applied while a model runs",
            hint=f"merge it once: toolsrv model merge BASE {path}",
        )
    header = check_adapter_file(path)
    ranks = [int(one.shape[0]) for one in open_reader(path).tensors if one.name.endswith("lora_b")]
    return AdapterInfo(
        path=str(path),
        name=path.stem,
        alpha=header.metadata.get("adapter.lora.alpha", 0.0),
        rank=max(ranks, default=0),
        matrices=len(ranks),
        size_bytes=header.size,
    )


class _GgufTensor:
    """A tensor of a GGUF adapter."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.shape = tuple(int(one) for one in reversed(tensor.shape))

    def read(self) -> Floats:
        return dequantized(self._tensor.name, self._tensor.data, self._tensor.tensor_type)


def dequantized(name: str, data: Any, kind: Any) -> Floats:
    """Return values as float32. Raises AdapterError: gguf cannot read the type."""
    import gguf  # noqa: PLC0415 - only when an adapter is read

    try:
        found: Floats = gguf.dequantize(data, kind)
    except NotImplementedError:
        raise AdapterError(
            f"the tensor {name!r} is of the type {kind.name}, which gguf cannot read",
            hint="take a file in F16, BF16, Q8_0 or a K-quant",
        ) from None
    return found


def _read_gguf(path: Path, base: Base) -> Adapter:
    header = check_adapter_file(path)
    if header.architecture != base.header.architecture:
        raise AdapterError(
            f"the adapter {path.name!r} is for {header.architecture!r}, and {base.path.name!r} is "
            f"{base.header.architecture!r}",
            hint=OTHER_BASE,
        )
    halves: dict[str, dict[str, Stored]] = {}
    for one in open_reader(path).tensors:
        stem, _, half = one.name.rpartition(".")
        if half not in ("lora_a", "lora_b"):
            raise AdapterError(
                f"the adapter has the tensor {one.name[:200]!r}, which is no factor of a matrix",
                hint="only adapters of .lora_a and .lora_b tensors are supported",
            )
        halves.setdefault(stem, {})[half[-1]] = _GgufTensor(one)
    alpha = header.metadata.get("adapter.lora.alpha", 0.0)
    return Adapter(path, path.stem, "gguf", path, paired(halves, lambda rank: alpha / rank or 1.0))


def _check(adapter: Adapter, base: Base) -> None:
    """Raise AdapterError unless every pair has its matrix in the base, in its shape."""
    if not adapter.pairs:
        raise AdapterError(f"the adapter {adapter.name!r} changes nothing", hint=HINT)
    for name, pair in adapter.pairs.items():
        if name not in base.tensors:
            raise AdapterError(
                f"the adapter changes {name[:200]!r}, and {base.path.name!r} has no such tensor",
                hint=OTHER_BASE,
            )
        if name == _EMBEDDING:
            raise AdapterError(
                "the adapter changes the token embeddings, which is not supported",
                hint="merge it with PEFT, then: toolsrv model convert",
            )
        shape = (pair.b.shape[0], pair.a.shape[1])
        if shape != base.shape(name):
            raise AdapterError(
                f"the adapter's {name!r} has the shape {list(shape)}, and {base.path.name!r} has "
                f"{list(base.shape(name))}",
                hint=OTHER_BASE,
            )


def sha256(path: Path) -> str:
    """Return a file's digest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
