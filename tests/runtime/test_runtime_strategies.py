"""Depth-first search with ranking: children first, compared in pairs, best explored first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.toolllama_replies import answer, call

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.models import Completion, Engine, Prompt
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.options import SolveOptions, Strategy
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.search.dfsdt import (
    Act,
    Backtrack,
    Compare,
    Observation,
    SearchRules,
    SearchState,
    Think,
    dfs,
    react,
)
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.toolbench.answer_files import DfsAnswer
from toolsrv_runtime.toolbench.answer_writer import answer_of, method_of

Solve = Callable[..., Outcome]
VECTORS = json.loads((Path(__file__).parent / "data" / "search_vectors.json").read_text())["groups"]
ANSWER = json.dumps({"return_type": "give_answer", "final_answer": "42"})
GIVE_UP = json.dumps({"return_type": "give_up_and_restart"})


@dataclass(frozen=True)
class Said:
    thought: str | None
    function: str
    arguments: str


CALL, BARE = Said("t", "f", "{}"), Said(None, "f", "{}")
DONE, QUIT = Said("t", "Finish", ANSWER), Said("t", "Finish", GIVE_UP)


def one(arguments: str) -> Said:
    return Said("t", "f", arguments)


def drive(
    search: Any, script: Sequence[Said | str], *, best: Sequence[str] = (), forever: Said = QUIT
) -> tuple[int, list[tuple[str, str]]]:
    """Run a search; of two replies the one earlier in ``best`` wins. Return value and questions."""
    said: Iterator[Said | str] = iter(script)
    asked: list[tuple[str, str]] = []
    answer: Any = None
    while True:
        try:
            wish = search.send(answer)
        except StopIteration as end:
            return int(end.value), asked
        match wish:
            case Think():
                answer = next(said, forever)
            case Act(node):
                code = Code.OK
                if node.description == ANSWER:
                    code = Code.ANSWER
                elif node.description == GIVE_UP:
                    code = Code.GIVE_UP
                answer = Observation(code, "seen")
            case Compare(_, first, second):
                asked.append((first.description, second.description))
                answer = best.index(first.description) < best.index(second.description)
            case Backtrack():
                answer = None


@pytest.mark.parametrize("case", VECTORS["cot_search"]["cases"], ids=lambda c: c["case"])
def test_cot_runs_as_the_reference_does(case: dict[str, Any]) -> None:
    scripts: dict[str, tuple[int, list[Said | str], Said]] = {
        "cot1_success": (1, [CALL, DONE], QUIT),
        "cot1_depth_limit": (1, [], CALL),
        "cot1_depth_limit_no_thought": (1, [], BARE),
        "cot3_giveup_then_success": (3, [QUIT, CALL, DONE], QUIT),
        "cot2_both_give_up": (2, [QUIT, QUIT], CALL),
    }
    chains, script, forever = scripts[case["case"]]
    findings = SearchState()
    drive(react(findings, SearchRules(), chains=chains), script, forever=forever)
    below = [_length(child) for child in findings.tree.root.children]
    assert (findings.replies, bool(findings.answers)) == (case["llm_calls"], case["win"])
    assert len(findings.tree.root.children) == case["try_count"]
    assert below == case["chain_lengths"]
    assert len(findings.answers) == case["n_compare"]


def _length(node: Node) -> int:
    return 1 + max((_length(child) for child in node.children), default=0)


def test_all_children_are_made_before_the_best_is_entered() -> None:
    findings = SearchState()
    script = [one("1"), one("2"), DONE, QUIT]
    returned, asked = drive(dfs(findings, SearchRules()), script, best=["2", "1", ANSWER, GIVE_UP])
    assert (returned, len(findings.answers)) == (10_000, 1)
    assert asked[:2] == [("1", "2"), ("2", "1")]
    first, second = findings.tree.root.children
    assert not first.children[0].children[0].children
    assert len(second.children[0].children[0].children) == 2
    assert findings.replies == 4 + 4


def test_a_pair_is_asked_about_in_both_orders_and_a_win_counts_half() -> None:
    findings = SearchState()
    rules = SearchRules(width=3, depth=3)
    _, asked = drive(dfs(findings, rules), [one("1"), one("2"), one("3")], best=["3", "1", "2"])
    assert len(asked) == 6
    assert {tuple(sorted(pair)) for pair in asked} == {("1", "2"), ("1", "3"), ("2", "3")}
    entered = sorted((n for n in findings.tree.walk() if n.order), key=lambda n: n.order)
    assert [n.description for n in entered] == ["3", "1", "2"]


def test_replies_that_failed_come_last_and_are_not_compared() -> None:
    findings = SearchState()
    rules = SearchRules(width=2, depth=3)
    _, asked = drive(dfs(findings, rules), ["the model failed", one("1")])
    assert asked == []
    entered = sorted((n for n in findings.tree.walk() if n.order), key=lambda n: n.order)
    assert [n.description for n in entered] == ["1", "the model failed"]


def test_equals_are_entered_as_they_were_made() -> None:
    findings = SearchState()

    class Always(list[str]):
        def index(self, *_: Any) -> int:
            return 0

    drive(dfs(findings, SearchRules(depth=3)), [one("1"), one("2")], best=Always())
    entered = sorted((n for n in findings.tree.walk() if n.order), key=lambda n: n.order)
    assert [n.description for n in entered] == ["1", "2"]


def test_a_search_with_ranking_ends_at_its_number_of_replies() -> None:
    findings = SearchState()
    best = ["{}"]
    returned, _ = drive(
        dfs(findings, SearchRules(max_replies=9, depth=50)), [], best=best, forever=CALL
    )
    assert returned > 90_000
    assert findings.replies <= 9 + 2


def test_the_model_ranks_what_it_proposed(solve: Solve) -> None:
    engine = ScriptedEngine([call("Chile"), call("Peru"), "B", "A", answer("Lima"), answer("Quito"),
                             "A", "B"])  # fmt: skip
    outcome = solve(engine, SolveOptions(strategy="dfs"))
    assert (outcome.status, outcome.answer, outcome.strategy) == ("answered", "Lima", "dfs")
    assert [(e.arguments["country"], e.used) for e in outcome.evidence] == [
        ("Chile", False),
        ("Peru", True),
    ]
    question = engine.prompts[2].rpartition("Two next steps")[2]
    assert "already tried" not in engine.prompts[2]
    assert question.index("Chile") < question.index("Peru")
    assert "Lima" in question
    assert outcome.usage.model_calls == 8


def test_of_two_functions_for_the_same_words_the_one_that_serves_them_is_entered(
    solve: Solve, loaded: tuple[Engine, Profile]
) -> None:
    engine, profile = loaded
    task = "What is the capital of Peru and the currency of Chile?"
    outcome = solve(engine, SolveOptions(strategy="dfs"), profile=profile, task=task)
    assert outcome.status == "answered"
    assert "capital is Lima" in outcome.answer
    assert "Chilean Peso" in outcome.answer
    used = [one.api_id.rpartition("/")[2] for one in outcome.evidence if one.used]
    assert used == ["capital_city", "national_currency"]


def test_steps_that_do_not_fit_the_context_stay_as_they_were_made(solve: Solve) -> None:
    class Narrow(ScriptedEngine):
        def generate(self, prompt: Prompt, **given: Any) -> Completion:
            if "Two next steps" in "".join(piece.text for piece in prompt):
                raise ContextError("the prompt has 9 tokens of 8", hint="")
            return super().generate(prompt, **given)

    engine = Narrow([call("Peru"), call("Chile"), answer("Lima"), answer("Quito")])
    events: list[Event] = []
    outcome = solve(engine, SolveOptions(strategy="dfs"), events=events)
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert outcome.notes == ("two steps were not compared: the prompt has 9 tokens of 8",)
    assert [one.text for one in events if one.kind == "note"] == list(outcome.notes)


def test_comparisons_count_as_model_calls(solve: Solve) -> None:
    engine = ScriptedEngine([call("Chile"), call("Peru"), "B"], loop=True)
    outcome = solve(
        engine, SolveOptions(strategy="dfs", limits=Limits(model_calls=3), close_search=False)
    )
    assert (outcome.status, len(engine.prompts)) == ("partial", 3)


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_answer_that_was_written_counts_where_the_search_ends_before_it_is_entered(
    solve: Solve, calls: int
) -> None:
    engine = ScriptedEngine([answer("Lima"), answer("Quito"), "A", "B"], loop=True)
    outcome = solve(engine, SolveOptions(strategy="dfs", limits=Limits(model_calls=calls)))
    assert (outcome.status, outcome.answer) == ("answered", "Lima")


def test_a_ranked_search_is_written_as_the_reference_names_it(solve: Solve) -> None:
    engine = ScriptedEngine([call("Chile"), call("Peru"), "B", "A", answer("Lima"), answer("Quito"),
                             "A", "B"])  # fmt: skip
    outcome = solve(engine, SolveOptions(strategy="dfs"))
    apis = {api.id: api for api in load_offline_catalog().apis}
    functions = FunctionList([apis[one] for one in outcome.candidates]).to_json()
    written = answer_of(outcome, functions)
    assert isinstance(written, DfsAnswer)
    assert method_of(outcome) == "DFS_w2"
    assert written.forward_args["with_filter"] is True
    assert (written.win, written.tree.size) == (True, 13)


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_the_shipped_model_answers_with_every_strategy(
    solve: Solve, loaded: tuple[Engine, Profile], strategy: str
) -> None:
    options = SolveOptions.model_validate({"strategy": strategy})
    outcome = solve(loaded[0], options, profile=loaded[1], task="What is the capital of Peru?")
    assert (outcome.status, outcome.strategy) == ("answered", strategy)
    assert "Lima" in outcome.answer
