"""ToolLLaMA's format on a real engine: a tiny random LLaMA with a LLaMA tokenizer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.contract.format import Action, History, Step, UsageMeter
from toolsrv_runtime.contract.models import Piece, Prompt
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import TokenizerKind, write_tiny_checkpoint
from toolsrv_runtime.engine import pools
from toolsrv_runtime.engine.context import open_model
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.pools import shared_prefix
from toolsrv_runtime.engine.prefix_cache import StateStore
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.engine.vocabulary import Vocabulary
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.toolbench.reference import REFERENCE, ReferenceMode
from toolsrv_runtime.toolbench.toolllama import ToolllamaFormat

PROFILE = Profile(
    name="toolllama-2", format="toolllama", context=8192, temperature=0.5, max_reply_tokens=1500
)
CAPITAL = "Data/country_facts/capital_city"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaEngine]:
    folder = tmp_path_factory.mktemp("ToolLLaMA-2-tiny")
    made = convert(write_tiny_checkpoint(folder, max_position_embeddings=8192))
    engine = LlamaEngine(Path(made.path), context=8192, threads=1)
    yield engine
    engine.close()


def tokens(engine: LlamaEngine, prompt: Prompt) -> list[int]:
    return engine.vocabulary.prompt(prompt)


def text(prompt: Prompt) -> str:
    return "".join(piece.text for piece in prompt)


def test_pieces_of_a_prompt_are_the_tokens_of_the_whole_text(
    llama: LlamaEngine, apis: dict[str, Api]
) -> None:
    move = Action("a", "f", "{}", (Piece("Assistant: \n"), Piece("Thought: a\nAction: f")))
    view = History("a task", tuple(FunctionList([apis[CAPITAL]])))
    path = (Step(move, '{"error": "", "response": "Lima"}', ok=True),)
    prompt = ToolllamaFormat(llama, PROFILE).prompt(replace(view, path=path, tried=path))
    assert len(prompt) > 5
    assert tokens(llama, prompt) == tokens(llama, (Piece(text(prompt)),))


@pytest.mark.parametrize("tokenizer", ["spm", "bpe"])
@pytest.mark.parametrize("task", ["the capital of Peru", "", "\n\n two", "] User: x", " 北京"])
def test_the_repeated_head_is_cut_off_without_changing_a_token(
    tokenizer: TokenizerKind, task: str, tmp_path: Path, apis: dict[str, Api]
) -> None:
    made = convert(write_tiny_checkpoint(tmp_path / "tiny", tokenizer=tokenizer))
    vocabulary = Vocabulary(open_model(Path(made.path)))
    view = History(task, tuple(FunctionList([apis[CAPITAL]])))
    prompt = ToolllamaFormat(ScriptedEngine([]), PROFILE).prompt(view)
    head = shared_prefix(prompt)
    assert "capital_city_for_country_facts" in text(head)
    assert "User: " not in text(head)
    whole = vocabulary.prompt((Piece(text(prompt)),))
    assert vocabulary.prompt(prompt) == whole
    assert vocabulary.prompt(head) == whole[: len(vocabulary.prompt(head))]


def test_another_process_reads_system_text_and_functions_from_the_state(
    tmp_path: Path, apis: dict[str, Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools.PrefixCache.__init__, "__kwdefaults__", {"worth_s": 0.0})
    made = convert(write_tiny_checkpoint(tmp_path / "tiny", max_position_embeddings=8192))
    evaluated, said = [], []
    for task in ("the capital of Peru", "the capital of Peru", "the capital of Chile"):
        states = StateStore(tmp_path / "states", limit=1 << 28)
        engine = LlamaEngine(Path(made.path), context=8192, threads=1, states=states)
        view, meter = History(task, tuple(FunctionList([apis[CAPITAL]])), seed=3), UsageMeter()
        form = ToolllamaFormat(engine, PROFILE)
        move = form.propose(view, max_tokens=1500, stop=Stop(), meter=meter)
        said.append(move.arguments if isinstance(move, Action) else move)
        head = len(tokens(engine, shared_prefix(form.prompt(view))))
        evaluated.append(meter.evaluated)
        engine.close()
    assert said[0] == said[1]
    assert evaluated[0] - evaluated[1] >= head - 1
    assert evaluated[2] < head


def test_every_round_extends_the_prompt_before_and_evaluates_nothing_twice(
    llama: LlamaEngine, apis: dict[str, Api]
) -> None:
    form = ToolllamaFormat(llama, PROFILE)
    view = History("the capital of Peru", tuple(FunctionList([apis[CAPITAL]])), seed=3)
    distinct = before = 0
    spent, missed = UsageMeter(), llama.counts.missed
    for _ in range(3):
        asked = tokens(llama, form.prompt(view))
        move = form.propose(view, max_tokens=1500, stop=Stop(), meter=spent)
        assert isinstance(move, Action)
        said = move.pieces[-1].tokens
        assert said is not None
        view = replace(view, path=(*view.path, Step(move, '{"error": "", "response": 1}', ok=True)))
        after = tokens(llama, form.prompt(view))
        assert after[: len(asked) + len(said)] == [*asked, *said]
        distinct = len(asked) + len(said)
        # What a reply ends with is evaluated by the next prompt only.
        assert spent.evaluated - (llama.counts.missed - missed) <= distinct
        assert spent.evaluated <= 1.05 * distinct
        assert spent.evaluated > before
        before = spent.evaluated
    assert spent.evaluated >= 0.95 * distinct


def solve(
    engine: LlamaEngine, retriever: ApiRetriever, fidelity: ReferenceMode, strategy: str
) -> Outcome:
    options = SolveOptions.model_validate(
        {
            "strategy": strategy,
            "chains": 2,
            "seed": 1,
            "limits": Limits(seconds=600, calls=6, tokens=2000),
        }
    )

    async def main() -> Outcome:
        async with default_caller() as caller:
            solver = Solver(
                retriever=retriever,
                engine=engine,
                profile=PROFILE,
                caller=caller,
                fidelity=fidelity,
            )
            return await solver.solve("What is the capital of Peru?", options)

    return asyncio.run(main())


@pytest.mark.parametrize("strategy", ["dfsdt", "cot"])
@pytest.mark.parametrize("fidelity", [ReferenceMode(), REFERENCE], ids=["default", "faithful"])
def test_a_solve_with_a_random_model_comes_to_an_end(
    llama: LlamaEngine, retriever: ApiRetriever, fidelity: ReferenceMode, strategy: str
) -> None:
    outcome = solve(llama, retriever, fidelity, strategy)
    faithful = fidelity == REFERENCE
    assert outcome.format == f"toolllama{', faithful' if faithful else ''}, own wording"
    assert outcome.depth == (12 if faithful else 24)
    assert outcome.usage.generated_tokens <= 2000 + 512
    called = [node for node in outcome.tree if node.function]
    # What a random model writes differs from processor to processor: a thought may fill a reply.
    assert called or {node.kind for node in outcome.tree} == {"root", "failed"}
    if not faithful:
        names = {"Finish", *(f.name for f in FunctionList(_offered(outcome)))}
        assert {node.function for node in called} <= names


def _offered(outcome: Outcome) -> list[Api]:
    by_id = {api.id: api for api in load_offline_catalog().apis}
    return [by_id[one] for one in outcome.candidates]


def test_only_a_toolllama_can_be_faithful(retriever: ApiRetriever) -> None:
    chat = PROFILE.model_copy(update={"name": "chat", "format": "chat"})
    solver = Solver(
        retriever=retriever,
        engine=ScriptedEngine([]),
        profile=chat,
        caller=default_caller(),
        fidelity=ReferenceMode(depth=12),
    )
    with pytest.raises(UsageError, match="is of the format chat") as caught:
        asyncio.run(solver.solve("What is the capital of Peru?"))
    assert "--faithful" in caught.value.hint
