"""Prompts that are too long: what shrinks, in which order, and what never does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent.fitting import FittedPrompt, PromptShape, condense, fit_prompt
from toolsrv_runtime.contract.format import Action, History, Interrupted, Step, UsageMeter
from toolsrv_runtime.contract.models import Completion, Engine, Piece, Prompt
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError, TaskTooLongError
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.planner.conversation import CompactFormat
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import build_format
from toolsrv_runtime.stop import Stop

TASK = "the task"


def size(shape: PromptShape) -> int:
    kept = [one for one in shape.documents if one is not None]
    return len(TASK) + sum(map(len, (*kept, *shape.observations)))


def fitted(
    documents: Sequence[Sequence[str]], observations: Sequence[str], limit: int
) -> FittedPrompt:
    return fit_prompt(documents, observations, size, limit, task_tokens=len(TASK))


def test_what_fits_stays_as_it_is() -> None:
    shape = fitted([("whole", "w")], ["seen"], 100)
    assert (shape.shape.documents, shape.shape.observations, shape.notes) == (
        ("whole",),
        ("seen",),
        (),
    )


def test_the_oldest_response_is_condensed_first_and_the_latest_last() -> None:
    one, two = "a" * 500, "b" * 500
    shape = fitted([("doc", "d")], [one, two], 950).shape
    assert (len(shape.observations[0]), shape.observations[1]) == (403, two)
    assert shape.documents == ("doc",)


def test_documents_are_shortened_then_left_out_from_the_least_relevant_up() -> None:
    documents = [("first" * 10, "1st"), ("second" * 10, "2nd"), ("third" * 10, "3rd")]
    assert fitted(documents, [], 125).shape.documents == ("first" * 10, "second" * 10, "3rd")
    assert fitted(documents, [], 17).shape.documents == ("1st", "2nd", "3rd")
    last = fitted(documents, [], 12)
    assert last.shape.documents == ("1st", None, None)
    assert last.notes == (
        "for lack of room 1 function document was shortened",
        "for lack of room 2 functions were left out, the least relevant",
    )


def test_a_task_that_is_too_long_is_refused_with_its_size_and_the_limit() -> None:
    with pytest.raises(TaskTooLongError) as caught:
        fitted([("doc", "d")], [], 8)
    assert "the task has 8 tokens" in caught.value.message
    assert "and 8 fit the model" in caught.value.message
    assert caught.value.hint


def test_one_token_is_no_tokens() -> None:
    with pytest.raises(TaskTooLongError) as caught:
        fit_prompt([("doc", "d")], [], size, 3, task_tokens=1)
    assert "the task has 1 token;" in caught.value.message


def test_replies_that_take_all_the_room_are_no_fault_of_the_task() -> None:
    with pytest.raises(ContextError) as caught:
        fitted([("doc", "d")], ["seen"], 8)
    assert not isinstance(caught.value, TaskTooLongError)


def test_a_response_is_condensed_by_its_structure_before_it_is_cut() -> None:
    response = {"items": [{"name": f"n{at}", "text": "x" * 300} for at in range(50)], "total": 50}
    short = condense(json.dumps(response), 400)
    said = json.loads(short)
    assert said["total"] == 50
    assert [one["name"] for one in said["items"]] == ["n0", "n1"]
    assert len(condense("no JSON " * 100, 40)) == 43


@given(
    st.lists(st.tuples(st.text(max_size=300), st.text(max_size=40)), max_size=9),
    st.lists(st.text(max_size=900), max_size=8),
    st.integers(0, 2000),
)
def test_a_prompt_never_exceeds_its_limit(
    documents: list[tuple[str, ...]], observations: list[str], limit: int
) -> None:
    try:
        found = fitted(documents, observations, limit)
    except ContextError:
        return
    assert size(found.shape) == found.tokens <= limit
    assert not documents or found.shape.documents[0] is not None
    assert len(found.shape.observations) == len(observations)


TASK_TEXT = "What is the capital of Peru? " + "Say it in one word. " * 6
MODEL_MOVE = Action("look", "f", "{}", (Piece("Thought: look"),))


def steps(count: int, length: int) -> tuple[Step, ...]:
    seen = json.dumps({"rows": [{"n": at, "t": "word " * (length // 40)} for at in range(8)]})
    return tuple(
        Step(MODEL_MOVE, seen, ok=True, response={"capital": "Lima"}) for _ in range(count)
    )


class Counted:
    """A real engine that writes down how long each prompt is that it is asked to continue."""

    def __init__(self, engine: Engine, context: int) -> None:
        self._engine = engine
        self.name = engine.name
        self.context = context
        self.special_tokens = engine.special_tokens
        self.prompts: list[str] = []
        self.count = engine.count
        self.score = engine.score
        self.close = engine.close

    def generate(self, prompt: Prompt, *, max_tokens: int, **rest: Any) -> Completion:
        assert self.count(prompt) + max_tokens <= self.context
        self.prompts.append("".join(piece.text for piece in prompt))
        return self._engine.generate(prompt, max_tokens=max_tokens, **rest)


@pytest.mark.parametrize("context", [256, 1000, 1600])
def test_a_chat_prompt_fits_a_tiny_context_and_keeps_its_task(
    engine: Engine, apis: dict[str, Api], context: int
) -> None:
    counted = Counted(engine, context)
    profile = Profile(name="chat", format="chat", context=context, max_reply_tokens=32)
    form = build_format(counted, profile, prior=None)
    view = History(TASK_TEXT, tuple(FunctionList(list(apis.values())[:5])), steps(3, 1500))
    meter = UsageMeter()
    if context == 256:
        with pytest.raises(ContextError) as caught:
            form.propose(view, max_tokens=32, stop=Stop(), meter=meter)
        assert "fit the model" in caught.value.message
        return
    form.propose(view, max_tokens=32, stop=Stop(), meter=meter)
    assert TASK_TEXT in counted.prompts[-1]
    assert meter.notes


def test_the_small_model_s_prompt_fits_however_long_task_and_path_are(
    loaded: tuple[Engine, Profile], apis: dict[str, Api]
) -> None:
    engine, profile = loaded
    counted = Counted(engine, engine.context)
    form = CompactFormat(counted, profile)
    offered = FunctionList(list(apis.values())[:9])
    task = "What is the capital of Peru? " * 600
    path = tuple(
        replace(step, observation=json.dumps({f"key {at}": "value " * 50}))
        for at, step in enumerate(steps(40, 40))
    )
    meter = UsageMeter()
    with suppress(Interrupted):  # forty equal calls are no path that it could go on with
        form.propose(History(task, tuple(offered), path), max_tokens=200, stop=Stop(), meter=meter)
    seen, *others = meter.notes
    assert seen.startswith("the model reads the first 1,000 of the task's 17,399 characters")
    assert others
    assert "What is the capital of Peru?" in counted.prompts[-1]


def test_a_task_beyond_the_context_ends_a_solve_with_its_size_and_the_limit(
    solve: Callable[..., Outcome],
) -> None:
    engine = ScriptedEngine(["never asked"])
    engine.context = 60
    with pytest.raises(TaskTooLongError) as caught:
        solve(engine, SolveOptions(), task="What is the capital of Peru? " * 20)
    assert "the task has 120 tokens" in caught.value.message
    assert engine.prompts == []
