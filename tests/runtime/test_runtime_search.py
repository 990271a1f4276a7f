"""The tree search against the reference's runs (vectors: dfsdt_search, cot_search)."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.search.dfsdt import (
    Act,
    Backtrack,
    BeginSubtask,
    Compare,
    Decompose,
    Effect,
    EffectResult,
    Observation,
    SearchFunction,
    SearchRules,
    SearchState,
    Think,
    decomposed,
    dfs,
    dfsdt,
    react,
)
from toolsrv_runtime.search.tree import Code, Tree, pre_order

GROUPS = json.loads((Path(__file__).parent / "data" / "search_vectors.json").read_text())["groups"]
ANSWER = json.dumps({"return_type": "give_answer", "final_answer": "42"})
GIVE_UP = json.dumps({"return_type": "give_up_and_restart"})


@dataclass(frozen=True)
class Said:
    thought: str | None
    function: str
    arguments: str


CALL = Said("t", "f", "{}")
BARE = Said(None, "f", "{}")
DONE = Said("t", "Finish", ANSWER)
QUIT = Said("t", "Finish", GIVE_UP)
BAD = Said("t", "Finish", "{}")
UNKNOWN = Said("t", "nope", "{}")
TEXT = Said("t", "", "")

Script = tuple[list[Said | str], Said | str | None, dict[str, Any]]
SCRIPTS: dict[str, Script] = {
    "success_first_chain": ([CALL, CALL, DONE], None, {}),
    "give_up_after_one_call_then_answer": ([CALL, QUIT, DONE], None, {}),
    "give_up_depth2_then_answer": ([CALL, CALL, QUIT, DONE], None, {}),
    "always_same_call_with_thought": ([], CALL, {}),
    "always_same_call_no_thought": ([], BARE, {}),
    "always_give_up_after_call": ([CALL], QUIT, {}),
    "query_budget_5": ([], CALL, {"max_replies": 5}),
    "hallucinated_then_answer": ([UNKNOWN, DONE], None, {}),
    "llm_error_always": ([], "the model failed", {}),
    "thought_only_then_call": (
        [TEXT, BARE, Said(None, "Finish", ANSWER)],
        None,
        {},
    ),
    "answer_2_requested": ([CALL, DONE], DONE, {"answers": 2}),
    "bad_finish_args_then_answer": ([BAD, DONE], None, {}),
    "width3_fail_twice_then_answer": ([CALL, QUIT, CALL, QUIT, DONE], None, {"width": 3}),
    "service_error_code12_then_answer": ([Said("t", "broken", "{}"), DONE], None, {}),
    "width1_always_same_call_with_thought": ([], CALL, {"width": 1}),
    "query_budget_200_no_thought_depth50": ([], BARE, {"depth": 50}),
}


def _observe(move: Said) -> Observation:
    if move.function == "Finish":
        kind = json.loads(move.arguments).get("return_type")
        codes = {"give_answer": Code.ANSWER, "give_up_and_restart": Code.GIVE_UP}
        return Observation(codes.get(kind, Code.BAD_FINISH), kind or "")
    if move.function == "nope":
        return Observation(Code.UNKNOWN_FUNCTION, "")
    return Observation(Code.ERROR if move.function == "broken" else Code.OK, "seen")


def _drive(script: Script, *, chains: int = 0) -> tuple[int, SearchState, int]:
    """Run a search on scripted replies; return its value, findings and model calls."""
    first, forever, rules = script
    said: Iterator[Said | str] = iter(first)
    findings = SearchState()
    options = SearchRules(**rules)
    search = react(findings, options, chains=chains) if chains else dfsdt(findings, options)
    answer: Any = None
    calls = 0
    while True:
        try:
            wish = search.send(answer)
        except StopIteration as end:
            return int(end.value), findings, calls
        match wish:
            case Think():
                calls += 1
                answer = next(said, forever)
                assert answer is not None, "the search asked for more than the script has"
            case Act(node):
                assert isinstance(node.move, Said)
                answer = _observe(node.move)
            case Backtrack():
                answer = None


@pytest.mark.parametrize("case", GROUPS["dfsdt_search"]["cases"], ids=lambda c: c["case"])
def test_dfsdt_runs_as_the_reference_does(case: dict[str, Any]) -> None:
    returned, findings, calls = _drive(SCRIPTS[case["case"]])
    nodes = list(findings.tree.walk())
    assert returned == case["returned"]
    assert (calls, findings.replies) == (case["llm_calls"], case["query_count"])
    assert len(nodes) == case["tree_size"]
    assert max(n.depth for n in nodes) + 1 == case["max_length"]
    assert len(findings.answers) == case["n_terminal"]
    assert len(findings.give_ups) == case["n_give_up"]
    if case["preorder_nodes"] is not None:
        letters = {"Thought": "T", "Action": "A", "Action Input": "I"}
        ours = [
            [
                n.order,
                letters[n.kind],
                n.depth,
                n.pruned,
                n.finished,
                None if n.code is None else int(n.code),
                len(n.children),
            ]
            for n in nodes
        ]
        assert ours == case["preorder_nodes"]


def test_a_chain_ends_at_the_depth_limit_after_four_rounds() -> None:
    case = next(c for c in GROUPS["cot_search"]["cases"] if c["case"] == "cot1_depth_limit")
    _, findings, calls = _drive(([], CALL, {}), chains=1)
    assert calls == case["llm_calls"]
    assert [max(n.depth for n in findings.tree.walk())] == case["chain_lengths"]


def test_a_second_chain_starts_afresh_and_can_win() -> None:
    _, findings, calls = _drive(([CALL, QUIT, DONE], None, {}), chains=2)
    assert calls == 3
    assert len(findings.answers) == 1
    assert len(findings.tree.root.children) == 2


def test_a_give_up_as_first_move_costs_one_child_when_the_root_is_retried() -> None:
    returned, findings, calls = _drive(([QUIT, DONE], None, {"retry_root": True}))
    assert (returned, calls, len(findings.answers)) == (10_000, 2, 1)
    returned, _, calls = _drive(([QUIT], None, {}))
    assert (returned, calls) == (1, 1)


MOVES = st.sampled_from([CALL, BARE, DONE, QUIT, BAD, UNKNOWN, TEXT, "the model failed"])


@given(st.lists(MOVES, max_size=40), st.integers(1, 3), st.integers(1, 12))
def test_every_search_ends_within_its_reply_limit(
    moves: list[Said | str], width: int, depth: int
) -> None:
    script = (moves, CALL, {"width": width, "depth": depth, "max_replies": 60})
    _, findings, calls = _drive(script)
    assert calls <= 60
    ids = [n.id for n in findings.tree.walk()]
    assert sorted(ids) == list(range(len(ids)))
    assert len(findings.answers) <= 1


PARTS = (Said("find the capital", "", ""), Said("find its weather", "", ""))
CLOSED = Said("t", "closed", "{}")
Begun = list[tuple[int | None, bool]]


def _turns(
    search: Generator[Effect, EffectResult, int], *script: Said | str
) -> tuple[int, int, list[str], Begun]:
    """Run a search; return its value, its model calls, why it turned back and its subtasks."""
    said = iter(script)
    reasons: list[str] = []
    begun: Begun = []
    answer: Any = None
    calls = 0
    while True:
        try:
            wish = search.send(answer)
        except StopIteration as end:
            return int(end.value), calls, reasons, begun
        match wish:
            case Think():
                calls += 1
                answer = next(said)
            case Act(node):
                assert isinstance(node.move, Said)
                answer = _observe(node.move)
                if node.move is CLOSED:
                    answer = Observation(Code.OK, "seen", closed=True)
            case Compare():
                answer = True
            case Decompose():
                answer = PARTS
            case BeginSubtask(_, part, solved):
                begun.append((part, solved))
            case Backtrack(_, _, reason):
                reasons.append(reason)


@pytest.mark.parametrize("strategy", [dfsdt, dfs])
@pytest.mark.parametrize(
    ("depth", "script", "reasons"),
    [
        (3, [CALL, CALL], ["too deep"]),
        (3, ["the model failed", CALL], ["the model failed"]),
        (3, [CALL, "the model failed"], ["too deep"]),
        (3, [QUIT, CALL], ["gave up"]),
        (6, [CLOSED, CLOSED], ["says the same again"]),
        (6, [CLOSED, CLOSED, CALL], ["says the same again"]),
    ],
)
def test_a_search_turns_back_between_two_children_and_says_why(
    strategy: SearchFunction, depth: int, script: list[Said | str], reasons: list[str]
) -> None:
    rules = SearchRules(depth=depth, retry_root=True)
    if strategy is dfs and script[0] == "the model failed":
        script, reasons = script[::-1], ["too deep"]  # what failed is entered last
    assert _turns(strategy(SearchState(), rules), *script)[2] == reasons


def test_a_search_turns_back_from_each_level() -> None:
    turned = _turns(dfsdt(SearchState(), SearchRules(depth=6)), *[CALL] * 6)
    assert turned[1:3] == (6, ["too deep", "nothing better below", "too deep"])


def test_chains_go_on_unless_one_that_repeats_another_is_to_end_them() -> None:
    again = [CALL, QUIT, CALL, QUIT, CALL, QUIT]
    assert _turns(react(SearchState(), SearchRules(), chains=3), *again)[1] == 6
    chains = react(SearchState(), SearchRules(), chains=3, until_repeated=True)
    assert _turns(chains, *again)[1] == 4
    findings = SearchState()
    chains = react(findings, SearchRules(), chains=3, until_repeated=True)
    assert _turns(chains, QUIT, CALL, QUIT, DONE)[1:3] == (4, ["a new chain"] * 2)
    assert len(findings.answers) == 1


def test_a_search_that_goes_on_below_another_counts_its_visits_on() -> None:
    findings = SearchState()
    _turns(react(findings, SearchRules()), CALL, CALL, QUIT)
    before = _orders(findings)
    start = findings.tree.root.children[0].children[0].children[0]
    further = SearchState(findings.tree, start=start)
    _turns(react(further, SearchRules()), CALL, CALL, DONE)
    after = _orders(further)
    assert before.items() <= after.items()
    new = [order for node, order in after.items() if node not in before]
    assert sorted(new) == list(range(max(before.values()) + 1, max(before.values()) + 4))


def _orders(findings: SearchState) -> dict[int, int]:
    """Return the visit numbers of the nodes that were entered."""
    return {node.id: node.order for node in findings.tree.walk() if node.order}


def test_subtasks_are_searched_in_turn_and_the_task_below_them() -> None:
    findings = SearchState()
    search = decomposed(findings, SearchRules(answers=1), dfsdt, dfsdt)
    value, calls, _, begun = _turns(search, CALL, TEXT, CALL, CALL, TEXT, DONE)
    assert (value, calls, findings.replies) == (10_000, 6, 7)
    assert begun == [(0, True), (1, True), (None, True)]
    (end,) = findings.answers
    assert [one.move for one in end.calls()] == [CALL, CALL, CALL, DONE]


def test_a_subtask_tries_another_way_before_it_ends_and_ends_with_its_first_answer() -> None:
    findings = SearchState()
    search = decomposed(findings, SearchRules(answers=2), dfsdt, react)
    script: list[Said | str] = ["the model failed", CALL, TEXT, CALL, TEXT, DONE]
    _, calls, reasons, begun = _turns(search, *script)
    assert (calls, reasons) == (6, ["the model failed"])
    assert begun == [(0, True), (1, True), (None, True)]
    (end,) = findings.answers
    assert [one.move for one in end.calls()] == [CALL, CALL, DONE]


def test_a_subtask_without_a_result_is_told_and_the_best_calls_of_another_stay() -> None:
    findings = SearchState()
    search = decomposed(findings, SearchRules(width=1, depth=30, answers=2), react, react)
    script: list[Said | str] = ["the model failed", CALL, UNKNOWN, "the model failed", DONE]
    _, calls, _, begun = _turns(search, *script)
    assert calls == 5
    assert begun == [(0, True), (1, False), (None, True)]
    (end,) = findings.answers
    assert [one.move for one in end.calls()] == [CALL, DONE]


@pytest.mark.parametrize(("most", "begun"), [(1, []), (2, [0]), (3, [0]), (4, [0, 1])])
def test_subtasks_share_one_number_of_replies(most: int, begun: list[int]) -> None:
    findings = SearchState()
    search = decomposed(findings, SearchRules(max_replies=most), dfsdt, dfsdt)
    value, calls, _, parts = _turns(search, CALL, TEXT, CALL, TEXT, CALL)
    assert value > 90_000
    assert (calls, findings.replies) == (most - 1, most)
    assert [part for part, _ in parts] == begun


@dataclass(frozen=True)
class Numbered:
    id: int
    parent: int


def test_a_finished_tree_is_read_from_its_root_down_with_siblings_as_they_came() -> None:
    nodes = [Numbered(2, 0), Numbered(0, -1), Numbered(1, 0), Numbered(3, 2), Numbered(4, 2)]
    assert [one.id for one in pre_order(nodes)] == [0, 2, 3, 4, 1]
    assert list(pre_order(())) == []


def _send(search: Generator[Effect, EffectResult, int], *answers: Any) -> None:
    """Send answers to a search, whatever it asked."""
    next(search)
    for one in answers:
        search.send(one)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([None], "Think needs a move"),
        ([True], "Think needs a move"),
        ([CALL, None], "Act needs an observation"),
        ([CALL, "text"], "Act needs an observation"),
    ],
)
def test_a_wrong_answer_to_a_search_is_an_error_of_its_driver(
    answers: list[Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        _send(dfsdt(SearchState(), SearchRules()), *answers)
    with pytest.raises(TypeError, match="Decompose needs moves"):
        _send(decomposed(SearchState(), SearchRules(), dfsdt, dfsdt), "text")
    with pytest.raises(TypeError, match="Compare needs a bool"):
        _send(dfs(SearchState(), SearchRules()), TEXT, TEXT, "text")


def test_what_was_tried_below_a_node_is_the_first_call_of_each_reply() -> None:
    tree = Tree()
    first = tree.add(tree.root, CALL)
    thought = tree.add(tree.root, TEXT)
    below = tree.add(thought, BARE)
    tree.add(thought, CALL)
    tree.add(below, CALL)
    tree.fail(tree.root, "the model failed")
    assert tree.root.tried() == [first, below]
    assert first.tried() == []
    assert len(tree) == len(list(tree.walk())) == 14
    assert [one.id for one in below.path()] == [0, 4, 5, 6]
    assert below.calls() == [below]
