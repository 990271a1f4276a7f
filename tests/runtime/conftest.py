"""Shared by the runtime's tests: the shipped model, the offline catalog, whole solves on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.agents import Solved
from tests.switched_solves import IDS, Shelf

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_registry.registry import Registry
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint
from toolsrv_runtime.gguf_models import load_engine
from toolsrv_runtime.outcome import Event, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def loaded() -> Iterator[tuple[Engine, Profile]]:
    engine, profile = load_engine(threads=1)
    yield engine, profile
    engine.close()


@pytest.fixture(scope="session")
def engine(loaded: tuple[Engine, Profile]) -> Engine:
    return loaded[0]


@pytest.fixture(scope="session")
def apis() -> dict[str, Api]:
    return {api.id: api for api in load_offline_catalog().apis}


@pytest.fixture(scope="module")
def shelf(apis: dict[str, Api]) -> Shelf:
    """A retriever of five APIs about countries."""
    return Shelf([apis[one] for one in IDS])


@pytest.fixture(scope="session")
def tiny_llama() -> Path:
    path = SHARED / "models" / "llama-2-tiny-random.gguf"
    if not path.exists():
        pytest.skip("needs the tiny LLaMA of the shared data")
    return path


_ADDED = (
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<|eot_id|>", True),
)


@pytest.fixture(scope="session")
def tiny_chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model whose vocabulary has the tokens of a chat model, from 600 on."""
    folder = write_tiny_checkpoint(
        tmp_path_factory.mktemp("chat") / "tiny", tokenizer="bpe", vocab_size=608
    )
    place = folder / "tokenizer.json"
    tokenizer = json.loads(place.read_text())
    vocab = tokenizer["model"]["vocab"]
    kept = {text: at for text, at in vocab.items() if at < 600}
    tokenizer["model"]["vocab"] = kept
    tokenizer["model"]["merges"] = [
        pair for pair in tokenizer["model"]["merges"] if "".join(pair) in kept
    ]
    place.write_text(json.dumps(tokenizer))
    config = folder / "tokenizer_config.json"
    said = json.loads(config.read_text())
    said["added_tokens_decoder"] = {
        str(at): {"content": text, "special": special}
        for at, (text, special) in enumerate(_ADDED, 600)
    }
    config.write_text(json.dumps(said))
    return Path(convert(folder).path)


@pytest.fixture(scope="session")
def retriever(registry: Registry) -> ApiRetriever:
    return registry.retriever


@pytest.fixture(scope="session")
def solve(retriever: ApiRetriever) -> Callable[..., Outcome]:
    """Return a function that solves "capital of Peru" on the offline catalog with an engine."""
    toolllama = Profile(name="toolllama-2", format="toolllama", context=8192)

    def run(
        engine: Engine,
        options: SolveOptions,
        *,
        profile: Profile = toolllama,
        task: str = "capital of Peru",
        stop: Stop | None = None,
        events: list[Event] | None = None,
    ) -> Outcome:
        async def main() -> Outcome:
            async with default_caller() as caller:
                solver = Solver(retriever=retriever, engine=engine, profile=profile, caller=caller)
                heard: list[Event] = [] if events is None else events
                return await solver.solve(task, options, on_event=heard.append, stop=stop)

        return asyncio.run(main())

    return run


@pytest.fixture(scope="session")
def solved(solve: Callable[..., Outcome], loaded: tuple[Engine, Profile]) -> Solved:
    """Return a function that solves a task on the offline catalog with the model that ships."""
    engine, profile = loaded
    return lambda task: solve(engine, SolveOptions(), profile=profile, task=task)
