"""Architecture of a LLaMA checkpoint: the sizes and rotary positions in its ``config.json``.

Rotary positions come from ``config.json`` (no scaling, linear, Llama 3.1's) or from a profile that
replaces them. Other scalings raise ArchitectureError. Reads JSON files of bounded size; knows no
weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert import ArchitectureError, CheckpointError, NoCheckpointError
from toolsrv_runtime.files import read_file

PROFILES = {"toolllama-2": 2, "toolllama-1": 4}
"""Name of a profile -> its interpolation factor (``toolbench_formats`` 4.4)."""

PROFILE_CONTEXT = 8192


class Rope(BaseModel):
    """Rotary positions: base, and how they are stretched.

    ``original`` is the number of positions before the stretching, if that is known. The last two
    are fields of the ``llama3`` kind.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["none", "linear", "llama3"] = "none"
    theta: PositiveFloat = 10_000.0
    factor: PositiveFloat = 1.0
    original: PositiveInt | None = None
    low_freq_factor: PositiveFloat = 1.0
    high_freq_factor: PositiveFloat = 4.0

    def frequency_factors(self, head_size: int) -> NDArray[np.float32] | None:
        """Return what each frequency is divided by (head_size / 2 values), ``llama3`` only.

        Source: Llama 3.1's model card code: long waves are stretched by ``factor``, short ones
        not at all, and those between by a blend.
        """
        if self.kind != "llama3" or self.original is None:
            return None
        frequencies = self.theta ** (-np.arange(0, head_size, 2, dtype=np.float64) / head_size)
        turns = self.original * frequencies / (2 * math.pi)
        span = self.high_freq_factor - self.low_freq_factor
        blend = np.clip((turns - self.low_freq_factor) / span, 0.0, 1.0)
        return (1 / ((1 - blend) / self.factor + blend)).astype(np.float32)


def read_rope(config: Mapping[str, Any]) -> Rope:
    """Return the rotary positions of a ``config.json``, in its older or newer spelling.

    Raises:
        ArchitectureError: A kind that GGUF cannot carry exactly, or damaged values.
    """
    said = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(said, Mapping):
        raise _refused(said)
    kind = said.get("rope_type") or said.get("type") or "default"
    if kind not in {"default", "linear", "llama3"}:
        raise _refused(kind)
    theta = said.get("rope_theta") or config.get("rope_theta") or 10_000.0
    original = said.get("original_max_position_embeddings") or config.get(
        "original_max_position_embeddings"
    )
    try:
        rope = Rope.model_validate(
            {
                **said,
                "kind": "none" if kind == "default" else kind,
                "theta": theta,
                "original": original,
            }
        )
    except ValidationError:
        raise _refused(dict(said)) from None
    if rope.kind == "llama3" and (
        original is None or rope.high_freq_factor <= rope.low_freq_factor
    ):
        raise _refused(dict(said))
    return rope


class RopeScaling(BaseModel):
    """What a profile says of positions: they are divided by ``factor``, for ``context`` tokens.

    ``built_in`` is the name of a profile that every installation has, "" for a user's own.
    """

    model_config = ConfigDict(frozen=True)

    factor: PositiveFloat
    context: PositiveInt
    built_in: str = ""

    def rope(self, before: Rope) -> Rope:
        """Return the rotary positions that this asks for, on the base of ``before``."""
        original = int(self.context / self.factor)
        return Rope(kind="linear", theta=before.theta, factor=self.factor, original=original)


def check_rope_positions(rope: Rope, context: int, positions: int, *, profile: bool) -> None:
    """Refuse a context that positions, divided by the rope's factor, cannot carry.

    ``positions`` are those that the checkpoint was trained for, before any stretching; ``profile``:
    a profile asks for this and not ``config.json``.

    Raises:
        UsageError: says what would carry it.
    """
    carried = int(positions * rope.factor)
    if context <= carried:
        return
    names = [name for name, factor in PROFILES.items() if positions * factor >= context]
    if profile and names:
        hint = f"give --profile {names[0]}, which divides them by {PROFILES[names[0]]}"
    else:
        hint = (
            f'in config.json set "max_position_embeddings": {context} and "rope_scaling": '
            f'{{"type": "linear", "factor": {math.ceil(context / positions)}, '
            f'"original_max_position_embeddings": {positions}}}'
            + (", and leave --profile out" if profile else "")
        )
    raise UsageError(
        f"a context of {context:,} tokens is more than this checkpoint carries: its "
        f"{positions:,} positions divided by {rope.factor:g} are {carried:,}",
        hint=hint,
    )


def _refused(said: object) -> ArchitectureError:
    return ArchitectureError(
        f"config.json: rotary positions of the kind {said!r} cannot be converted",
        hint="none, linear and llama3 can; for a ToolLLaMA give --profile",
    )


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
