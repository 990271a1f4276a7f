"""Release of a finished training: one quantized GGUF file with labels, and its card beside it.

Tensors are copied unchanged when labels are added.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.card import Json, library_versions, made_hash, read_figures, write_card
from toolsrv_lab.extras import load
from toolsrv_lab.journal import read_journal
from toolsrv_lab.nano.export import ABOUT, WEIGHTS, export_gguf, read_about
from toolsrv_lab.nano.rows import about_shards, shards
from toolsrv_lab.nano.vocabulary import VOCABULARY, read_vocabulary
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.convert.checkpoint import atomic_file, convert
from toolsrv_runtime.convert.quantize import QuantType, quantize


def label(source: Path, target: Path, texts: Mapping[str, str]) -> None:
    """Write ``source`` as ``target`` with ``texts`` by key; those keys' old values are gone."""
    gguf = load("gguf")
    reader = gguf.GGUFReader(str(source))
    name = gguf.Keys.General.ARCHITECTURE
    writer = gguf.GGUFWriter(str(target), reader.get_field(name).contents())
    writer.data_alignment = reader.alignment
    for field in reader.fields.values():
        if field.name != name and not field.name.startswith("GGUF.") and field.name not in texts:
            _copy_tensors(writer, field, gguf.GGUFValueType.ARRAY)
    for key, text in texts.items():
        writer.add_string(key, text)
    for one in reader.tensors:
        data = one.data
        writer.add_tensor_info(one.name, data.shape, data.dtype, data.nbytes, one.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for one in reader.tensors:
        writer.write_tensor_data(one.data)
    writer.close()


def count_parameters(path: Path) -> int:
    """Return the number of weights in a GGUF file."""
    return sum(int(one.n_elements) for one in load("gguf").GGUFReader(str(path)).tensors)


def _copy_tensors(writer: Any, field: Any, array: Any) -> None:
    kind = field.types[0]
    inner = field.types[-1] if kind == array else None
    writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)


CARD_KEY = "toolsrv.card_sha256"
"""The metadata key of the hash of the card's part ``made``."""

_LICENSE = "Apache-2.0"
_LIBRARIES = ("llama-cpp-python", "gguf", "numpy")
_NANO = "A small LLaMA trained from nothing, on solved tasks in toolsrv's compact format."
_TUNED = "A LLaMA fine-tuned on conversations in ToolBench's training format."


class Release(BaseModel):
    """The files that were written; sizes in bytes."""

    model_config = ConfigDict(frozen=True)

    path: str
    type: QuantType
    size_bytes: int
    sha256: str
    card: str
    parameters: int


class ReleaseOptions(NamedTuple):
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


def release(run: Path, wanted: ReleaseOptions) -> Release:
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
    return Release(
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
            "export": library_versions(*_LIBRARIES),
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
            "versions": {"training": about["versions"], "export": library_versions(*_LIBRARIES)},
        }  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{str(run)!r} does not say what was trained: {error}",
            hint="give the training's command again: it writes that at its end",
        ) from None
