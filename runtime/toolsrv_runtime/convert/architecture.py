"""What a LLaMA checkpoint is, read from its ``config.json``; and reading such JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from toolsrv_runtime.convert.errors import ArchitectureError, CheckpointError, NoCheckpointError
from toolsrv_runtime.convert.rope import Rope, read_rope
from toolsrv_runtime.file_in import read_file

NAMES = frozenset({"LlamaForCausalLM", "LLaMAForCausalLM"})
"""Names that checkpoints give the architecture; the second is from before transformers had it."""

_MOST_BYTES = 256 << 20


class Architecture(BaseModel):
    """Sizes of a LLaMA: counts, and widths in values. ``positions`` is its context in tokens.

    Bounded far above every model that there is: what is listed by them must fit in memory.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    vocabulary: PositiveInt = Field(alias="vocab_size", le=1 << 22)
    width: PositiveInt = Field(alias="hidden_size", le=1 << 20)
    inner: PositiveInt = Field(alias="intermediate_size", le=1 << 22)
    layers: PositiveInt = Field(alias="num_hidden_layers", le=4096)
    heads: PositiveInt = Field(alias="num_attention_heads", le=1 << 16)
    kv_heads: PositiveInt = Field(le=1 << 16)
    head_size: PositiveInt = Field(le=1 << 16)
    positions: PositiveInt = Field(default=2048, alias="max_position_embeddings", le=(1 << 31) - 1)
    epsilon: PositiveFloat = Field(default=1e-6, alias="rms_norm_eps")
    tied: bool = Field(default=False, alias="tie_word_embeddings")
    attention_bias: bool = False
    mlp_bias: bool = False
    rope: Rope = Rope()


def read_architecture(folder: Path) -> Architecture:
    """Return the sizes that ``config.json`` in ``folder`` gives.

    Raises:
        CheckpointError: No folder, no config, or one that is not JSON.
        ArchitectureError: Not a LLaMA, or sizes that cannot be.
    """
    if not (folder / "config.json").exists():
        what = "holds no config.json" if folder.is_dir() else "is no folder"
        raise NoCheckpointError(
            f"{str(folder)!r} {what if folder.exists() else 'does not exist'}",
            hint="name the folder of a Hugging Face checkpoint",
        )
    config = read_json(folder / "config.json", hint="name the folder of a Hugging Face checkpoint")
    names = config.get("architectures") or []
    if not (NAMES.intersection(names) if names else config.get("model_type") == "llama"):
        what = ", ".join(map(str, names)) or str(config.get("model_type") or "an unnamed model")
        raise ArchitectureError(
            f"{folder.name!r} holds {what}, which is not a LLaMA",
            hint="only LLaMA checkpoints (LlamaForCausalLM) can be converted",
        )
    if config.get("quantization_config"):
        raise ArchitectureError(
            f"{folder.name!r} is quantised already",
            hint="convert the full checkpoint, then: toolsrv model quantize",
        )
    if config.get("hidden_act", "silu") != "silu":
        raise ArchitectureError(
            f"config.json: the activation {config['hidden_act']!r} is not LLaMA's",
            hint="only LLaMA checkpoints can be converted",
        )
    return _checked(config)


def _checked(config: dict[str, Any]) -> Architecture:
    heads = config.get("num_attention_heads")
    width = config.get("hidden_size")
    given = dict(config)
    given["kv_heads"] = config.get("num_key_value_heads") or heads
    given["rope"] = read_rope(config)
    if isinstance(heads, int) and isinstance(width, int) and heads > 0:
        given["head_size"] = config.get("head_dim") or width // heads
    try:
        found = Architecture.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ArchitectureError(
            f"config.json: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            hint="the file is incomplete or damaged; download the checkpoint again",
        ) from None
    if found.heads % found.kv_heads or found.head_size % 2:
        raise ArchitectureError(
            f"config.json: {found.heads} heads, {found.kv_heads} for keys, of size "
            f"{found.head_size} do not go together",
            hint="the file is damaged; download the checkpoint again",
        )
    return found


def read_json(path: Path, *, hint: str) -> dict[str, Any]:
    """Return the JSON object in a file of a checkpoint.

    Raises:
        CheckpointError: There is none, it is too large, or it is something else.
    """
    try:
        found = json.loads(read_file(path, _MOST_BYTES).decode())
    except OSError as error:
        raise CheckpointError(f"cannot read {str(path)!r}: {error.strerror}", hint=hint) from None
    except (ValueError, RecursionError):
        raise CheckpointError(f"{str(path)!r} is not JSON", hint=hint) from None
    if not isinstance(found, dict):
        raise CheckpointError(f"{str(path)!r} is not a JSON object", hint=hint)
    return found
