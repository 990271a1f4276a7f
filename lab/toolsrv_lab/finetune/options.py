"""Options of fine-tuning, and the arguments of transformers' Trainer.

Defaults are those of the ToolLLM paper and its scripts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt

from toolsrv_lab.extras import load

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


_KEPT = 2
"""Checkpoints that stay: the last, and the one before it or the best."""


def arguments(places: Path, options: FineTuning, *, bf16: bool, dev: bool) -> Any:
    """Return the Trainer's arguments; checkpoints go to ``places``, ``dev``: there is a dev set."""
    torch = load("torch")
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    devices = processes if processes > 1 else max(1, torch.cuda.device_count())
    device_batch = min(options.device_batch, max(1, options.batch // devices))
    return load("transformers").TrainingArguments(
        output_dir=str(places),
        num_train_epochs=options.epochs,
        max_steps=options.steps or -1,
        per_device_train_batch_size=device_batch,
        per_device_eval_batch_size=device_batch,
        gradient_accumulation_steps=max(1, options.batch // (device_batch * devices)),
        learning_rate=options.learning_rate,
        lr_scheduler_type="cosine",
        # A share of the steps, unless it is 1 or more.
        warmup_steps=min(options.warmup, 0.99),
        weight_decay=options.weight_decay,
        optim="adamw_torch",
        bf16=bf16,
        use_cpu=not torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        logging_steps=1,
        include_num_input_tokens_seen="non_padding",
        logging_nan_inf_filter=False,
        eval_strategy="epoch" if dev else "no",
        save_strategy="epoch" if dev else "no",
        load_best_model_at_end=dev,
        metric_for_best_model="eval_loss" if dev else None,
        save_total_limit=_KEPT,
        seed=options.seed,
        report_to="none",
        disable_tqdm=True,
        log_level="error",
        remove_unused_columns=False,
        label_names=["labels"],
    )


def is_first() -> bool:
    """Whether this is the only process, or the first of torchrun's."""
    return os.environ.get("RANK", "0") == "0"


def has_bf16() -> bool:
    """Whether the device computes in bfloat16: GPUs since Ampere, CPUs with AVX-512 BF16 or AMX."""
    torch = load("torch")
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))
