"""PEFT's LoRA folders in GGUF's tensor names: families llama (Mistral too) and qwen2."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_runtime.convert.architecture import read_json
from toolsrv_runtime.convert.errors import AdapterError
from toolsrv_runtime.convert.lora import HINT, Adapter, Base, paired
from toolsrv_runtime.convert.shards import Stored, read_tensors

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


def files_of(path: Path) -> tuple[Path, Path]:
    """Return the configuration and the weights of a PEFT folder, or of its file with weights.

    Raises AdapterError: one is missing.
    """
    folder = path if path.is_dir() else path.parent
    if not path.exists():
        raise AdapterError(f"there is no adapter {str(path)!r}", hint=HINT)
    if not (folder / "adapter_config.json").is_file():
        raise AdapterError(
            f"{str(path)!r} is no adapter: there is no adapter_config.json", hint=HINT
        )
    return folder / "adapter_config.json", _weights(path)


def read_peft(path: Path, base: Base) -> Adapter:
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
    config_file, weights = files_of(path)
    folder = config_file.parent
    config = _config(folder)
    tensors = read_tensors(weights)
    _check_targets(config, tensors)
    halves, heads = _halves(tensors, base)
    found = paired(halves, lambda _: config.scale(), heads)
    _check_ranks(config, found, folder)
    return Adapter(path, folder.absolute().name, "peft", weights, found)


def _config(folder: Path) -> _Config:
    given = read_json(folder / "adapter_config.json", hint=HINT)
    try:
        config = _Config.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise AdapterError(
            f"adapter_config.json: {'.'.join(map(str, first['loc']))}: {first['msg']}", hint=HINT
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
    raise AdapterError(f"there are no weights in {str(path)!r}: no {_WEIGHTS[0]}", hint=HINT)


def _check_targets(config: _Config, tensors: dict[str, Stored]) -> None:
    """Raise AdapterError where a module that was trained has no tensor."""
    wanted = config.target_modules if isinstance(config.target_modules, list) else []
    modules = [match[1] for name in tensors if (match := _NAME.fullmatch(name))]
    for one in wanted:
        if not any(module == one or module.endswith(f".{one}") for module in modules):
            raise AdapterError(
                f"adapter_config.json names the module {one[:80]!r}, and no tensor is of it",
                hint="the file with weights is of another training; download the adapter again",
            )


def _halves(
    tensors: dict[str, Stored], base: Base
) -> tuple[dict[str, dict[str, Stored]], dict[str, int | None]]:
    """Return the factors by GGUF name, and the heads of each whose rows are reordered."""
    import gguf  # noqa: PLC0415 - only when an adapter is read

    kind = next(
        at for at, name in gguf.MODEL_ARCH_NAMES.items() if name == base.header.architecture
    )
    names = gguf.get_tensor_name_map(kind, int(base.header.own("block_count") or 0))
    halves: dict[str, dict[str, Stored]] = {}
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


def _heads(name: str, base: Base) -> int | None:
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
