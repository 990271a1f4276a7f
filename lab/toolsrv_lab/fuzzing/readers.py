"""Targets about what is read back: answer files, evidence, replies in ToolLLaMA's form."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from toolsrv_catalogs.text import clean
from toolsrv_lab.fuzzing.strategies import TEXTS, Target, hold, json_values
from toolsrv_registry.errors import DataError
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.toolbench import toolllama
from toolsrv_runtime.toolbench.answer_files import parse_answer, tree_of

_KINDS = st.sampled_from(["Thought", "Action", "Action Input"])


def _check_answer(case: Any) -> None:
    try:
        answer = parse_answer(case, "here")
    except DataError as error:
        hold("here" in error.message, "an error names the file", error.message)
        return
    tree = tree_of(answer)
    seen: dict[int, int] = {}
    for node in tree:
        hold(node.id not in seen, "ids of nodes are unique", node.id)
        above = seen.get(node.parent, -1)
        hold(node.kind == "root" or node.parent in seen, "a parent comes first", node)
        hold(node.depth == above + 1, "a node is one deeper than its parent", node)
        seen[node.id] = node.depth
    again = parse_answer(json.loads(json.dumps(answer.document())), "here")
    hold(again == answer, "an answer file is written as it was read", case)


def _check_evidence(case: Any) -> None:
    answer, results = case["answer"], list(enumerate(case["results"], start=1))
    traced = trace(answer, case["task"], results)
    for claim in (*traced.supported, *traced.unsupported):
        said = answer[claim.start : claim.start + len(claim.text)]
        hold(said == claim.text, "a claim is a piece of the answer", claim, said)
    nodes = {node for node, _ in results}
    for claim in traced.supported:
        hold(set(claim.nodes) <= nodes, "evidence is a result", claim)
        hold(claim.nodes or claim.in_task, "what is supported has a source", claim)
    places = [(one.start, one.text) for one in traced.supported]
    twice = [one for one in traced.unsupported if (one.start, one.text) in places]
    hold(not twice, "a claim is supported or not", twice)
    plain = " ".join(clean(answer, len(answer)).split())
    whole = trace(plain, plain, [])
    hold(not whole.unsupported, "what the task says is supported", whole.unsupported)


def _check_reply(case: Any) -> None:
    text = case["text"]
    toolllama.parse_sliced(text)
    found = toolllama.parse_reply(text)
    if found is not None:
        hold(found.action == found.action.strip() and found.action, "an action is named", found)
        plain = text.replace("\r\n", "\n")
        hold(found.action_input in plain, "the input is a piece of the reply", found)
    spoken = toolllama.ReactReply(case["thought"], case["action"], json.dumps(case["input"]))
    written = f"Thought: {spoken[0]}\nAction: {spoken[1]}\nAction Input: {spoken[2]}"
    hold(toolllama.parse_sliced(written) == spoken, "a reply is sliced as written", written)
    hold(
        toolllama.parse_reply(written + case["behind"]) == spoken, "it is read as written", written
    )


def _nodes() -> st.SearchStrategy[Any]:
    def node(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {"node_type": _KINDS, "children": children},
            optional={
                "description": TEXTS | json_values(leaves=3),
                "observation": TEXTS | json_values(leaves=2),
                "observation_code": st.integers(-1, 14),
                "expand_num": st.integers(-1, 5),
                "pruned": st.booleans(),
                "depth": st.integers(),
            },
        )

    leaf = node(st.just([]))
    return st.recursive(leaf, lambda inner: node(st.lists(inner, max_size=3)), max_leaves=8)


_GENERATION = st.fixed_dictionaries(
    {"valid_data": st.booleans(), "query": TEXTS | st.lists(TEXTS, max_size=2)},
    optional={
        "final_answer": TEXTS | json_values(leaves=2),
        "function": json_values(st.just("name"), leaves=4),
        "train_messages": json_values(st.sampled_from(["role", "content"]), leaves=4),
    },
)
_TREES = st.fixed_dictionaries(
    {"size": st.integers(), "max_length": st.integers(), "tree": _nodes()}
)
_TRIES = st.lists(st.fixed_dictionaries({"chain": st.lists(_nodes(), max_size=4)}), max_size=3)
_ANSWERS = (
    st.fixed_dictionaries({"answer_generation": _GENERATION, "tree": _TREES})
    | st.fixed_dictionaries({"answer_generation": _GENERATION, "trys": _TRIES})
    | st.dictionaries(
        st.sampled_from(["answer_generation", "tree", "trys", "win"]), json_values(leaves=4)
    )
)
_SAYINGS = (
    "Lima New York at May March 3 2026 1,234.5 1.234,5 5 200 2026-05-03 10:30 10 pm am twenty three "
    "hundred and 12GB H2O a@b.org http://x.org/1 +49 30 901820 9:5 ½ Ångström million % 5% -4 −4 "
    "(7) [8], 9; U.S.A. 1e5 O'Brien José's 978-3-16 #ff00aa one the First"
)
_SAID = st.lists(
    st.sampled_from(_SAYINGS.split()) | st.integers().map(str) | st.dates().map(str) | TEXTS,
    max_size=8,
).map(" ".join)
_LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12).map(
    str.strip
)

TARGETS = (
    Target("answers", "answer files of ToolBench", _ANSWERS, _check_answer),
    Target(
        "evidence",
        "tracing an answer to its sources",
        st.fixed_dictionaries(
            {
                "answer": _SAID,
                "task": _SAID,
                "results": st.lists(_SAID | json_values(leaves=5), max_size=3),
            }
        ),
        _check_evidence,
    ),
    Target(
        "react",
        "replies in ToolLLaMA's form",
        st.fixed_dictionaries(
            {
                "text": st.lists(
                    st.sampled_from(
                        ["Thought:", "Action:", "Action Input:", "\n", "\r\n", " ", "{", "}", '"a"',
                         ":", "action", "ACTION :"]
                    )
                    | TEXTS
                ).map("".join),
                "thought": _LINE.filter(lambda one: ":" not in one),
                "action": _LINE.filter(bool),
                "input": st.dictionaries(TEXTS, json_values(leaves=3), max_size=3),
                "behind": st.sampled_from(["", "\n", "\nObservation: made up", " more"]),
            }
        ),
        _check_reply,
    ),
)  # fmt: skip
