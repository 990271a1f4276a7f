"""How a checkpoint is fine-tuned. The defaults are the paper's and its scripts'."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt

Precision = Literal["auto", "bf16", "f32"]


class Lora(BaseModel):
    """A low-rank adapter: the LoRA script's numbers (``toolbench_formats`` 10.3)."""

    model_config = ConfigDict(frozen=True)

    rank: PositiveInt = 8
    alpha: PositiveInt = 16
    dropout: NonNegativeFloat = 0.05
    targets: tuple[str, ...] = ("q_proj", "v_proj")


class FineTuning(BaseModel):
    """How a checkpoint is fine-tuned; all of it must be the same when a run goes on.

    ``batch`` is the number of conversations in a step over all devices, ``device_batch`` how many
    a device holds at once; the rest is accumulated. ``warmup`` is a share of the steps, ``steps``
    a limit (None: all epochs). ``source_tokens`` is the context of the base (None: as its config
    says); beyond it positions are interpolated.
    """

    model_config = ConfigDict(frozen=True)

    lora: Lora | None = None
    epochs: PositiveFloat = 2
    steps: PositiveInt | None = None
    batch: PositiveInt = 64
    device_batch: PositiveInt = 2
    learning_rate: PositiveFloat = 5e-5
    warmup: NonNegativeFloat = 0.04
    weight_decay: NonNegativeFloat = 0.0
    max_tokens: PositiveInt = 8192
    source_tokens: PositiveInt | None = None
    precision: Precision = "auto"
    recompute: bool = False
    seed: int = 0


def defaults(*, lora: bool) -> FineTuning:
    """Return the paper's settings for full fine-tuning, or those of its LoRA script."""
    if not lora:
        return FineTuning()
    return FineTuning(lora=Lora(), epochs=5, batch=8, device_batch=4)
