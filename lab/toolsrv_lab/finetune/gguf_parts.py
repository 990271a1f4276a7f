"""A GGUF file from a base and the tensors that were trained on it: ``blocks.part*`` of the training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

_CONTROL = 3
"""GGUF's token type of control tokens."""

_SAME = 0.985
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
                raw[twins(reader.fields, vectors, template)] = 0
            writer.add_tensor(one.name, raw, raw_dtype=None if plain else one.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def twins(
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
        found |= {int(one) for one in np.nonzero(likeness >= _SAME)[0]}
    return sorted(found - used - named)
