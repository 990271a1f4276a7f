"""A second opinion on request: accepted, rejected once, never lost when it cannot be had."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.toolllama_replies import TOOLLLAMA, answer, call

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.errors import UsageError
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.contract.format import Verifier
from toolsrv_runtime.contract.models import Completion, Engine, Piece
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError, ModelError
from toolsrv_runtime.outcome import Event, Limits, Opinion, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, build_format
from toolsrv_runtime.toolbench.answer_writer import answer_of, write_answer

Solve = Callable[..., Outcome]
VERIFY = SolveOptions(verify=True, width=1)
YES = "Check: all of it is there\nAccept: yes"
NO = "Check: that is not the capital.\nAccept: no"


def verdicts(outcome: Outcome) -> list[tuple[str, str]]:
    return [(one.verdict, one.reason) for one in outcome.opinions]


def test_nobody_is_asked_again_unless_it_is_wished(solve: Solve) -> None:
    outcome = solve(ScriptedEngine([call("Peru"), answer("Lima")]), SolveOptions())
    assert (outcome.status, outcome.opinions) == ("answered", ())


@pytest.mark.parametrize("extra", [{}, {"profile": TOOLLLAMA}], ids=["chat", "toolllama"])
def test_an_answer_that_is_accepted_is_the_answer(solve: Solve, extra: dict[str, Any]) -> None:
    engine, heard = ScriptedEngine([call("Peru"), answer("Lima"), YES]), list[Event]()
    outcome = solve(engine, VERIFY, events=heard, **extra)
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert outcome.opinions == (
        Opinion(node=outcome.tree[-1].id, verdict="accepted", reason="all of it is there"),
    )
    assert [one.opinion for one in heard if one.kind == "opinion"] == list(outcome.opinions)
    assert outcome.usage.model_calls == 3


def test_task_answer_and_evidence_are_read_and_what_no_response_says(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru"), answer("Lima, with 999 inhabitants"), YES])
    solve(engine, VERIFY)
    read, asked = engine.prompts[2].split("proposed")
    assert "capital of Peru" in read
    assert '"capital": "Lima"' in read
    assert "Lima, with 999 inhabitants" in asked
    assert asked.count("999") == 2  # in the answer, and as what nothing says
    assert asked.count("Lima") == 1


@pytest.mark.parametrize("extra", [{}, {"profile": TOOLLLAMA}], ids=["chat", "toolllama"])
def test_a_rejection_continues_the_search_and_the_model_reads_why(
    solve: Solve, extra: dict[str, Any]
) -> None:
    engine = ScriptedEngine([call("Peru"), answer("Quito"), NO, call("Chile"), answer("Lima"), YES])
    outcome = solve(engine, VERIFY, **extra)
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert verdicts(outcome) == [("rejected", "that is not the capital.")]
    assert "that is not the capital." in engine.prompts[3]
    judged = next(one for one in outcome.tree if one.id == outcome.opinions[0].node)
    assert (judged.kind, judged.code, judged.function) == ("call", 2, "Finish")
    assert [one.used for one in outcome.evidence] == [True, True]


def test_a_second_answer_cannot_be_rejected(solve: Solve) -> None:
    engine = ScriptedEngine([call("Peru"), answer("Quito"), NO, answer("Quito"), NO])
    outcome = solve(engine, VERIFY)
    assert (outcome.status, outcome.answer) == ("answered", "Quito")
    assert len(outcome.opinions) == 1
    assert len(engine.prompts) == 4


def test_every_answer_of_a_ranked_search_is_read_until_one_is_rejected(solve: Solve) -> None:
    script = [call("Peru"), call("Chile"), "A", "A", answer("Lima"), YES, answer("Quito"), NO]
    outcome = solve(ScriptedEngine([*script, "A", "B"]), SolveOptions(verify=True, strategy="dfs"))
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert [one.verdict for one in outcome.opinions] == ["accepted", "rejected"]


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(model_calls=2), "2 model calls"),
        (Limits(tokens=17), "17 tokens"),
    ],
    ids=["model calls", "tokens"],
)
def test_a_budget_that_is_over_before_it_leaves_the_answer(
    solve: Solve, limits: Limits, word: str
) -> None:
    outcome = solve(
        ScriptedEngine([call("Peru"), answer("Lima")]),
        VERIFY.model_copy(update={"limits": limits}),
    )
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert outcome.opinions[0].verdict == "none"
    assert word in outcome.opinions[0].reason


class Slow(ScriptedEngine):
    """Needs for ever to judge."""

    def generate(self, prompt: Any, **given: Any) -> Completion:
        if "is proposed" in "".join(piece.text for piece in prompt):
            while not given["stop"].is_set():
                time.sleep(0.005)
            return Completion("", (), "stopped", 0, 0, 0)
        return super().generate(prompt, **given)


def test_a_time_that_ends_during_it_leaves_the_answer(solve: Solve) -> None:
    options = VERIFY.model_copy(update={"limits": Limits(seconds=3)})
    started = time.monotonic()
    outcome = solve(Slow([call("Peru"), answer("Lima")]), options)
    assert time.monotonic() - started < 3 + 3
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert verdicts(outcome) == [("none", "the time of 3 seconds is over")]


def test_a_budget_that_ends_after_a_rejection_ends_with_an_answer_marked_partial(
    solve: Solve,
) -> None:
    options = VERIFY.model_copy(update={"limits": Limits(model_calls=3)})
    last = json.dumps({"return_type": "give_answer", "final_answer": "Lima", "missing": []})
    closing = f"Thought: answer\nAction: Finish\nAction Input: {last}"
    engine = ScriptedEngine([call("Peru"), answer("Quito"), NO, closing])
    outcome = solve(engine, options)
    assert (outcome.status, outcome.answer) == ("partial", "Lima")
    assert "3 model calls" in outcome.reason
    assert [one.verdict for one in outcome.opinions] == ["rejected"]


def test_a_rejected_answer_is_kept_where_there_comes_no_other(solve: Solve) -> None:
    options = VERIFY.model_copy(update={"limits": Limits(model_calls=3), "close_search": False})
    outcome = solve(ScriptedEngine([call("Peru"), answer("Quito"), NO]), options)
    assert (outcome.status, outcome.answer) == ("partial", "Quito")
    assert [one.verdict for one in outcome.opinions] == ["rejected"]


@pytest.mark.parametrize("said", ["Check: I", "", "Check: good\nAccept: perhaps"])
def test_an_unusable_opinion_is_none(solve: Solve, said: str) -> None:
    outcome = solve(ScriptedEngine([call("Peru"), answer("Lima"), said]), VERIFY)
    assert outcome.status == "answered"
    assert verdicts(outcome) == [("none", "the model said nothing usable")]


class Failing(ScriptedEngine):
    """Fails as soon as it is to judge."""

    fault: type[ModelError | ContextError] = ModelError

    def generate(self, prompt: Any, **given: Any) -> Completion:
        if "is proposed" in "".join(piece.text for piece in prompt):
            raise self.fault("it cannot", hint="")
        return super().generate(prompt, **given)


@pytest.mark.parametrize("fault", [ModelError, ContextError])
def test_a_fault_during_it_leaves_the_answer(
    solve: Solve, fault: type[ModelError | ContextError]
) -> None:
    engine = Failing([call("Peru"), answer("Lima")])
    engine.fault = fault
    outcome = solve(engine, VERIFY)
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert outcome.opinions[0].verdict == "none"
    assert "it cannot" in outcome.opinions[0].reason


def test_an_evaluation_hears_of_a_fault_during_it(solve: Solve) -> None:
    with pytest.raises(ModelError):
        solve(
            Failing([call("Peru"), answer("Lima")]),
            VERIFY.model_copy(update={"keep_on_fault": False}),
        )


def test_the_shipped_model_is_not_asked_and_the_error_says_what_to_do(
    solve: Solve, loaded: tuple[Engine, Profile]
) -> None:
    with pytest.raises(UsageError) as caught:
        solve(loaded[0], SolveOptions(verify=True), profile=loaded[1])
    assert "second opinion" in caught.value.message
    assert "--model" in caught.value.hint
    assert "evidence check" in caught.value.hint


def test_formats_say_whether_their_model_can_judge(loaded: tuple[Engine, Profile]) -> None:
    chat = Profile(name="chat", format="chat", context=8192)
    can = [
        isinstance(build_format(loaded[0], one, prior=None), Verifier)
        for one in (chat, TOOLLLAMA, loaded[1])
    ]
    assert can == [True, True, False]


def test_a_real_model_is_held_to_the_shape_of_a_judgement(engine: Engine) -> None:
    prompt = (Piece(prompts.judgement_question("It is Lima.", ["Lima"])), Piece("\n"))
    reply = engine.generate(
        prompt, grammar=prompts.judgement_grammar(), max_tokens=prompts.JUDGEMENT_TOKENS
    )
    judged = prompts.read_judgement(reply)
    assert judged is not None
    assert judged.reason


def test_files_of_toolbench_tell_a_rejected_answer_as_a_call(solve: Solve, tmp_path: Path) -> None:
    engine = ScriptedEngine([call("Peru"), answer("Quito"), NO, answer("Lima")])
    outcome = solve(engine, VERIFY)
    apis = {api.id: api for api in load_offline_catalog().apis}
    functions = FunctionList([apis[one] for one in outcome.candidates]).to_json()
    write_answer(tmp_path / "answer.json", answer_of(outcome, functions))
    text = (tmp_path / "answer.json").read_text()
    assert "rejected" in text
    assert json.loads(text)["answer_generation"]["final_answer"].count("Lima") == 1
