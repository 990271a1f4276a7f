"""A GGUF file as it is written, by the gguf package. Knows no checkpoint's files but its tokenizer's."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from toolsrv_runtime.convert.architecture import Architecture
from toolsrv_runtime.convert.errors import TokenizerError
from toolsrv_runtime.convert.fresh import check_room
from toolsrv_runtime.convert.rope import Rope
from toolsrv_runtime.convert.shards import Floats
from toolsrv_runtime.convert.tensors import (
    OutputType,
    Wanted,
    converted,
    gguf_names,
    stored_type,
)
from toolsrv_runtime.convert.vocabulary import HINT, Vocabulary

_FILE_TYPES = {"f32": 0, "f16": 1, "bf16": 32}


class GgufFile:
    """A GGUF file as it is written: metadata, then the list of tensors, then each of them."""

    def __init__(
        self,
        path: Path,
        folder: Path,
        model: Architecture,
        vocabulary: Vocabulary,
        kind: OutputType,
    ) -> None:
        import gguf  # noqa: PLC0415 - only when something is converted

        logging.getLogger("gguf").setLevel(logging.CRITICAL)  # what matters raises
        self._writer: Any = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.LLAMA])
        self._names = gguf_names(model.layers)
        self._types: dict[str, Any] = {}
        self._path = path
        self._folder = folder
        self._model = model
        self._vocabulary = vocabulary
        self._kind: OutputType = kind

    def head(self, profile: str) -> None:
        """Set the metadata; ``profile`` is the built-in one that the model is made for, or ""."""
        writer, model = self._writer, self._model
        writer.add_type("model")
        writer.add_name(self._folder.name)
        if profile:
            writer.add_string("toolsrv.profile", profile)
        writer.add_file_type(_FILE_TYPES[self._kind])
        writer.add_quantization_version(2)
        writer.add_vocab_size(model.vocabulary)
        writer.add_context_length(model.positions)
        writer.add_embedding_length(model.width)
        writer.add_block_count(model.layers)
        writer.add_feed_forward_length(model.inner)
        writer.add_head_count(model.heads)
        writer.add_head_count_kv(model.kv_heads)
        writer.add_key_length(model.head_size)
        writer.add_value_length(model.head_size)
        writer.add_layer_norm_rms_eps(model.epsilon)
        self._rope(model.rope)
        self._tokenizer()

    def _rope(self, rope: Rope) -> None:
        import gguf  # noqa: PLC0415 - as above

        self._writer.add_rope_dimension_count(self._model.head_size)
        self._writer.add_rope_freq_base(rope.theta)
        if rope.kind == "linear":
            self._writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            self._writer.add_rope_scaling_factor(rope.factor)
            if rope.original is not None:
                self._writer.add_rope_scaling_orig_ctx_len(rope.original)

    def _tokenizer(self) -> None:
        import gguf  # noqa: PLC0415 - as above

        writer, own = self._writer, self._vocabulary
        writer.add_tokenizer_model(own.model)
        writer.add_tokenizer_pre(own.pre)
        writer.add_token_list(own.tokens)
        if own.scores is not None:
            writer.add_token_scores(own.scores)
        writer.add_token_types(own.kinds)
        if own.add_space_prefix is not None:
            writer.add_add_space_prefix(own.add_space_prefix)
        try:
            special = gguf.SpecialVocab(
                self._folder, load_merges=own.model == "gpt2", n_vocab=len(own.tokens)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise TokenizerError(f"the tokenizer's files are damaged: {error}", hint=HINT) from None
        special.special_token_ids = {**own.specials, **special.special_token_ids}
        special.add_special_token.setdefault("bos", own.adds_bos)
        special.add_to_gguf(writer, quiet=True)

    def plan(self, plan: list[Wanted], target: Path) -> None:
        """Write metadata and the list of tensors.

        Raises:
            WriteError: There is no room for the file.
        """
        factors = self._model.rope.frequency_factors(self._model.head_size)
        if factors is not None:
            self._writer.add_tensor_info(
                "rope_freqs.weight", factors.shape, factors.dtype, factors.nbytes
            )
        size = 0
        for one in plan:
            raw_type, count = stored_type(one, self._kind)
            self._types[one.name] = raw_type
            # GGUF's writer takes the type from raw_type; any other than uint8 keeps the shape.
            self._writer.add_tensor_info(
                self._names[one.name], one.shape, "float32", count, raw_dtype=raw_type
            )
            size += count
        check_room(self._path, target, size)
        self._writer.write_header_to_file()
        self._writer.write_kv_data_to_file()
        self._writer.write_ti_data_to_file()
        if factors is not None:
            self._writer.write_tensor_data(factors)

    def put(self, one: Wanted, values: Floats) -> None:
        """Write the next tensor of the plan."""
        self._writer.write_tensor_data(converted(one, values, self._types[one.name]))

    def close(self) -> None:
        """Close the file; idempotent."""
        self._writer.close()
