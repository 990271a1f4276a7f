"""Arguments of calls: declared types, lists, defaults, and what is refused before a request is built."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.live_calls import api, request

from toolsrv_registry.api import Parameter
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.errors import ArgumentError


@pytest.mark.parametrize(
    ("kind", "given_value", "wanted"),
    [
        ("NUMBER", "3", 3),
        ("NUMBER", "2.5", 2.5),
        ("NUMBER", f"{10**304 + 1}", 10**304 + 1),
        ("BOOLEAN", True, True),
        ("BOOLEAN", "false", False),
        ("BOOLEAN", 0, 0),
        ("STRING", 7, "7"),
        ("STRING", True, "true"),
        ("ARRAY", [1, 2], [1, 2]),
        ("ARRAY", {"a": 1}, {"a": 1}),
        ("OBJECT", [1], [1]),
    ],
)
def test_a_value_takes_the_declared_type(kind: str, given_value: Any, wanted: Any) -> None:
    target = api(required=(Parameter(name="v", type=kind),))
    bound = args.bind(target, {"v": given_value})
    assert bound == {"v": wanted}
    assert type(bound["v"]) is type(wanted)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            ("NUMBER", text)
            for text in (
                *("02134", "1,2,4", "3,5", "12%", "1e3", "+4915112345678", "1_000", "2.50"),
                *("\u0661\u0662", "１２", "-0", "0x1F", "1/2", " 5", "12345678.123456789012345"),
            )
        ),
        *(("DATE (YYYY-MM-DD)", text) for text in ("2026-03-05T12:00:00Z", "March 5, 2026")),
        *(("TIME (24-hour HH:MM)", text) for text in ("10:15:30Z", "2:30 pm")),
        *(("ARRAY", text) for text in ("1,2,3", "a, b", "[1, 2]", "[NaN]", "5")),
        *(("OBJECT", text) for text in ("v1", '[{"from":"A"}]', '{"a": 1}', '{"a": "\\ud800"}')),
        *(("BOOLEAN", text) for text in ("Yes", "1", "0", "off")),
    ],
)
def test_a_text_that_is_no_json_value_of_its_type_is_sent_as_it_is_written(
    kind: str, text: str
) -> None:
    target = api(required=(Parameter(name="v", type=kind),))
    assert args.bind(target, {"v": text}) == {"v": text}
    assert dict(request(target, {"v": text}).url.params) == {"v": text}


@pytest.mark.parametrize(
    ("parameter", "value", "wanted"),
    [
        (Parameter(name="v", type="BOOLEAN", default="1"), True, "1"),
        (Parameter(name="v", type="BOOLEAN", default=0), False, 0),
        (Parameter(name="v", type="BOOLEAN", description="x, y and n axes"), True, True),
        (Parameter(name="v", type="BOOLEAN", description="1 or 0"), "true", "1"),
        (Parameter(name="v", type="BOOLEAN", description="0 = off, 1 = on"), False, "0"),
        (Parameter(name="v", type="BOOLEAN", description="'yes'/'no'"), True, "yes"),
        (Parameter(name="v", type="BOOLEAN", default="True"), False, "False"),
        (Parameter(name="v", type="BOOLEAN", description="the first 10 or 0.5"), True, True),
        (Parameter(name="v", type="BOOLEAN", default="checked"), "checked", "checked"),
        (Parameter(name="v", type="BOOLEAN", default=True), False, False),
    ],
)
def test_a_boolean_is_spelled_as_its_provider_does(
    parameter: Parameter, value: Any, wanted: Any
) -> None:
    bound = args.bind(api(required=(parameter,)), {"v": value})["v"]
    assert (bound, type(bound)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("default", "query"),
    [
        ("", "v=1&v=b"),
        ("1,2,3", "v=1%2Cb"),
        ("1|2", "v=1%7Cb"),
        ("x;y", "v=1%3Bb"),
        ('["x"]', "v=%5B1%2C%20%22b%22%5D"),
    ],
)
def test_a_list_without_a_place_is_written_as_its_provider_writes_one(
    default: str, query: str
) -> None:
    target = api(required=(Parameter(name="v", type="ARRAY", default=default),))
    assert request(target, {"v": [1, "b"]}).url.query.decode() == query


@pytest.mark.parametrize("sign", [",", "|", ";"])
def test_an_item_that_holds_its_providers_separator_is_refused(sign: str) -> None:
    target = api(required=(Parameter(name="v", type="ARRAY", default=f"x{sign}y"),))
    with pytest.raises(ArgumentError, match="parts them"):
        request(target, {"v": [f"a{sign}b", "c"]})


def test_a_list_or_object_that_is_written_as_text_is_one_in_a_json_body() -> None:
    target = api(
        method="POST",
        required=tuple(Parameter(name=name, type="OBJECT") for name in ("a", "b", "c", "d")),
    )
    texts = {"a": '{"x": [1]}', "b": "[2]", "c": "v1", "d": '["\\ud800", NaN]'}
    wanted = texts | {"a": {"x": [1]}, "b": [2]}
    assert json.loads(request(target, texts).content) == wanted


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("NUMBER", "three"),
        ("NUMBER", [1]),
        ("NUMBER", True),
        ("BOOLEAN", "perhaps"),
        ("BOOLEAN", [True]),
        ("STRING", ["a"]),
        ("ENUM", {"a": 1}),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match="'v'"):
        args.bind(api(required=(Parameter(name="v", type=kind),)), {"v": value})


def test_every_wrong_argument_is_named_at_once() -> None:
    target = api(
        required=(Parameter(name="a", type="NUMBER"), Parameter(name="b"), Parameter(name="c"))
    )
    with pytest.raises(ArgumentError) as caught:
        args.bind(target, {"a": "x", "d": 1, "c": "ok"})
    for part in ("'a' must be a number", "'b' is missing", "unknown argument 'd'"):
        assert part in caught.value.message


def test_a_default_is_sent_only_where_a_schema_says_that_it_is_one() -> None:
    schema = {"type": "string", "default": "2"}
    with_schema = Parameter(name="v", place="query", json_schema=schema)
    target = api(required=(with_schema,), optional=(with_schema.model_copy(update={"name": "w"}),))
    assert args.bind(target, {}) == {"v": "2"}
    example = Parameter(name="v", place="query", json_schema={"type": "string", "examples": ["2"]})
    for none in (example, Parameter(name="v", default="2", place="query")):
        with pytest.raises(ArgumentError, match="'v' is missing"):
            args.bind(api(required=(none,)), {})


@pytest.mark.parametrize(
    ("kind", "default", "sent"),
    [("boolean", False, False), ("integer", "3", 3), ("integer", "many", "many")],
)
def test_a_default_takes_its_declared_type_where_it_fits(
    kind: str, default: Any, sent: Any
) -> None:
    parameter = Parameter(name="v", default=default, place="query", json_schema={"type": kind})
    assert args.bind(api(required=(parameter,)), {}) == {"v": sent}


def test_one_name_given_twice_is_refused() -> None:
    target = api(
        optional=(Parameter(name="userId"), Parameter(name="class"), Parameter(name="is_class"))
    )
    with pytest.raises(ArgumentError, match="'userid' is given twice"):
        args.bind(target, {"userId": "a", "userid": "b"})
    twins = api(required=(Parameter(name="array[]"), Parameter(name="array")))
    with pytest.raises(ArgumentError, match="'array_2' is missing"):  # as a call would give it
        args.bind(twins, {"array": "a"})
    both = {"class": "1", "is_class": "2"}
    assert args.bind(target, both) == both
    with pytest.raises(ArgumentError, match="'n' twice"):
        args.parse('{"a": {"n": 1, "n": 2}}')
