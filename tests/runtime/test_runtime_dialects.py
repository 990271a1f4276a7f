"""Dialects: calls that models write in another syntax than their template's."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FinishReason,
    ReplyConstraints,
    Tool,
    ToolCall,
    UserMessage,
)
from toolsrv_runtime.templates.dialects import read_dialects

DATA = Path(__file__).parent / "data"


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, f"What {name} does.", schema)


TEXT, WHOLE, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TOOLS = (
    tool("get_time", ("city",), city=TEXT, hours=WHOLE),
    tool("list_all"),
    tool("convert", ("amount",), amount={"type": "number"}, source=TEXT, target=TEXT),
    tool("write_file", ("path", "content"), path=TEXT, content=TEXT),
    tool(
        "set_zip",
        ("zip",),
        zip=TEXT,
        urgent=FLAG,
        tags={"type": "array", "items": TEXT},
        note={"type": ["string", "null"]},
    ),
    Tool("route", "A way.", {"type": "object", "properties": {"from": TEXT, "to": TEXT}}),
    tool("anything", value={}),
    tool("hidden"),
)
NAMES = tuple(one.name for one in TOOLS if one.name != "hidden")
REQUEST = ChatRequest((UserMessage("Go."),), TOOLS, ReplyConstraints(names=NAMES, calls=4))
LINES = (DATA / "deviating_replies.jsonl").read_text(encoding="utf-8").strip().split("\n")
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
CALLED = [row for row in ROWS if row["calls"]]
REST = [row for row in ROWS if not row["calls"]]


def named(rows: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "row", rows, ids=[f"{one['id']} {one['family']}" for one in rows]
    )


def written(reply: ChatReply | None) -> list[list[Any]]:
    return [[call.name, call.arguments] for call in reply.calls] if reply else []


def finish_of(row: dict[str, Any]) -> FinishReason:
    return "length" if row.get("finish") == "length" else "complete"


def test_the_file_has_as_many_replies_without_calls_as_with() -> None:
    assert len(REST) >= len(CALLED) > 100
    assert (
        len({row["id"] for row in ROWS})
        == len({row["raw"] + str(row.get("finish")) for row in ROWS})
        == len(ROWS)
    )


@named(CALLED)
def test_calls_are_read_and_the_text_beside_them_is_kept(row: dict[str, Any]) -> None:
    reply = read_dialects(row["raw"], REQUEST, finish=finish_of(row))
    assert reply is not None
    assert written(reply) == row["calls"]
    assert (reply.text, reply.reasoning) == (row["text"], row.get("reasoning", ""))
    assert row.get("problem", "") in reply.problem
    assert bool(reply.problem) == ("problem" in row)
    assert (reply.raw, reply.finish) == (row["raw"], finish_of(row))
    assert reply.dialect == row.get("dialect", reply.dialect)
    assert all(len(call.id) == 9 and call.id.isalnum() for call in reply.calls)
    assert [call.id for call in reply.calls] == row.get("ids", [call.id for call in reply.calls])
    assert len({call.id for call in reply.calls}) == len(reply.calls)


@named(REST)
def test_what_is_no_call_stays_text(row: dict[str, Any]) -> None:
    reply = read_dialects(row["raw"], REQUEST, finish=finish_of(row))
    if row.get("none"):
        assert reply is None
        return
    assert reply is not None
    assert (reply.calls, reply.text, reply.reasoning) == ((), row["text"], row.get("reasoning", ""))
    assert row.get("problem", "") in reply.problem
    assert bool(reply.problem) == ("problem" in row)
    assert "\n" not in reply.problem


@named([row for row in ROWS if row.get("problem")])
def test_malformed_replies_keep_every_character(row: dict[str, Any]) -> None:
    reply = read_dialects(row["raw"], REQUEST, finish=finish_of(row))
    assert reply is not None
    assert reply.raw == row["raw"]
    if not reply.calls:
        assert reply.text == row["raw"]


def test_bare_forms_are_read_only_where_tools_are_offered() -> None:
    bare = '{"name": "get_time", "arguments": {"city": "Paris"}}'
    without = ChatRequest((UserMessage("Go."),))
    assert read_dialects(bare, without) is None
    marked = read_dialects(f"<tool_call>\n{bare}\n</tool_call>", without)
    assert marked is not None
    assert marked.calls == ()
    assert marked.problem == "There is no tool 'get_time', and none can be called now"


def test_a_reply_that_is_to_be_json_is_never_a_call() -> None:
    bare = '{"name": "get_time", "arguments": {"city": "Paris"}}'
    request = ChatRequest((UserMessage("Go."),), TOOLS, ReplyConstraints(names=NAMES, schema={}))
    assert read_dialects(bare, request) is None
    assert read_dialects(bare, REQUEST) is not None


def test_ids_are_unique_in_the_conversation_and_repeatable() -> None:
    raw = '[TOOL_CALLS][{"name": "list_all", "arguments": {}, "id": "abc123DEF"}]'
    first = read_dialects(raw, REQUEST)
    assert first is not None
    assert first.calls[0].id == "abc123DEF"
    messages = (UserMessage("Go."), AssistantMessage("", first.calls))
    again = ChatRequest(messages, TOOLS, REQUEST.expected)
    second, third = read_dialects(raw, again), read_dialects(raw, again)
    assert second is not None
    assert second.calls[0].id != "abc123DEF"
    assert second == third


# --- streams: a reply that is cut anywhere --------------------------------------------------------


@named(ROWS)
def test_every_beginning_is_read_and_loses_nothing(row: dict[str, Any]) -> None:
    data = row["raw"].encode()
    received = b""
    for position in range(len(data)):
        received += data[position : position + 1]
        text = received.decode("utf-8", "ignore")
        reply = read_dialects(text, REQUEST, finish="length")
        if reply is not None:
            assert reply.raw == text
            assert reply.text or reply.calls or reply.reasoning or text.endswith("<|message|>")
    whole = read_dialects(received.decode(), REQUEST, finish=finish_of(row))
    assert whole == read_dialects(row["raw"], REQUEST, finish=finish_of(row))


MARKED = [
    row
    for row in CALLED
    if row.get("dialect", "")
    in (
        "tool_call",
        "mistral",
        "deepseek or kimi",
        "harmony",
        "lfm2",
        "functiongemma",
        "function tag",
        "granite",
        "python tag",
    )
]


@named(MARKED)
def test_a_cut_call_is_never_another_call(row: dict[str, Any]) -> None:
    for end in range(len(row["raw"])):
        reply = read_dialects(row["raw"][:end], REQUEST, finish="length")
        calls = written(reply)
        assert calls == row["calls"][: len(calls)]


# --- round trips ----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(VALUES, min_size=1, max_size=3)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def one_json(value: Any, key: str = "arguments") -> str:
    return as_json({"name": "anything", key: {"value": value}})


def python(value: Any) -> str:
    """Return a value as Python writes it, lists and objects included."""
    return repr(value)


WRITERS = {
    "tool_call": lambda values: "\n".join(
        f"<tool_call>\n{one_json(v)}\n</tool_call>" for v in values
    ),
    "mistral": lambda values: "[TOOL_CALLS][" + ", ".join(map(one_json, values)) + "]",
    "mistral v11": lambda values: "".join(
        f"[TOOL_CALLS]anything[CALL_ID]abcdefgh{i}[ARGS]{as_json({'value': v})}"
        for i, v in enumerate(values)
    ),
    "granite": lambda values: "<|tool_call|>[" + ", ".join(map(one_json, values)) + "]",
    "command-r": lambda values: (
        "<|START_ACTION|>[\n"
        + ",\n".join(
            as_json({"tool_call_id": str(i), "tool_name": "anything", "parameters": {"value": v}})
            for i, v in enumerate(values)
        )
        + "\n]<|END_ACTION|>"
    ),
    "apertus": lambda values: (
        "<|tools_prefix|>"
        + as_json([{"anything": {"value": v}} for v in values])
        + "<|tools_suffix|>"
    ),
    "deepseek": lambda values: (
        "<｜tool▁calls▁begin｜>"
        + "\n".join(
            f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>anything\n```json\n{as_json({'value': v})}\n```<｜tool▁call▁end｜>"
            for v in values
        )
        + "<｜tool▁calls▁end｜>"
    ),
    "kimi": lambda values: (
        "<|tool_calls_section_begin|>"
        + "".join(
            f"<|tool_call_begin|>functions.anything:{i}<|tool_call_argument_begin|>{as_json({'value': v})}<|tool_call_end|>"
            for i, v in enumerate(values)
        )
        + "<|tool_calls_section_end|>"
    ),
    "lfm2": lambda values: (
        "<|tool_call_start|>["
        + ", ".join(f"anything(value={as_json(v)})" for v in values)
        + "]<|tool_call_end|>"
    ),
    "bare json": lambda values: as_json(
        [{"name": "anything", "arguments": {"value": v}} for v in values]
    ),
    "bare, joined": lambda values: "; ".join(one_json(v, "parameters") for v in values),
    "openai": lambda values: as_json(
        {
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "anything", "arguments": as_json({"value": v})},
                }
                for v in values
            ]
        }
    ),
    "fence": lambda values: "\n".join(f"```json\n{one_json(v)}\n```" for v in values),
    "python": lambda values: "[" + ", ".join(f"anything(value={as_json(v)})" for v in values) + "]",
}


@pytest.mark.parametrize("dialect", WRITERS)
@given(values=CALLS)
def test_what_a_dialect_writes_is_read_back(dialect: str, values: list[Any]) -> None:
    reply = read_dialects(WRITERS[dialect](values), REQUEST)
    assert reply is not None
    assert written(reply) == [["anything", {"value": value}] for value in values]
    assert (reply.text, reply.problem) == ("", "")


@given(values=st.lists(TEXTS.filter(lambda text: "<escape>" not in text), min_size=1, max_size=3))
def test_text_between_markers_is_read_back(values: list[str]) -> None:
    raw = "".join(
        f"<start_function_call>call:anything{{value:<escape>{v}<escape>}}<end_function_call>"
        for v in values
    )
    reply = read_dialects(raw, REQUEST)
    assert written(reply) == [["anything", {"value": value}] for value in values]


TAGGED = TEXTS.filter(lambda text: "</" not in text and "\r" not in text)


@given(values=st.lists(TAGGED, min_size=1, max_size=3))
def test_tagged_text_is_read_back_untouched(values: list[str]) -> None:
    raw = "\n".join(
        f"<tool_call>\n<function=write_file>\n<parameter=path>\n{v}\n</parameter>\n"
        f"<parameter=content>\n{v}{v}\n</parameter>\n</function>\n</tool_call>"
        for v in values
    )
    reply = read_dialects(raw, REQUEST)
    assert written(reply) == [["write_file", {"path": v, "content": v + v}] for v in values]


PYTHONIC = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.text("abc '\"é{}()[],=\n\t\\\x00\x85😀", max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab'", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(values=st.lists(PYTHONIC, min_size=1, max_size=3))
def test_python_literals_are_read_back(values: list[Any]) -> None:
    raw = "[" + ", ".join(f"anything(value={python(v)})" for v in values) + "]"
    reply = read_dialects(raw, REQUEST)
    assert written(reply) == [["anything", {"value": value}] for value in values]


@given(raw=st.text(max_size=200) | st.lists(st.sampled_from(
    ["<tool_call>", "</tool_call>", "[TOOL_CALLS]", "```json\n", "\n```", "{", "}", "[", "]", '"', "'", "\\",
     '"name": ', '"get_time"', '"arguments": ', ", ", "<think>", "</think>", "get_time(", ")", "city=", "\n",
     "<|channel|>commentary to=functions.get_time", "<|message|>", "<|call|>", "<function=get_time>",
     "<parameter=city>", "</parameter>", "</function>", "None", "1", "x", ";", "`"]), max_size=40).map("".join),
    finish=st.sampled_from(["complete", "length"]))  # fmt: skip
def test_any_text_gives_a_reply_that_keeps_it(raw: str, finish: FinishReason) -> None:
    reply = read_dialects(raw, REQUEST, finish=finish)
    if reply is not None:
        assert reply.raw == raw
        assert all(call.name in NAMES for call in reply.calls)
        json.dumps([call.arguments for call in reply.calls], allow_nan=False)


# --- hostile replies ------------------------------------------------------------------------------

HOSTILE = [
    "{" * 100_000, "[" * 100_000, "}" * 100_000, "(" * 100_000, '{"a":' * 20_000, "<tool_call>" * 9_000,
    '<tool_call>{"' * 8_000, "<function=get_time>\n<parameter=city>" * 3_000, "```\n" * 25_000, "`" * 100_000,
    "[TOOL_CALLS]" * 8_000, "get_time(" * 10_000, " " * 100_000, "<think>" * 14_000, "</think>" * 12_000,
    "<tool_call>" + " " * 100_000, "'" * 100_000, '{"' * 50_000, "<tool_call>a<arg_key>" * 5_000,
    "<tool_call>a<arg_key>b</arg_key><arg_value>" * 2_500, "functools[" * 10_000, "\n\n" * 50_000 + "x",
    '{"a":' + "1" * 100_000 + "}", "{/*" * 30_000, "<|message|><|channel|>" * 5_000, "`<tool_call>" * 8_000,
    '<tool_call>{"name": "get_time", "arguments": {"city": "' + "\\n" * 40_000,
    '<tool_call>{"name": "list_all", "arguments": {}}</tool_call>' * 1_500,
    "<tool_call>\n<function=get_time>\n<parameter=city>\n1\n</parameter>\n" * 1_500,
]  # fmt: skip


@pytest.mark.parametrize("finish", ["complete", "length"])
@pytest.mark.parametrize("raw", HOSTILE, ids=[text[:24] for text in HOSTILE])
def test_hostile_replies_take_linear_time(raw: str, finish: FinishReason) -> None:
    def seconds(text: str) -> float:
        start = time.process_time()
        read_dialects(text, REQUEST, finish=finish)
        return time.process_time() - start

    # A quadratic reader takes sixteen times as long for four times the text.
    assert seconds(raw) < max(9 * seconds(raw[: len(raw) // 4]), 1.5)


def test_depth_and_number_of_calls_are_capped() -> None:
    deep = '{"name": "anything", "arguments": {"value": ' + "[" * 60 + "]" * 60 + "}}"
    assert read_dialects(deep, REQUEST) is None
    reply = read_dialects(f"<tool_call>{deep}</tool_call>", REQUEST)
    assert reply is not None
    assert "nested deeper" in reply.problem
    many = read_dialects('<tool_call>{"name": "list_all"}</tool_call>\n' * 100, REQUEST)
    assert many is not None
    assert len(many.calls) == 64
    assert many.problem


def test_a_reply_longer_than_the_limit_is_text() -> None:
    assert read_dialects('{"name": "list_all"}' + " " * 1_000_000, REQUEST) is None


def test_half_surrogates_become_replacement_characters() -> None:
    reply = read_dialects(
        '{"name": "get_time", "arguments": {"city": "\\ud83d \\ud83d\\ude00"}}', REQUEST
    )
    assert reply is not None
    assert reply.calls == (ToolCall("get_time", {"city": "� 😀"}, reply.calls[0].id),)
