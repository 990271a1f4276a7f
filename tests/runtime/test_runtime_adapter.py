"""LoRA adapters: merged into a base, and applied while it runs; both give the sum of matrices."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.runtime.lora_files import Factors, factors, write_gguf_adapter, write_peft

from toolsrv_registry.errors import BusyError, UsageError
from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.convert import AdapterError
from toolsrv_runtime.convert.adapter import inspect_adapter, open_base, read_adapter
from toolsrv_runtime.convert.checkpoint import atomic_file, convert
from toolsrv_runtime.convert.merge import merge
from toolsrv_runtime.convert.quantize import quantize
from toolsrv_runtime.convert.tensors import Shards, interleave_heads
from toolsrv_runtime.convert.tiny import write_safetensors, write_tiny_checkpoint
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_models import inspect_model, load_engine

RANK, ALPHA = 4, 6.0
GGUF_SHAPES = {"blk.0.attn_q.weight": (32, 32), "blk.1.attn_k.weight": (16, 32),
               "blk.1.ffn_down.weight": (32, 64), "output.weight": (448, 32)}  # fmt: skip
HF_SHAPES = {"model.layers.0.self_attn.q_proj": (32, 32), "model.layers.1.self_attn.k_proj": (16, 32),
             "model.layers.1.mlp.down_proj": (32, 64), "lm_head": (448, 32)}  # fmt: skip
OPTIONS = (" weather", " Lisbon", "Action", " 12", "xyz")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(convert(write_tiny_checkpoint(tmp_path / "llama"), type="f32").path)


def _scores(path: Path, adapter: Path | None = None) -> NDArray[np.float64]:
    """Return log-probabilities of continuations, a view of the logits."""
    engine = LlamaEngine(path, context=128, threads=1, adapter=adapter)
    try:
        found = engine.score((Piece("User: What is the"),), OPTIONS)
        return np.array(found.values)
    finally:
        engine.close()


def _tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    return {
        one.name: gguf.dequantize(one.data, one.tensor_type)
        for one in gguf.GGUFReader(path).tensors
    }


def _hf_summed(folder: Path, pairs: Factors, scale: float, target: Path) -> Path:
    """Return the checkpoint with the sum done in Hugging Face's own order, converted."""
    tensors = {name: one.read() for name, one in Shards(folder).tensors.items()}
    for name, (a, b) in pairs.items():
        tensors[f"{name}.weight"] = tensors[f"{name}.weight"] + scale * (b @ a)
    write_safetensors(folder / "model.safetensors", tensors)
    return Path(convert(folder, target, type="f32").path)


def test_a_gguf_adapter_merges_to_the_sum_and_runs_as_the_sum(base: Path, tmp_path: Path) -> None:
    pairs = factors(GGUF_SHAPES, RANK)
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", pairs, alpha=ALPHA)
    seen: list[tuple[int, int]] = []
    made = merge(base, adapter, progress=lambda done, total: seen.append((done, total)))
    assert made.changed == 4
    assert made.types == {"F32": 4}
    assert seen[-1] == (made.tensors, made.tensors)
    before, after = _tensors(base), _tensors(Path(made.path))
    for name, values in before.items():
        if name in pairs:
            a, b = pairs[name]
            np.testing.assert_allclose(after[name], values + ALPHA / RANK * (b @ a), atol=1e-5)
        else:
            assert np.array_equal(after[name], values)
    merged, applied = _scores(Path(made.path)), _scores(base, adapter)
    np.testing.assert_allclose(merged, applied, atol=2e-3)
    assert np.abs(merged - _scores(base)).max() > 0.1


@pytest.mark.parametrize("rslora", [False, True])
def test_a_peft_folder_merges_as_the_checkpoint_itself_would(
    base: Path, tmp_path: Path, rslora: bool
) -> None:
    pairs = factors(HF_SHAPES, RANK)
    folder = write_peft(tmp_path / "peft", pairs, rank=RANK, alpha=ALPHA, use_rslora=rslora)
    made = merge(base, folder, tmp_path / "merged.gguf")
    scale = ALPHA / (RANK**0.5 if rslora else RANK)
    right = _hf_summed(tmp_path / "llama", pairs, scale, tmp_path / "right.gguf")
    for name, values in _tensors(right).items():
        np.testing.assert_allclose(_tensors(Path(made.path))[name], values, atol=1e-5)
    np.testing.assert_allclose(_scores(Path(made.path)), _scores(right), atol=2e-3)


@pytest.mark.parametrize(
    ("kind", "written", "tolerance"),
    [("auto", "Q8_0", 0.03), ("Q8_0", "Q8_0", 0.03), ("F16", "F16", 2e-3), ("F32", "F32", 1e-5),
     ("base", "Q8_0", 0.03)],
)  # fmt: skip
def test_changed_tensors_are_written_in_the_type_asked_for(
    tmp_path: Path, kind: Any, written: str, tolerance: float
) -> None:
    sizes: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 256}
    folder = write_tiny_checkpoint(tmp_path / "llama", **sizes)
    source = Path(convert(folder, type="f32").path)
    base = Path(quantize(source, None, "Q4_K_M").path)
    pairs = factors({"blk.0.attn_q.weight": (256, 256)}, RANK)
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", pairs, alpha=ALPHA)
    made = merge(base, adapter, tmp_path / "out.gguf", type=kind)
    assert made.types == {written: 1}
    a, b = pairs["blk.0.attn_q.weight"]
    right = _tensors(base)["blk.0.attn_q.weight"] + ALPHA / RANK * (b @ a)
    found = _tensors(Path(made.path))["blk.0.attn_q.weight"]
    np.testing.assert_allclose(found, right, atol=tolerance)
    kept = {one.name: one for one in gguf.GGUFReader(base).tensors}
    for one in gguf.GGUFReader(made.path).tensors:
        if one.name not in pairs:
            assert one.tensor_type == kept[one.name].tensor_type
            assert np.array_equal(one.data, kept[one.name].data)


def test_the_merged_file_keeps_the_metadata_and_says_where_it_is_from(
    base: Path, tmp_path: Path
) -> None:
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", factors(GGUF_SHAPES, 2), alpha=2)
    made = merge(base, adapter)
    before, after = gguf.GGUFReader(base).fields, gguf.GGUFReader(made.path).fields
    changed = {"general.name", "general.file_type"}
    for key, field in before.items():
        if not key.startswith("GGUF.") and key not in changed:
            assert after[key].contents() == field.contents(), key
    assert after["toolsrv.merge.base"].contents() == base.name
    assert after["toolsrv.merge.base_sha256"].contents() == made.base_sha256
    assert after["toolsrv.merge.adapter"].contents() == "lora"
    assert after["toolsrv.merge.adapter_sha256"].contents() == made.adapter_sha256
    assert inspect_model(Path(made.path)).name == "llama + lora"


def test_a_loaded_model_with_an_adapter_writes_what_the_merged_one_writes(
    base: Path, tmp_path: Path
) -> None:
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", factors(GGUF_SHAPES, RANK), alpha=ALPHA)
    made = merge(base, adapter)
    texts = []
    for path, applied in ((base, adapter), (Path(made.path), None)):
        engine, _ = load_engine(path, threads=1, adapter=applied)
        try:
            reply = engine.generate(
                (Piece("User: hi"),), grammar="start: /[a-z ]{20}/", max_tokens=40
            )
            texts.append((engine.name, reply.text))
        finally:
            engine.close()
    assert texts[0][1] == texts[1][1]
    assert texts[0][0] == "llama.f32 + lora"
    info = inspect_model(base, adapter=adapter).adapter
    assert info is not None
    assert (info.rank, info.alpha, info.matrices) == (RANK, ALPHA, 4)


@given(
    heads=st.integers(1, 6), half=st.integers(1, 5), rank=st.integers(1, 4), seed=st.integers(0, 99)
)
def test_reordering_the_rows_of_a_factor_reorders_those_of_the_product(
    heads: int, half: int, rank: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = heads * half * 2
    a = rng.integers(-4, 5, (rank, 7)).astype(np.float32)
    b = rng.integers(-4, 5, (rows, rank)).astype(np.float32)
    assert np.array_equal(interleave_heads(b, heads) @ a, interleave_heads(b @ a, heads))
    # Row i of a head's first half goes to place 2i, of its second half to 2i + 1.
    order = interleave_heads(np.arange(rows, dtype=np.float32), heads).astype(int)
    for head in range(heads):
        for at in range(half):
            first = head * 2 * half
            assert order[first + 2 * at] == first + at
            assert order[first + 2 * at + 1] == first + half + at


def _wrong(tmp_path: Path, what: str) -> Path:
    pairs = factors({"blk.0.attn_q.weight": (32, 32)}, 2)
    path = tmp_path / "wrong.gguf"
    if what == "tensor":
        pairs = factors({"blk.7.attn_q.weight": (32, 32)}, 2)
    if what == "shape":
        pairs = factors({"blk.0.attn_q.weight": (64, 32)}, 2)
    if what == "embedding":
        pairs = factors({"token_embd.weight": (448, 32)}, 2)
    if what == "ranks":
        a, _ = pairs["blk.0.attn_q.weight"]
        pairs = {"blk.0.attn_q.weight": (a, np.ones((32, 3), np.float32))}
    extra = {"norm.weight": np.ones(32, np.float32)} if what == "extra" else None
    if what == "half":
        extra = {"blk.1.attn_q.weight.lora_a": np.ones((2, 32), np.float32)}
    if what == "empty":
        pairs = {}
    return write_gguf_adapter(
        path,
        pairs,
        alpha=2,
        architecture="qwen2" if what == "architecture" else "llama",
        kind="control_vector" if what == "kind" else "lora",
        extra=extra,
    )


@pytest.mark.parametrize(
    ("what", "said"),
    [("tensor", "blk.7.attn_q.weight"), ("shape", r"\[64, 32\].*\[32, 32\]"),
     ("embedding", "embeddings"), ("ranks", "do not go together"), ("extra", "norm.weight"),
     ("half", "no lora_b"), ("empty", "changes nothing"), ("architecture", "'qwen2'.*'llama'"),
     ("kind", "control_vector")],
)  # fmt: skip
def test_an_adapter_that_does_not_fit_is_refused_by_what_differs(
    base: Path, tmp_path: Path, what: str, said: str
) -> None:
    with pytest.raises(AdapterError, match=said):
        merge(base, _wrong(tmp_path, what))
    assert not list(tmp_path.glob("llama.f32.*.gguf*"))


@pytest.mark.parametrize(
    ("what", "said"), [("tensor", "blk.7.attn_q"), ("shape", r"\[64, 32\]"), ("kind", "control")]
)
def test_loading_with_another_models_adapter_names_the_difference(
    base: Path, tmp_path: Path, what: str, said: str
) -> None:
    with pytest.raises(AdapterError, match=said):
        load_engine(base, adapter=_wrong(tmp_path, what))


@pytest.mark.parametrize(
    ("config", "said"),
    [({"use_dora": True}, "use_dora"), ({"bias": "all"}, "bias"), ({"r": 8}, "rank 8"),
     ({"peft_type": "IA3"}, "IA3"), ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
     ({"lora_alpha": "much"}, "lora_alpha"), ({"target_modules": ["q_proj", "o_proj"]}, "o_proj"),
     ({"rank_pattern": {"q_proj": 2}}, "rank_pattern")],
)  # fmt: skip
def test_a_peft_setting_that_changes_the_sum_is_refused_by_name(
    base: Path, tmp_path: Path, config: dict[str, Any], said: str
) -> None:
    folder = write_peft(tmp_path / "peft", factors(HF_SHAPES, RANK), rank=RANK, alpha=1)
    write_peft(folder, factors(HF_SHAPES, RANK), **{"rank": RANK, "alpha": 1.0, **config})
    with pytest.raises(AdapterError, match=said):
        merge(base, folder)


def test_what_is_no_adapter_or_no_base_is_told(base: Path, tmp_path: Path) -> None:
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", factors(GGUF_SHAPES, 2), alpha=2)
    with pytest.raises(AdapterError, match="no adapter but a model"):
        merge(base, base)
    with pytest.raises(ModelError, match="is a LoRA adapter, not a model"):
        merge(adapter, adapter)
    with pytest.raises(ModelError, match="no model file"):
        merge(tmp_path / "none.gguf", adapter)
    with pytest.raises(ModelError, match="no adapter file"):
        merge(base, tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="adapter_config"):
        merge(base, tmp_path)
    with pytest.raises(AdapterError, match="altered"):
        merge(base, adapter, expected_sha256="0" * 64)
    with pytest.raises(UsageError, match="made from"):
        merge(base, adapter, base, force=True)
    with pytest.raises(AdapterError, match="is a PEFT adapter"):
        inspect_adapter(write_peft(tmp_path / "peft", factors(HF_SHAPES, 2), rank=2, alpha=1))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(adapter.read_bytes()[:-2000])
    with pytest.raises(ModelError, match="incomplete"):
        merge(base, cut)


def test_a_mixture_of_experts_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "experts.gguf"
    writer = gguf.GGUFWriter(path, "qwen2moe")
    writer.add_expert_count(8)
    writer.add_tensor("token_embd.weight", np.ones((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(AdapterError, match="qwen2moe"):
        open_base(path)


def test_a_qwen2_peft_adapter_keeps_the_order_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "qwen.gguf"
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(1)
    writer.add_head_count(4)
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((32, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    pairs = factors({"model.layers.0.self_attn.q_proj": (32, 32)}, 2)
    found = read_adapter(write_peft(tmp_path / "peft", pairs, rank=2, alpha=2), open_base(path))
    ((a, b),) = [one.factors() for one in found.pairs.values()]
    assert np.array_equal(b, pairs["model.layers.0.self_attn.q_proj"][1])
    assert np.array_equal(a, pairs["model.layers.0.self_attn.q_proj"][0])


def test_two_merges_into_one_file_do_no_harm(base: Path, tmp_path: Path) -> None:
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", factors(GGUF_SHAPES, 2), alpha=2)
    target = tmp_path / "out.gguf"
    with atomic_file(target) as fresh:
        fresh.write_bytes(b"of another")
        with pytest.raises(BusyError):
            merge(base, adapter, target)
    assert target.read_bytes() == b"of another"


_CHILD = """
import resource, sys, time
from pathlib import Path
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.convert.merge import merge
base, adapter, target, how = sys.argv[1:]
def slow(done, total):
    print(done, flush=True)
    if how == "slow":
        time.sleep(60)
if how == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    merge(Path(base), Path(adapter), Path(target), progress=slow)
except ToolsrvError as error:
    print(type(error).__name__, error.message)
"""


def test_a_killed_merge_or_a_full_disk_leaves_no_file(base: Path, tmp_path: Path) -> None:
    adapter = write_gguf_adapter(tmp_path / "lora.gguf", factors(GGUF_SHAPES, 2), alpha=2)
    target = tmp_path / "out.gguf"
    words = [sys.executable, "-c", _CHILD, str(base), str(adapter), str(target)]
    full = subprocess.run([*words, "full"], capture_output=True, text=True, check=False)
    assert "WriteError" in full.stdout, full.stderr
    assert not list(tmp_path.glob("out.gguf*.partial"))
    assert not target.exists()
    with subprocess.Popen([*words, "slow"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        child.send_signal(signal.SIGKILL)
    assert not target.exists()
    assert merge(base, adapter, target).path == str(target)
