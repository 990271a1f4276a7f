"""The model that is fine-tuned: loaded, its positions interpolated, an adapter added and merged.

Knows no training data. transformers and peft do the work.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_lab.finetune.options import FineTuning
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.convert.architecture import Architecture, read_architecture
from toolsrv_runtime.convert.tensors import Shards, check_tensors, tensor_specs

TOKENIZER_FILES = (
    "tokenizer.model", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "chat_template.json",
)  # fmt: skip


def check_base(folder: Path) -> Architecture:
    """Return what the checkpoint in ``folder`` is.

    Raises:
        ModelError: It is no LLaMA, or damaged: the same checks as before a conversion, so that
            what is trained can be converted.
    """
    model = read_architecture(folder)
    check_tensors(list(tensor_specs(model)), Shards(folder).tensors, tied=model.tied)
    return model


def interpolation(model: Architecture, options: FineTuning) -> tuple[float, int]:
    """Return what positions are divided by (1: nothing) and the context of the base, in tokens.

    A base that is interpolated already stays so; the division is by a whole number, as in
    ToolBench.

    Raises:
        UsageError: The context cannot be stretched to ``max_tokens``.
    """
    rope, wanted_ = model.rope, options.max_tokens
    if rope.kind == "none":
        source = options.source_tokens or model.positions
        return float(max(1, -(-wanted_ // source))), source
    if rope.kind == "linear":
        source = options.source_tokens or rope.original or model.positions
        return max(rope.factor, float(-(-wanted_ // source))), source
    if wanted_ > model.positions:
        raise UsageError(
            f"the base has {model.positions:,} positions of the kind {rope.kind!r}, which are not "
            "stretched further",
            hint=f"give --max-tokens {model.positions} or less",
        )
    return 1.0, model.positions


def load_model(folder: Path, options: FineTuning, *, bf16: bool) -> Any:
    """Return the model to train.

    Weights are float32; under an adapter, where they stay as they are, bfloat16 if ``bf16``.

    Raises:
        ModelError: See ``check_base``.
        UsageError: Positions that cannot be stretched, or adapter targets that are not there.
    """
    torch, transformers = load("torch"), load("transformers")
    base = check_base(folder)
    factor, source = interpolation(base, options)
    config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
    if factor > 1:
        config.rope_parameters = {
            "rope_type": "linear",
            "factor": factor,
            "rope_theta": base.rope.theta,
        }
        config.original_max_position_embeddings = source
    config.max_position_embeddings = max(base.positions, options.max_tokens)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(folder),
        config=config,
        dtype=torch.bfloat16 if options.lora and bf16 else torch.float32,
        local_files_only=True,
    )
    if options.recompute:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model if options.lora is None else _adapted(model, options)


def _adapted(model: Any, options: FineTuning) -> Any:
    peft = load("peft")
    lora = options.lora
    if lora is None:
        return model
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
        bias="none",
        task_type="CAUSAL_LM",
    )
    try:
        return peft.get_peft_model(model, config)
    except ValueError as error:
        raise UsageError(
            f"no adapter can be put on {', '.join(lora.targets)}: {error}",
            hint="LLaMA's are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj and down_proj",
        ) from None


def save_model(model: Any, base: Path, out: Path, *, lora: bool) -> Path:
    """Write the trained model as a checkpoint folder ``out``/model, and return that.

    An adapter is kept in ``out``/adapter and merged into the model. Either folder appears whole.
    Tokenizer files are the base's own.
    """
    if lora:
        _replace(out / "adapter", lambda place: model.save_pretrained(str(place)))
        model = model.merge_and_unload(safe_merge=True)
    model.config.use_cache = True

    def write(place: Path) -> None:
        model.save_pretrained(str(place))
        for name in TOKENIZER_FILES:
            if (base / name).is_file():
                shutil.copyfile(base / name, place / name)

    return _replace(out / "model", write)


def _replace(folder: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a folder, and put it in the place of ``folder`` when it is whole."""
    fresh = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(fresh, ignore_errors=True)  # a killed run's
    fresh.mkdir()
    try:
        write(fresh)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return folder


def base_identity(folder: Path) -> str:
    """Return a text that differs when the checkpoint's config or the sizes of its files do."""
    names = sorted(one for one in folder.iterdir() if one.suffix in {".safetensors", ".bin"})
    sizes = [f"{one.name}:{one.stat().st_size}" for one in names]
    try:
        return "\n".join([(folder / "config.json").read_text(encoding="utf-8"), *sizes])
    except OSError as error:
        raise DataError(
            f"cannot read {str(folder)!r}: {error.strerror}", hint="name a checkpoint's folder"
        ) from None
