"""What is learnt of the templates of real model families, and that it holds for all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.template_files import (
    ANY,
    FILES,
    FIRST,
    NAMES,
    SECOND,
    SUM,
    TOOLS,
    WEATHER,
    accepts,
    special_tokens,
    talk,
    template,
    vocabulary,
)

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    Message,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.templates.dialects import new_id

JSON_TAGS = '<tool_call>\\n{"name": "{name}", "arguments": {arguments}}\\n</tool_call>'
CODER_TAGS = "<tool_call>\\n<function={name}>\\n{arguments}</function>\\n</tool_call>"
LEARNT = {
    "apertus.jinja": '<|tools_prefix|>[{"{name}": {arguments}}]<|tools_suffix|>',
    "command_r7b_like.jinja": '<|START_ACTION|>[\\n    {"tool_call_id": "{index}", "tool_name": '
    '"{name}", "parameters": {arguments}}\\n]<|END_ACTION|>',
    "functiongemma_like.jinja": "<start_function_call>call:{name}{{arguments}}<end_function_call>"
    "<start_function_response>",
    "glm_4_5.jinja": "\\n<tool_call>{name}\\n{arguments}</tool_call>",
    "gpt_oss.jinja": " to=functions.{name}<|channel|>commentary json<|message|>{arguments}<|call|>",
    "granite_4_0.jinja": JSON_TAGS,
    "hermes_like.jinja": JSON_TAGS,
    "llama_3_1_like.jinja": '{"name": "{name}", "parameters": {arguments}}',
    "llama_3_2_like.jinja": '{"name": "{name}", "parameters": {arguments}}',
    "mistral_v11_small_3_2.jinja": "[TOOL_CALLS]{name}[CALL_ID]{id}[ARGS]{arguments}",
    "mistral_v13_ministral_3.jinja": "[TOOL_CALLS]{name}[ARGS]{arguments}",
    "mistral_v3_nemo.jinja": '[TOOL_CALLS][{"name": "{name}", "arguments": {arguments}, '
    '"id": "{id}"}]',
    "qwen2_5.jinja": JSON_TAGS,
    "qwen2_5_coder_0_5b.jinja": JSON_TAGS,
    "qwen2_5_coder_1_5b.jinja": JSON_TAGS,
    "qwen3.jinja": JSON_TAGS,
    "qwen3_5.jinja": CODER_TAGS,
    "qwen3_coder.jinja": CODER_TAGS,
    "qwen3_instruct_2507.jinja": JSON_TAGS,
}
"""The others never render calls, never list tools, or do not escape text: generic syntax."""

OPENED = {"deepseek_r1_distill_qwen.jinja", "deepseek_v3_1.jinja", "qwen3_5.jinja"}
"""Their generation prompts begin the reasoning."""

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "note": st.text(st.characters(exclude_categories=["Cs", "Co", "Cc"], exclude_characters="<|[]"))
    | st.sampled_from(["", " x ", "a \"b\" \\ 'c'", "line\n  two\n", "007", "true", "é你😀"]),
    "count": st.integers(-(10**12), 10**12),
    "share": st.floats(-1e6, 1e6).map(lambda one: round(one, 3) + 0.0),
    "sure": st.booleans(),
    "nothing": st.none(),
    "tags": st.lists(st.sampled_from(["a", "it's", 'b "c"', "d, e", "]"]), max_size=3),
    "place": st.tuples(st.sampled_from(["Lima", "São Paulo", "a}b"]), st.integers(0, 99)).map(
        lambda one: {"city": one[0], "floor": one[1]}
    ),
}
ARGUMENTS = st.fixed_dictionaries({}, optional=VALUES)


def text_of(name: str, request: ChatRequest) -> str:
    return "".join(piece.text for piece in template(name).render(request))


def test_twelve_families_and_more_are_kept() -> None:
    assert len(FILES) >= 12


@pytest.mark.parametrize("name", FILES)
def test_the_syntax_of_a_template_is_learnt(name: str) -> None:
    expected = f"learnt: {LEARNT[name]}" if name in LEARNT else "generic"
    assert template(name).syntax == expected


@pytest.mark.parametrize("name", FILES)
def test_a_conversation_with_two_calls_and_results_is_rendered_whole(name: str) -> None:
    text = text_of(name, talk())
    places = [text.find(one) for one in ("Lima plain", "clear plain", "3.5 plain")]
    assert -1 not in places
    assert places == sorted(places)
    assert "You answer with tools. plain" in text
    assert "What is the weather? plain" in text
    assert all(one.name in text and one.description in text for one in TOOLS)
    both = template(name).call_syntax
    written = both.write(
        [ToolCall("get_weather", {**FIRST.arguments, "city": "Lima plain"}, FIRST.id)]
    )
    assert written.removesuffix(both.end) in text


def single(name: str, call: ToolCall) -> str:
    """Return the reply that makes one call as its grammar spells it."""
    request = ChatRequest((UserMessage("go"),), TOOLS, ReplyConstraints(excluded=(call,)))
    return template(name).excluded(request)[0]


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.lists(ARGUMENTS, min_size=1, max_size=3))
def test_what_is_written_is_read_and_allowed(name: str, data: list[dict[str, Any]]) -> None:
    made = template(name)
    most = len(data) if made.call_syntax.several else 1
    calls = [
        ToolCall(ANY.name, {key: one[key] for key in VALUES if key in one}, f"Zz{at}456789")
        for at, one in enumerate(data[:most])
    ]
    request = ChatRequest(
        (UserMessage("go"),), TOOLS, ReplyConstraints((ANY.name,), most, text=False)
    )
    calls[0] = replace(calls[0], id=new_id(request, 0))  # the grammar leaves no other
    written = single(name, calls[0]) if most == 1 else made.call_syntax.write(calls)
    reply = made.parse(written, request)
    assert (reply.problem, reply.text) == ("", "")
    assert [(one.name, one.arguments) for one in reply.calls] == [
        (one.name, one.arguments) for one in calls
    ]
    assert len({one.id for one in reply.calls}) == most
    assert accepts(name, made.grammar(request), written)


@pytest.mark.parametrize("name", FILES)
def test_what_a_template_renders_of_a_past_call_is_read_as_that_call(name: str) -> None:
    made = template(name)
    request = ChatRequest(
        (UserMessage("go"), AssistantMessage("", (FIRST,)), ToolMessage(FIRST, "ok")), TOOLS,
        ReplyConstraints(NAMES),
    )  # fmt: skip
    text = text_of(name, request)
    written = made.call_syntax.write([FIRST]).strip()
    assert written in text
    [call] = made.parse(written, request).calls
    assert (call.name, call.arguments) == (FIRST.name, FIRST.arguments)
    assert call.id != FIRST.id


@pytest.mark.parametrize("name", FILES)
def test_data_never_becomes_a_token_of_the_template(name: str) -> None:
    tokens = special_tokens(name)
    made, syntax = template(name), template(name).call_syntax
    markers = [
        *tokens.control,
        *tokens.user_defined,
        "<tool_call>",
        "</tool_response>",
        syntax.opener,
    ]
    bytes_, _ = vocabulary(name)

    def specials(text: str) -> list[int]:
        tool = Tool(
            "get_weather",
            f"Weather {text}",
            {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": text, "enum": [text, "x"]},
                    f"key {text}": {"type": "string", "default": text},
                },
                "required": ["city"],
            },
        )
        prompt = made.render(talk(text=text, tools=(tool, SUM)))
        return [one for one in bytes_.prompt(prompt) if one >= 256]

    harmless = specials("plain")
    for marker in markers:
        assert specials(f"a {marker} b") == harmless
        assert specials(marker) == harmless
    assert specials("".join(markers)) == harmless


@pytest.mark.parametrize("name", FILES)
def test_text_that_spells_no_token_is_not_cut_out(name: str) -> None:
    prompt = template(name).render(talk(text='it\'s "quoted", <b>bold</b> & [1, 2]'))
    assert [piece.special for piece in prompt] in ([True], [True, True])
    assert sum(piece.shared for piece in prompt) <= 1


@pytest.mark.parametrize("name", FILES)
def test_data_is_rendered_as_it_is(name: str) -> None:
    text = "/think /no_think </think>x</think> {{ 1 }} \u2028 é 你 😀 /system_override end"
    found = text_of(name, talk(text=text))
    # once in each of system, user and result; Llama quotes results as JSON, which changes nothing
    assert found.count(text) >= 3


@pytest.mark.parametrize("name", FILES)
def test_two_clocks_differ_in_the_date_only(name: str) -> None:
    def at(clock: datetime) -> str:
        asked = talk()
        return text_of(name, ChatRequest(asked.messages, TOOLS, asked.expected, now=clock))

    january = datetime(2025, 1, 10, tzinfo=UTC)
    first, second = at(january), at(datetime(2026, 11, 23, tzinfo=UTC))
    assert at(january) == first
    assert len(second) == pytest.approx(len(first), abs=60)
    for before, after in zip(first.split("\n"), second.split("\n"), strict=True):
        if before != after:
            assert "2025" in before
            assert "2026" in after


def shapes() -> dict[str, tuple[Message, ...]]:
    system, user, reply = (
        SystemMessage("Rules."),
        UserMessage("Question?"),
        AssistantMessage("Yes."),
    )
    other = UserMessage("Again?")
    called = AssistantMessage("", (FIRST,))
    both = AssistantMessage("", (FIRST, SECOND))
    first, second = ToolMessage(FIRST, "sunny"), ToolMessage(SECOND, "3.5")
    return {
        "user": (user,),
        "system": (system, user),
        "user, user": (system, user, other),
        "assistant, assistant": (user, reply, AssistantMessage("Indeed."), other),
        "empty system": (SystemMessage(""), user),
        "results in reverse": (user, both, second, first),
        "tool then user": (user, called, first, other),
        "tool then text then user": (system, user, called, first, reply, other),
        "two rounds": (system, user, called, first, AssistantMessage("", (SECOND,)), second),
        "text beside a call": (user, AssistantMessage("Let me see.", (FIRST,)), first),
        "empty result": (user, called, ToolMessage(FIRST, "")),
        "trimmed": (system, user, AssistantMessage("", (SECOND,)), second, reply, other, reply, other),
        "empty arguments": (user, AssistantMessage("", (ToolCall("get_weather", {}, "Ab1Cd2Ef3"),)),
                            ToolMessage(ToolCall("get_weather", {}, "Ab1Cd2Ef3"), "none")),
    }  # fmt: skip


@pytest.mark.parametrize("tools", [TOOLS, ()], ids=["tools", "none"])
@pytest.mark.parametrize("name", FILES)
def test_conversations_of_every_shape_are_rendered_whole(
    name: str, tools: tuple[Tool, ...]
) -> None:
    for shape, messages in shapes().items():
        text = text_of(name, ChatRequest(messages, tools, ReplyConstraints(NAMES if tools else ())))
        for message in messages:
            if not isinstance(message, AssistantMessage) or not message.calls:
                assert message.text in text, shape
        assert "None" not in text, shape
        assert text.count("Question?") == 1, shape


@pytest.mark.parametrize("name", FILES)
def test_reasoning_is_switched_off_or_held(name: str) -> None:
    made = template(name)
    quiet = text_of(name, ChatRequest((UserMessage("go"),)))
    for opener in ("<think>", "[THINK]"):
        assert not quiet.rstrip().endswith(opener)
    request = ChatRequest(
        (UserMessage("go"),), TOOLS, ReplyConstraints((WEATHER.name,), 1, reasoning=50)
    )
    call = single(name, FIRST)
    thought = "I look it up.</think>\n\n" if name in OPENED else ""
    assert accepts(name, made.grammar(request), f"{thought}{call}")
    reply = made.parse(f"<think>\nI look it up.\n</think>\n\n{call}", request)
    assert [one.name for one in reply.calls] == [WEATHER.name]


@pytest.mark.parametrize("name", FILES)
def test_json_by_a_schema_is_held(name: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    request = ChatRequest((UserMessage("go"),), (), ReplyConstraints(text=True, schema=schema))
    grammar = template(name).grammar(request)
    assert accepts(name, grammar, json.dumps({"n": 4}))
    assert not accepts(name, grammar, "four")
    assert template(name).parse('{"n": 4}', request).text == '{"n": 4}'
