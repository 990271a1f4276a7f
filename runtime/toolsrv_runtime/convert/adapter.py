"""LoRA adapters: llama.cpp's GGUF files and PEFT folders, checked against their base model.

PEFT tensors get GGUF's names and row order; families llama (Mistral too) and qwen2.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_runtime.convert import AdapterError
from toolsrv_runtime.convert.architecture import read_json
from toolsrv_runtime.convert.tensors import Floats, StoredTensor, interleave_heads, read_tensors
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_header import DOWNLOAD_AGAIN, GgufHeader, read_header
from toolsrv_runtime.requirements import check_model_header, split_parts

ADAPTER_HINT = "name a GGUF LoRA adapter, or a PEFT folder with adapter_config.json and its weights"


@dataclass(frozen=True)
class LoraPair:
    """The two factors of one matrix's change: ``a`` (rank, columns), ``b`` (rows, rank).

    ``heads``: rows of ``b`` are in Hugging Face's order and are reordered for llama.cpp.
    """

    a: StoredTensor
    b: StoredTensor
    scale: float
    heads: int | None = None

    @property
    def rank(self) -> int:
        """Columns of ``b``."""
        return self.b.shape[1]

    def factors(self) -> tuple[Floats, Floats]:
        """Return ``a``, and ``b`` in GGUF's row order, scaled."""
        b = self.b.read()
        if self.heads is not None:
            b = interleave_heads(b, self.heads)
        return self.a.read(), np.asarray(b * np.float32(self.scale), np.float32)


@dataclass(frozen=True)
class LoraAdapter:
    """``pairs`` by the base's GGUF tensor name. ``weights`` is the file that holds the values."""

    path: Path
    name: str
    kind: str
    weights: Path
    pairs: Mapping[str, LoraPair]

    @property
    def rank(self) -> int:
        """The largest rank of a pair."""
        return max(one.rank for one in self.pairs.values())


@dataclass(frozen=True)
class BaseFile:
    """A base model's file: its header and its tensors (``gguf.ReaderTensor``) by name."""

    path: Path
    header: GgufHeader
    reader: Any
    tensors: Mapping[str, Any]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, (rows, columns) of a matrix."""
        return tuple(int(one) for one in reversed(self.tensors[name].shape))


def pair_factors(
    halves: Mapping[str, Mapping[str, StoredTensor]],
    scale: Any,
    heads: Mapping[str, int | None] | None = None,
) -> dict[str, LoraPair]:
    """Return pairs of ``a`` and ``b``; ``scale`` gives a rank's factor.

    Raises:
        AdapterError: One is missing, or they do not go together.
    """
    found = {}
    for name, both in halves.items():
        if len(both) < 2:
            other = "lora_b" if "a" in both else "lora_a"
            raise AdapterError(
                f"the adapter has no {other} for {name[:200]!r}", hint=DOWNLOAD_AGAIN
            )
        a, b = both["a"], both["b"]
        if len(a.shape) != 2 or len(b.shape) != 2 or not a.shape[0] or a.shape[0] != b.shape[1]:
            raise AdapterError(
                f"the factors of {name[:200]!r} do not go together: {list(a.shape)}, "
                f"{list(b.shape)}",
                hint=DOWNLOAD_AGAIN,
            )
        found[name] = LoraPair(a, b, scale(a.shape[0]), (heads or {}).get(name))
    return found


FAMILIES = ("llama", "qwen2")
"""GGUF architectures whose tensor names and row order are known; Mistral's is llama's."""

_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_NAME = re.compile(r"(?:base_model\.model\.)?([\w.]{1,200})\.lora_([AB])(?:\.default)?\.weight")
_MERGE = "merge it with PEFT, then: toolsrv model convert"


class _Config(BaseModel):
    """What ``adapter_config.json`` says; values that would change the sum are refused."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    peft_type: str = "LORA"
    rank: int = Field(alias="r", ge=1, le=1 << 16)
    alpha: float = Field(alias="lora_alpha", allow_inf_nan=False)
    use_rslora: bool = False
    target_modules: list[str] | str | None = None
    bias: str = "none"
    use_dora: bool = False
    fan_in_fan_out: bool = False
    modules_to_save: Any = None
    rank_pattern: Any = None
    alpha_pattern: Any = None
    layer_replication: Any = None
    alora_invocation_tokens: Any = None
    trainable_token_indices: Any = None

    def unsupported(self) -> str:
        """Return the first setting that is not supported, or nothing."""
        if self.peft_type != "LORA":
            return f"peft_type = {self.peft_type[:40]!r}"
        if self.bias != "none":
            return f"bias = {self.bias[:40]!r}"
        names = ("use_dora", "fan_in_fan_out", "modules_to_save", "rank_pattern", "alpha_pattern",
                 "layer_replication", "alora_invocation_tokens",
                 "trainable_token_indices")  # fmt: skip
        return next((name for name in names if getattr(self, name)), "")

    def scale(self) -> float:
        """Return the factor of ``B @ A``."""
        return self.alpha / (math.sqrt(self.rank) if self.use_rslora else self.rank)


def peft_files(path: Path) -> tuple[Path, Path]:
    """Return the configuration and the weights of a PEFT folder, or of its file with weights.

    Raises AdapterError: one is missing.
    """
    folder = path if path.is_dir() else path.parent
    if not path.exists():
        raise AdapterError(f"there is no adapter {str(path)!r}", hint=ADAPTER_HINT)
    if not (folder / "adapter_config.json").is_file():
        raise AdapterError(
            f"{str(path)!r} is no adapter: there is no adapter_config.json", hint=ADAPTER_HINT
        )
    return folder / "adapter_config.json", _weights(path)


def read_peft(path: Path, base: BaseFile) -> LoraAdapter:
    """Return the adapter in a PEFT folder (or its file with weights), in the base's names.

    Raises:
        AdapterError: No LoRA, a feature or a base that is not supported, or names unknown to it.
        CheckpointError: A file is missing or damaged.
        UsageError: Weights in a PyTorch file and no torch.
    """
    family = base.header.architecture
    if family not in FAMILIES:
        raise AdapterError(
            f"{base.path.name!r} is {family!r}; a PEFT adapter is read for {', '.join(FAMILIES)}",
            hint="convert it to a GGUF adapter: llama.cpp's convert_lora_to_gguf.py",
        )
    config_file, weights = peft_files(path)
    folder = config_file.parent
    config = _config(folder)
    tensors = read_tensors(weights)
    _check_targets(config, tensors)
    halves, heads = _factors(tensors, base)
    found = pair_factors(halves, lambda _: config.scale(), heads)
    _check_ranks(config, found, folder)
    return LoraAdapter(path, folder.absolute().name, "peft", weights, found)


def _config(folder: Path) -> _Config:
    given = read_json(folder / "adapter_config.json", hint=ADAPTER_HINT)
    try:
        config = _Config.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise AdapterError(
            f"adapter_config.json: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            hint=ADAPTER_HINT,
        ) from None
    if what := config.unsupported():
        raise AdapterError(f"adapter_config.json: {what} is not supported", hint=_MERGE)
    return config


def _weights(path: Path) -> Path:
    if path.is_file():
        return path
    for name in _WEIGHTS:
        if (path / name).is_file():
            return path / name
    raise AdapterError(
        f"there are no weights in {str(path)!r}: no {_WEIGHTS[0]}", hint=ADAPTER_HINT
    )


def _check_targets(config: _Config, tensors: dict[str, StoredTensor]) -> None:
    """Raise AdapterError where a module that was trained has no tensor."""
    wanted = config.target_modules if isinstance(config.target_modules, list) else []
    modules = [match[1] for name in tensors if (match := _NAME.fullmatch(name))]
    for one in wanted:
        if not any(module == one or module.endswith(f".{one}") for module in modules):
            raise AdapterError(
                f"adapter_config.json names the module {one[:80]!r}, and no tensor is of it",
                hint="the file with weights is of another training; download the adapter again",
            )


def _factors(
    tensors: dict[str, StoredTensor], base: BaseFile
) -> tuple[dict[str, dict[str, StoredTensor]], dict[str, int | None]]:
    """Return the factors by GGUF name, and the heads of each whose rows are reordered."""
    import gguf  # noqa: PLC0415 - only when an adapter is read

    kind = next(
        at for at, name in gguf.MODEL_ARCH_NAMES.items() if name == base.header.architecture
    )
    names = gguf.get_tensor_name_map(kind, int(base.header.own("block_count") or 0))
    halves: dict[str, dict[str, StoredTensor]] = {}
    heads: dict[str, int | None] = {}
    for full, stored in tensors.items():
        match = _NAME.fullmatch(full)
        if match is None:
            raise AdapterError(
                f"the adapter has the tensor {full[:200]!r}, which is no factor of a matrix",
                hint=_MERGE,
            )
        name = names.get_name(f"{match[1]}.weight", (".weight",))
        if name is None:
            raise AdapterError(
                f"the adapter changes {match[1]!r}, which a {base.header.architecture} of "
                f"{base.header.own('block_count')} layers does not have",
                hint="name the model that the adapter was trained on",
            )
        halves.setdefault(name, {})[match[2].lower()] = stored
        heads[name] = _heads(name, base)
    return halves, heads


def _heads(name: str, base: BaseFile) -> int | None:
    """Return by how many heads a matrix's rows are reordered in this family, if at all."""
    if base.header.architecture != "llama" or not name.endswith(("attn_q.weight", "attn_k.weight")):
        return None
    key = "head_count" if name.endswith("attn_q.weight") else "head_count_kv"
    found = base.header.own(f"attention.{key}") or base.header.own("attention.head_count")
    if isinstance(found, list):
        found = found[int(name.split(".")[1])]
    rows = base.shape(name)[0] if name in base.tensors else 0
    if not isinstance(found, int) or found < 1 or rows % (2 * found):
        raise AdapterError(
            f"the rows of {name!r} cannot be split into {found} heads",
            hint="name the model that the adapter was trained on",
        )
    return found


def _check_ranks(config: _Config, pairs: dict[str, Any], folder: Path) -> None:
    for name, pair in pairs.items():
        if pair.rank != config.rank:
            raise AdapterError(
                f"adapter_config.json says rank {config.rank}, and {name!r} has {pair.rank}",
                hint=f"take both files of {folder.name!r} from one training",
            )


OTHER_BASE = "name the model that the adapter was trained on"
_ALORA = "adapter.alora.invocation_tokens"
_EMBEDDING = "token_embd.weight"


def open_base(path: Path) -> BaseFile:
    """Return a dense model in one GGUF file.

    Raises:
        ModelError: No such file, damaged, no model, or incomplete.
        AdapterError: A mixture of experts, or a model in several files.
    """
    header = read_header(path)
    check_model_header(header)
    if len(split_parts(path)) > 1:
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
    return BaseFile(path, header, reader, {one.name: one for one in reader.tensors})


def open_reader(path: Path) -> Any:
    """Return gguf's reader of a file. Raises ModelError: damaged or incomplete."""
    import gguf  # noqa: PLC0415 - only when an adapter is read

    try:
        return gguf.GGUFReader(path)
    except (OSError, ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise ModelError(
            f"{str(path)!r} is damaged or incomplete: {str(error)[:200]}", hint=DOWNLOAD_AGAIN
        ) from None


def read_adapter(path: Path, base: BaseFile) -> LoraAdapter:
    """Return an adapter, checked against the base that it is for.

    ``path`` is a GGUF file, a PEFT folder or its file with weights.

    Raises:
        AdapterError: It is none, of a kind that is not supported, or of another base.
        ModelError: It is missing or damaged.
        UsageError: Weights in a PyTorch file and no torch.
    """
    found = read_peft(path, base) if is_peft(path) else _read_gguf(path, base)
    _check(found, base)
    return found


def is_peft(path: Path) -> bool:
    """Whether a path names a folder or PEFT's file with weights, and no GGUF file."""
    return path.is_dir() or path.suffix in (".safetensors", ".bin")


def check_adapter_file(path: Path) -> GgufHeader:
    """Return the header of a GGUF file that is a LoRA adapter.

    Raises:
        AdapterError: It is something else, or of a kind that is not supported.
        ModelError: It is missing, damaged or no GGUF file.
    """
    header = read_header(path, what="adapter", hint=ADAPTER_HINT)
    own = header.metadata
    if own.get("general.type") != "adapter":
        what = f"a model ({header.architecture})" if header.tensors else "something else"
        raise AdapterError(f"{str(path)!r} is no adapter but {what}", hint=ADAPTER_HINT)
    kind = own.get("adapter.type")
    if kind != "lora":
        raise AdapterError(
            f"{str(path)!r} is an adapter of the type {str(kind)[:80]!r}; only lora is supported",
            hint=ADAPTER_HINT,
        )
    if _ALORA in own:
        raise AdapterError(
            f"{str(path)!r} is an activated LoRA, which works on a part of the text only",
            hint="only plain LoRA adapters are supported",
        )
    alpha = own.get("adapter.lora.alpha", 0.0)
    if not isinstance(alpha, float) or not np.isfinite(alpha):
        raise AdapterError(f"{str(path)!r}: adapter.lora.alpha is no number", hint=ADAPTER_HINT)
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


def _read_gguf(path: Path, base: BaseFile) -> LoraAdapter:
    header = check_adapter_file(path)
    if header.architecture != base.header.architecture:
        raise AdapterError(
            f"the adapter {path.name!r} is for {header.architecture!r}, and {base.path.name!r} is "
            f"{base.header.architecture!r}",
            hint=OTHER_BASE,
        )
    halves: dict[str, dict[str, StoredTensor]] = {}
    for one in open_reader(path).tensors:
        stem, _, half = one.name.rpartition(".")
        if half not in ("lora_a", "lora_b"):
            raise AdapterError(
                f"the adapter has the tensor {one.name[:200]!r}, which is no factor of a matrix",
                hint="only adapters of .lora_a and .lora_b tensors are supported",
            )
        halves.setdefault(stem, {})[half[-1]] = _GgufTensor(one)
    alpha = header.metadata.get("adapter.lora.alpha", 0.0)
    return LoraAdapter(
        path, path.stem, "gguf", path, pair_factors(halves, lambda rank: alpha / rank or 1.0)
    )


def _check(adapter: LoraAdapter, base: BaseFile) -> None:
    """Raise AdapterError unless every pair has its matrix in the base, in its shape."""
    if not adapter.pairs:
        raise AdapterError(f"the adapter {adapter.name!r} changes nothing", hint=ADAPTER_HINT)
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
