"""Fine-tuning of a chat model from a GGUF file: check the inputs, train, assemble one file.

The trained tensors come as ``blocks.part*``.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.conversations.build import template_source
from toolsrv_lab.extras import load
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.gguf_header import read_header

_CONTROL = 3
"""GGUF's token type of control tokens."""

_SAME_COSINE = 0.985
"""Cosine of two embeddings from which on they are taken for one that was never learnt."""


def assemble(base: Path, parts: Path, out: Path, *, template: str, name: str, profile: str) -> None:
    """Write the base with the trained tensors, a chat template, a name and how it is run.

    Embeddings and vocabulary stay the base's, but for the twins of control tokens that ``template``
    writes: tokens that a base never learnt have one embedding, so that each would get a share of what
    the model gives to the one that it uses; theirs are zeroed. Raises ValueError where the parts are
    not whole.
    """
    listed = json.loads((parts / "blocks.json").read_text("utf-8"))["tensors"]
    files = sorted(parts.glob("blocks.part*"), key=lambda one: int(one.suffix[5:]))
    data = b"".join(one.read_bytes() for one in files)
    trained: dict[str, tuple[str, Any]] = {}
    at = 0
    for key, kind, shape in listed:
        count = int(np.prod(shape))
        size = count * 4 if kind == "F32" else count // 32 * 18
        raw = np.frombuffer(data, np.uint8, size, at)
        at += size
        trained[key] = (kind, raw.view(np.float32) if kind == "F32" else raw.reshape(shape[0], -1))
    if at != len(data):
        raise ValueError(f"the parts hold {len(data)} bytes, {at} are listed")
    reader = gguf.GGUFReader(base)
    writer = gguf.GGUFWriter(out, "llama")
    left_out = {"general.architecture", "tokenizer.chat_template", "general.name", "general.finetune",
                "general.basename", "general.organization", "general.file_type"}  # fmt: skip
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in left_out:
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=sub)
    writer.add_string("general.name", name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_chat_template(template)
    writer.add_string("toolsrv.profile", profile)
    for one in reader.tensors:
        if one.name in trained:
            kind, raw = trained[one.name]
            quantisation = None if kind == "F32" else gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(one.name, raw, raw_dtype=quantisation)
        else:
            plain = one.tensor_type == gguf.GGMLQuantizationType.F32
            raw = np.array(one.data)
            if one.name == "token_embd.weight":
                vectors = gguf.dequantize(one.data, one.tensor_type)
                raw[similar_tokens(reader.fields, vectors, template)] = 0
            writer.add_tensor(one.name, raw, raw_dtype=None if plain else one.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def similar_tokens(
    fields: Mapping[str, Any], embeddings: npt.NDArray[np.float32], template: str
) -> list[int]:
    """Return the tokens whose embedding is that of a control token which a chat template writes.

    Without those that the file itself names (beginning, end, padding, unknown). ``embeddings`` are
    (tokens, width).
    """
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    named = {
        int(field.contents())
        for key, field in fields.items()
        if key.startswith("tokenizer.ggml.") and key.endswith("_token_id")
    }
    lengths = np.linalg.norm(embeddings, axis=1)
    used = {
        at
        for at, (text, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == _CONTROL and text in template
    }
    found: set[int] = set()
    for at in used - named:
        likeness = embeddings @ embeddings[at] / np.maximum(lengths * lengths[at], 1e-9)
        found |= {int(one) for one in np.nonzero(likeness >= _SAME_COSINE)[0]}
    return sorted(found - used - named)


MASTERS = "masters.pt"
MODEL = "model.gguf"
_LONGEST_HEAD = 1 << 16
_HINT = "write it with: toolsrv lab convert ANSWERS --format chat --base BASE.gguf --out rows.xz"


class TunedModel(BaseModel):
    """What a run came to; ``loss`` is that on held-out rows, in the type that is written."""

    model_config = ConfigDict(frozen=True)

    model: str
    rows: int
    steps: int
    tokens: int
    loss: float


def finetune_chat(
    base: Path,
    data: Sequence[Path],
    out: Path,
    settings: Mapping[str, float | int],
    *,
    start: Path | None = None,
) -> TunedModel:
    """Train and write ``out/model.gguf``. ``settings`` are options of ``chat_training``.

    ``start`` is the folder of a run whose weights this one goes on from. Prints how it goes.

    Raises:
        UsageError: a base that cannot be trained here, or torch is not installed.
        ModelError: the base is missing or no GGUF file.
        NotFoundError: a file of rows, or of weights, is missing.
        DataError: a file of rows is damaged.
    """
    check_base(base)
    for path in data:
        check_rows(path)
    if start is not None and not (start / MASTERS).is_file():
        raise NotFoundError(
            f"{str(start)!r} holds no {MASTERS}", hint="name the folder of an earlier run"
        )
    training = load("toolsrv_lab.finetune.chat_training")
    said = ["--base", base, "--out", out, "--data", *data]
    said += ["--resume", start / MASTERS] if start is not None else []
    for name, value in settings.items():
        said += [f"--{name}", value]
    training.main([str(one) for one in said])
    model = out / MODEL
    assemble(base, out, model, template=template_source(), name=out.name, profile="small")
    log: dict[str, Any] = json.loads((out / "blocks.json").read_text("utf-8"))["log"]
    last = log["steps"][-1]
    return TunedModel(
        model=str(model), rows=log["rows"], steps=last["step"], tokens=last["tokens"],
        loss=last["held"],
    )  # fmt: skip


def check_base(path: Path) -> None:
    """Raise UsageError for a model whose forward pass ``chat_training`` does not have."""
    header = read_header(path)
    names = {one.name for one in gguf.GGUFReader(path).tensors}
    if header.architecture != "llama":
        why = f"it is {header.architecture!r}"
    elif "output.weight" in names:
        why = "its output has weights of its own"
    elif any(name.endswith(".bias") for name in names):
        why = "it has biases"
    else:
        return
    raise UsageError(
        f"{path.name!r} cannot be trained from its GGUF file: {why}",
        hint="take a LLaMA with tied embeddings, such as SmolLM2; or a checkpoint's folder as --base",
    )


def check_rows(path: Path) -> None:
    """Raise NotFoundError or DataError unless a file begins as rows do."""
    try:
        with lzma.open(path) as file:
            size = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(min(size, _LONGEST_HEAD)))
            filled = head["rows"] > 0 and head["tokens"] > 0
    except FileNotFoundError:
        raise NotFoundError(f"there is no file of rows {str(path)!r}", hint=_HINT) from None
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror}", hint=_HINT) from None
    except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError, RecursionError):
        filled = False
    if not filled:
        raise UsageError(f"{str(path)!r} is no file of rows", hint=_HINT)
