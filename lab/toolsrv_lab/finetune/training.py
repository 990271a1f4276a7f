"""Fine-tune a checkpoint: transformers' Trainer, with checkpoints that count only when whole.

A checkpoint is written at least every two minutes (or after each step, where steps are longer); a
run that is started again with the same settings goes on from the last one. ``out`` holds the
checkpoints, ``log.jsonl``, ``loss.svg``, and at the end ``model``, with LoRA ``adapter``, and
``training.json``.

Several GPUs: start the command with ``torchrun``; the first process keeps the records.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.card import library_versions
from toolsrv_lab.extras import load
from toolsrv_lab.finetune import checkpoints
from toolsrv_lab.finetune.checkpoints import PREFIX, Progress, make_recorder
from toolsrv_lab.finetune.examples import (
    Examples,
    collate,
    encode,
    load_tokenizer,
    read_conversations,
)
from toolsrv_lab.finetune.model import base_identity, check_base, load_model, save_model
from toolsrv_lab.finetune.options import FineTuning, arguments, has_bf16, is_first
from toolsrv_lab.journal import LOG, Journal
from toolsrv_lab.training_runs import SAVE_SECONDS, exclusive_training, keep_freed_memory
from toolsrv_registry.errors import DataError

CHECKPOINTS, PICTURE = "checkpoints", "loss.svg"
SETTINGS, CARD = "settings.json", "training.json"


class Trained(BaseModel):
    """A fine-tuned model: its folder, and how it came about.

    ``tokens`` and ``target_tokens`` are of one epoch, ``tokens_seen`` of the whole training.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    steps: int
    conversations: int
    left_out: int
    tokens: int
    target_tokens: int
    tokens_seen: int
    first_loss: float
    last_loss: float
    dev_loss: float | None
    precision: str
    resumed_from: int
    seconds: float


def finetune(
    base: Path,
    data: Path,
    out: Path,
    options: FineTuning,
    *,
    dev: Path | None = None,
    progress: Progress | None = None,
    reading: Callable[[int], None] | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Fine-tune the checkpoint in ``base`` on the conversations in ``data``.

    With ``dev``, a file of conversations, the loss on it is taken after each epoch, and the
    model of the epoch with the lowest is the one that is kept.

    Raises:
        DataError: A damaged base, data file or checkpoint, a run in ``out`` with other settings,
            a loss that is no number, no room for a checkpoint.
        UsageError: Settings that the base cannot have, or a library that is missing.
    """
    for name in ("torch", "transformers", "accelerate", "matplotlib.figure"):
        load(name)
    load("transformers.utils.logging").disable_progress_bar()
    if options.lora is not None:
        load("peft")
    check_base(base)
    if not load("torch").cuda.is_available():
        keep_freed_memory()
    tokenizer = load_tokenizer(base)
    train = encode(read_conversations(data), tokenizer, options.max_tokens, progress=reading)
    held = dev and encode(read_conversations(dev), tokenizer, options.max_tokens)
    out = out.absolute()  # checkpoints name each other
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(base, out, options, train, held or None, save_seconds, progress)
    about = {"base": base_identity(base), "data": _digest(data), "dev": dev and _digest(dev)}
    with (
        exclusive_training(out) if is_first() else contextlib.nullcontext(),
        warnings.catch_warnings(),
    ):
        run.claim(about)
        # The libraries' own moves between their versions.
        warnings.simplefilter("ignore", FutureWarning)
        return run.work()


class _Run:
    """One training from its checkpoint, if there is one, to its end."""

    def __init__(
        self,
        base: Path,
        out: Path,
        options: FineTuning,
        train: Examples,
        dev: Examples | None,
        save_seconds: float,
        progress: Progress | None,
    ) -> None:
        self._base, self._out, self._options = base, out, options
        self._train, self._dev = train, dev
        self._save_seconds, self._progress = save_seconds, progress
        self._first = is_first()
        self._bf16 = has_bf16() if options.precision == "auto" else options.precision == "bf16"

    def claim(self, about: dict[str, Any]) -> None:
        """Note the settings of the run, or refuse to go on with others."""
        path = self._out / SETTINGS
        text = json.dumps(about | {"options": self._options.model_dump(mode="json")}, indent=2)
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise DataError(
                f"{str(self._out)!r} holds a run with another base, other data or other settings",
                hint="choose another --out, or delete the folder to start again",
            )
        if self._first:
            fresh = path.with_suffix(".new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)

    def work(self) -> Trained:
        """Train, and write the model."""
        started = time.monotonic()
        places = self._out / CHECKPOINTS
        places.mkdir(exist_ok=True)
        if self._first:
            checkpoints.remove_unsealed(places, PREFIX)
        last = checkpoints.newest_sealed(places, PREFIX)
        if last is not None:
            checkpoints.check_seal(last[0])
        begun = last[1] if last else 0
        journal = Journal(self._out / LOG, until=begun) if self._first else None
        load("transformers").set_seed(self._options.seed)  # a new adapter begins at random
        model = load_model(self._base, self._options, bf16=self._bf16)
        recorder = make_recorder(journal, self._out / PICTURE, self._progress, self._save_seconds)
        trainer = _trainer(
            model,
            arguments(places, self._options, bf16=self._bf16, dev=self._dev is not None),
            self._train,
            self._dev,
            recorder,
        )
        try:
            self._advance(trainer, recorder, str(last[0]) if last else None)
        finally:
            if journal is not None:
                journal.close()
        if self._first:
            save_model(
                trainer.accelerator.unwrap_model(trainer.model),
                self._base,
                self._out,
                lora=self._options.lora is not None,
            )
        return self._write_card(journal, trainer.state, begun, time.monotonic() - started)

    def _advance(self, trainer: Any, recorder: Any, checkpoint: str | None) -> None:
        torch, safetensors = load("torch"), load("safetensors")
        try:
            trainer.train(resume_from_checkpoint=checkpoint)
        except torch.OutOfMemoryError:
            raise DataError(
                "the device has not enough memory for this model and these settings",
                hint="give --device-batch 1, --recompute or --lora, or a smaller --max-tokens",
            ) from None
        except (OSError, RuntimeError, safetensors.SafetensorError) as error:
            if not recorder.saving:
                raise
            reason = str(error).strip().partition("\n")[0]
            raise DataError(
                f"cannot write a checkpoint in {str(self._out)!r}: {reason}",
                hint="free some space and give the same command again: it goes on from the last",
            ) from error

    def _write_card(
        self, journal: Journal | None, state: Any, begun: int, seconds: float
    ) -> Trained:
        losses = journal.values("loss") if journal else []
        dev = journal.values("dev_loss") if journal else []
        card = Trained(
            model=str(self._out / "model"),
            steps=int(state.global_step),
            conversations=len(self._train),
            left_out=self._train.left_out,
            tokens=self._train.tokens,
            target_tokens=self._train.targets,
            tokens_seen=int(state.num_input_tokens_seen),
            first_loss=losses[0][1] if losses else math.nan,
            last_loss=losses[-1][1] if losses else math.nan,
            dev_loss=min(value for _, value in dev) if dev else None,
            precision="bf16" if self._bf16 else "f32",
            resumed_from=begun,
            seconds=round(seconds, 1),
        )
        if self._first:
            made = library_versions("torch", "transformers", "accelerate", "peft")
            settings = json.loads((self._out / SETTINGS).read_text(encoding="utf-8"))
            about = card.model_dump(mode="json") | {"versions": made} | settings
            about["base"] = hashlib.sha256(settings["base"].encode()).hexdigest()
            (self._out / CARD).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return card


def _trainer(
    model: Any, arguments: Any, train: Examples, dev: Examples | None, recorder: Any
) -> Any:
    transformers = load("transformers")
    trainer = transformers.Trainer(
        model=model,
        args=arguments,
        data_collator=collate,
        train_dataset=train,
        eval_dataset=dev,
        callbacks=[recorder],
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
