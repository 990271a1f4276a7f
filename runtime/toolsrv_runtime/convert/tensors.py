"""Tensors of a checkpoint: weight files, expected names and shapes, and GGUF types.

Weights come from safetensors or PyTorch files, in one piece or in shards; PyTorch files are read as
weights only and need torch. llama.cpp stores the rows of queries and keys interleaved within each
head: rotary dimension i next to i + size/2. Memory holds one tensor.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert import ShardError, TensorError
from toolsrv_runtime.convert.architecture import Architecture, read_json

Floats = NDArray[np.float32]

_KINDS = ("model.safetensors", "pytorch_model.bin")
_HINT = "download the checkpoint again"


class StoredTensor(Protocol):
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
        self.tensors: dict[str, StoredTensor] = {}
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


def read_tensors(file: Path) -> dict[str, StoredTensor]:
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
"""Bytes of a safetensors file's header; the format's own library takes no more either."""

_BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def _safetensors(file: Path) -> dict[str, StoredTensor]:
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


def _pytorch(file: Path) -> dict[str, StoredTensor]:
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


OutputType = Literal["f32", "f16", "bf16"]

_INCOMPLETE_HINT = "the folder is not one whole checkpoint; merge adapters or download it again"


@dataclass(frozen=True)
class TensorSpec:
    """A tensor by its Hugging Face name. ``heads``: queries' or keys' rows, to be reordered."""

    name: str
    shape: tuple[int, ...]
    heads: int | None = None


def tensor_specs(model: Architecture) -> Iterator[TensorSpec]:
    """Yield every tensor that a checkpoint of this architecture has, in layer order."""
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    yield TensorSpec("model.embed_tokens.weight", (model.vocabulary, model.width))
    for layer in range(model.layers):
        at = f"model.layers.{layer}"
        yield TensorSpec(f"{at}.input_layernorm.weight", (model.width,))
        for name, rows, heads in (
            ("q", queries, model.heads), ("k", keys, model.kv_heads), ("v", keys, None),
        ):  # fmt: skip
            yield TensorSpec(f"{at}.self_attn.{name}_proj.weight", (rows, model.width), heads)
            if model.attention_bias:
                yield TensorSpec(f"{at}.self_attn.{name}_proj.bias", (rows,), heads)
        yield from _linear(f"{at}.self_attn.o_proj", model.width, queries, model.attention_bias)
        yield TensorSpec(f"{at}.post_attention_layernorm.weight", (model.width,))
        for name, rows, columns in (
            ("gate_proj", model.inner, model.width),
            ("up_proj", model.inner, model.width),
            ("down_proj", model.width, model.inner),
        ):
            yield from _linear(f"{at}.mlp.{name}", rows, columns, model.mlp_bias)
    yield TensorSpec("model.norm.weight", (model.width,))
    if not model.tied:
        yield TensorSpec("lm_head.weight", (model.vocabulary, model.width))


def _linear(name: str, rows: int, columns: int, bias: bool) -> Iterator[TensorSpec]:
    yield TensorSpec(f"{name}.weight", (rows, columns))
    if bias:
        yield TensorSpec(f"{name}.bias", (rows,))


def check_tensors(plan: list[TensorSpec], found: dict[str, StoredTensor], *, tied: bool) -> None:
    """Raise TensorError unless exactly the planned tensors are there, in their shapes."""
    for one in plan:
        stored = found.get(one.name)
        if stored is None:
            raise TensorError(f"the tensor {one.name!r} is missing", hint=_INCOMPLETE_HINT)
        if stored.shape != one.shape:
            raise TensorError(
                f"the tensor {one.name!r} has the shape {list(stored.shape)}, and {list(one.shape)}"
                " follows from config.json",
                hint=_INCOMPLETE_HINT,
            )
    known = {one.name for one in plan}
    more = [name for name in found if name not in known and not _is_redundant(name, tied=tied)]
    if more:
        raise TensorError(f"a LLaMA has no tensor {more[0]!r}", hint=_INCOMPLETE_HINT)


def _is_redundant(name: str, *, tied: bool) -> bool:
    """Whether a tensor repeats what is known anyway: rotary frequencies, a tied output."""
    return name.endswith(".rotary_emb.inv_freq") or (tied and name == "lm_head.weight")


def gguf_names(layers: int) -> dict[str, str]:
    """Return every Hugging Face name of a LLaMA's tensors with its name in a GGUF file."""
    import gguf  # noqa: PLC0415 - only when something is converted

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
    stems = (
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
        "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
        "input_layernorm", "post_attention_layernorm",
    )  # fmt: skip
    every = [f"model.layers.{layer}.{stem}" for layer in range(layers) for stem in stems]
    every += ["model.embed_tokens", "model.norm", "lm_head"]
    return {
        f"{stem}.{kind}": str(names.get_name(f"{stem}.{kind}", (".weight", ".bias")))
        for stem in every
        for kind in ("weight", "bias")
    }


def stored_type(one: TensorSpec, kind: OutputType) -> tuple[Any, int]:
    """Return GGUF's type of a tensor and its bytes; vectors (norms, biases) stay float32."""
    from gguf.constants import GGMLQuantizationType as Types  # noqa: PLC0415 - as above

    count = int(np.prod(one.shape))
    if len(one.shape) == 1 or kind == "f32":
        return Types.F32, 4 * count
    return (Types.F16 if kind == "f16" else Types.BF16), 2 * count


def convert_tensor(one: TensorSpec, values: Floats, raw_type: Any) -> NDArray[Any]:
    """Return a tensor's values as they are written.

    Raises:
        TensorError: Values that are no numbers, or too large for float16.
    """
    from gguf.quants import quantize  # noqa: PLC0415 - as above

    if not np.isfinite(values).all():
        raise TensorError(
            f"the tensor {one.name!r} holds values that are no numbers",
            hint="the training went wrong or the file is damaged; take another checkpoint",
        )
    if one.heads is not None:
        values = interleave_heads(values, one.heads)
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(quantize(values, raw_type))
    if data.dtype == np.float16 and not np.isfinite(data).all():
        raise TensorError(
            f"the tensor {one.name!r} holds values that float16 cannot", hint="give --type bf16"
        )
    return data


def interleave_heads(values: Floats, heads: int) -> Floats:
    """Return the rows of queries or keys in llama.cpp's order (see the module's docstring)."""
    rows = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return rows.swapaxes(1, 2).reshape(values.shape)
