"""Files of a finished training: weights, vocabulary and settings; their export as GGUF."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from toolsrv_lab.bench.report import machine
from toolsrv_lab.card import library_versions
from toolsrv_lab.extras import load
from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.rows import about_shards
from toolsrv_lab.nano.vocabulary import (
    BEGIN,
    END,
    MARKERS,
    SPECIAL,
    UNKNOWN,
    VOCABULARY,
    Vocabulary,
)
from toolsrv_registry.errors import DataError
from toolsrv_runtime.convert.checkpoint import atomic_file

WEIGHTS = "weights.safetensors"
ABOUT = "training.json"

_PACKAGES = ("torch", "numpy", "tokenizers", "safetensors")


def finish(
    out: Path,
    network: Any,
    vocabulary: Vocabulary,
    files: Sequence[Path],
    about: Mapping[str, Any],
) -> Path:
    """Write the files of a finished run, each whole or not at all; return that of the weights."""
    vocabulary.save(out / VOCABULARY)
    fresh = out / f".{WEIGHTS}.new"
    tensors = {name: one.cpu() for name, one in network.state_dict().items()}
    load("safetensors.torch").save_file(tensors, str(fresh))
    fresh.replace(out / WEIGHTS)
    here = machine()
    whole = dict(about) | {
        "machine": {key: here[key] for key in ("cpu", "cores")},
        "versions": library_versions(*_PACKAGES),
        "data": about_shards(files),
    }
    told = out / f".{ABOUT}.new"
    told.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    told.replace(out / ABOUT)
    return out / WEIGHTS


def read_about(run: Path) -> tuple[Shape, dict[str, Any]]:
    """Return the shape and all that ``training.json`` says of a finished run; raises DataError."""
    try:
        about: dict[str, Any] = json.loads((run / ABOUT).read_text("utf-8"))
        return Shape.model_validate(about["shape"]), about
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{str(run)!r} holds no finished training: {reason}",
            hint="finish it with the command that began it: toolsrv lab train model --out of this "
            "folder",
        ) from error


Floats = npt.NDArray[np.float32]


def export_gguf(run: Path, vocabulary: Vocabulary, target: Path, *, name: str) -> Path:
    """Write the network of a finished run as a GGUF of 32-bit floats; quantise that afterwards.

    Raises DataError for a run that is not finished or weights that do not fit its shape.
    """
    shape, _ = read_about(run)
    if len(vocabulary) != shape.vocabulary:
        raise DataError(
            f"the vocabulary has {len(vocabulary):,} tokens, the network {shape.vocabulary:,}",
            hint="name the rows that the run was trained on with --rows",
        )
    tensors = _tensors(run, shape)
    gguf = load("gguf")
    with atomic_file(target) as fresh:
        writer = gguf.GGUFWriter(str(fresh), "llama")
        writer.add_name(name)
        writer.add_context_length(shape.context)
        writer.add_embedding_length(shape.width)
        writer.add_block_count(shape.layers)
        writer.add_feed_forward_length(shape.inner)
        writer.add_head_count(shape.heads)
        writer.add_head_count_kv(shape.heads)
        writer.add_layer_norm_rms_eps(shape.epsilon)
        writer.add_rope_dimension_count(shape.width // shape.heads)
        writer.add_rope_freq_base(shape.rope_base)
        writer.add_vocab_size(shape.vocabulary)
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        _add_vocabulary(writer, vocabulary, gguf.TokenType)
        for key, values in tensors.items():
            writer.add_tensor(key, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return target


def _tensors(run: Path, shape: Shape) -> dict[str, Floats]:
    """Return the weights by GGUF's names."""
    try:
        weights: dict[str, Floats] = load("safetensors.numpy").load_file(str(run / WEIGHTS))
    except (OSError, ValueError, load("safetensors").SafetensorError) as error:
        raise DataError(
            f"cannot read the weights in {str(run)!r}: {error}",
            hint="give the training's command again: it writes them anew from its checkpoint",
        ) from error
    if sum(one.size for one in weights.values()) != shape.parameters:
        raise DataError(
            f"the weights in {run} are not of the shape beside them", hint="train it again"
        )
    found = {
        "token_embd.weight": weights["embedding.weight"],
        "output_norm.weight": weights["last.weight"],
    }
    for at in range(shape.layers):
        block, blk = f"blocks.{at}", f"blk.{at}"
        query, key, value = np.split(weights[f"{block}.query_key_value.weight"], 3)
        gate, up = np.split(weights[f"{block}.gate_up.weight"], 2)
        found |= {
            f"{blk}.attn_norm.weight": weights[f"{block}.before_attention.weight"],
            f"{blk}.attn_q.weight": query,
            f"{blk}.attn_k.weight": key,
            f"{blk}.attn_v.weight": value,
            f"{blk}.attn_output.weight": weights[f"{block}.out.weight"],
            f"{blk}.ffn_norm.weight": weights[f"{block}.before_inner.weight"],
            f"{blk}.ffn_gate.weight": gate,
            f"{blk}.ffn_up.weight": up,
            f"{blk}.ffn_down.weight": weights[f"{block}.down.weight"],
        }
    return {name: np.ascontiguousarray(one, np.float32) for name, one in found.items()}


def _add_vocabulary(writer: Any, vocabulary: Vocabulary, kinds: Any) -> None:
    tokens = vocabulary.tokens()
    types = [kinds.NORMAL] * len(tokens)
    types[: len(SPECIAL)] = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
    for marker in MARKERS:
        types[vocabulary.id_of(marker)] = kinds.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    # Splits as ``vocabulary`` does.
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(vocabulary.merges())
    writer.add_bos_token_id(BEGIN)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_add_bos_token(True)
