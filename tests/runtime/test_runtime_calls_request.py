"""From an API and arguments to a request, to an address, and to ToolBench's codes: pure parts."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter, SecurityScheme, Style
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls import response_body
from toolsrv_runtime.calls.addresses import (
    AddressResolver,
    address_fault,
    parse_own_hosts,
    spelling_fault,
)
from toolsrv_runtime.calls.credentials import authorize, has_credentials, key_names
from toolsrv_runtime.calls.policy import Policy, PolicyRule, parse_rules
from toolsrv_runtime.calls.request import api_address, build_request, web_address
from toolsrv_runtime.errors import ArgumentError, PolicyError


def api(url: str = "https://api.test/x", *, method: str = "GET", **more: Any) -> Api:
    return Api(id="C/t/a", category="C", tool="t", name="a", method=method, url=url, **more)


def request(target: Api, arguments: dict[str, Any]) -> Any:
    return build_request(target, args.bind(target, arguments))


# --- arguments ------------------------------------------------------------------------------------


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


# --- requests -------------------------------------------------------------------------------------


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


# --- keys -----------------------------------------------------------------------------------------

HEADER = SecurityScheme(name="main", kind="apiKey", place="header", key="X-Key")
BEARER = SecurityScheme(name="login", kind="http", scheme="bearer")


def test_rapidapi_hosts_get_their_two_headers_over_tls_only() -> None:
    keys = {"rapidapi": "SECRET"}
    one = api("https://x.p.rapidapi.com/y")
    got = authorize(one, build_request(one, {}), lambda name: keys.get(name, ""))
    assert got.headers == {"X-RapidAPI-Host": "x.p.rapidapi.com", "X-RapidAPI-Key": "SECRET"}
    assert "SECRET" not in repr(got)
    plain = api("http://x.p.rapidapi.com/y")
    assert "X-RapidAPI-Key" not in authorize(plain, build_request(plain, {}), lambda _: "S").headers
    fake = api("https://x.p.rapidapi.com.evil.test/y")
    assert authorize(fake, build_request(fake, {}), lambda name: keys.get(name, "")).headers == {}


def test_the_first_alternative_that_all_keys_are_there_for_is_taken() -> None:
    target = api(security=((HEADER, BEARER), (BEARER,), ()))
    keys = {"api.test/login": "token"}
    got = authorize(target, build_request(target, {}), lambda name: keys.get(name, ""))
    assert got.headers == {"Authorization": "Bearer token"}
    assert authorize(target, build_request(target, {}), lambda _: "").headers == {}
    assert has_credentials(target, "api.test", lambda _: "")
    needs = api(security=((HEADER,),))
    assert not has_credentials(needs, "api.test", lambda _: "")
    assert key_names(needs, "api.test") == ("api.test/main", "api.test")


@pytest.mark.parametrize("spelt", ["a\\u002Bb\\u0026c/d", "a+b&c\\/d", "\\u0061+b&c/d"])
def test_a_key_that_json_spells_with_escapes_does_not_come_back(spelt: str) -> None:
    data = f'{{"you": ["sent {spelt}"], "{spelt}": 1}}'.encode()
    found = response_body.parse_body(data, httpx.Headers(), too_large=False, secrets=("a+b&c/d",))
    assert found.value == {"you": ["sent [key]"], "[key]": 1}


@pytest.mark.parametrize("value", ["é", "\x85", "日本"])
def test_what_no_header_can_hold_is_refused_before_anything_is_sent(value: str) -> None:
    target = api(required=(Parameter(name="X-City", place="header"),))
    with pytest.raises(ArgumentError, match="header"):
        request(target, {"x_city": value})
    typed = api(method="POST", body_type=f"text/plain; {value}", required=(Parameter(name="v"),))
    with pytest.raises(PolicyError, match="media type"):
        request(typed, {"v": "1"})


@pytest.mark.parametrize("key", ["ü", "a\nb", "\x85"])
def test_a_key_that_no_header_can_hold_is_none(key: str) -> None:
    for url in ("https://x.p.rapidapi.com/a", "https://é.p.rapidapi.com/a"):
        target = api(url)
        got = authorize(target, build_request(target, {}), lambda _: key)
        assert "X-RapidAPI-Key" not in got.headers
        assert got.headers["X-RapidAPI-Host"].isascii()
        assert not has_credentials(target, "x.p.rapidapi.com", lambda _: key)


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "100.100.100.200", "0.0.0.0", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "192.0.0.192", "198.18.0.1", "192.0.2.1", "168.63.129.16", "::", "::1",
        "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "2001:0:7f00:1::", "::127.0.0.1", "2001:db8::1", "fec0::1", "::ffff:0:127.0.0.1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert address_fault(address)

    async def answer(name: str, port: int) -> list[str]:
        del name, port
        return ["93.184.215.14", address]

    with pytest.raises(PolicyError, match="resolves to"):
        asyncio.run(AddressResolver(resolve=answer).addresses_of("api.test", 443))
    own = AddressResolver(own={"api.test:443"}, resolve=answer)
    assert address in asyncio.run(own.addresses_of("API.test.", 443))
    with pytest.raises(PolicyError):
        asyncio.run(own.addresses_of("api.test", 80))


def test_hosts_of_ones_own_are_read_as_they_are_compared() -> None:
    assert parse_own_hosts("") == frozenset()
    own = AddressResolver(
        own=parse_own_hosts(" LocalHost:8080, nas., 10.0.0.5 ,[::1]:90,[fd00::2], fd00::3,")
    )
    for host, port in (
        ("localhost", 8080),
        ("NAS", 1),
        ("10.0.0.5", 2),
        ("::1", 90),
        ("fd00::2", 3),
    ):
        assert own.allows_any(host, port)
    assert own.allows_any("fd00::3", 4)
    for host, port in (("localhost", 80), ("::1", 91), ("nas.example", 1)):
        assert not own.allows_any(host, port)


@pytest.mark.parametrize(
    "text",
    ["http://127.0.0.1:1", "localhost, https://x", "localhost/x", "a b", "*", "x:70000", "[::1"],
)
def test_what_is_no_host_of_ones_own_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_own_hosts(text)
    assert "localhost:8080" in caught.value.hint


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:220:1:248:1893:25c8:1946"])
def test_a_public_address_may_be_called(address: str) -> None:
    assert not address_fault(address)


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "017700000001", "1.2.3.0x4",
     "[::1%25eth0]", "", "."],
)  # fmt: skip
def test_a_number_that_stands_for_an_address_is_refused_unresolved(host: str) -> None:
    assert spelling_fault(host)

    async def never(name: str, port: int) -> list[str]:
        raise AssertionError(f"{name}:{port} was looked up")

    with pytest.raises(PolicyError):
        asyncio.run(AddressResolver(resolve=never).addresses_of(host, 443))


# --- policy ---------------------------------------------------------------------------------------


def test_an_empty_text_is_no_rule() -> None:
    with pytest.raises(UsageError):
        PolicyRule.parse("")


@pytest.mark.parametrize("text", ["allow", "permit GET", "allow FETCH", "allow GET a b c", "x"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rules(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("rule", "address"),
    [
        ("deny * localhost:9011", "http://localhost:9011/x"),
        ("deny GET localhost:80", "http://localhost/x"),
        ("deny * LOCALHOST.:443", "https://localhost/x"),
        ("Deny get Api.Example.COM.", "https://api.example.com/x"),
        ("deny * api.example.com", "https://API.example.com:8443/x"),
        ("deny * ::1", "http://[::1]:8080/x"),
        ("deny * 93.184.216.34", "https://[::ffff:93.184.216.34]/x"),
        ("deny * 93.184.216.34:443", "https://[64:ff9b::5db8:d822]/x"),
        ("deny * [::ffff:127.0.0.1]", "http://127.0.0.1/x"),
        ("deny * [0:0::1]:8080", "http://[::1]:8080/x"),
        ("deny * münchen.example", "https://xn--mnchen-3ya.example/x"),
        ("deny * XN--mnchen-3ya.example", "https://münchen.example/x"),
        ("deny * api.münchen.example", "https://api.xn--mnchen-3ya.example/x"),
        ("deny * Catalog:NAS", "https://api.test/x"),
        ("deny * *", "https://api.test/x"),
    ],
)
def test_a_rule_fits_its_host_however_both_are_spelt(rule: str, address: str) -> None:
    target = api(address)
    policy = Policy(rules=parse_rules(rule))
    assert not policy.could_pass(target, "nas", asks=True)
    with pytest.raises(PolicyError, match="denied"):
        policy.check(target, build_request(target, {}), {}, catalog="nas")


def test_a_rule_with_a_port_holds_for_that_port_only() -> None:
    policy = Policy(rules=parse_rules("allow POST localhost:9011"))
    for address, asks in (("http://localhost:9011/x", False), ("http://localhost:9012/x", True)):
        target = api(address, method="POST")
        assert (policy.check(target, build_request(target, {}), {}) is not None) is asks


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        ("http://localhost:9011/read?x", "localhost:9011"),
        ("HTTPS://me:pw@api.example.com", "api.example.com"),
        ("localhost/read", "HOST|host"),
        ("Other/nas/read", "catalog:NAME"),
        ("10.0.0.0/8", "each host"),
        ("fe80::/10", "each host"),
        ("*.example.com", "each host"),
        ("localhost:*", "each host"),
        ("catalog:", "catalog:NAME"),
        ("::1:80", r"\[::1\]:80"),
        ("2001:db8::8080", r"\[2001:db8::8080\]"),
        ("catalog:*", "catalog:NAME"),
        ("me@localhost", "localhost"),
        *(
            (one, "a host")
            for one in (
                "localhost:", "localhost:0", "localhost:70000", "localhost:http", ":80", "a..b",
                "127.1", "[localhost]", "[::1", "fe80::1%eth0", "localhost?x", "ａpi.test", "[]",
            )
        ),
    ],
)  # fmt: skip
def test_a_rule_that_no_call_can_fit_is_refused_with_what_to_write(
    place: str, instead: str
) -> None:
    for verdict in ("allow POST", "deny *", "ask GET"):
        with pytest.raises(UsageError, match="no call can fit") as caught:
            parse_rules(f"{verdict} {place}")
        assert re.search(instead, caught.value.hint)


def test_the_last_rule_that_fits_decides() -> None:
    rules = parse_rules("deny * catalog:c; allow POST api.test, ask GET other.test")
    assert rules[0] == PolicyRule("deny", "*", catalog="c")
    policy = Policy(rules=rules)

    def verdict(target: Api, catalog: str = "") -> str:
        try:
            wanted = policy.check(target, build_request(target, {}), {}, catalog=catalog)
        except PolicyError:
            return "deny"
        return "ask" if wanted else "allow"

    assert verdict(api()) == "allow"
    assert verdict(api(method="POST")) == "allow"
    assert verdict(api(method="DELETE")) == "ask"
    assert verdict(api("https://other.test/x")) == "ask"
    assert verdict(api("https://third.test/x"), "c") == "deny"
    assert verdict(api(method="POST"), "c") == "allow"


@pytest.mark.parametrize(
    "address", ["https://a.test/{x}?y=1", "ftp://b", "", "/c", "http://xn--.test"]
)
def test_an_address_that_is_kept_is_the_one_that_was_read(address: str) -> None:
    told = []
    for read in (web_address, api_address, api_address):
        try:
            told.append(str(read(address)))
        except httpx.InvalidURL as error:
            told.append(repr(error))
    assert len(set(told)) == 1


def test_an_address_is_read_once_and_kept_unless_it_is_very_long() -> None:
    short, long = "https://kept.test/a", f"https://kept.test/{'a' * 2_000}"
    assert api_address(short) is api_address(short)
    assert api_address(long) is not api_address(long)
