"""Answer files against the reference's (vectors: answer_file_example, cot_answer_file_example)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.errors import DataError
from toolsrv_runtime.agent.state import Ledger, finish_result
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.outcome import Limits, Outcome, TreeNode, Usage
from toolsrv_runtime.search.dfsdt import (
    Act,
    Backtrack,
    Observation,
    SearchRules,
    Think,
    dfsdt,
    react,
)
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.toolbench.answer_files import (
    Answer,
    AnswerNode,
    CotAnswer,
    DfsAnswer,
    parse_answer,
    read_answer,
    tree_of,
)
from toolsrv_runtime.toolbench.answer_writer import answer_of, method_of, write_answer
from toolsrv_runtime.toolbench.prompts import (
    OUR_SENTENCES,
    PromptSentences,
    previous_candidates,
    toolllama_system,
)

GROUPS = json.loads((Path(__file__).parent / "data" / "answer_vectors.json").read_text())["groups"]
DFS_FILE = GROUPS["answer_file_example"]["cases"][0]["answer_file"]
COT_FILE = GROUPS["cot_answer_file_example"]["cases"][0]["answer_file"]
STUBS = PromptSentences(
    base="SYS with a function call to actually excute your step. ",
    head="TD\n",
    before="DIV ",
    after="END",
)
FUNCTIONS = [{"name": "f_for_t"}, {"name": "g_for_t"}, {"name": "Finish"}]
FINISH = json.dumps({"return_type": "give_answer", "final_answer": "42"})
GIVE_UP = json.dumps({"return_type": "give_up_and_restart"})

Reply = Action | str


def observe(ledger: Ledger, node_id: int, move: Action) -> Observation:
    """Carry out a scripted call: a known function says "ok"."""
    if move.function == "Finish":
        return finish_result(move.arguments)
    if move.function == "nope":
        return Observation(Code.UNKNOWN_FUNCTION, "there is no such function")
    status = 500 if move.function == "broken" else 200
    try:
        arguments = json.loads(move.arguments)
    except ValueError:
        arguments = {"arguments": move.arguments}
    ledger.results[node_id] = CallResult(
        api_id=f"C/t/{move.function}",
        arguments=arguments,
        url="",
        status=status,
        response="ok" if status == 200 else {"reason": "é" * 900},
        error="" if status == 200 else "it broke",
        source="offline",
        seconds=0.0,
    )
    return Observation(Code.OK if status == 200 else Code.ERROR, "a short form for our model")


def solve(
    replies: Sequence[Reply],
    rules: SearchRules | None = None,
    *,
    chains: int = 0,
    last: Reply | None = None,
    usage: Usage | None = None,
) -> Outcome:
    """Run a real search on scripted replies and return its outcome."""
    ledger, rules = Ledger(), rules or SearchRules()
    found = ledger.findings
    search = react(found, rules, chains=chains) if chains else dfsdt(found, rules)
    script: Iterator[Reply | None] = iter([*replies])
    answer: Any = None
    while True:
        try:
            wish = search.send(answer)
        except StopIteration:
            break
        match wish:
            case Think():
                answer = next(script, last)
                if answer is None:
                    search.close()
                    break
            case Act(node):
                assert isinstance(node.move, Action)
                answer = observe(ledger, node.id, node.move)
                ledger.steps[node.id] = Step(node.move, answer.text, answer.code == Code.OK)
            case Backtrack():
                answer = None
    return Outcome(
        task="Q",
        status="answered" if found.answers else "gave_up",
        answer="",
        reason="",
        evidence=tuple(ledger.evidence({node.id for node in found.answers})),
        candidates=("C/t/f_for_t", "C/t/g_for_t"),
        tree=tuple(ledger.nodes()),
        usage=usage or Usage(model_calls=found.replies),
        limits=Limits(),
        strategy="react" if chains else "dfsdt",
        width=rules.width,
        depth=rules.depth,
        model="scripted",
        format="none",
        seed=0,
        versions={},
    )


DFS_SCRIPT = [
    Action("think", "f_for_t", "{}"),
    Action(None, "Finish", GIVE_UP),
    Action("other", "g_for_t", '{"k": 1}'),
    Action("only thinking", "", ""),
    Action(None, "Finish", FINISH),
]
COT_SCRIPT = [Action("t", "f_for_t", "{}"), Action("t", "Finish", FINISH)]


def written(outcome: Outcome) -> Answer:
    return answer_of(outcome, FUNCTIONS, words=STUBS)


def nodes_of(answer: DfsAnswer) -> Iterator[AnswerNode]:
    stack = [answer.tree.tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children or ())


# Writing


def test_a_tree_search_is_written_as_the_reference_writes_it() -> None:
    usage = Usage(model_calls=5, prompt_tokens=40, generated_tokens=10)
    assert written(solve(DFS_SCRIPT, usage=usage)).document() == DFS_FILE


def test_a_chain_is_written_as_the_reference_writes_it() -> None:
    usage = Usage(model_calls=2, prompt_tokens=15, generated_tokens=5)
    assert written(solve(COT_SCRIPT, chains=1, usage=usage)).document() == COT_FILE


def test_a_failed_reply_is_a_pruned_thought_and_the_file_holds_no_conversation() -> None:
    (case,) = GROUPS["invalid_data_conversion"]["cases"]
    document = written(solve(["boom"])).document()
    assert document["tree"] == case["tree"]
    generation = document["answer_generation"]
    assert (generation["valid_data"], generation["final_answer"]) == (False, "")
    assert generation["finish_type"] == "give_answer"
    assert "train_messages" not in generation


def test_a_chain_without_an_answer_has_an_empty_list_of_conversations() -> None:
    answer = written(solve([Action("t", "Finish", GIVE_UP)] * 2, chains=2))
    assert isinstance(answer, CotAnswer)
    assert (answer.try_count, answer.win, len(answer.trys)) == (2, False, 2)
    assert answer.document()["answer_generation"]["train_messages"] == []


def test_a_give_up_is_valid_data_and_told_as_one() -> None:
    answer = written(solve([Action("t", "f_for_t", "{}")], last=Action("n", "Finish", GIVE_UP)))
    generation = answer.answer_generation
    assert (answer.win, generation.valid_data, generation.finish_type) == (False, True, "give_up")
    assert generation.final_answer == GIVE_UP
    assert answer.compare_candidates == ()
    assert generation.train_messages is not None
    assert [m.role for m in generation.train_messages[-1]][2:] == [
        "assistant",
        "function",
        "assistant",
    ]


@pytest.mark.parametrize("chains", [0, 1])
def test_a_partial_answer_is_no_win_and_stands_apart(chains: int) -> None:
    part = solve(COT_SCRIPT, chains=chains).model_copy(
        update={"status": "partial", "answer": "42", "reason": "no time", "missing": ("the rest",)}
    )
    document = written(part).document()
    generation = document["answer_generation"]
    assert (document["win"], generation["valid_data"]) == (False, False)
    assert (generation["final_answer"], document["compare_candidates"]) == ("", [])
    assert not generation.get("train_messages")
    ended = {"status": "partial", "answer": "42", "reason": "no time", "missing": ["the rest"]}
    assert document["toolsrv"] == ended
    assert written(part) == parse_answer(json.loads(json.dumps(document)), "here")
    assert [one.kind for one in tree_of(written(part))] == ["root", "call", "answer"]

    faithful = answer_of(part, FUNCTIONS, words=STUBS, faithful=True).document()
    assert faithful.pop("toolsrv") == ended
    whole = part.model_copy(update={"status": "answered"})
    assert faithful == written(whole).document()


def test_a_give_up_on_the_way_to_a_partial_answer_is_no_valid_data() -> None:
    part = solve(DFS_SCRIPT[:2]).model_copy(update={"status": "partial"})
    generation = written(part).answer_generation
    assert (generation.valid_data, generation.finish_type) == (False, "give_answer")


def test_an_unknown_function_keeps_its_name_in_the_tree_only() -> None:
    answer = written(solve([Action("t", "nope", "{}"), Action("t", "Finish", FINISH)]))
    assert isinstance(answer, DfsAnswer)
    assert "nope" in {node.description for node in nodes_of(answer)}
    messages = (answer.answer_generation.train_messages or ())[-1]
    called = [one.calls[0].name for one in messages if one.calls]
    assert called == ["invalid_hallucination_function_name", "Finish"]
    assert json.loads(messages[3].content or "")["error"] == "No such function name: nope"


def test_an_observation_is_what_the_api_said_in_the_reference_s_limits() -> None:
    answer = written(solve([Action("t", "broken", "{}"), Action("t", "Finish", FINISH)]))
    assert isinstance(answer, DfsAnswer)
    (seen,) = [n.observation for n in nodes_of(answer) if n.observation_code == Code.ERROR]
    assert seen.startswith('{"error": "it broke", "response": "{\'reason\': \'\\u00e9')
    assert len(seen) == 1024 + 3
    assert seen.endswith("...")


def test_a_repeated_call_that_the_evidence_tells_once_keeps_its_observation() -> None:
    call = Action("t", "f_for_t", "{}")
    answer = written(solve([call, call, Action("t", "Finish", GIVE_UP)]))
    assert isinstance(answer, DfsAnswer)
    seen = [n.observation for n in nodes_of(answer) if n.observation_code == Code.OK]
    assert seen == ['{"error": "", "response": "ok"}'] * 2


def test_the_diversity_message_tells_the_node_s_own_observation_too() -> None:
    call, other = Action("t", "f_for_t", "{}"), Action("t", "g_for_t", "{}")
    replies = [call, other, Action("t", "Finish", FINISH)]
    answer = written(solve(replies, SearchRules(depth=6)))
    messages = (answer.answer_generation.train_messages or ())[-1]
    (diversity,) = [one.content or "" for one in messages if not one.valid]
    assert 'again, your former observation: {"error": "", "response": "ok"}\nEND' in diversity


@pytest.mark.parametrize("case", GROUPS["diversity_message"]["cases"])
def test_the_list_of_what_was_tried_is_the_reference_s(case: dict[str, Any]) -> None:
    tried = [(c["name"], c["arguments"], c["observation"]) for c in case["children"]]
    assert previous_candidates(tried, case["node_observation"]) == case["text"]


@pytest.mark.parametrize("case", GROUPS["system_message_for_toolllama"]["cases"])
def test_toolllama_s_system_message_is_the_reference_s(case: dict[str, Any]) -> None:
    if "raises" in case:
        with pytest.raises(DataError, match="excute"):
            toolllama_system(case["system"], case["functions"])
    else:
        assert toolllama_system(case["system"], case["functions"]) == case["out"]


def test_our_own_words_serve_toolllama_s_conversion() -> None:
    system = toolllama_system(OUR_SENTENCES.system("1.t: a tool\n"), [])
    assert system.count("Action Input:") == 1
    assert "1.t: a tool\n" in system


def test_the_method_is_named_as_in_the_reference_s_file_names() -> None:
    assert method_of(solve(DFS_SCRIPT)) == "DFS_woFilter_w2"
    assert method_of(solve(DFS_SCRIPT, SearchRules(width=3))) == "DFS_woFilter_w3"
    assert method_of(solve(COT_SCRIPT, chains=1)) == "CoT@1"


# Both ways


def told(outcome: Outcome) -> list[TreeNode]:
    """Return the tree without what an answer file does not hold."""
    chain = outcome.strategy == "react"
    return [
        node.model_copy(
            update={
                "api_id": "",
                "status": 0,
                "observation": "",
                "order": 0 if chain else node.order,
            }
        )
        for node in outcome.tree
    ]


def read_back(answer: Answer) -> list[TreeNode]:
    return [node.model_copy(update={"observation": ""}) for node in tree_of(answer)]


THOUGHTS = st.none() | st.text(max_size=20)
MOVES = st.one_of(
    st.builds(
        Action,
        THOUGHTS,
        st.sampled_from(["f_for_t", "g_for_t", "broken", "nope"]),
        st.dictionaries(st.text(max_size=5), st.integers(), max_size=2).map(json.dumps),
    ),
    st.builds(Action, THOUGHTS, st.just("Finish"), st.sampled_from([FINISH, GIVE_UP, "{}"])),
    st.builds(Action, st.text(min_size=1, max_size=20), st.just(""), st.just("")),
    st.text(min_size=1, max_size=20),
)


@given(st.lists(MOVES, max_size=25), st.integers(1, 3), st.integers(2, 12))
def test_what_was_written_is_read_back_with_the_same_tree(
    tmp_path_factory: pytest.TempPathFactory, replies: list[Reply], width: int, depth: int
) -> None:
    outcome = solve(replies, SearchRules(width=width, depth=depth, max_replies=40))
    answer = written(outcome)
    assert isinstance(answer, DfsAnswer)
    path = tmp_path_factory.getbasetemp() / "1_DFS.json"
    write_answer(path, answer)
    again = read_answer(path)
    assert again == answer
    assert read_back(again) == told(outcome)


@given(
    st.lists(
        st.builds(Action, THOUGHTS, st.sampled_from(["f_for_t", "broken"]), st.just('{"a": 1}')),
        max_size=8,
    ),
    st.sampled_from([FINISH, GIVE_UP]),
)
def test_a_chain_that_was_written_is_read_back_the_same(
    replies: list[Reply], arguments: str
) -> None:
    outcome = solve([*replies, Action("t", "Finish", arguments)], SearchRules(depth=12), chains=1)
    document = json.loads(json.dumps(written(outcome).document()))
    assert read_back(parse_answer(document, "here")) == told(outcome)
