"""Real instruct models, where TOOLSRV_MODELS names a folder with their files: they end in limits."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.gguf_models import load_engine
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.solve import SolveOptions, Solver

SMALL = "SmolLM2-135M-Instruct.Q4_1.gguf"
LARGER = (
    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
)
TASKS = (
    "What is the capital of Peru?",
    "What time is it in Oslo, and is 1996 a leap year?",
    "Sell my car for the best price.",
)
LIMITS = Limits(seconds=90, model_calls=8, calls=4, tokens=900)


def model(name: str) -> Path:
    folder = os.environ.get("TOOLSRV_MODELS", "")
    path = Path(folder) / name
    if not folder or not path.is_file():
        pytest.skip(f"needs {name} in the folder that TOOLSRV_MODELS names")
    return path


def solve(path: Path, retriever: ApiRetriever, tasks: Sequence[str] = TASKS) -> list[Outcome]:
    engine, profile = load_engine(path, threads=1)

    async def main() -> list[Outcome]:
        async with default_caller() as caller:
            solver = Solver(retriever=retriever, engine=engine, profile=profile, caller=caller)
            options = SolveOptions(limits=LIMITS)
            return [await solver.solve(task, options) for task in tasks]

    try:
        return asyncio.run(main())
    finally:
        engine.close()


def check(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        assert outcome.status in {"answered", "partial", "gave_up"}
        assert outcome.reason
        assert outcome.usage.calls <= LIMITS.calls
        assert outcome.usage.model_calls <= LIMITS.model_calls + 4
        assert {node.api_id for node in outcome.tree} <= {*outcome.candidates, ""}
        assert "cannot be used" not in outcome.reason  # a grammar holds every call
    assert outcomes[0].usage.calls >= 1


def test_the_smallest_real_model_ends_in_its_limits(retriever: ApiRetriever) -> None:
    check(solve(model(SMALL), retriever, TASKS[:1]))


@pytest.mark.nightly
@pytest.mark.parametrize("name", LARGER)
def test_larger_real_models_answer_the_first_task(name: str, retriever: ApiRetriever) -> None:
    outcomes = solve(model(name), retriever)
    check(outcomes)
    assert (outcomes[0].status, "Lima" in outcomes[0].answer) == ("answered", True)
