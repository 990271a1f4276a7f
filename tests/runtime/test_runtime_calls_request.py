"""Requests of calls: places, styles, media types, and values that move a request nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.live_calls import api, request

from toolsrv_registry.api import Parameter, Style
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.errors import ArgumentError, PolicyError


def test_every_parameter_goes_to_its_place_under_its_own_name() -> None:
    target = api(
        "https://api.test/v1/{user id}/items?lang=en&city=Rome",
        method="POST",
        required=(
            Parameter(name="user id", place="path"),
            Parameter(name="X-Trace", place="header"),
            Parameter(name="sid", place="cookie"),
            Parameter(name="city", place="query"),
            Parameter(name="tags", type="ARRAY", place="query"),
            Parameter(name="text", place="body"),
            Parameter(name="n", type="NUMBER", place="body"),
        ),
    )
    arguments = {
        "user_id": "a/b ü",
        "x_trace": "t1",
        "sid": "a;b",
        "city": "São Paulo&x=1",
        "tags": ["a", "b"],
        "text": "hé\n",
        "n": "3",
    }
    got = request(target, arguments)
    assert str(got.url) == (
        "https://api.test/v1/a%2Fb%20%C3%BC/items"
        "?lang=en&city=S%C3%A3o%20Paulo%26x%3D1&tags=a&tags=b"
    )
    assert got.headers["X-Trace"] == "t1"
    assert got.headers["Cookie"] == "sid=a%3Bb"
    assert json.loads(got.content) == {"text": "hé\n", "n": 3}


LIST, OBJECT = ["a", "b,c d"], {"min": 1, "to": ["x", "y"]}


@pytest.mark.parametrize(
    ("style", "value", "wanted"),
    [
        ("", LIST, "v=a&v=b%2Cc%20d"),
        ("commas", LIST, "v=a,b%2Cc%20d"),
        ("spaces", ["a", "b,c"], "v=a%20b%2Cc"),
        ("pipes", LIST, "v=a%7Cb%2Cc%20d"),
        ("pairs", OBJECT, "min=1&to=%5B%22x%22%2C%22y%22%5D"),
        ("commas", {"min": 1, "max": 2}, "v=min,1,max,2"),
        ("brackets", OBJECT, "v%5Bmin%5D=1&v%5Bto%5D%5B0%5D=x&v%5Bto%5D%5B1%5D=y"),
        ("brackets", [{"a": "b"}], "v%5B0%5D%5Ba%5D=b"),
        ("json", ["ü", 1], "v=%5B%22%5Cu00fc%22%2C1%5D"),
        ("json", {"a": None}, "v=%7B%22a%22%3Anull%7D"),
        ("json", [], "v=%5B%5D"),
    ],
)
def test_lists_and_objects_are_written_in_their_style(
    style: Style, value: Any, wanted: str
) -> None:
    kind = "ARRAY" if isinstance(value, list) else "OBJECT"
    target = api(required=(Parameter(name="v", type=kind, place="query", style=style),))
    assert request(target, {"v": value}).url.query.decode() == wanted
    form = api(
        method="POST",
        body_type="application/x-www-form-urlencoded",
        required=(Parameter(name="v", type=kind, place="body", style=style),),
    )
    assert request(form, {"v": value}).content.decode() == wanted


def test_an_object_is_exploded_in_a_query_and_json_in_a_form() -> None:
    parameter = Parameter(name="v", type="OBJECT", place="query")
    assert request(api(required=(parameter,)), {"v": {"a": 1}}).url.query == b"a=1"
    field = parameter.model_copy(update={"place": "body"})
    form = api(method="POST", body_type="application/x-www-form-urlencoded", required=(field,))
    assert request(form, {"v": {"a": 1}}).content == b"v=%7B%22a%22%3A1%7D"


@pytest.mark.parametrize("value", [[], {}, {"a": []}])
@pytest.mark.parametrize("place", ["", "path", "query", "header", "cookie", "body"])
def test_what_would_leave_no_trace_is_refused(value: Any, place: Any) -> None:
    parameter = Parameter(name="v", type="OBJECT", place=place)
    media = "application/x-www-form-urlencoded"
    target = api(
        "https://api.test/x" + "/{v}" * (place == "path"),
        method="POST" if place == "body" else "GET",
        body_type=media,
        required=(parameter,),
    )
    with pytest.raises(ArgumentError, match="'v' is or holds an empty"):
        request(target, {"v": value})


def test_of_one_name_listed_twice_the_first_stands_for_both() -> None:
    target = api(required=(Parameter(name="id"), Parameter(name="id", type="NUMBER")))
    assert request(target, {"id": "a"}).url.query == b"id=a"


@pytest.mark.parametrize(
    ("style", "header", "path"),
    [
        ("commas", "a,1,b,2", "a,1,b,2"),
        ("pairs", "a=1,b=2", "a=1,b=2"),
        ("json", '{"a":1,"b":2}', "%7B%22a%22%3A1%2C%22b%22%3A2%7D"),
    ],
)
def test_objects_in_a_path_or_header_are_written_in_their_style(
    style: Style, header: str, path: str
) -> None:
    target = api(
        "https://api.test/{p}",
        required=(
            Parameter(name="p", type="OBJECT", place="path", style=style),
            Parameter(name="X-H", type="OBJECT", place="header", style=style),
        ),
    )
    got = request(target, {"p": {"a": 1, "b": 2}, "x_h": {"a": 1, "b": 2}})
    assert (got.headers["X-H"], got.url.raw_path.decode()) == (header, f"/{path}")


@pytest.mark.parametrize(
    ("body_type", "wanted"),
    [
        ("application/x-www-form-urlencoded", b"a=1%202&b=true"),
        ("multipart/form-data", b'name="a"\r\n\r\n1 2\r\n'),
        ("", b'{"a":"1 2","b":true}'),
    ],
)
def test_bodies_are_written_in_their_media_type(body_type: str, wanted: bytes) -> None:
    target = api(
        method="POST",
        body_type=body_type,
        required=(
            Parameter(name="a", place="body"),
            Parameter(name="b", type="BOOLEAN", place="body"),
        ),
    )
    got = request(target, {"a": "1 2", "b": True})
    assert wanted in got.content
    assert got.headers["Content-Type"].startswith(body_type or "application/json")


def test_a_whole_body_is_sent_as_it_is() -> None:
    payload = (Parameter(name="body", type="ARRAY", place="payload"),)
    assert request(api(method="POST", required=payload), {"body": [1, 2]}).content == b"[1,2]"
    text = api(
        method="POST", body_type="text/plain", required=(Parameter(name="body", place="payload"),)
    )
    assert request(text, {"body": "hello"}).content == b"hello"


@pytest.mark.parametrize("hole", ["{City Name}", "{cityName}", "{{City Name}}"])
def test_toolbench_placeholders_are_filled_by_name_or_by_what_a_model_sees(hole: str) -> None:
    name = "cityName" if "N" in hole and " " not in hole else "City Name"
    target = api(f"https://api.test/{hole}/now", required=(Parameter(name=name),))
    key = target.required[0].key
    assert str(request(target, {key: "Oslo"}).url) == "https://api.test/Oslo/now"


def test_a_placeholder_that_nothing_fills_is_an_error_before_anything_is_sent() -> None:
    with pytest.raises(ArgumentError, match="'id'"):
        request(api("https://api.test/{id}"), {})


@pytest.mark.parametrize("place", ["path", "header", "cookie"])
@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00b", "\x7f"])
def test_line_ends_never_reach_a_path_a_header_or_a_cookie(place: Any, value: str) -> None:
    target = api("https://api.test/{v}", required=(Parameter(name="v", place=place),))
    with pytest.raises(ArgumentError):
        request(target, {"v": value})


@pytest.mark.parametrize("name", ["Host", "Content-Length", "Transfer-Encoding", "a b", "X:y"])
def test_headers_that_are_ours_cannot_be_set(name: str) -> None:
    target = api(required=(Parameter(name=name, place="header"),))
    with pytest.raises(ArgumentError):
        build_request(target, {name: "x"})


@pytest.mark.parametrize(
    "url",
    [
        "https://{host}/x",
        "https://api.test:{port}/x",
        "https://api.test\r\nX: y/",
        "https://a\\@b/x",
        "https://me:you@api.test/x",
        "/x",
        "",
    ],
)
def test_an_address_that_an_argument_or_a_trick_could_move_is_refused(url: str) -> None:
    names = ("host", "port")
    target = api(url, optional=tuple(Parameter(name=name) for name in names))
    with pytest.raises(PolicyError):
        build_request(target, {"host": "evil.test", "port": "80"})


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_value_moves_a_request_to_another_host_or_path(one: str, other: str) -> None:
    target = api("https://api.test/v1/{a}/end", required=(Parameter(name="a"), Parameter(name="b")))
    try:
        url = request(target, {"a": one, "b": other}).url
    except ArgumentError:
        return
    assert url.host == "api.test"
    assert url.raw_path.startswith(b"/v1/")
    assert url.raw_path.split(b"?")[0].count(b"/") == 3
    assert url.raw_path.split(b"?")[0].endswith(b"/end")
    assert dict(url.params) == {"b": other}


@pytest.mark.parametrize("value", ["é", "\x85", "日本"])
def test_what_no_header_can_hold_is_refused_before_anything_is_sent(value: str) -> None:
    target = api(required=(Parameter(name="X-City", place="header"),))
    with pytest.raises(ArgumentError, match="header"):
        request(target, {"x_city": value})
    typed = api(method="POST", body_type=f"text/plain; {value}", required=(Parameter(name="v"),))
    with pytest.raises(PolicyError, match="media type"):
        request(typed, {"v": "1"})
