"""Train a sentence encoder on (query, API document) pairs: contrastive, as ToolLLM's retriever.

sentence-transformers' MultipleNegativesRankingLoss over batches of ``mining``; AdamW, warm-up and
linear decay; bf16 where the processor has it. Texts of a step run in groups of like length, with
eager attention and without dropout: on two CPU cores that is three times as fast as one padded
batch with the fused kernels, whose backward pass is slow there.

A checkpoint (weights, optimiser, step) is written every two minutes, whole or not at all; a run
that is started again with the same settings goes on from it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.checkpoints import SAVE_SECONDS, read_checkpoint, write_checkpoint
from toolsrv_lab.extras import load
from toolsrv_lab.memory import keep_freed_memory
from toolsrv_lab.retrieval.mining import Pair
from toolsrv_registry.errors import DataError

Progress = Callable[[int, int, float], None]
"""Called with (steps done, steps in all, running mean of the loss)."""

_GROUPS = 6
_SMOOTH = 0.97


class TrainingOptions(BaseModel):
    """How a retriever is trained. ``scale`` is the inverse temperature of the cosine."""

    model_config = ConfigDict(frozen=True)

    steps: int = 800
    batch_size: int = 96
    learning_rate: float = 8e-5
    warmup: int = 60
    weight_decay: float = 0.01
    scale: float = 25.0
    max_tokens: int = 80
    document_characters: int = 360
    seed: int = 0


def train(
    base: Path,
    out: Path,
    batches: Sequence[Sequence[Pair]],
    documents: Sequence[str],
    options: TrainingOptions,
    *,
    progress: Progress | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Path:
    """Train the encoder in ``base`` and return the folder of the trained one, ``out``/model.

    A checkpoint is written every ``save_seconds``: no more than that is lost by a kill.

    Raises DataError for a checkpoint of other settings, or too few batches.
    """
    if len(batches) < options.steps:
        raise DataError(
            f"{options.steps} steps need as many batches, there are {len(batches)}",
            hint="make more instructions (--rounds) or train fewer steps",
        )
    if not load("torch").cuda.is_available():
        keep_freed_memory()
    out.mkdir(parents=True, exist_ok=True)
    run = _Run(base, out, documents, options)
    run.resume()
    saved = time.monotonic()
    for step in range(run.step, options.steps):
        run.advance(batches[step])
        if progress is not None:
            progress(step + 1, options.steps, run.loss)
        if time.monotonic() - saved > save_seconds:
            run.save()
            saved = time.monotonic()
    return run.finish()


class _Run:
    """A model, its optimiser and how far they are."""

    def __init__(
        self, base: Path, out: Path, documents: Sequence[str], options: TrainingOptions
    ) -> None:
        self._torch = load("torch")
        library = load("sentence_transformers")
        self._torch.manual_seed(options.seed)
        device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self._model = library.SentenceTransformer(
            str(base), device=device, model_kwargs={"attn_implementation": "eager"}
        )
        self._model.max_seq_length = options.max_tokens
        # No dropout: see the module's docstring. The gradients are there all the same.
        self._model.eval()
        self._device = device
        losses = load("sentence_transformers.losses")
        self._loss = losses.MultipleNegativesRankingLoss(self._model, scale=options.scale)
        self._optimiser = self._torch.optim.AdamW(
            self._model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        self._out = out
        self._documents = documents
        self._options = options
        self.step = 0
        self.loss = 0.0

    def advance(self, batch: Sequence[Pair]) -> None:
        """Take one step on a batch."""
        cut = self._options.document_characters
        texts = [pair.query for pair in batch]
        texts += [self._documents[pair.positive][:cut] for pair in batch]
        vectors = self._encode(texts)
        loss = self._loss.compute_loss_from_embeddings(
            [vectors[: len(batch)], vectors[len(batch) :]], None
        )
        for group in self._optimiser.param_groups:
            group["lr"] = self._options.learning_rate * self._share()
        self._optimiser.zero_grad()
        loss.backward()
        self._torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimiser.step()
        value = float(loss.detach())
        self.loss = value if self.step == 0 else _SMOOTH * self.loss + (1 - _SMOOTH) * value
        self.step += 1

    def resume(self) -> None:
        """Go on from the checkpoint if there is one."""
        state = read_checkpoint(self._out, self._options.model_dump_json(), self._device)
        if state is not None:
            self._model.load_state_dict(state["model"])
            self._optimiser.load_state_dict(state["optimiser"])
            self.step, self.loss = int(state["step"]), float(state["loss"])

    def save(self) -> None:
        """Write a checkpoint: whole or not at all."""
        state = {
            "model": self._model.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "step": self.step,
            "loss": self.loss,
        }
        write_checkpoint(self._out, self._options.model_dump_json(), state)

    def finish(self) -> Path:
        """Write the trained model and what it was trained with; return its folder."""
        self.save()
        folder = self._out / "model"
        self._model.save(str(folder))
        about = {"options": self._options.model_dump(), "steps": self.step, "loss": self.loss}
        (self._out / "training.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")
        return folder

    def _share(self) -> float:
        options = self._options
        return min(1.0, (self.step + 1) / options.warmup) * max(0.02, 1 - self.step / options.steps)

    def _encode(self, texts: Sequence[str]) -> Any:
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        width = -(-len(order) // _GROUPS)
        rows = []
        # One context for all groups, so that weights are cast once.
        with self._torch.autocast(self._device, self._torch.bfloat16):
            for start in range(0, len(order), width):
                # Few distinct shapes: each new one costs a CPU a fresh set of kernels.
                features = self._model.tokenizer(
                    [texts[at] for at in order[start : start + width]],
                    padding=True,
                    truncation=True,
                    max_length=self._options.max_tokens,
                    pad_to_multiple_of=16,
                    return_tensors="pt",
                ).to(self._device)
                rows.append(self._model(dict(features))["sentence_embedding"].float())
        places = self._torch.empty(len(order), dtype=self._torch.long, device=self._device)
        places[self._torch.tensor(order, device=self._device)] = self._torch.arange(
            len(order), device=self._device
        )
        return self._torch.cat(rows)[places]
