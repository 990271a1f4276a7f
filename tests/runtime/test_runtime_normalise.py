"""Normalised calls: names, arguments, types by the schema, ids; and the literal parser."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.contract.models import (
    ChatRequest,
    ReplyConstraints,
    Tool,
    ToolCall,
    UserMessage,
)
from toolsrv_runtime.templates.literals import LiteralError, Notation, read_call, read_literal
from toolsrv_runtime.templates.normalise import call_id, normalise_call, typed_text

COLOUR = {"enum": ["red", "green"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Count": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}},
    "properties": {
        "zip": {"type": "string"},
        "count": {"type": "integer"},
        "price": {"type": "number"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "object", "properties": {"width": {"type": "integer"}}},
        "referred": {"$ref": "#/$defs/Count"},
        "loop": {"$ref": "#/$defs/Loop"},
        "maybe": {"type": ["integer", "null"]},
        "nullable": {"type": "string", "nullable": True},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "colour": COLOUR,
        "free": {},
    },
}


def request_of(*names: str, callable_: tuple[str, ...] | None = None) -> ChatRequest:
    tools = tuple(Tool(name, f"What {name} does.", SCHEMA) for name in names)
    expected = ReplyConstraints(names=names if callable_ is None else callable_)
    return ChatRequest((UserMessage("Go."),), tools, expected)


REQUEST = request_of("send", "get-rate", "Send_Mail", "a.b")
TOOL = REQUEST.tools[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("send", "send"),
        (" send\n", "send"),
        ('"send"', "send"),
        ("`send`", "send"),
        ("functions.send", "send"),
        ("tool.send", "send"),
        ("functions.send:0", "send"),
        ("send:12", "send"),
        ("SEND", "send"),
        ("send_mail", "Send_Mail"),
        ("get_rate", "get-rate"),
        ("get rate", "get-rate"),
        ("get.rate", "get-rate"),
        ("a_b", "a.b"),
    ],
)
def test_a_name_is_matched_without_prefix_case_and_separator(written: str, meant: str) -> None:
    assert normalise_call(written, {}, REQUEST) == (ToolCall(meant), "")


@pytest.mark.parametrize("written", ["sen", "sends", "send:", "send:x", "x.send", "", " ", "send_"])
def test_a_name_is_never_guessed(written: str) -> None:
    call, problem = normalise_call(written, {}, REQUEST)
    assert call is None
    assert problem.startswith("There is no tool ")


def test_names_that_differ_only_in_what_is_ignored_are_kept_apart() -> None:
    request = request_of("Send", "send", "a-b", "a_b")
    assert normalise_call("send", {}, request)[0] == ToolCall("send")
    assert normalise_call("Send", {}, request)[0] == ToolCall("Send")
    assert normalise_call("SEND", {}, request)[0] is None
    assert normalise_call("a.b", {}, request)[0] is None


def test_problems_name_what_can_be_called() -> None:
    request = request_of("send", "read", "hidden", callable_=("send", "read"))
    assert normalise_call("sent", {}, request) == (
        None,
        "There is no tool 'sent'; the nearest: 'send'",
    )
    assert normalise_call("zzzzz", {}, request) == (
        None,
        "There is no tool 'zzzzz'; what can be called: 'send' or 'read'",
    )
    assert normalise_call("hidden", {}, request) == (
        None,
        "hidden cannot be called now; what can be called: 'send' or 'read'",
    )
    none = request_of("send", callable_=())
    assert normalise_call("send", {}, none) == (None, "send cannot be called now")
    assert "\n" not in normalise_call("a\nb" * 1000, {}, request)[1]


@pytest.mark.parametrize("empty", [None, "", " ", "{}", "null", '"{}"', '""', {}])
def test_no_arguments_are_an_empty_object(empty: object) -> None:
    assert normalise_call("send", empty, REQUEST) == (ToolCall("send"), "")


@pytest.mark.parametrize("wrong", [[], [1], "[]", "text", "12", 12, True, '"\\"{}\\""', "{broken"])
def test_arguments_that_are_no_object_are_a_problem(wrong: object) -> None:
    call, problem = normalise_call("send", wrong, REQUEST)
    assert call is None
    assert problem.startswith("The arguments of send must be a JSON object")


def test_arguments_are_decoded_twice_at_most_and_keep_their_order() -> None:
    once = '{"zip": "1", "colour": "red", "count": 2}'
    expected = ToolCall("send", {"zip": "1", "colour": "red", "count": 2})
    call, _ = normalise_call("send", once, REQUEST)
    assert call == expected
    assert list(call.arguments) == ["zip", "colour", "count"]
    assert normalise_call("send", '"{\\"zip\\": \\"1\\"}"', REQUEST)[0] == ToolCall(
        "send", {"zip": "1"}
    )


CASTS: list[tuple[str, Any, Any]] = [
    ("count", "3", 3),
    ("count", "-3", -3),
    ("count", 3.0, 3),
    ("count", "3.0", 3),
    ("count", "3.5", "3.5"),
    ("count", 3.5, 3.5),
    ("count", "007", "007"),
    ("count", "three", "three"),
    ("count", True, True),
    ("count", "true", "true"),
    ("price", "19.99", 19.99),
    ("price", "1e3", 1000.0),
    ("price", 5, 5),
    ("price", "12 EUR", "12 EUR"),
    ("price", "NaN", "NaN"),
    ("flag", "true", True),
    ("flag", "False", False),
    ("flag", 1, 1),
    ("flag", "yes", "yes"),
    ("zip", 8001, "8001"),
    ("zip", 1.5, "1.5"),
    ("zip", "8001", "8001"),
    ("zip", "true", "true"),
    ("zip", True, True),
    ("zip", None, None),
    ("tags", '["a", "b"]', ["a", "b"]),
    ("tags", "['a', 'b']", ["a", "b"]),
    ("tags", "a, b", "a, b"),
    ("tags", [1, "a"], ["1", "a"]),
    ("size", '{"width": "3"}', {"width": 3}),
    ("size", {"width": "3", "more": "4"}, {"width": 3, "more": "4"}),
    ("referred", "3", 3),
    ("loop", "3", "3"),
    ("maybe", "null", None),
    ("maybe", "3", 3),
    ("maybe", None, None),
    ("nullable", "null", "null"),
    ("either", "3", "3"),
    ("either", 3, 3),
    ("either", 3.0, 3),
    ("colour", "red", "red"),
    ("colour", "blue", "blue"),
    ("free", "3", "3"),
    ("unknown", "3", "3"),
]


@pytest.mark.parametrize(("key", "value", "expected"), CASTS)
def test_values_are_cast_by_the_schema_where_nothing_is_lost(
    key: str, value: Any, expected: Any
) -> None:
    call, problem = normalise_call("send", {key: value}, REQUEST)
    assert problem == ""
    assert call is not None
    assert call.arguments == {key: expected}
    assert type(call.arguments[key]) is type(expected)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("zip", "007", "007"),
        ("zip", "true", "true"),
        ("zip", '{"a": 1}', '{"a": 1}'),
        ("zip", "", ""),
        ("count", "7", 7),
        ("count", "seven", "seven"),
        ("flag", "True", True),
        ("flag", "false", False),
        ("tags", "['a']", ["a"]),
        ("tags", "a", "a"),
        ("size", "{'width': 3}", {"width": 3}),
        ("referred", "7", 7),
        ("maybe", "None", None),
        ("nullable", "null", None),
        ("nullable", "nullify", "nullify"),
        ("either", "7", 7),
        ("either", "x", "x"),
        ("colour", "red", "red"),
        ("unknown", "7", 7),
        ("unknown", "x y", "x y"),
    ],
)
def test_raw_text_is_typed_by_the_schema_first(key: str, text: str, expected: Any) -> None:
    assert typed_text(text, TOOL, key) == expected
    assert type(typed_text(text, TOOL, key)) is type(expected)


def test_a_schema_that_branches_without_end_takes_bounded_time() -> None:
    loop: dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/L"}] * 8, "items": {"$ref": "#/$defs/L"}}
    schema = {"type": "object", "$defs": {"L": loop}, "properties": {"a": {"$ref": "#/$defs/L"}}}
    request = ChatRequest((), (Tool("t", "", schema),), ReplyConstraints(names=("t",)))
    value: Any = ["3"] * 20_000
    start = time.process_time()
    call, _ = normalise_call("t", {"a": value}, request)
    assert call == ToolCall("t", {"a": value})
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "schema", [{}, {"properties": []}, {"properties": {"a": 3}}, {"properties": {"a": {"$ref": 3}}}]
)
def test_a_schema_of_a_wrong_shape_changes_nothing(schema: dict[str, Any]) -> None:
    request = ChatRequest((), (Tool("t", "", schema),), ReplyConstraints(names=("t",)))
    assert normalise_call("t", {"a": "3"}, request) == (ToolCall("t", {"a": "3"}), "")


@given(seed=st.text(max_size=20), wanted=st.text(max_size=12), taken=st.integers(0, 5))
def test_ids_are_nine_characters_and_free(seed: str, wanted: str, taken: int) -> None:
    used: set[str] = set()
    for _ in range(taken + 1):
        made = call_id(wanted, used, seed)
        assert len(made) == 9
        assert made.isascii()
        assert made.isalnum()
        assert made not in used
        used.add(made)


def test_an_id_that_fits_is_kept() -> None:
    assert call_id("abc123DEF", (), "x") == "abc123DEF"
    assert call_id("call_abc1", (), "x") != "call_abc1"
    assert call_id(None, (), "x") == call_id("", (), "x")


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": 1}', {"a": 1}, ()),
        ('[1, -2.5e3, true, null, "x"]', [1, -2500.0, True, None, "x"], ()),
        ('"\\u00e9\\n\\/"', "é\n/", ()),
        ("{'a': True}", {"a": True}, ("Python literal",)),
        ("(1, 2)", [1, 2], ("Python literal",)),
        ('{"a": "x, }",}', {"a": "x, }"}, ("trailing comma",)),
        ("[1, // one\n 2]", [1, 2], ("comment",)),
        ('"a\nb"', "a\nb", ("line break inside quotes",)),
        ("[01234]", ["01234"], ("leading zero",)),
        ("'\\x41\\U0001f600'", "A😀", ("Python literal",)),
    ],
)
def test_literals_record_what_is_no_json(text: str, value: Any, repairs: tuple[str, ...]) -> None:
    read = read_literal(text)
    assert (read.value, read.repairs, read.end) == (value, repairs, len(text))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1", '"a', "{1: 2}", "{'a', 'b'}", "b'x'", "1j", "nan", "NaN", "Infinity", "1e999", "f(1)",
     "x", "{a: 1}", "[1 2]", '{"a" 1}', '"\\q"', '"\\U00110000"', "9" * 400, "[" * 60 + "]" * 60, "lambda: 1", "1_000"],
)  # fmt: skip
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        read_literal(text)


def test_the_notation_of_markers_reads_bare_keys() -> None:
    notation = Notation(delimiters=("<escape>",), bare_keys=True)
    text = "{a:<escape>x,}<escape>,b:{<escape>c d<escape>:[1,<escape><escape>]}}"
    assert read_literal(text, 0, notation).value == {"a": "x,}", "b": {"c d": [1, ""]}}


@pytest.mark.parametrize(
    "text",
    ["f(", "f(a=1", "f(a=b)", "f(a=g(1))", "f(a=1, 2)", "f(a=1, a=2)", "f(a==1)", "f(*[1])", "f(**{})", "1(a=1)",
     "f (a=1)", "f[a]", "f(a=1 b=2)", "f(a=f'x')"],
)  # fmt: skip
def test_what_is_more_than_a_call_with_literals_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        read_call(text)


def test_a_call_with_literals_is_read() -> None:
    call = read_call("a.b(1, 'x', from=[True, None], z={'k': (1,)}) tail")
    assert (call.name, call.positional, call.end) == ("a.b", (1, "x"), 45)
    assert call.named == {"from": [True, None], "z": {"k": [1]}}
