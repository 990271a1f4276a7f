"""Rotary positions: what ``config.json`` says about them, and what a profile says instead.

Position interpolation (ToolLLaMA's way to 8,192 tokens) divides positions by a factor. Released
configs of ToolLLaMA are not known to carry it, so a profile does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert.errors import ArchitectureError

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


class Stretch(BaseModel):
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


def check_positions(rope: Rope, context: int, positions: int, *, profile: bool) -> None:
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
