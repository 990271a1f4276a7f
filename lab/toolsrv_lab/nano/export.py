"""A trained network as GGUF: every weight, the vocabulary, and what it was made of.

The network is a LLaMA, so llama.cpp runs it as it is. Needs no torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolsrv_lab.extras import load
from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.training import ABOUT, WEIGHTS
from toolsrv_lab.nano.vocabulary import BEGIN, END, MARKERS, SPECIAL, UNKNOWN, Vocabulary
from toolsrv_registry.errors import DataError
from toolsrv_runtime.convert.fresh import fresh_file

Floats = npt.NDArray[np.float32]


def export_gguf(run: Path, vocabulary: Vocabulary, target: Path, *, name: str) -> Path:
    """Write the network of a finished run as a GGUF of 32-bit floats; quantise that afterwards.

    Raises DataError for a run that is not finished or weights that do not fit its shape.
    """
    shape, about = _about(run)
    tensors = _tensors(run, shape)
    gguf = load("gguf")
    with fresh_file(target) as fresh:
        writer = gguf.GGUFWriter(str(fresh), "llama")
        writer.add_name(name)
        writer.add_description(json.dumps({"training": about}, sort_keys=True))
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


def _about(run: Path) -> tuple[Shape, dict[str, Any]]:
    try:
        about: dict[str, Any] = json.loads((run / ABOUT).read_text("utf-8"))
        return Shape.model_validate(about["shape"]), about
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{run} holds no finished training: {error}",
            hint="finish it: toolsrv lab train model --out of this folder",
        ) from error


def _tensors(run: Path, shape: Shape) -> dict[str, Floats]:
    """Return the weights by GGUF's names."""
    weights: dict[str, Floats] = load("safetensors.numpy").load_file(str(run / WEIGHTS))
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
