"""ToolLLaMA's parts against the reference's vectors: layout, replies, environment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, History, Step, StepResult, UsageMeter
from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import TaskTooLongError
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.toolbench import environment, toolllama
from toolsrv_runtime.toolbench.environment import ListedApi
from toolsrv_runtime.toolbench.prompts import previous_candidates, toolllama_system
from toolsrv_runtime.toolbench.reference import (
    REFERENCE,
    AssistantTurns,
    ReferenceMode,
    parse_reference_mode,
)
from toolsrv_runtime.toolbench.toolllama import RESERVE, Documents, ToolllamaFormat

GROUPS = json.loads((Path(__file__).parent / "data" / "toolllama_vectors.json").read_text())[
    "groups"
]
PROFILE = Profile(name="toolllama", format="toolllama", context=8192, temperature=0.5)
CAPITAL = "Data/country_facts/capital_city"
CURRENCY = "Data/country_facts/national_currency"


def cases(group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = GROUPS[group]["cases"]
    return found


# ---------------------------------------------------------------- the prompt
class Bare(ToolllamaFormat):
    """The format with a vector's own texts where ours would stand."""

    system_text = ""
    diversity_text = ""

    def _system(
        self,
        view: History,  # noqa: ARG002 - the vector says it
        documents: Documents | None = None,  # noqa: ARG002
    ) -> str:
        return self.system_text

    def _diversity(self, view: History) -> Iterator[Piece]:  # noqa: ARG002 - likewise
        if self.diversity_text:
            yield Piece(f"User: {self.diversity_text}\n")


def ask(turns: AssistantTurns, messages: Sequence[Mapping[str, Any]], system: str) -> str:
    """Return the prompt that reaches an engine after a conversation was lived through."""
    replies = [one["content"] for one in messages if one["role"] == "assistant"]
    observations = [one["content"] for one in messages if one["role"] == "function"]
    engine = ScriptedEngine([*map(spoken, replies), spoken("t")])
    form = Bare(
        engine, PROFILE, fidelity=ReferenceMode(assistant_turns=turns, literal_replies=True)
    )
    form.system_text = system
    query = messages[1]["content"].strip().removesuffix("\nBegin!")
    view = History(query, ())
    for observation in observations:
        move = form.propose(view, max_tokens=99, stop=Stop(), meter=UsageMeter())
        assert isinstance(move, Action)
        view = replace(view, path=(*view.path, Step(move, observation, ok=True)))
    form.diversity_text = next((one["content"] for one in messages if "valid" in one), "")
    form.propose(view, max_tokens=99, stop=Stop(), meter=UsageMeter())
    return engine.prompts[-1]


def spoken(text: str) -> str:
    return text if "Thought: " in text else f"Thought: {text}\nAction: f\nAction Input: {{}}"


@pytest.mark.parametrize("case", [c for c in cases("toolllama_prompt") if "messages" in c])
def test_the_prompt_that_reaches_the_engine_is_the_reference_s(case: dict[str, Any]) -> None:
    system = toolllama_system(case["messages"][0]["content"], case["functions"])
    thought_only = case["messages"][2]["content"] == "t1"
    said = ask("thought" if thought_only else "reply", case["messages"], system)
    assert said == case["prompt"]


def test_the_default_prompt_is_the_training_text_up_to_the_reply() -> None:
    (case,) = [c for c in cases("toolllama_prompt") if "turns" in c]
    turns = [(role, text) for role, text in case["turns"]]
    user, said, shown, last = (text for _, text in turns[1:])
    form = Bare(ScriptedEngine([said.lstrip()]), PROFILE)
    form.system_text = turns[0][1]
    view = History("", ())
    move = form.propose(view, max_tokens=99, stop=Stop(), meter=UsageMeter())
    assert isinstance(move, Action)
    asked = form.prompt(replace(view, path=(Step(move, shown, ok=True),)))
    text = "".join(piece.text for piece in asked).replace("User: \n\nBegin!\n", f"User: {user}")
    assert f"{text}{last.lstrip()}</s>" == case["prompt"]


@pytest.mark.parametrize("case", cases("system_message_for_toolllama"))
def test_the_system_message_is_the_reference_s(case: dict[str, Any]) -> None:
    if "raises" in case:
        with pytest.raises(DataError):
            toolllama_system(case["system"], case["functions"])
    else:
        assert toolllama_system(case["system"], case["functions"]) == case["out"]


@pytest.mark.parametrize("case", cases("diversity_message"))
def test_what_was_tried_is_listed_as_in_the_reference(case: dict[str, Any]) -> None:
    tried = [(c["name"], c["arguments"], c["observation"]) for c in case["children"]]
    assert previous_candidates(tried, case["node_observation"]) == case["text"]


# ---------------------------------------------------------------- replies
@pytest.mark.parametrize("case", cases("react_parser"))
def test_a_reply_is_sliced_as_in_the_reference(case: dict[str, Any]) -> None:
    expected = (case["thought"], case["action"], case["action_input"])
    assert tuple(toolllama.parse_sliced(case["in"])) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thought: a\nAction: f\nAction Input: {}\nObservation: made up", ("a", "f", "{}")),
        (
            "Thought: use Action: x now\nAction: f\nAction Input: {}",
            ("use Action: x now", "f", "{}"),
        ),
        ("thought: a\r\naction:f\r\naction input:{}", ("a", "f", "{}")),
        ("Action: f\nAction Input: {}", ("", "f", "{}")),
        ('Thought: a\nAction Input: {"q": 1}\nAction: f', ("a", "f", '{"q": 1}')),
        ("Thought: a\nAction: f", ("a", "f", "")),
        ("Thought: I am done", None),
        ("", None),
    ],
)
def test_by_default_the_nearest_sense_is_made_of_a_reply(
    text: str, expected: tuple[str, str, str] | None
) -> None:
    assert toolllama.parse_reply(text) == expected


WORDS = st.text(st.characters(exclude_characters=":\n\r", exclude_categories=["Cs"]), min_size=1)


@given(WORDS.map(str.strip), WORDS.map(str.strip).filter(bool), st.dictionaries(WORDS, WORDS))
def test_both_readings_agree_on_a_well_formed_reply(
    thought: str, action: str, arguments: dict[str, str]
) -> None:
    text = f"Thought: {thought}\nAction: {action}\nAction Input: {json.dumps(arguments)}"
    if not {"\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"} & set(text):
        assert toolllama.parse_reply(text) == toolllama.parse_sliced(text)


@given(st.text())
def test_no_text_breaks_the_reading_of_replies(text: str) -> None:
    toolllama.parse_sliced(text)
    toolllama.parse_reply(text)


# ---------------------------------------------------------------- the environment
def entries(names: Sequence[str]) -> list[ListedApi]:
    return [ListedApi(name, "C", f"t{at}", name) for at, name in enumerate(names)]


def step(case: Mapping[str, Any]) -> StepResult | ListedApi:
    """Return what an action of a vector comes to: its end, or what is called."""
    if case["action"] == "Finish":
        return environment.finish_result(case["action_input"])
    target = environment.match_action(entries(case["functions"]), case["action"])
    return environment.unknown_function(case["action"]) if target is None else target


@pytest.mark.parametrize("case", cases("env_step"), ids=lambda case: f"{case['note'][:40]}")
def test_an_action_comes_to_what_it_does_in_the_reference(case: dict[str, Any]) -> None:
    came = step(case)
    if "raises" in case:  # a crash there: an unknown function or bad arguments here
        assert isinstance(came, StepResult)
        assert came.code in (Code.UNKNOWN_FUNCTION, Code.BAD_FINISH)
    elif isinstance(came, StepResult):
        assert (came.text, came.code) == (case["observation"], case["code"])
    else:
        assert came.name.startswith(case["dispatched_api"])
        reply = case["service_reply"]
        assert environment.truncate_observation(**reply) == case["observation"]
        assert environment.observation_code(reply["error"]) == case["code"]


def test_a_cut_off_finish_in_the_exact_spelling_is_rescued() -> None:
    cut = '{"return_type": "give_answer", "final_answer": "it is 4'
    assert environment.finish_result(cut) == StepResult(
        Code.ANSWER, environment.ANSWERED_TEXT, "it is 4"
    )
    assert environment.finish_result('{"return_type": "give_up_and_restart"').code == Code.GIVE_UP
    assert (
        environment.finish_result('{"return_type": "give_answer", "final_answer": 4}').answer == "4"
    )


@pytest.mark.parametrize("case", cases("observation_length"))
def test_observations_are_cut_where_the_reference_cuts_them(case: dict[str, Any]) -> None:
    if "raw_length" in case:
        text = environment.truncate("x" * case["raw_length"], case["limit"])
        assert len(text) == case["out_length"]
    else:
        text = environment.truncate_observation("", "x" * case["api_response_chars"])
        assert len(text) == case["observation_length"]
    assert text.endswith("...") == case["ends_with_dots"]


def test_of_two_functions_with_one_name_the_reference_mixes_both() -> None:
    (case,) = cases("duplicate_function_dispatch")
    first, second = (
        ListedApi(name, category, tool, api)
        for name, category, tool, api in zip(
            case["functions"],
            ("CatFirst", "CatSecond"),
            ("tool_first", "tool_second"),
            ("api_of_first", "api_of_second"),
            strict=True,
        )
    )
    sent = environment.match_action([first, second], case["functions"][0])
    assert sent is not None
    assert {"category": sent.category, "tool_name": sent.tool, "api_name": sent.api} == {
        key: case["sent"][key] for key in ("category", "tool_name", "api_name")
    }


# ---------------------------------------------------------------- the two modes
def offered(apis: dict[str, Api]) -> History:
    return History("the capital of Peru", tuple(FunctionList([apis[CAPITAL], apis[CURRENCY]])))


def reply(text: str, view: History, fidelity: ReferenceMode | None = None) -> Action | str:
    form = ToolllamaFormat(ScriptedEngine([text]), PROFILE, fidelity=fidelity)
    return form.propose(view, max_tokens=99, stop=Stop(), meter=UsageMeter())


def test_a_suffix_calls_a_function_in_faithful_mode_only(apis: dict[str, Api]) -> None:
    text = "Thought: a\nAction: _for_country_facts\nAction Input: {}"
    view = offered(apis)
    faithful, sane = reply(text, view, REFERENCE), reply(text, view)
    assert isinstance(faithful, Action)
    assert isinstance(sane, Action)
    assert (faithful.function, faithful.target) == ("_for_country_facts", view.functions[0].name)
    assert (sane.function, sane.target) == ("_for_country_facts", "")


def test_what_is_no_call_has_its_verdict_in_faithful_mode(apis: dict[str, Api]) -> None:
    view = offered(apis)
    unknown = reply("Thought: a\nAction: nope\nAction Input: {}", view, REFERENCE)
    broken = reply(
        f"Thought: a\nAction: {view.functions[0].name}\nAction Input: {{", view, REFERENCE
    )
    assert isinstance(unknown, Action)
    assert isinstance(broken, Action)
    assert unknown.verdict == StepResult(
        Code.UNKNOWN_FUNCTION, '{"error": "No such function name: nope", "response": ""}'
    )
    assert broken.verdict == StepResult(
        Code.OK, '{"error": "Tool input parse error...\\n", "response": ""}'
    )


def test_observations_are_json_by_default_and_python_s_text_in_faithful_mode() -> None:
    engine = ScriptedEngine([])
    sane = ToolllamaFormat(engine, PROFILE)
    faithful = ToolllamaFormat(engine, PROFILE, fidelity=REFERENCE)
    response = {"name": "São", "ok": None}
    assert sane.observation(response, "") == (
        '{"error": "", "response": {"name": "São", "ok": null}}'
    )
    assert json.loads(faithful.observation(response, "")) == {
        "error": "", "response": "{'name': 'São', 'ok': None}",
    }  # fmt: skip
    assert faithful.observation(response, "").isascii()
    long = {"name": "São", "debug": "word " * 5_000}
    assert sane.observation(long, "", {"name": "str"}) == (
        '{"error": "", "response": {"name": "São"}}'
    )
    assert len(faithful.observation(long, "", {"name": "str"})) == 1_024 + 3
    assert (sane.name, faithful.name) == (
        "toolllama, own wording", "toolllama, faithful, own wording",
    )  # fmt: skip


def test_the_function_list_is_the_literal_one(apis: dict[str, Api]) -> None:
    (first, *_) = ToolllamaFormat(ScriptedEngine([]), PROFILE).prompt(offered(apis))
    assert "{'name': 'capital_city_for_country_facts', 'description': 'This is the" in first.text
    assert f"{'Thought:'}\nAction\nAction Input:\n" in first.text


def test_the_search_is_the_reference_s_in_faithful_mode() -> None:
    said = REFERENCE.search(SolveOptions(depth=24))
    assert (said.depth, said.retry_root) == (12, False)
    assert not said.search_again
    assert not said.look_wider
    assert not said.close_search
    assert not said.close_repeats
    assert ReferenceMode().search(SolveOptions()) == SolveOptions()


def test_each_difference_is_given_up_singly() -> None:
    assert parse_reference_mode("") == ReferenceMode()
    assert parse_reference_mode(" , ".join(ReferenceMode.model_fields)) == REFERENCE
    for name in ReferenceMode.model_fields:
        single = parse_reference_mode(name)
        assert single == ReferenceMode(**{name: getattr(REFERENCE, name)}) != ReferenceMode()
        assert ToolllamaFormat(ScriptedEngine([]), PROFILE, fidelity=single).name == (
            f"toolllama, faithful in {name}, own wording"
        )
    some = parse_reference_mode("match_suffix, assistant_turns=reply, depth = 15")
    assert some == ReferenceMode(match_suffix=True, assistant_turns="reply", depth=15)
    assert some.label == "faithful in assistant_turns and match_suffix and depth"


@pytest.mark.parametrize(
    ("text", "told"),
    [("deep", "named 'deep'"), ("depth=x", "depth=x"), ("depth=0", "depth=0"),
     ("assistant_turns=all", "assistant_turns=all"), ("=", "named ''")],
)  # fmt: skip
def test_what_is_no_difference_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)) as refused:
        parse_reference_mode(text)
    assert refused.value.hint


def test_every_difference_is_named_with_its_reason_and_told_in_the_readme() -> None:
    readme = (Path(__file__).parents[2] / "runtime" / "README.md").read_text("utf-8")
    for name, field in ReferenceMode.model_fields.items():
        assert field.description
        assert f"| `{name}` |" in readme


class Words(ScriptedEngine):
    """Every character is a token, and there are few."""

    def count(self, prompt: tuple[Piece, ...]) -> int:
        return sum(len(piece.text) for piece in prompt)


def long_path(apis: dict[str, Api]) -> History:
    move = Action("a", "f", "{}", (Piece("Assistant: \nThought: a\nAction: f\nAction Input: {}"),))
    steps = tuple(Step(move, letter * 600, ok=True) for letter in "xyz")
    return replace(offered(apis), path=steps)


def asked(
    view: History, context: int, meter: UsageMeter, fidelity: ReferenceMode | None = None
) -> str:
    engine = Words([spoken("t")])
    engine.context = context
    form = ToolllamaFormat(engine, PROFILE, fidelity=fidelity)
    form.propose(view, max_tokens=100, stop=Stop(), meter=meter)
    return engine.prompts[-1]


def test_a_long_conversation_loses_old_observations_not_its_head(apis: dict[str, Api]) -> None:
    view, meter = long_path(apis), UsageMeter()
    whole = asked(view, 100_000, meter)
    assert not meter.notes
    text = asked(view, len(whole) - 150, meter)
    assert text.startswith("System: ")
    assert "x" * 400 + "..." in text
    assert "z" * 600 in text
    assert meter.notes


def test_a_longer_one_loses_its_least_relevant_functions(apis: dict[str, Api]) -> None:
    view, meter = replace(long_path(apis), path=()), UsageMeter()
    room = len(asked(view, 100_000, meter)) + 108
    text = ""
    while not text or view.functions[1].name in text:
        room -= 100
        text = asked(view, room, meter)
    assert view.functions[0].name in text
    assert view.task in text
    assert meter.notes


def test_a_short_context_keeps_half_of_itself_for_the_prompt(apis: dict[str, Api]) -> None:
    view, meter = offered(apis), UsageMeter()
    shortest = replace(view, functions=view.functions[:1])
    room = 2 * len(asked(shortest, 100_000, meter)) + 16
    engine = Words([spoken("t")])
    engine.context = room
    profile = PROFILE.model_copy(update={"max_reply_tokens": room})
    form = ToolllamaFormat(engine, profile)
    form.propose(view, max_tokens=room, stop=Stop(), meter=meter)
    assert view.task in engine.prompts[-1]
    engine.context = 512
    with pytest.raises(TaskTooLongError) as caught:
        form.propose(view, max_tokens=room, stop=Stop(), meter=meter)
    assert f"and {512 // 2 - RESERVE} fit the model" in caught.value.message


def test_in_faithful_mode_a_long_conversation_loses_its_head(apis: dict[str, Api]) -> None:
    text = asked(long_path(apis), 1000, UsageMeter(), REFERENCE)
    assert len(text) == 1000 - 100 - 8
    assert text.endswith("Assistant:\n")
    assert "System" not in text
