"""Tiny LLaMA checkpoint with random weights, for tests and trials; complete in every part.

Needs no torch. Equal arguments give equal files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.tensors import tensor_specs
from toolsrv_runtime.convert.tokenizer import LLAMA3_SPLIT

TokenizerKind = Literal["spm", "bpe"]

SIZES: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 448,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "rope_theta": 10000.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}

_SENTENCES = (
    "System: You may call the functions below, step by step, until the task is solved.",
    "User: What is the weather in Lisbon on 12 May 2024, and how warm is it in Oslo?",
    "Assistant: Thought: I need the forecast first. Action: forecast_for_weather",
    'Action Input: {"city": "Lisbon", "date": "2024-05-12", "unit": "celsius"}',
    'Function: {"error": "", "response": {"temperature": 21.5, "wind": "light"}}',
    "Größe, naïve, café, mañana, Ångström: letters with marks are letters too.",
    "Привет, мир; 北京 and 東京 are cities; नमस्ते means hello; مرحبا as well.",
    "Totals: 1,234.50 EUR, 17 %, 3/4, +49 30 901820, https://example.org/a?b=c&d=e",
    "The quick brown fox jumps over the lazy dog, again and again, until the evening.",
    "Finish with give_answer, or with give_up_and_restart when nothing else helps.",
)


def write_tiny_checkpoint(
    folder: Path,
    *,
    tokenizer: TokenizerKind = "spm",
    seed: int = 0,
    shards: int = 1,
    ignore_merges: bool = False,
    **config: Any,
) -> Path:
    """Write a checkpoint of 30,000 parameters into ``folder`` and return it.

    ``config`` replaces entries of ``SIZES``; with ``shards`` the weights lie in several files
    behind an index; ``ignore_merges`` as in LLaMA 3's tokenizer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", {**SIZES, **config})
    model = read_architecture(folder)
    if tokenizer == "spm":
        _write_spm(folder, model.vocabulary)
    else:
        _write_bpe(folder, model.vocabulary, ignore_merges=ignore_merges)
    rng = np.random.default_rng(seed)
    tensors = {}
    for one in tensor_specs(model):
        norm = len(one.shape) == 1
        values = rng.normal(1.0 if norm else 0.0, 0.1 if norm else 0.25, one.shape)
        tensors[one.name] = values.astype(np.float32)
    _write_weights(folder, tensors, shards)
    return folder


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Write float32 tensors in the safetensors format."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, values in tensors.items():
        head[name] = {
            "dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes],
        }  # fmt: skip
        at += values.nbytes
    text = json.dumps(head).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in tensors.values():
            file.write(values.tobytes())


def _write_weights(folder: Path, tensors: Mapping[str, NDArray[np.float32]], shards: int) -> None:
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    places: dict[str, str] = {}
    names: Sequence[str] = list(tensors)
    for at in range(shards):
        file = f"model-{at + 1:05}-of-{shards:05}.safetensors"
        part = names[at::shards]
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        places |= dict.fromkeys(part, file)
    _write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": places})


def _write_spm(folder: Path, size: int) -> None:
    import sentencepiece  # noqa: PLC0415 - only when a checkpoint is made

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_SENTENCES),
        model_writer=model,
        vocab_size=size,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        split_digits=True,
        num_threads=1,
        minloglevel=2,
    )
    (folder / "tokenizer.model").write_bytes(model.getvalue())
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "LlamaTokenizer",
            "add_bos_token": True,
            "add_eos_token": False,
            **names,
        },
    )


def _write_bpe(folder: Path, size: int, *, ignore_merges: bool) -> None:
    import tokenizers as hf  # noqa: PLC0415 - only when a checkpoint is made

    model = hf.Tokenizer(hf.models.BPE(ignore_merges=ignore_merges))
    cut = hf.pre_tokenizers.Split(hf.Regex(LLAMA3_SPLIT), "isolated")
    bytes_ = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.pre_tokenizer = hf.pre_tokenizers.Sequence([cut, bytes_])
    model.decoder = hf.decoders.ByteLevel()
    trainer = hf.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(_SENTENCES, trainer)
    model.post_processor = hf.processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    model.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"},
    )


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
