"""A converted checkpoint computes what transformers computes, in every shape of a LLaMA."""

from __future__ import annotations

import json
import random
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsrv_lab.extras import load
from toolsrv_runtime.convert import ShardError
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.quantize import quantize
from toolsrv_runtime.convert.tensors import OutputType
from toolsrv_runtime.convert.tiny import SIZES, write_tiny_checkpoint

pytest.importorskip("transformers", reason="needs the extra `lab`")

_BARE = runpy.run_path(str(Path(__file__).parents[1] / "bare_llama.py"))
BareLlama, random_texts = _BARE["BareLlama"], _BARE["random_texts"]

TOLERANCES: dict[OutputType, tuple[float, float]] = {
    "f32": (1e-4, 5e-6), "f16": (0.1, 0.004), "bf16": (0.8, 0.03),
}  # fmt: skip
"""Largest and mean difference of a logit, where logits deviate by 1.5 from their mean.

Measured: 2e-5 and 1.2e-6, 0.033 and 0.0020, 0.32 and 0.017.
"""

SHAPES: dict[str, dict[str, Any]] = {
    "grouped queries": {},
    "every query its key": {"num_key_value_heads": 4},
    "byte-level tokenizer": {"tokenizer": "bpe"},
    "tied embeddings": {"tie_word_embeddings": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "wide heads": {"head_dim": 16},
    "linear rope": {"rope_scaling": {"type": "linear", "factor": 2.0}},
    "Llama 3.1's rope": {
        "rope_theta": 500_000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
}


def reference(folder: Path) -> Any:
    torch, transformers = load("torch"), load("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


def logits(model: Any, ids: list[int]) -> Any:
    torch = load("torch")
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def tokens(count: int) -> list[int]:
    rng = random.Random(1)
    return [1, *(rng.randrange(3, SIZES["vocab_size"]) for _ in range(count))]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_logits_agree_with_transformers(tmp_path: Path, shape: dict[str, Any]) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", **shape)
    ids = tokens(120)
    expected = logits(reference(folder), ids)
    assert expected.std() > 1
    for kind, (largest, mean) in TOLERANCES.items():
        llama = BareLlama(convert(folder, type=kind).path)
        difference = np.abs(llama.logits(ids) - expected)
        assert difference.max() < largest, kind
        assert difference.mean() < mean, kind
        llama.close()


def test_a_quantised_file_stays_near(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", hidden_size=256, intermediate_size=256)
    ids = tokens(120)
    expected = logits(reference(folder), ids)
    source = Path(convert(folder, type="f32").path)
    errors = {}
    for kind in ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"):
        llama = BareLlama(quantize(source, None, kind).path)
        errors[kind] = float(np.abs(llama.logits(ids) - expected).mean() / expected.std())
        llama.close()
    # Measured on random weights, which no type fits well: 0.09, 0.20, 0.37, 0.55.
    assert errors["Q8_0"] < 0.15 < errors["Q4_K_M"] < 0.8
    assert list(errors.values()) == sorted(errors.values())


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_pytorchs_own_files_give_the_same_model(tmp_path: Path, dtype: str, legacy: bool) -> None:
    torch = load("torch")
    folder = write_tiny_checkpoint(tmp_path / "llama")
    whole = load("safetensors.torch").load_file(str(folder / "model.safetensors"))
    whole = {name: value.to(getattr(torch, dtype)) for name, value in whole.items()}
    load("safetensors.torch").save_file(whole, str(folder / "model.safetensors"))
    expected = Path(convert(folder).path).read_bytes()
    (folder / "model.safetensors").unlink()
    places: dict[str, str] = {}
    for at, names in enumerate((list(whole)[:9], list(whole)[9:])):
        file = f"pytorch_model-{at + 1:05}-of-00002.bin"
        part = {name: whole[name] for name in names}
        torch.save(part, folder / file, _use_new_zipfile_serialization=not legacy)
        places |= dict.fromkeys(names, file)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    assert Path(convert(folder, force=True).path).read_bytes() == expected


class Harm:
    """What a hostile file would run when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_code_in_a_pytorch_file_is_not_run_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    torch = load("torch")
    folder = write_tiny_checkpoint(tmp_path / "llama")
    (folder / "model.safetensors").unlink()
    file = folder / "pytorch_model.bin"
    torch.save({"model.norm.weight": Harm(tmp_path / "harm")}, file)
    with pytest.raises(ShardError, match="cannot read"):
        convert(folder)
    assert not (tmp_path / "harm").exists()
    file.write_bytes(b"PK\x03\x04 nothing more")
    with pytest.raises(ShardError, match="cannot read"):
        convert(folder)


def test_token_ids_agree_with_transformers_but_for_blanks_at_the_start(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    tokenizer = load("transformers").AutoTokenizer.from_pretrained(folder)
    llama = BareLlama(convert(folder).path)
    texts = random_texts(1000, 5)
    other = [
        text
        for text in texts
        if llama.ids(text) != tokenizer.encode(text, add_special_tokens=False)
    ]
    # transformers puts no blank before a text that begins with one; SentencePiece does.
    assert all(text.startswith(" ") for text in other)
    assert len(other) < 80
    assert llama.ids("some text", special=True) == tokenizer.encode("some text")
    llama.close()


def test_a_folder_that_transformers_saved_again_gives_the_same_tokens(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    again = tmp_path / "again"
    reference(folder).save_pretrained(again, max_shard_size="50KB")
    load("transformers").AutoTokenizer.from_pretrained(folder).save_pretrained(again)
    assert not (again / "tokenizer.model").exists()  # only tokenizer.json: scores from merges
    one, other = BareLlama(convert(folder).path), BareLlama(convert(again).path)
    for text in random_texts(1000, 8):
        assert one.ids(text, special=True) == other.ids(text, special=True), text
    np.testing.assert_array_equal(one.logits(tokens(30)), other.logits(tokens(30)))
    one.close()
    other.close()
