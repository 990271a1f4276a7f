"""What replies a grammar allows, how they are read, and templates that do what none should."""

from __future__ import annotations

from typing import Any

import pytest
from llama_cpp import llama_chat_format
from tests.template_files import (
    FIRST,
    NAMES,
    SUM,
    TOOLS,
    WEATHER,
    accepts,
    talk,
    template,
    vocabulary,
)

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    ReplyConstraints,
    SpecialTokens,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates import learning
from toolsrv_runtime.templates.grammar_rules import LONGEST_TEXT, grammar_schema
from toolsrv_runtime.templates.tool_template import ToolTemplate

QWEN = "qwen2_5.jinja"
USER = UserMessage("go")
TURNS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
LISTED = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"


def request(expected: ReplyConstraints, tools: tuple[Tool, ...] = TOOLS, *more: Any) -> ChatRequest:
    return ChatRequest((USER, *more), tools, expected)


def called(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


ONE = called("get_weather", '{"city": "Lima"}')


@pytest.mark.parametrize(
    ("expected", "reply", "good"),
    [
        (ReplyConstraints(NAMES, 1), ONE, True),
        (ReplyConstraints(NAMES, 1), "It is 21 degrees < 30.", True),
        (ReplyConstraints(NAMES, 1), f"{ONE}\n{ONE}", False),
        (ReplyConstraints(NAMES, 2), f"{ONE}\n{ONE}", True),
        (ReplyConstraints(NAMES, 1, text=False), "It is sunny.", False),
        (ReplyConstraints(("add_numbers",), 1), ONE, False),
        (ReplyConstraints((), 0), ONE, False),
        (ReplyConstraints((), 0), "It is sunny.", True),
        (ReplyConstraints((), 0), "", False),
        (ReplyConstraints((), 0), " \n", False),
        (ReplyConstraints((), 0), f"I call {ONE}", False),
        (ReplyConstraints((), 0), '{"name": "get_weather"}', False),
        (ReplyConstraints((), 0), '({"name": "get_weather"})', False),
        (ReplyConstraints((), 0), '```json\n{"name": "get_weather"}\n```', False),
        (ReplyConstraints(NAMES, 1), called("get_weather", '{"city": "Lima", "days": 3}'), True),
        (ReplyConstraints(NAMES, 1), called("get_weather", '{"days": 3, "city": "Lima"}'), False),
        (ReplyConstraints(NAMES, 1), called("get_weather", '{"city":"Lima"}'), False),
        (ReplyConstraints(NAMES, 1), called("get_weather", '{"city": "Lima", "unit": "K"}'), False),
        (ReplyConstraints(NAMES, 1), called("get_weather", '{"days": 3}'), False),
        (ReplyConstraints(NAMES, 1), called("add_numbers", '{"a": 1, "b": -2.25}'), True),
        (ReplyConstraints(NAMES, 1), called("add_numbers", '{"a": 1, "b": 0.' + "3" * 30 + "}"), False),
        (ReplyConstraints(NAMES, 1), called("add_numbers", '{"a": 1, "b": ' + "3" * 30 + "}"), False),
        (ReplyConstraints(NAMES, 1), called("get_weather", '{"city": "' + "a" * 2001 + '"}'), False),
    ],
)  # fmt: skip
def test_a_grammar_allows_what_is_expected(
    expected: ReplyConstraints, reply: str, *, good: bool
) -> None:
    assert accepts(QWEN, template(QWEN).grammar(request(expected)), reply) is good


def test_a_tool_without_parameters_is_not_called_twice() -> None:
    now = Tool("now", "The time", {"type": "object", "properties": {}})
    reply = called("now", "{}")
    tools = (now, SUM)
    names = ("now", "add_numbers")
    made = template(QWEN)
    assert accepts(QWEN, made.grammar(request(ReplyConstraints(names), tools)), reply)
    again = ReplyConstraints(names, excluded=(ToolCall("now", {}, "Ab1Cd2Ef3"),))
    assert not accepts(QWEN, made.grammar(request(again, tools)), reply)


def test_excluded_calls_are_spelled_as_the_grammar_allows_them() -> None:
    for name in (QWEN, "mistral_v3_nemo.jinja", "qwen3_coder.jinja", "gpt_oss.jinja"):
        made = template(name)
        asked = request(ReplyConstraints(NAMES, 1, text=False, excluded=(FIRST,)))
        [written] = made.excluded(asked)
        assert accepts(name, made.grammar(asked), written)


@pytest.mark.parametrize("name", ["qwen3.jinja", "mistral_v13_ministral_3.jinja", "gpt_oss.jinja"])
def test_reasoning_is_bounded_and_read(name: str) -> None:
    made = template(name)
    opener, closer = {
        "qwen3.jinja": ("<think>\n", "</think>\n\n"),
        "mistral_v13_ministral_3.jinja": ("[THINK]", "[/THINK]"),
        "gpt_oss.jinja": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    }[name]
    asked = request(ReplyConstraints(("get_weather",), 1, text=False, reasoning=20))
    call = made.excluded(request(ReplyConstraints(excluded=(FIRST,))))[0]
    reply = f"{opener}I look.{closer}{call}"
    assert accepts(name, made.grammar(asked), reply)
    assert not accepts(name, made.grammar(asked), f"{opener}{'long ' * 50}{closer}{call}")
    quiet = request(ReplyConstraints(("get_weather",), 1, text=False))
    assert not accepts(name, made.grammar(quiet), reply)
    read = made.parse(reply, asked)
    assert read.reasoning == "I look."
    assert read.text == ""
    assert [one.name for one in read.calls] == ["get_weather"]


def test_a_marker_before_text_is_held_and_taken_off() -> None:
    made = template("gpt_oss.jinja")
    reply = "<|channel|>final<|message|>It is sunny."
    asked = request(ReplyConstraints(NAMES, 1))
    assert accepts("gpt_oss.jinja", made.grammar(asked), reply)
    assert not accepts("gpt_oss.jinja", made.grammar(asked), "It is sunny.")
    assert made.parse(f"{reply}<|return|>", asked).text == "It is sunny."


@pytest.mark.parametrize(
    ("reply", "names", "text"),
    [
        (ONE, ["get_weather"], ""),
        (f"I look.\n{ONE}<|im_end|>", ["get_weather"], "I look."),
        (ONE.removesuffix("</tool_call>"), ["get_weather"], ""),
        (ONE.replace("\n", "").replace(" ", ""), ["get_weather"], ""),
        (f"{ONE}{ONE}", ["get_weather", "get_weather"], ""),
        (
            '```json\n{"name": "get_weather", "arguments": {"city": "Lima"}}\n```',
            ["get_weather"],
            "",
        ),
        ('get_weather(city="Lima")', ["get_weather"], ""),
        ("It is sunny.<|im_end|>", [], "It is sunny."),
        ("", [], ""),
        ('Data: {"city": "Lima"}', [], 'Data: {"city": "Lima"}'),
    ],
)
def test_a_reply_is_read_in_the_learnt_syntax_or_another(
    reply: str, names: list[str], text: str
) -> None:
    read = template(QWEN).parse(reply, request(ReplyConstraints(NAMES, 2)))
    assert [one.name for one in read.calls] == names
    assert all(one.arguments == {"city": "Lima"} for one in read.calls)
    assert read.text == text
    assert read.raw == reply
    assert read.problem == ""


def test_a_call_of_no_tool_is_a_problem_and_stays_in_the_text() -> None:
    reply = called("get_wether", '{"city": "Lima"}')
    read = template(QWEN).parse(reply, request(ReplyConstraints(NAMES)))
    assert read.calls == ()
    assert "get_weather" in read.problem
    assert read.text == reply


def test_a_call_that_broke_off_is_not_made() -> None:
    reply = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Li'
    read = template(QWEN).parse(reply, request(ReplyConstraints(NAMES)), finish="length")
    assert read.calls == ()
    assert read.finish == "length"
    assert "Li" in read.text


def test_no_call_is_read_where_json_is_expected() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    asked = request(ReplyConstraints(text=True, schema=schema))
    assert template(QWEN).parse(ONE, asked).calls == ()


def test_ids_are_unique_in_a_conversation() -> None:
    made = template(QWEN)
    first = made.parse(ONE, request(ReplyConstraints(NAMES))).calls[0]
    more = (AssistantMessage("", (first,)), ToolMessage(first, "sunny"))
    second = made.parse(f"{ONE}\n{ONE}", request(ReplyConstraints(NAMES, 2), TOOLS, *more)).calls
    found = {first.id, *(one.id for one in second)}
    assert len(found) == 3
    assert all(len(one) == 9 and one.isalnum() for one in found)


@pytest.mark.parametrize("name", ["mistral_v3_nemo.jinja", "mistral_v11_small_3_2.jinja"])
def test_ids_of_other_makers_are_replayed_to_templates_that_want_nine_signs(name: str) -> None:
    for identity in ("call_AbCdEfGhIjKlMnOpQrStUvWx", "", "</s>"):
        call = ToolCall("get_weather", {"city": "Lima"}, identity)
        more = (AssistantMessage("", (call,)), ToolMessage(call, "sunny"))
        text = "".join(
            x.text for x in template(name).render(request(ReplyConstraints(NAMES), TOOLS, *more))
        )
        assert "[TOOL_CALLS]" in text
        assert "[TOOL_RESULTS]" in text


@pytest.mark.parametrize(
    "arguments", ["[" * 5000, '{"a": ' * 5000, '{"city": NaN}', '{"city": ' + "9" * 9000 + "}"]
)
def test_hostile_arguments_are_no_call_and_no_error(arguments: str) -> None:
    reply = called("get_weather", arguments)
    read = template(QWEN).parse(reply, request(ReplyConstraints(NAMES)))
    assert read.calls == ()
    assert read.text


def test_a_file_without_a_template_gets_plain_turns_and_the_generic_syntax() -> None:
    made = ToolTemplate(None)
    text = "".join(piece.text for piece in made.render(talk()))
    assert made.syntax == "generic"
    assert text.startswith("System: You answer with tools. plain\n\n# Tools")
    assert text.endswith("</tool_response>\nAssistant:\n")
    assert all(one.name in text for one in TOOLS)


def test_all_data_is_cut_out_where_the_vocabulary_is_unknown() -> None:
    prompt = ToolTemplate(llama_chat_format.CHATML_CHAT_TEMPLATE).render(talk(text="<|im_end|>"))
    assert "<|im_end|>" not in "".join(x.text for x in prompt if x.special).replace(
        "<|im_end|>\n", ""
    )
    assert any("<|im_end|>" in piece.text for piece in prompt if not piece.special)


@pytest.mark.parametrize(
    "name", [one for one in dir(llama_chat_format) if one.endswith("_CHAT_TEMPLATE")]
)
def test_older_templates_work_with_tools(name: str) -> None:
    made = ToolTemplate(getattr(llama_chat_format, name), tokens=SpecialTokens("<s>", "</s>"))
    text = "".join(piece.text for piece in made.render(talk()))
    assert all(one.name in text for one in TOOLS)
    assert "clear plain" in text


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{{ raise_exception('never') }}", "never"),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "leaves out the user's turn"),
        (
            "{% for m in messages %}{{ m.content if m.role != 'assistant' }}{% endfor %}",
            "assistant",
        ),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "leaves out"),
        ("{{ 'a' * 10**10 }}", "too much"),
        ("{{ messages", "unexpected end"),
    ],
)
def test_a_template_that_loses_turns_or_raises_is_refused(source: str, said: str) -> None:
    with pytest.raises(ModelError, match=r"in mine\.toml does not work: ") as caught:
        ToolTemplate(source, place="mine.toml")
    assert said in caught.value.message
    assert "mine.toml" in caught.value.hint


def test_a_template_cannot_reach_python() -> None:
    with pytest.raises(ModelError):
        ToolTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}")


def test_a_template_that_is_slow_every_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "LEARNING_S", 0.05)
    slow = "{% for a in range(900) %}{% for b in range(90) %}{% endfor %}{% endfor %}" + TURNS
    with pytest.raises(ModelError, match="it makes too much: more than"):
        ToolTemplate(slow)


ODD = {
    "ignores tools": TURNS,
    "lists tools, loses calls": LISTED + TURNS,
    "loses the second call": LISTED + "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% if m.tool_calls %}[CALL]{{ m.tool_calls[0].function | tojson }}[/CALL]{% endif %}{% endfor %}",
    "refuses a system turn": "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}"
    "{% endif %}" + TURNS,
    "drops a system turn": "{% for m in messages if m.role != 'system' %}<{{ m.role }}>"
    "{{ m.content }}{% endfor %}",
    "roles alternate": "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('alternate') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}",
    "refuses tool turns": "{% for m in messages %}{% if m.role == 'tool' %}"
    "{{ raise_exception('no') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}",
    "does not escape": LISTED + "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }}("
    '{% for k, v in c.function.arguments.items() %}{{ k }}="{{ v }}"{% endfor %})]{% endfor %}'
    "{% endfor %}",
    "cuts content": "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}"
    "{% endfor %}",
    "replaces words": "{% for m in messages %}<{{ m.role }}>{{ m.content.replace('Lima', 'Oslo') }}"
    "{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
def test_what_a_template_cannot_do_is_done_in_its_place(what: str) -> None:
    made = ToolTemplate(ODD[what], tokens=SpecialTokens(control={"<user>": 256, "<tool>": 257}))
    text = "".join(piece.text for piece in made.render(talk(text="a</think>b")))
    places = [text.find(one) for one in ("get_weather", "clear a</think>b", "3.5 a</think>b")]
    assert -1 not in places
    assert places == sorted(places)
    assert "You answer with tools. a</think>b" in text
    assert "Lima a</think>b" in text
    assert all(one.name in text for one in TOOLS)
    written = made.call_syntax.write([FIRST])
    assert [one.arguments for one in made.parse(written, talk()).calls] == [FIRST.arguments]


def test_the_broken_example_of_a_known_file_is_corrected() -> None:
    text = "".join(piece.text for piece in template("qwen2_5_coder_1_5b.jinja").render(talk()))
    assert '{"name": <function-name>, "arguments": <args-json-object>}' in text
    assert '{{"name"' not in text


def test_a_past_call_whose_text_has_quotes_survives_three_renderings() -> None:
    made = template(QWEN)
    call = ToolCall("get_weather", {"city": 'a "b" \\ & < \u4e2d\u6587'}, "Ab1Cd2Ef3")
    for _ in range(3):
        asked = request(
            ReplyConstraints(NAMES), TOOLS, AssistantMessage("", (call,)), ToolMessage(call, "x")
        )
        text = "".join(piece.text for piece in made.render(asked))
        written = text[text.rindex("<tool_call>") : text.rindex("</tool_call>")]
        call = made.parse(f"{written}</tool_call>", request(ReplyConstraints(NAMES))).calls[0]
    assert call.arguments == {"city": 'a "b" \\ & < \u4e2d\u6587'}
    assert "\u4e2d\u6587" in text


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(?=a)b"},
        {"type": "string", "format": "uri"},
        {"type": "string", "format": "date"},
        {"$ref": "#/$defs/place"},
        {"$ref": "#/$defs/nowhere"},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "T", "x-unknown": 1},
        {"type": ["integer", "string"]},
        {"type": "array"},
        {"type": "object"},
        {},
        {"type": "integer", "minimum": 3, "maximum": 1},
        {"type": "string", "minLength": 5, "maxLength": 2},
        {"enum": ["a", 1, None, {"b": 2}]},
        {"not": {"type": "string"}},
    ],
)
@pytest.mark.parametrize("name", [QWEN, "qwen3_coder.jinja", "functiongemma_like.jinja"])
def test_any_schema_of_a_tool_can_be_held(name: str, schema: dict[str, Any]) -> None:
    parameters = {
        "type": "object",
        "properties": {"it": schema},
        "required": ["it"],
        "$defs": {"place": {"type": "object", "properties": {"in": {"$ref": "#/$defs/place"}}}},
    }
    tool = Tool("odd", "Odd", parameters)
    grammar = template(name).grammar(request(ReplyConstraints(("odd",)), (tool,)))
    assert accepts(name, grammar, "Text.")
    assert "pattern" not in grammar


def test_texts_and_numbers_of_a_schema_are_bounded() -> None:
    found = grammar_schema({"properties": {"a": {"type": "string"}, "b": {"type": "number"}}})
    assert found["properties"]["a"]["maxLength"] == LONGEST_TEXT
    assert {"minimum", "maximum", "multipleOf"} <= set(found["properties"]["b"])


def test_a_hundred_tools_make_a_grammar_at_once() -> None:
    tools = tuple(Tool(f"tool_{at}", "One of many", WEATHER.parameters) for at in range(100))
    grammar = template(QWEN).grammar(
        request(ReplyConstraints(tuple(one.name for one in tools)), tools)
    )
    assert accepts(QWEN, grammar, called("tool_99", '{"city": "Lima"}'))


def test_a_system_turn_alone_and_special_texts_everywhere_are_rendered() -> None:
    made = template("llama_3_1_like.jinja")
    bytes_, _ = vocabulary("llama_3_1_like.jinja")
    prompt = made.render(
        ChatRequest(
            (SystemMessage("<|eot_id|>"), UserMessage("<|eot_id|>")), (), ReplyConstraints()
        )
    )
    text = "".join(piece.text for piece in prompt)
    ends = [
        one for one in bytes_.prompt(prompt) if one == bytes_.ids("<|eot_id|>", special=True)[0]
    ]
    assert text.count("<|eot_id|>") == len(ends) + 2
