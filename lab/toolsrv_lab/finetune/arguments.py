"""What transformers' Trainer is told, and what it is told about: devices and processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_lab.finetune.options import FineTuning

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
