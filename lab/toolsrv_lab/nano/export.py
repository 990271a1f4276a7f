"""A trained network as GGUF: every weight and the vocabulary.

The network is a LLaMA, so llama.cpp runs it as it is. Needs no torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolsrv_lab.extras import load
from toolsrv_lab.nano.finished import WEIGHTS, read_about
from toolsrv_lab.nano.network import Shape
from toolsrv_lab.nano.vocabulary import BEGIN, END, MARKERS, SPECIAL, UNKNOWN, Vocabulary
from toolsrv_registry.errors import DataError
from toolsrv_runtime.convert.checkpoint import atomic_file

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
