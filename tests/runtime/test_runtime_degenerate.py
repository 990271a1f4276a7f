"""Models that say nothing sensible, real ones and scripted ones: every solve ends, honestly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tensors import tensor_specs
from toolsrv_runtime.convert.tiny import write_safetensors, write_tiny_checkpoint
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.gguf_models import load_engine
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions

Solve = Callable[..., Outcome]
END, LETTER = 2, 400
CHAT = Profile(name="chat", format="chat", context=4096, max_reply_tokens=300)


def one_token_model(folder: Path, token: int) -> Path:
    """Write a model that finds one token likeliest after everything, and return its GGUF file.

    Attention and feed-forward add nothing to an embedding of ones, so the logits are the sums of
    the output rows.
    """
    write_tiny_checkpoint(folder, max_position_embeddings=4096)
    tensors = {}
    for one in tensor_specs(read_architecture(folder)):
        fill = 1.0 if len(one.shape) == 1 or "embed_tokens" in one.name else 0.0
        tensors[one.name] = np.full(one.shape, fill, dtype=np.float32)
        if one.name == "lm_head.weight":
            tensors[one.name][token] = 1.0
    write_safetensors(folder / "model.safetensors", tensors)
    return Path(convert(folder, type="f32").path)


@pytest.mark.parametrize("token", [END, LETTER], ids=["end of text", "one token for ever"])
@pytest.mark.parametrize("strategy", ["dfsdt", "dfs", "react", "cot"])
def test_a_model_of_one_token_ends_within_its_budget(
    solve: Solve, tmp_path: Path, token: int, strategy: str
) -> None:
    engine, _ = load_engine(one_token_model(tmp_path / "one", token), threads=1)
    try:
        free = engine.generate((Piece("hello"),), grammar="start: /(.|\\n)*/", max_tokens=8)
        assert free.tokens == (() if token == END else (LETTER,) * 8)
        limits = Limits(seconds=6, model_calls=6, tokens=1200)
        options = SolveOptions.model_validate({"strategy": strategy, "limits": limits})
        started = time.monotonic()
        outcome = solve(engine, options, profile=CHAT)
    finally:
        engine.close()
    assert time.monotonic() - started < 6 + 6  # budget, one step, a busy machine
    assert outcome.status in {"gave_up", "partial"}
    assert outcome.reason
    assert outcome.usage.model_calls <= 7
    assert outcome.usage.generated_tokens <= 1200 + 512


@pytest.mark.parametrize(
    ("reply", "word"), [("", "0 tokens"), ("la " * 300, "300 tokens")], ids=["nothing", "la la la"]
)
def test_replies_that_are_none_are_told_as_that(solve: Solve, reply: str, word: str) -> None:
    engine = ScriptedEngine([reply], loop=True)
    outcome = solve(engine, SolveOptions())
    assert (outcome.status, outcome.answer) == ("partial", "")
    assert word in outcome.reason
    assert outcome.missing == ("capital of Peru",)
    assert len(engine.prompts) == 2


def test_a_grammar_that_takes_more_tokens_than_there_are_is_cut_and_told(
    solve: Solve, tmp_path: Path
) -> None:
    """Each reply has to hold an argument of letters, and this model never closes one."""
    engine, _ = load_engine(one_token_model(tmp_path / "one", LETTER), threads=1)
    try:
        for room in (1, 20):
            cut = engine.generate(
                (Piece("hello"),), grammar="start: /(.|\\n){500}/", max_tokens=room
            )
            assert (cut.finish, cut.tokens) == ("length", (LETTER,) * room)
        limits = Limits(seconds=20, model_calls=3, tokens=90)
        short = Profile(name="chat", format="chat", context=4096, max_reply_tokens=30)
        outcome = solve(engine, SolveOptions(limits=limits), profile=short)
        after = engine.generate((Piece("hello"),), grammar='start: "Alpha"\n', max_tokens=20)
    finally:
        engine.close()
    assert (outcome.status, outcome.answer) == ("partial", "")
    assert "30 tokens" in outcome.reason
    assert outcome.usage.generated_tokens <= 90 + 512
    assert (after.finish, after.text) == ("grammar", "Alpha")


def test_a_random_model_ends_within_its_budget(solve: Solve, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "random", max_position_embeddings=4096)
    engine, _ = load_engine(Path(convert(folder, type="f32").path), threads=1)
    try:
        limits = Limits(seconds=6, model_calls=8, tokens=1500, calls=3)
        outcome = solve(engine, SolveOptions(limits=limits), profile=CHAT)
    finally:
        engine.close()
    assert outcome.usage.seconds < 6 + 6
    assert outcome.usage.calls <= 3
    assert outcome.reason
