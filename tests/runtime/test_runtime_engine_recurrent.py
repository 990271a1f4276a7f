"""Recurrent and hybrid models: run without sharing the beginnings of branches."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from toolsrv_runtime.contract.models import Piece, Sampling
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.prefix_cache import SequenceCache, StateStore
from toolsrv_runtime.gguf_models import inspect_model, load_engine
from toolsrv_runtime.stop import Stop

WIDTH, INNER, CONV, STATE, RANK, LAYERS = 32, 64, 4, 16, 2, 2
HEAD = Piece("System: you may call the functions below.\n" * 4, special=True, shared=True)
ASK = Piece("User: the weather in Lisbon\nAssistant: ", special=True)
WORDS = "start: /[a-z ]{20,40}/\n"


def write_recurrent(path: Path, vocabulary: Path, kind: str) -> Path:
    """Write a random Mamba, or a Jamba whose second layer is attention, with another's vocabulary."""
    rng = np.random.default_rng(3)
    writer = gguf.GGUFWriter(str(path), kind)
    own: dict[str, Any] = {"feed_forward_length": 64 if kind == "jamba" else 0}
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(own["feed_forward_length"])
    writer.add_head_count(4 if kind == "jamba" else 0)
    if kind == "jamba":
        writer.add_head_count_kv([0, 2])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_ssm_conv_kernel(CONV)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    tokens = copy_vocabulary(writer, vocabulary)

    def tensor(name: str, *shape: int, base: float = 0.0) -> None:
        writer.add_tensor(name, (base + 0.25 * rng.standard_normal(shape)).astype(np.float32))

    tensor("token_embd.weight", tokens, WIDTH)
    tensor("output_norm.weight", WIDTH, base=1.0)
    for at in range(LAYERS):
        block = f"blk.{at}"
        tensor(f"{block}.attn_norm.weight", WIDTH, base=1.0)
        if kind == "jamba" and at == 1:
            tensor(f"{block}.attn_q.weight", WIDTH, WIDTH)
            tensor(f"{block}.attn_k.weight", WIDTH // 2, WIDTH)
            tensor(f"{block}.attn_v.weight", WIDTH // 2, WIDTH)
            tensor(f"{block}.attn_output.weight", WIDTH, WIDTH)
        else:
            tensor(f"{block}.ssm_in.weight", 2 * INNER, WIDTH)
            tensor(f"{block}.ssm_conv1d.weight", INNER, CONV)
            tensor(f"{block}.ssm_conv1d.bias", INNER)
            tensor(f"{block}.ssm_x.weight", RANK + 2 * STATE, INNER)
            tensor(f"{block}.ssm_dt.weight", INNER, RANK)
            tensor(f"{block}.ssm_dt.bias", INNER)
            decay = -np.exp(rng.standard_normal((INNER, STATE)))
            writer.add_tensor(f"{block}.ssm_a", decay.astype(np.float32))
            tensor(f"{block}.ssm_d", INNER, base=1.0)
            tensor(f"{block}.ssm_out.weight", WIDTH, INNER)
            for norm, size in (("dt", RANK), ("b", STATE), ("c", STATE)):
                if kind == "jamba":
                    tensor(f"{block}.ssm_{norm}_norm.weight", size, base=1.0)
        if kind == "jamba":
            tensor(f"{block}.ffn_norm.weight", WIDTH, base=1.0)
            tensor(f"{block}.ffn_gate.weight", 64, WIDTH)
            tensor(f"{block}.ffn_up.weight", 64, WIDTH)
            tensor(f"{block}.ffn_down.weight", WIDTH, 64)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def copy_vocabulary(writer: gguf.GGUFWriter, source: Path) -> int:
    """Copy the tokenizer of a GGUF file; return how many tokens it has."""
    count = 0
    for name, found in gguf.GGUFReader(str(source)).fields.items():
        if not name.startswith("tokenizer."):
            continue
        inner = found.types[-1] if found.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, found.contents(), found.types[0], sub_type=inner)
        if name == "tokenizer.ggml.tokens":
            count = len(found.contents())
    return count


@pytest.fixture(scope="module", params=["mamba", "jamba"])
def recurrent(
    request: pytest.FixtureRequest, tiny_chat: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("recurrent")
    return write_recurrent(folder / f"{request.param}.gguf", tiny_chat, request.param)


def test_a_recurrent_file_is_run_and_says_that_branches_are_not_shared(recurrent: Path) -> None:
    info = inspect_model(recurrent)
    assert not info.shares_branches
    assert not info.problem
    engine, profile = load_engine(recurrent, threads=1)
    reply = engine.generate((HEAD, ASK), grammar=WORDS, max_tokens=60)
    assert reply.finish == "grammar"
    assert profile.name == "chat"
    engine.close()


def test_branches_are_what_they_would_be_alone(recurrent: Path) -> None:
    shared = LlamaEngine(recurrent, context=512, threads=1)
    ends = [Piece(text) for text in ("one", "two", "three", "four", "five", "six", "one")]
    for seed, end in enumerate(ends):
        sampling = Sampling(0.8, 1.0, seed)
        prompt = (HEAD, ASK, end)
        mine = shared.generate(prompt, grammar=WORDS, max_tokens=60, sampling=sampling)
        fresh = LlamaEngine(recurrent, context=512, threads=1)
        alone = fresh.generate(prompt, grammar=WORDS, max_tokens=60, sampling=sampling)
        fresh.close()
        assert mine.text == alone.text
    shared.close()


def test_a_path_that_grows_is_not_evaluated_again(recurrent: Path) -> None:
    engine = LlamaEngine(recurrent, context=512, threads=1)
    first = engine.generate((HEAD, ASK), grammar=WORDS, max_tokens=60)
    said = Piece(first.text, tokens=first.tokens)
    longer = engine.generate((HEAD, ASK, said, Piece("more")), grammar=WORDS, max_tokens=60)
    assert longer.evaluated < first.prompt_tokens / 2
    engine.close()


def test_the_head_of_prompts_is_kept_for_other_tasks(recurrent: Path, tmp_path: Path) -> None:
    engine = LlamaEngine(
        recurrent, context=512, threads=1, states=StateStore(tmp_path, limit=1 << 24)
    )
    first = engine.generate((HEAD, ASK), grammar=WORDS, max_tokens=60)
    other = engine.generate((HEAD, Piece("another task")), grammar=WORDS, max_tokens=60)
    assert other.evaluated < first.evaluated
    head = engine.count((HEAD,))
    assert first.evaluated >= head
    assert other.evaluated - (len(other.tokens) - other.forced) < head
    engine.close()


def test_scores_are_the_same_together_and_alone(recurrent: Path) -> None:
    engine = LlamaEngine(recurrent, context=512, threads=1)
    options = ["abcd", "abxy", "abc", "zz", "Lisbon", "Oslo is", "Oslo was"]
    together = engine.score((HEAD, ASK), options).values
    alone = [engine.score((HEAD, ASK), [one]).values[0] for one in options]
    assert together == pytest.approx(alone, abs=1e-3)
    engine.close()


def test_calls_at_once_come_to_the_same(recurrent: Path) -> None:
    engine = LlamaEngine(recurrent, context=512, threads=1)
    prompts = [(HEAD, ASK, Piece(text)) for text in ("one", "two", "three", "four")]
    alone = [engine.generate(one, grammar=WORDS, max_tokens=60).text for one in prompts]
    said: dict[int, str] = {}

    def work(at: int) -> None:
        said[at] = engine.generate(prompts[at], grammar=WORDS, max_tokens=60).text

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(prompts))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [said[at] for at in range(len(prompts))] == alone
    engine.close()


def test_a_call_that_was_stopped_leaves_nothing_wrong_behind(recurrent: Path) -> None:
    engine = LlamaEngine(recurrent, context=512, threads=1, interruptible=True, batch=16)
    whole = engine.generate((HEAD, ASK), grammar=WORDS, max_tokens=60)
    stop = Stop()
    decode = engine.scheduler.context.decode
    steps = 0

    def stopping(*given: Any, **named: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == 3:
            stop.set()
        return decode(*given, **named)

    setattr(engine.scheduler.context, "decode", stopping)  # noqa: B010 - this object's own
    prompt = (Piece("x y z " * 20), HEAD, ASK)
    cut = engine.generate(prompt, grammar=WORDS, max_tokens=60, stop=stop)
    assert cut.finish == "stopped"
    setattr(engine.scheduler.context, "decode", decode)  # noqa: B010
    again = engine.generate(prompt, grammar=WORDS, max_tokens=60)
    fresh = LlamaEngine(recurrent, context=512, threads=1, batch=16)
    assert again.text == fresh.generate(prompt, grammar=WORDS, max_tokens=60).text
    assert engine.generate((HEAD, ASK), grammar=WORDS, max_tokens=60).text == whole.text
    fresh.close()
    engine.close()


def test_a_whole_sequence_is_gone_on_with_only_where_it_ends() -> None:
    cache = SequenceCache(slots=3, cells=100, whole=True)
    plan = cache.plan([1, 2, 3], reserve=2)
    assert plan is not None
    cache.commit(plan, [])
    cache.extend(plan.target, [1, 2, 3, 4])
    behind = cache.plan([1, 2, 3, 4, 5], reserve=2)
    assert behind is not None
    assert (behind.source, behind.keep) == (plan.target, 4)
    assert behind.target != plan.target
    before = cache.plan([1, 2, 3, 9], reserve=2)
    assert before is not None
    assert (before.source, before.keep) == (-1, 0)
    assert cache.longest([1, 2, 3]) == 0
    assert cache.longest([1, 2, 3, 4]) == 4
