"""The files with weights of a checkpoint: one or several, safetensors or PyTorch's.

Tensors are read one at a time, as float32. PyTorch files need torch and are read as weights
only: no code in them runs. Knows no architecture.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert.architecture import read_json
from toolsrv_runtime.convert.errors import ShardError, TensorError

Floats = NDArray[np.float32]

_KINDS = ("model.safetensors", "pytorch_model.bin")
_HINT = "download the checkpoint again"


class Stored(Protocol):
    """A tensor in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, known without reading it."""

    def read(self) -> Floats:
        """Return its values."""


class Shards:
    """All tensors of a checkpoint folder by name; safetensors are preferred where both are.

    Raises:
        ShardError: No weights, or a file is missing, incomplete or unreadable.
        UsageError: PyTorch's files and no torch.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.tensors: dict[str, Stored] = {}
        for file in self._files():
            self.tensors.update(read_tensors(file))

    def _files(self) -> list[Path]:
        for name in _KINDS:
            index = self._folder / f"{name}.index.json"
            if index.is_file():
                return self._listed(index)
            if (self._folder / name).is_file():
                return [self._folder / name]
        raise ShardError(
            f"there are no weights in {str(self._folder)!r}: no model.safetensors, no "
            "pytorch_model.bin and no index of either",
            hint=_HINT,
        )

    def _listed(self, index: Path) -> list[Path]:
        places = read_json(index, hint=_HINT).get("weight_map")
        names = sorted(set(places.values())) if isinstance(places, dict) and places else []
        if not names or any(not isinstance(one, str) or Path(one).name != one for one in names):
            raise ShardError(f"{index.name!r} does not list the files with weights", hint=_HINT)
        missing = [name for name in names if not (self._folder / name).is_file()]
        if missing:
            raise ShardError(
                f"{len(missing)} of {len(names)} files with weights are missing, the first is "
                f"{missing[0]!r}",
                hint=_HINT,
            )
        return [self._folder / name for name in names]


def read_tensors(file: Path) -> dict[str, Stored]:
    """Return the tensors of one safetensors or PyTorch file by name; their values are read later.

    Raises:
        ShardError: The file is incomplete or unreadable.
        UsageError: A PyTorch file and no torch.
    """
    return _safetensors(file) if file.suffix == ".safetensors" else _pytorch(file)


class _Safetensor:
    """A range of a safetensors file."""

    def __init__(self, name: str, local: Any) -> None:
        self._name = name
        self._local = local
        self.shape = tuple(local.shape)

    def read(self) -> Floats:
        kind = self._local.dtype
        if kind not in _BYTES:
            raise TensorError(
                f"the tensor {self._name!r} is of the type {kind}, which is not read",
                hint="save the checkpoint as float32, float16 or bfloat16",
            )
        raw = self._local.mmap_bytes() if self._local.data_range.size else np.empty(0, np.uint8)
        if raw.nbytes != _BYTES[kind] * int(np.prod(self.shape)):
            raise ShardError(f"the tensor {self._name!r} has another size than it says", hint=_HINT)
        if kind == "BF16":
            return _from_bf16(raw.view("<u2")).reshape(self.shape)
        return raw.view("<f4" if kind == "F32" else "<f2").astype(np.float32).reshape(self.shape)


_MOST_HEAD = 100_000_000
"""Bytes of a safetensors file's head; the format's own library takes no more either."""

_BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def _safetensors(file: Path) -> dict[str, Stored]:
    from gguf.utility import SafetensorsLocal  # noqa: PLC0415 - only when something is converted

    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
    except OSError as error:
        raise ShardError(f"cannot read {file.name!r}: {error.strerror}", hint=_HINT) from None
    if length > _MOST_HEAD:
        raise ShardError(f"the head of {file.name!r} would have {length:,} bytes", hint=_HINT)
    try:
        found = SafetensorsLocal(file).tensors
        size = file.stat().st_size
        ends = [local.data_range.offset + local.data_range.size for local in found.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError,
            RecursionError) as error:  # fmt: skip
        raise ShardError(f"cannot read {file.name!r}: {error}", hint=_HINT) from None
    if max(ends, default=0) > size:
        raise ShardError(
            f"{file.name!r} is incomplete: it has {size:,} bytes and should have {max(ends):,}",
            hint=_HINT,
        )
    return {name: _Safetensor(name, local) for name, local in found.items()}


class _Torch:
    """A tensor of a PyTorch file, mapped into memory where the file's form allows that."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.shape = tuple(tensor.shape)

    def read(self) -> Floats:
        values: Floats = self._tensor.detach().float().numpy()
        return values


def _pytorch(file: Path) -> dict[str, Stored]:
    torch = _load_torch()
    errors = (OSError, RuntimeError, ValueError, KeyError, EOFError, TypeError, AttributeError)
    found: Any = None
    try:
        try:
            found = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # the form of before torch 1.6 cannot be mapped
            found = torch.load(file, map_location="cpu", weights_only=True)
    except (*errors, UnpicklingError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ShardError(f"cannot read {file.name!r}: {reason[:200]}", hint=_HINT) from None
    if not isinstance(found, dict):
        raise ShardError(f"{file.name!r} does not hold tensors by name", hint=_HINT)
    return {
        str(name): _Torch(value) for name, value in found.items() if isinstance(value, torch.Tensor)
    }


def _load_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        raise UsageError(
            "weights in PyTorch's .bin files need torch, which is not installed",
            hint="pip install '.[lab]' in toolsrv's sources, or take the checkpoint's safetensors",
        ) from None


def _from_bf16(values: NDArray[np.uint16]) -> Floats:
    return (values.astype(np.uint32) << 16).view(np.float32)
