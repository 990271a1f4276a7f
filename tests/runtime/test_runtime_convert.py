"""Checkpoints become GGUF files that cut texts as their tokenizer does, or are refused plainly."""

from __future__ import annotations

import io
import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from toolsrv_registry.errors import ToolsrvError, UsageError
from toolsrv_runtime.convert import (
    ArchitectureError,
    CheckpointError,
    NoCheckpointError,
    ShardError,
    TensorError,
    TokenizerError,
)
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tensors import (
    Shards,
    TensorSpec,
    convert_tensor,
    interleave_heads,
    stored_type,
)
from toolsrv_runtime.convert.tiny import write_safetensors, write_tiny_checkpoint
from toolsrv_runtime.gguf_models import inspect_model

_BARE = runpy.run_path(str(Path(__file__).parents[1] / "bare_llama.py"))
BareLlama, random_texts = _BARE["BareLlama"], _BARE["random_texts"]


def change(path: Path, **values: Any) -> None:
    """Replace entries of a JSON file; None removes one."""
    found = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not None}))


def test_a_sentencepiece_checkpoint_cuts_1000_texts_as_sentencepiece_does(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    reference = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    llama = BareLlama(convert(folder).path)
    texts = random_texts(1000, 5)
    assert [llama.ids(text) for text in texts] == [reference.encode(text) for text in texts]
    assert llama.ids("hi", special=True) == [1, *reference.encode("hi")]
    llama.close()


@pytest.mark.parametrize("ignore_merges", [True, False])
def test_a_byte_level_checkpoint_cuts_1000_texts_as_its_tokenizer_does(
    tmp_path: Path, ignore_merges: bool
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", tokenizer="bpe", ignore_merges=ignore_merges)
    reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    llama = BareLlama(convert(folder).path)
    for text in random_texts(1000, 6):
        assert llama.ids(text) == reference.encode(text, add_special_tokens=False).ids, text
    assert llama.ids("hi", special=True) == reference.encode("hi").ids
    llama.close()


def test_a_template_of_a_file_gets_the_files_own_tokens_and_the_date(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    template = (
        "{% if eos_token != '</s>' or bos_token != '<s>' %}{{ raise_exception('no end') }}{% endif %}"
        "{{ strftime_now('%d %B %Y') }}{% for m in messages %}<{{ m.role }}>"
        "{% generation %}{{ m.content }}{% endgeneration %}{{ eos_token }}{% endfor %}"
    )
    change(folder / "tokenizer_config.json", chat_template=template)
    info = inspect_model(Path(convert(folder).path))
    assert not info.problem, info.problem
    assert info.profile.format == "chat"


def test_the_way_words_are_cut_follows_the_tokenizers_rule(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", tokenizer="bpe")
    place = folder / "tokenizer.json"
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    digits = {"type": "Digits", "individual_digits": True}
    for rule in (
        {**level, "use_regex": True},
        {"type": "Sequence", "pretokenizers": [digits, {**level, "use_regex": True}]},
    ):
        change(place, pre_tokenizer=rule)
        reference = tokenizers.Tokenizer.from_file(str(place))
        llama = BareLlama(convert(folder, force=True).path)
        for text in random_texts(300, 7):
            assert llama.ids(text) == reference.encode(text, add_special_tokens=False).ids, text
        llama.close()


def test_added_tokens_and_the_chat_template_are_carried_over(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    added = {"440": {"content": "<|end|>", "special": True}}
    change(
        folder / "tokenizer_config.json", added_tokens_decoder=added, chat_template="{{ messages }}"
    )
    path = Path(convert(folder).path)
    info = inspect_model(path)
    assert info.chat_template
    assert info.name == "llama"
    llama = BareLlama(path)
    assert 440 not in llama.ids("<|end|>")  # a control token is not read from text
    llama.close()


def test_weights_in_several_files_give_the_same_model(tmp_path: Path) -> None:
    one = convert(write_tiny_checkpoint(tmp_path / "one" / "llama"))
    other = convert(write_tiny_checkpoint(tmp_path / "other" / "llama", shards=3))
    assert Path(one.path).read_bytes() == Path(other.path).read_bytes()


def test_a_profile_writes_toolllamas_positions_into_the_file(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "ToolLLaMA-2-tiny", max_position_embeddings=4096)
    plain = convert(folder)
    assert "--profile toolllama-2" in plain.notes[0]
    assert inspect_model(Path(plain.path)).profile.rope_freq_scale == 0.5  # by its name alone
    for profile, factor in (("toolllama-2", 2), ("toolllama-1", 4)):
        made = convert(folder, tmp_path / f"{profile}.gguf", profile=profile)
        assert (made.rope.kind, made.rope.factor, made.context) == ("linear", factor, 8192)
        info = inspect_model(Path(made.path))
        assert info.context_train == 8192
        assert info.profile.name == profile
        assert info.profile.rope_freq_scale is None  # the file's own, not one over it
        assert f"by {factor}, as the file says" in info.reasons["rope"]
    with pytest.raises(UsageError, match="no profile"):
        convert(folder, profile="toolllama-9", force=True)


def test_a_context_that_the_positions_cannot_carry_is_refused_with_what_would(
    tmp_path: Path,
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "short", max_position_embeddings=2048)
    with pytest.raises(UsageError, match=r"2,048 positions divided by 2 are 4,096") as caught:
        convert(folder, profile="toolllama-2")
    assert caught.value.hint == "give --profile toolllama-1, which divides them by 4"
    assert not folder.with_name("short.f16.gguf").exists()
    made = convert(folder, profile="toolllama-1")
    assert not inspect_model(Path(made.path)).problem


def test_a_pipe_or_device_is_never_replaced_by_a_model(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="no ordinary file"):
        convert(folder, pipe, force=True)
    assert pipe.is_fifo()
    with pytest.raises(UsageError, match="is a folder"):
        convert(folder, tmp_path, force=True)
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "link.json"])
def test_a_file_of_the_checkpoint_is_never_replaced(tmp_path: Path, name: str) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    (tmp_path / "link.json").symlink_to(folder / "config.json")
    target = tmp_path / name if name == "link.json" else folder / name
    before = target.read_bytes()
    with pytest.raises(UsageError, match="a file that it is made from") as caught:
        convert(folder, target, force=True)
    assert "--out" in caught.value.hint
    assert target.read_bytes() == before
    inside = folder / "model.gguf"
    for _ in range(2):
        assert convert(folder, inside, force=True).path == str(inside)


@pytest.mark.parametrize(
    "key",
    ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
     "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"],
)  # fmt: skip
def test_sizes_that_no_model_has_are_refused_before_anything_is_listed(
    tmp_path: Path, key: str
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    change(folder / "config.json", **{key: 10**10})
    with pytest.raises(ArchitectureError, match="less than or equal to"):
        read_architecture(folder)


def test_a_users_own_profile_writes_its_positions_into_the_file(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "base", max_position_embeddings=2048)
    own = tmp_path / "profiles" / "long.toml"
    own.parent.mkdir()
    own.write_text("rope_freq_scale = 0.125\ncontext = 16384\n")
    for name, at in (("long", own.parent), (str(own), None)):
        made = convert(folder, profile=name, profiles=at, force=True)
        assert (made.rope.factor, made.rope.original, made.context) == (8, 2048, 16384)
        assert "run it with that --profile too" in made.notes[0]
        info = inspect_model(Path(made.path), profile=str(own))
        assert not info.problem
        assert info.context_train == 16384
        assert inspect_model(Path(made.path)).profile.name == "chat"  # no name of a missing profile
    own.write_text('base = "toolllama-1"\n')
    made = convert(folder, profile="long", profiles=own.parent, force=True)
    assert (made.rope.factor, made.context) == (4, 8192)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rope_freq_scale = 0.5\n", "says nothing of context"),
        ("context = 4096\n", "says nothing of rope_freq_scale"),
        ("rope_freq_scale = 2\n", "rope_freq_scale = '2'"),
        ("rope_freq_scale = 0.5\ncontext = 16384\n", "2,048 positions divided by 2 are 4,096"),
    ],
)
def test_a_users_own_profile_that_says_too_little_or_too_much_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "base", max_position_embeddings=2048)
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(ToolsrvError, match=said) as caught:
        convert(folder, profile=str(own))
    assert caught.value.hint
    assert not list(tmp_path.glob("*.gguf*"))


@pytest.mark.parametrize("profile", [None, "toolllama-1"])
def test_what_is_to_be_set_in_the_config_converts_and_runs(
    tmp_path: Path, profile: str | None
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "short", max_position_embeddings=256)
    if profile is None:  # 256 positions divided by 2, and a context of 8,192 tokens
        scaling = {"type": "linear", "factor": 2.0, "original_max_position_embeddings": 256}
        change(folder / "config.json", max_position_embeddings=8192, rope_scaling=scaling)
    with pytest.raises(UsageError, match="8,192 tokens is more than this checkpoint") as caught:
        convert(folder, profile=profile)
    said = (
        caught.value.hint.removeprefix("in config.json set ")
        .partition(", and leave")[0]
        .replace(" and ", ", ")
    )
    change(folder / "config.json", **json.loads("{" + said + "}"))
    made = convert(folder)
    assert (made.context, made.rope.factor) == (8192, 32)
    assert not inspect_model(Path(made.path)).problem


def test_a_file_that_is_there_is_replaced_only_when_that_is_asked_for(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", max_position_embeddings=4096)
    good = Path(convert(folder, profile="toolllama-2").path)
    before = good.read_bytes()
    with pytest.raises(UsageError, match="is there already") as caught:
        convert(folder)
    assert "--force" in caught.value.hint
    assert good.read_bytes() == before
    good.with_name(f"{good.name}.partial").write_bytes(b"what a killed process left")
    convert(folder, force=True)
    assert good.read_bytes() != before


@pytest.mark.parametrize(
    "said",
    [
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
    ],
)
def test_both_spellings_of_position_interpolation_are_read(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    made = convert(write_tiny_checkpoint(tmp_path / "llama", **said))
    assert (made.rope.kind, made.rope.factor, made.rope.theta) == ("linear", 2.0, 10000.0)


Spoil = Callable[[Path], object]


def resave(folder: Path, tensors: dict[str, Any]) -> None:
    write_safetensors(folder / "model.safetensors", tensors)


def tensors_of(folder: Path) -> dict[str, Any]:
    return {name: stored.read() for name, stored in Shards(folder).tensors.items()}


def truncate(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def without(folder: Path, name: str) -> None:
    resave(folder, {key: value for key, value in tensors_of(folder).items() if key != name})


def with_one(folder: Path, name: str, value: Any) -> None:
    resave(folder, tensors_of(folder) | {name: np.asarray(value, np.float32)})


SPOILS: list[tuple[type[CheckpointError], str, Spoil]] = [
    (ArchitectureError, "GPT2LMHeadModel",
     lambda f: change(f / "config.json", architectures=["GPT2LMHeadModel"])),
    (ArchitectureError, "hidden_size", lambda f: change(f / "config.json", hidden_size="wide")),
    (ArchitectureError, "vocab_size", lambda f: change(f / "config.json", vocab_size=None)),
    (ArchitectureError, "heads", lambda f: change(f / "config.json", num_key_value_heads=3)),
    (ArchitectureError, "yarn",
     lambda f: change(f / "config.json", rope_scaling={"rope_type": "yarn", "factor": 4.0})),
    (ArchitectureError, "linear",
     lambda f: change(f / "config.json", rope_scaling={"type": "linear", "factor": -1})),
    (ArchitectureError, "quantised",
     lambda f: change(f / "config.json", quantization_config={"bits": 4})),
    (ArchitectureError, "gelu", lambda f: change(f / "config.json", hidden_act="gelu")),
    (CheckpointError, "not JSON", lambda f: (f / "config.json").write_text("{")),
    (CheckpointError, "JSON object", lambda f: (f / "config.json").write_text("[]")),
    (NoCheckpointError, "holds no config.json", lambda f: (f / "config.json").unlink()),
    (ShardError, "no weights", lambda f: (f / "model.safetensors").unlink()),
    (ShardError, "incomplete", lambda f: truncate(f / "model.safetensors", 0.9)),
    (ShardError, "cannot read", lambda f: truncate(f / "model.safetensors", 0.001)),
    (ShardError, "cannot read", lambda f: (f / "model.safetensors").write_bytes(b"")),
    (ShardError, "cannot read",
     lambda f: (f / "model.safetensors").write_bytes(b"\x02" + bytes(7) + b"[]")),
    (TensorError, "lm_head.weight", lambda f: without(f, "lm_head.weight")),
    (TensorError, r"\[32\]", lambda f: with_one(f, "model.norm.weight", np.ones(31))),
    (TensorError, "lora_A", lambda f: with_one(f, "lora_A.weight", np.ones(3))),
    (TensorError, "no numbers", lambda f: with_one(f, "model.norm.weight", np.full(32, np.nan))),
    (TensorError, "float16",
     lambda f: with_one(f, "lm_head.weight", np.full((448, 32), 1e6))),
    (TokenizerError, "no tokenizer", lambda f: (f / "tokenizer.model").unlink()),
    (TokenizerError, "no SentencePiece", lambda f: (f / "tokenizer.model").write_bytes(b"\xff")),
    (TokenizerError, "no tokens", lambda f: (f / "tokenizer.model").write_bytes(b"")),
    (TokenizerError, "embeddings",
     lambda f: (f / "added_tokens.json").write_text('{"<x>": 448}')),
    (CheckpointError, "not JSON", lambda f: (f / "tokenizer_config.json").write_text("{")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "spoil"), SPOILS)
def test_a_damaged_or_foreign_checkpoint_is_refused_and_leaves_nothing(
    tmp_path: Path, kind: type[CheckpointError], words: str, spoil: Spoil
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    spoil(folder)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(kind, match=words) as caught:
        convert(folder)
    assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ShardError, match=r"1 of 3 .*model-00002-of-00003"):
        convert(folder)
    change(folder / "model.safetensors.index.json", weight_map={"x": "../../etc/passwd"})
    with pytest.raises(ShardError, match="does not list"):
        convert(folder)


def test_weights_that_float16_cannot_hold_fit_bfloat16(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    with_one(folder, "lm_head.weight", np.full((448, 32), 1e6))
    assert inspect_model(Path(convert(folder, type="bf16").path)).description.endswith("BF16")


BPE_SPOILS: list[tuple[str, dict[str, Any]]] = [
    ("unknown rule", {"pre_tokenizer": {"type": "Whitespace"}}),
    ("unknown rule", {"pre_tokenizer": None}),
    ("normalises", {"normalizer": {"type": "Lowercase"}}),
    ("no BPE", {"model": {"type": "WordPiece", "vocab": {}}}),
    ("no BPE", {"model": None}),
    ("damaged merges", {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}}),
    ("damaged merges", {"model": {"type": "BPE", "vocab": {}, "merges": []}}),
    ("id", {"model": {"type": "BPE", "vocab": {"a": 9999}, "merges": []}}),
    ("id", {"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}}),
    ("dropout", {"model": {"type": "BPE", "vocab": {"a": 1}, "merges": [], "dropout": 0.1}}),
    ("unknown kind",
     {"model": {"type": "BPE", "vocab": {"a": 1}, "merges": [], "byte_fallback": True}}),
    ("never joins",
     {"model": {"type": "BPE", "vocab": {"a": 3, "b": 4, "c": 5, "ab": 6, "bc": 7, "abc": 8},
                "merges": ["a b", "b c", "ab c"], "byte_fallback": True}}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "changed"), BPE_SPOILS)
def test_a_tokenizer_that_llama_cpp_would_not_reproduce_is_refused(
    tmp_path: Path, words: str, changed: dict[str, Any]
) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", tokenizer="bpe")
    change(folder / "tokenizer.json", **changed)
    with pytest.raises(TokenizerError, match=words):
        convert(folder)
    assert not list(tmp_path.glob("*.gguf"))


def test_decomposed_accents_are_named_as_what_differs(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama", tokenizer="bpe")
    change(folder / "tokenizer.json", normalizer={"type": "NFC"})
    assert "NFC" in convert(folder).notes[0]


def test_a_kind_of_tokenizer_that_sentencepiece_has_besides_bpe_is_refused(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    for options, words in (
        ({"model_type": "unigram", "normalization_rule_name": "identity",
          "remove_extra_whitespaces": False}, "another kind"),
        ({"model_type": "bpe"}, "nmt_nfkc"),
    ):  # fmt: skip
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["some words are here", "and more words there"]),
            model_writer=model, vocab_size=19, minloglevel=2, num_threads=1, **options,
        )  # fmt: skip
        (folder / "tokenizer.model").write_bytes(model.getvalue())
        with pytest.raises(TokenizerError, match=words):
            convert(folder)


@given(
    values=arrays.arrays(np.float32, (24, 3), elements=st.floats(-1, 1, width=32)),
    heads=st.sampled_from([1, 2, 4, 6, 12]),
)
def test_rows_of_queries_are_reordered_within_their_head(values: Any, heads: int) -> None:
    half = 24 // heads // 2
    done = interleave_heads(values, heads)
    for head in range(heads):
        rows = values[head * 2 * half : (head + 1) * 2 * half]
        mixed = done[head * 2 * half : (head + 1) * 2 * half]
        np.testing.assert_array_equal(mixed[0::2], rows[:half])
        np.testing.assert_array_equal(mixed[1::2], rows[half:])


@given(values=arrays.arrays(np.float32, (2, 32), elements=st.floats(-6e4, 6e4, width=16)))
def test_what_is_half_precision_already_is_kept_bit_by_bit(values: Any) -> None:
    one = TensorSpec("any", (2, 32))
    data = convert_tensor(one, values, stored_type(one, "f16")[0])
    np.testing.assert_array_equal(data.astype(np.float32), values)
    short = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    data = convert_tensor(one, short, stored_type(one, "bf16")[0])
    np.testing.assert_array_equal(
        data.reshape(-1).view(np.uint16), short.view(np.uint32).ravel() >> 16
    )


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "llama")
    with pytest.raises(UsageError, match=r"nowhere for 'made\.gguf' does not exist"):
        convert(folder, tmp_path / "nowhere" / "made.gguf")
    with pytest.raises(UsageError, match="no type"):
        convert(folder, type="f8")  # type: ignore[arg-type]
