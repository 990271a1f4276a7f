"""A finished training as what ships: one quantised GGUF file, and its card beside it.

A run from scratch is written as it is; a fine-tuned model, merged already, is converted by
``runtime``. The file's metadata say what it is and carry the hash of the card's first part.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.card import Json, made_hash, read_figures, write_card
from toolsrv_lab.gguf_labels import count_parameters, label
from toolsrv_lab.journal import read_journal
from toolsrv_lab.nano.export import export_gguf
from toolsrv_lab.nano.finished import ABOUT, WEIGHTS, read_about
from toolsrv_lab.nano.rows import about_shards, shards
from toolsrv_lab.nano.vocabulary import VOCABULARY, read_vocabulary
from toolsrv_lab.versions import versions
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.convert.checkpoint import atomic_file, convert
from toolsrv_runtime.convert.quantize import QuantType, quantize

CARD_KEY = "toolsrv.card_sha256"
"""The metadata key of the hash of the card's part ``made``."""

_LICENSE = "Apache-2.0"
_LIBRARIES = ("llama-cpp-python", "gguf", "numpy")
_NANO = "A small LLaMA trained from nothing, on solved tasks in toolsrv's compact format."
_TUNED = "A LLaMA fine-tuned on conversations in ToolBench's training format."


class Released(BaseModel):
    """The files that were written; sizes in bytes."""

    model_config = ConfigDict(frozen=True)

    path: str
    type: QuantType
    size_bytes: int
    sha256: str
    card: str
    parameters: int


class Wanted(NamedTuple):
    """What is to be written. ``None`` stands for what suits the run.

    ``rows`` is the folder of the vocabulary, where the run has none of its own.
    """

    out: Path | None = None
    name: str | None = None
    type: QuantType = "Q8_0"
    rows: Path | None = None
    license: str | None = None
    figures: Sequence[Path] = ()


def is_tuned(run: Path) -> bool:
    """Whether a folder is of a fine-tuning rather than a training from scratch.

    Raises NotFoundError for one that holds no finished training.
    """
    if (run / "model" / "config.json").is_file():
        return True
    if (run / WEIGHTS).is_file():
        return False
    raise NotFoundError(
        f"{str(run)!r} holds no finished training: neither {WEIGHTS} nor a folder model",
        hint="finish it with the command that began it, or name another folder",
    )


def release(run: Path, wanted: Wanted) -> Released:
    """Write the model of a finished run as a quantised GGUF file with its card.

    Raises:
        DataError: An unfinished or damaged run, figures that cannot be read, no room.
        UsageError: ``rows`` for a fine-tuned model, or lacking for an older run from scratch.
    """
    figures = read_figures(wanted.figures)
    tuned = is_tuned(run)
    if tuned and wanted.rows is not None:
        raise UsageError(
            "--rows is for a model trained from scratch, this one was fine-tuned", hint="leave it"
        )
    name = wanted.name or (run.absolute().name if tuned else "toolsrv-nano")
    target = wanted.out or run / f"{name}.{wanted.type.lower()}.gguf"
    with tempfile.TemporaryDirectory(prefix=".export-", dir=target.absolute().parent) as scratch:
        whole = Path(scratch) / "whole.gguf"
        if tuned:
            convert(run / "model", whole, type="f16")
            made = _tuned_card(run, name)
        else:
            export_gguf(run, read_vocabulary(_vocabulary(run, wanted.rows)), whole, name=name)
            made = _scratch_card(run, name, wanted.rows)
        made |= {"license": wanted.license or made["license"]}
        made["parameters"] = count_parameters(whole)
        small = Path(scratch) / "small.gguf"
        quantize(whole, small, wanted.type)
        whole.unlink()
        with atomic_file(target) as fresh:
            label(small, fresh, _labels(made))
    files = write_card(target, made, {"type": wanted.type}, figures)
    about = json.loads(files[0].read_text("utf-8"))["file"]
    return Released(
        path=str(target), type=wanted.type, size_bytes=about["bytes"], sha256=about["sha256"],
        card=str(files[0]), parameters=made["parameters"],
    )  # fmt: skip


def _labels(made: Mapping[str, Any]) -> dict[str, str]:
    training = made["training"]
    told = f"{made['what']} {training['steps']} steps, {training['tokens_seen'] or 'unknown'} tokens seen."
    labels = {"general.name": made["name"], "general.description": told, CARD_KEY: made_hash(made)}
    return labels | ({"general.license": made["license"]} if made["license"] else {})


def _vocabulary(run: Path, rows: Path | None) -> Path:
    if rows is not None:
        return rows / VOCABULARY
    if (run / VOCABULARY).is_file():
        return run / VOCABULARY
    raise UsageError(
        f"{str(run)!r} has no vocabulary of its own",
        hint="name the folder of the rows it was trained on with --rows",
    )


def _scratch_card(run: Path, name: str, rows: Path | None) -> Json:
    shape, about = read_about(run)
    data = about.get("data") or (about_shards(list(shards(rows))) if rows else {})
    entries = read_journal(run / "curve.jsonl")
    return {
        "name": name,
        "what": _NANO,
        "kind": "from scratch",
        "license": _LICENSE,
        "context": shape.context,
        "shape": shape.model_dump(),
        "training": {
            "steps": about["steps"], "tokens_seen": about["tokens"], "seconds": about["seconds"],
            "started_from": about.get("started_from") or None,
            "loss": about["loss"], "device": about.get("gpu", about["device"]),
            **about.get("machine", {}), "options": about["options"],
        },
        "data": data,
        "held_out": entries[-1] if entries else {},
        "versions": {
            "training": about.get("versions", {"torch": about.get("torch", "unknown")}),
            "export": versions(*_LIBRARIES),
        },
    }  # fmt: skip


def _tuned_card(run: Path, name: str) -> Json:
    try:
        about = json.loads((run / ABOUT).read_text("utf-8"))
        config = json.loads((run / "model" / "config.json").read_text("utf-8"))
        numbers = ("conversations", "left_out", "tokens", "target_tokens")
        return {
            "name": name,
            "what": _TUNED,
            "kind": "LoRA" if about["options"]["lora"] else "fine-tuned",
            "license": "",
            "context": config["max_position_embeddings"],
            "training": {
                "steps": about["steps"], "tokens_seen": about.get("tokens_seen"),
                "seconds": about["seconds"], "loss": about["last_loss"],
                "precision": about["precision"], "options": about["options"],
            },
            "data": {key: about[key] for key in numbers}
            | {"sha256": about["data"], "dev_sha256": about["dev"], "base_sha256": about["base"]},
            "held_out": {} if about["dev_loss"] is None else {"loss": about["dev_loss"]},
            "versions": {"training": about["versions"], "export": versions(*_LIBRARIES)},
        }  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{str(run)!r} does not say what was trained: {error}",
            hint="give the training's command again: it writes that at its end",
        ) from None
