"""Calls: arguments bound to their types, the policy, and APIs that misbehave, over real servers."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.errors import ArgumentError

HOST = "api.example.test"


def api(path: str = "/x", *, method: str = "GET", host: str = HOST, **parts: Any) -> Api:
    return Api(
        id="C/t/a",
        category="C",
        tool="t",
        name="a",
        method=method,
        url=f"https://{host}{path}",
        **parts,
    )


TYPED = api(
    required=(Parameter(name="n", type="NUMBER"), Parameter(name="id")),
    optional=(
        Parameter(name="deep", type="BOOLEAN"),
        Parameter(name="style", type="ENUM", enum=("plain", "rich")),
    ),
)


def test_values_take_the_declared_types() -> None:
    bound = args.bind(TYPED, {"n": "1250.5", "is_id": 7, "deep": "true", "style": "RICH"})
    assert bound == {"n": 1250.5, "id": "7", "deep": True, "style": "rich"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n": 1}, "is_id"),
        ({"is_id": "x"}, "n"),
        ({"n": "many", "id": "x"}, "n"),
        ({"n": True, "id": "x"}, "n"),
        ({"n": float("nan"), "id": "x"}, "n"),
        ({"n": 1, "id": "x", "deep": "perhaps"}, "deep"),
        ({"n": 1, "id": "x", "style": "baroque"}, "style"),
        ({"n": 1, "id": "x", "styel": "plain"}, "styel"),
        ({"n": 1, "id": ["x"]}, "is_id"),
        ({"n": 1, "id": "x" * 8_000_001}, "is_id"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        args.bind(TYPED, arguments)
    assert repr(named) in caught.value.message
    assert "n, is_id" in caught.value.hint


def test_a_misspelt_argument_gets_a_suggestion() -> None:
    with pytest.raises(ArgumentError, match="did you mean 'style'"):
        args.bind(TYPED, {"n": 1, "id": "x", "styel": "plain"})


@pytest.mark.parametrize("text", ["[1]", "7", '"x"', "{", "{'a': 1}", "[" * 100_000])
def test_arguments_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        args.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": }', "at character 7"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ("[1]", "are a list,"),
        ('"x"', "are a string,"),
        ("true", "are a boolean,"),
        ("null", "are null,"),
        ("7.5", "are a number,"),
    ],
)
def test_what_is_wrong_with_arguments_as_text_is_said(text: str, said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        args.parse(text)
    assert said in caught.value.message


def test_one_value_is_read_as_a_call_would_read_it() -> None:
    parameter = Parameter(name="n", type="NUMBER", place="query", json_schema={"type": "integer"})
    assert args.convert(TYPED, Parameter(name="n", type="NUMBER"), "1250.5") == 1250.5
    assert args.convert(TYPED, Parameter(name="s", enum=("rich",)), "RICH") == "rich"
    with pytest.raises(ArgumentError, match="must be a whole number, not 'many'") as caught:
        args.convert(TYPED, parameter, "many")
    assert caught.value.hint == "it is the value of 'n'"
    assert args.parse(" \n") == {}


def test_the_arguments_of_a_refusal_are_those_that_can_be_written() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    given = {"a": 1, "b": float("nan"), "c": "\ud800", "d": deep, "e": object(), "\ud800": 1}
    assert args.json_safe(given) == {"a": 1}


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, ", … (21 in all)")])
def test_of_very_many_choices_some_are_listed(count: int, more: str) -> None:
    names = tuple(f"n{at}" for at in range(count))
    api = TYPED.model_copy(update={"required": (), "optional": (Parameter(name="s", enum=names),)})
    with pytest.raises(ArgumentError) as caught:
        args.bind(api, {"s": "other"})
    listed = ", ".join(names[:20])
    assert caught.value.message.endswith(f"must be one of {listed}{more}, not 'other'")
    assert caught.value.hint == "it takes: s (optional)"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["n", "id", "is_id", "deep", "style", "x"]), JSON))
def test_any_arguments_bind_or_are_refused(arguments: dict[str, Any]) -> None:
    try:
        bound = args.bind(TYPED, arguments)
    except ArgumentError:
        return
    assert set(bound) <= {"n", "id", "deep", "style"}
    assert isinstance(bound["n"], (int, float, str))


def call(api_: Api, app: Any, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    async def run() -> Any:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with Caller(transports={HOST: transport}, **options) as caller:
            return await caller.call(api_, arguments or {})

    return asyncio.run(run())


def answering(status: int, body: bytes, kind: bytes = b"application/json") -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def echo(scope: Any, receive: Any, send: Any) -> None:
    seen = {"path": scope["raw_path"].decode(), "query": scope["query_string"].decode()}
    await answering(200, json.dumps(seen).encode())(scope, receive, send)


def test_placeholders_are_filled_and_quoted_and_the_rest_is_query() -> None:
    target = api(
        "/v1/{city}/now",
        required=(Parameter(name="city"), Parameter(name="days", type="NUMBER")),
    )
    seen = call(target, echo, {"city": "São Paulo/../x?y", "days": 3}).response
    assert seen["path"].startswith("/v1/S%C3%A3o%20Paulo%2F..%2Fx%3Fy/now")
    assert seen["query"] == "days=3"


def test_an_api_that_answers_500_is_a_result_not_an_exception() -> None:
    got = call(api(), answering(500, b'{"error": "boom"}'))
    assert (got.status, got.ok, got.error) == (500, False, "HTTP status 500")
    assert got.response == {"error": "boom"}


def test_an_api_that_crashes_is_a_500() -> None:
    async def crash(*_: Any) -> None:
        raise RuntimeError("inside the API")

    assert call(api(), crash).status == 500


def test_an_api_that_never_answers_is_given_up_in_time() -> None:
    async def sleep(*_: Any) -> None:
        await asyncio.Event().wait()

    got = call(api(), sleep, timeout=0.05)
    assert (got.status, got.error) == (0, "no answer within 0.05 seconds")


def test_html_bad_json_and_unknown_charsets_come_back_as_text() -> None:
    html = call(api(), answering(200, b"<h1>Hi</h1>", b"text/html; charset=klingon"))
    assert html.response == "<h1>Hi</h1>"
    hidden = "a\u200bb\u202ec".encode()
    assert call(api(), answering(200, hidden, b"text/plain")).response == "abc"


def test_a_body_is_read_only_up_to_the_cap() -> None:
    limits = CallLimits(size=1_000)
    got = call(api(), answering(200, b"a" * 1_010, b"text/plain"), limits=limits)
    assert (got.kind, got.ok, len(got.response)) == ("too_large", False, 1_000)
    assert call(api(), answering(200, b"a" * 1_000, b"text/plain"), limits=limits).ok


def test_deeply_nested_json_is_text() -> None:
    assert isinstance(call(api(), answering(200, b"[" * 200_000)).response, str)


@pytest.mark.parametrize(
    "refused",
    [
        api(method="POST"),
        api(method="DELETE"),
        api(host="elsewhere.test"),
        api(host="user:secret@" + HOST),
        Api(id="C/t/a", category="C", tool="t", name="a", url=f"http://{HOST}/x"),
        Api(id="C/t/a", category="C", tool="t", name="a", url=""),
        Api(id="C/t/a", category="C", tool="t", name="a", url="https://[broken"),
    ],
)
def test_the_policy_lets_only_reading_calls_to_served_hosts_pass(refused: Api) -> None:
    got = call(refused, echo)
    assert got.kind == ("needs_consent" if refused.method != "GET" else "blocked_by_policy")
    assert got.refused
    assert got.hint


def test_a_policy_may_allow_more_methods() -> None:
    got = call(api(method="POST"), echo, policy=Policy(methods=("GET", "POST")))
    assert got.ok


@pytest.fixture
def reset_server() -> Iterator[str]:
    """A server that accepts and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            try:
                server.accept()[0].close()
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    done.set()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


def test_a_broken_connection_is_a_result(reset_server: str) -> None:
    async def run() -> Any:
        async with Caller(transports={"127.0.0.1": httpx.AsyncHTTPTransport()}) as caller:
            return await caller.call(api(host=reset_server), {})

    got = asyncio.run(run())
    assert got.status == 0
    assert got.error


def test_an_offline_api_is_called_like_a_remote_one(apis: dict[str, Api]) -> None:
    async def run() -> Any:
        async with default_caller() as caller:
            return await caller.call(apis["Data/country_facts/capital_city"], {"country": "Peru"})

    got = asyncio.run(run())
    assert got.response == {"country": "Peru", "capital": "Lima"}
    assert (got.status, got.source) == (200, "offline")


@pytest.mark.parametrize("city", [".", "..", " ", "\ud800"])
def test_a_value_that_names_another_place_is_refused(city: str) -> None:
    target = api("/v1/{city}/now", required=(Parameter(name="city"),))
    assert call(target, echo, {"city": city}).kind == "bad_arguments"


@pytest.mark.parametrize("place", ["path", "query", "header", "cookie", "body", "payload"])
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(place: Any) -> None:
    for kind, value in (
        ("STRING", "\ud800"),
        ("ARRAY", ["a", "\ud800"]),
        ("OBJECT", {"a": {"\ud800": 1}}),
    ):
        parameter = Parameter(name="city", type=kind, place=place)
        target = api("/v1/{city}/now", required=(parameter,), method="POST")
        with pytest.raises(ArgumentError, match="Unicode"):
            args.bind(target, {"city": value})
        default = Parameter(name="city", place=place, json_schema={"default": value})
        with pytest.raises(ArgumentError, match="Unicode"):
            args.bind(target.model_copy(update={"required": (default,)}), {})


def test_an_endless_integer_is_refused() -> None:
    with pytest.raises(ArgumentError):
        args.parse('{"a": ' + "1" * 5_000 + "}")
