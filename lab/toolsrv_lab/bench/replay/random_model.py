"""A LLaMA of about 150 million random parameters, as a GGUF file: speed needs no training.

The vocabulary and its tokenizer are copied from another GGUF file. Q8_0 weights, 768 wide, as
many layers as make up the parameters.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from toolsrv_registry.errors import DataError

WIDTH, INNER, HEADS, CONTEXT = 768, 2048, 12, 4096
PARAMETERS = 150_000_000
_LAYER = 4 * WIDTH**2 + 3 * WIDTH * INNER


def build(path: Path, *, vocabulary_of: Path, seed: int = 0) -> int:
    """Write the model; return its number of parameters.

    Raises:
        DataError: ``vocabulary_of`` is no GGUF file with a vocabulary.
    """
    source, words = vocabulary(vocabulary_of)
    layers = max(1, round((PARAMETERS - 2 * words * WIDTH) / _LAYER))
    writer = gguf.GGUFWriter(path, "llama")
    _describe(writer, layers, words)
    for name, field in source.fields.items():
        if name.startswith("tokenizer."):
            writer.add_key_value(name, field.contents(), field.types[0], _inner_type(field))
    random = np.random.default_rng(seed)
    for name, rows, columns in _matrices(layers, words):
        values = random.standard_normal((rows, columns), dtype=np.float32) * np.float32(0.02)
        packed = gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    ones = np.ones(WIDTH, dtype=np.float32)
    for name in _norms(layers):
        writer.add_tensor(name, ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return layers * _LAYER + 2 * words * WIDTH


def vocabulary(path: Path) -> tuple[gguf.GGUFReader, int]:
    """Return a GGUF file and how many words its vocabulary has.

    Raises:
        DataError: it is no GGUF file with a vocabulary.
    """
    try:
        source = gguf.GGUFReader(path)
        return source, len(source.fields["tokenizer.ggml.tokens"].data)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise DataError(
            f"{str(path)!r} is no GGUF file with a vocabulary ({error})",
            hint="name a GGUF file with --vocabulary",
        ) from None


def _describe(writer: gguf.GGUFWriter, layers: int, words: int) -> None:
    writer.add_name("random 150M")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(words)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)


def _inner_type(field: gguf.ReaderField) -> gguf.GGUFValueType | None:
    return field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None


def _matrices(layers: int, words: int) -> list[tuple[str, int, int]]:
    found = [("token_embd.weight", words, WIDTH), ("output.weight", words, WIDTH)]
    for layer in range(layers):
        block = f"blk.{layer}"
        found += [(f"{block}.attn_{one}.weight", WIDTH, WIDTH) for one in ("q", "k", "v", "output")]
        found += [(f"{block}.ffn_{one}.weight", INNER, WIDTH) for one in ("gate", "up")]
        found.append((f"{block}.ffn_down.weight", WIDTH, INNER))
    return found


def _norms(layers: int) -> list[str]:
    return ["output_norm.weight"] + [
        f"blk.{layer}.{one}_norm.weight" for layer in range(layers) for one in ("attn", "ffn")
    ]
