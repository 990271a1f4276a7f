"""The fuzzing target of ``toolsrv world serve``: whatever is sent, the reply is one of a few.

It stands here and not in the laboratory, which knows nothing of servers. The application is driven
as its web server drives it; behind it answers a host that says what the case says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from hypothesis import strategies as st

from toolsrv.api_server.app import BODY_LIMIT, create_app
from toolsrv.api_server.protocol import World
from toolsrv_lab.fuzzing.strategies import CALLS, TEXTS, Target, hold, json_values
from toolsrv_registry.api import Api
from toolsrv_runtime.calls.caller import ApiOrigin, Caller
from toolsrv_runtime.calls.result import RESULT_KINDS
from toolsrv_runtime.stop import Stop

TOKEN = "a-token-that-no-case-draws"  # noqa: S105 - of the server that is tried
_MARK = "$TOKEN"
"""Stands for the token in a case."""
_REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 421, 422})


class _Host(httpx.AsyncBaseTransport):
    """Answers every call with the same bytes and counts them."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        del request
        self.calls += 1
        kind = {"content-type": self._answer["type"]}
        said = self._answer["text"].encode("latin-1", "replace")
        stream = httpx.ByteStream(said)
        return httpx.Response(self._answer["status"], headers=kind, stream=stream)


def _check(case: Any) -> None:
    api = Api.model_validate(case["call"]["api"])
    host = _Host(case["answer"])
    caller = Caller(
        transports=dict.fromkeys(("api.test", "a-b.api.test", "2001:db8::1"), host),
        home=lambda _api: ApiOrigin(schema=case["schema"]),
    )
    world = World(lambda ids: {one: api for one in ids if one == api.id}, caller, Stop())
    status, headers, body = asyncio.run(_asked(create_app(world, TOKEN), case))
    told = body.decode("ascii")
    hold(status == 200 or status in _REFUSALS, "a reply, or what is wrong with a request", status)
    said = json.loads(told)
    hold(said.keys() == {"error", "response"}, "the reply has ToolBench's shape", told)
    hold(all(isinstance(one, str) for one in said.values()), "both are text", told)
    hold(len(said["response"]) <= 2048, "a response is cut", len(said["response"]))
    hold("Traceback" not in said["error"], "nothing of the inside is told", told)
    hold(TOKEN not in told and TOKEN not in str(headers), "the token is not told", told)
    hold(status == 200 or not host.calls, "what is refused makes no call", status)
    if status == 200:
        kind = headers.get(b"x-toolsrv-kind", b"?").decode()
        hold(kind in {"", *RESULT_KINDS}, "the kind is one of the list", kind)
        hold(bool(said["error"]) or kind == "ok", "what is no success has an error", said, kind)
        hold(_knows(case), "without the token nothing is answered", case)
    if api.method not in {"GET", "HEAD"}:
        hold(not host.calls, "nothing is changed", api.method)


def _knows(case: Any) -> bool:
    """Whether the token is in a place where it is looked for."""
    in_head = any(value.removeprefix("Bearer ") == _MARK for _, value in case["headers"])
    return in_head or _MARK in json.dumps(case["body"])


async def _asked(app: Any, case: Any) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send a request to an ASGI application; return status, headers and body of its reply."""
    content = _bytes(case["body"]).replace(_MARK.encode(), TOKEN.encode())
    pieces = _pieces(content, case)
    headers = [(b"host", case["host"].encode("latin-1", "replace"))]
    for name, value in case["headers"]:
        text = value.replace(_MARK, TOKEN)
        headers.append((name.encode(), text.encode("latin-1", "replace")))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": case["method"],
        "scheme": "http",
        "path": case["path"],
        "raw_path": case["path"].encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(pieces, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    starts = [one for one in sent if one["type"] == "http.response.start"]
    hold(len(starts) == 1, "there is one reply", sent)
    body = b"".join(one.get("body", b"") for one in sent)
    return starts[0]["status"], dict(starts[0]["headers"]), body


def _pieces(content: bytes, case: Any) -> Iterator[dict[str, Any]]:
    """Yield a body in pieces; one that breaks off lacks its last."""
    size = max(1, len(content) // case["pieces"])
    parts = [content[at : at + size] for at in range(0, len(content), size)] or [b""]
    for at, part in enumerate(parts):
        more = at + 1 < len(parts) or case["breaks_off"]
        yield {"type": "http.request", "body": part, "more_body": more}


def _bytes(body: Mapping[str, Any]) -> bytes:
    if "raw" in body:
        raw: bytes = body["raw"].encode("latin-1", "replace")
        times: int = body["times"]
        return raw * times
    text = json.dumps(body["json"], ensure_ascii=body["ascii"])
    return text.encode(body["encoding"], "surrogatepass")


def _mostly(
    usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any], *, times: int = 9
) -> st.SearchStrategy[Any]:
    """Draw from ``usual`` so many times as often as from ``other``."""
    return st.sampled_from([usual] * times + [other]).flatmap(lambda one: one)


def _fields(call: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return bodies that mean the API of a call, mostly, with its arguments or any others."""
    given = call["arguments"]
    anything = json_values(leaves=3)
    right: dict[str, st.SearchStrategy[Any]] = {
        "category": st.just("C"),
        "tool_name": st.sampled_from(["t", "T", "t_for_C"]),
        "api_name": st.sampled_from(["a", "A", "a_for_t"]),
        "tool_input": st.sampled_from([given, json.dumps(given), "", "{}", {}]) | TEXTS,
        "strip": st.sampled_from(["filter", "truncate", "random", ""]),
        "toolbench_key": _mostly(st.just(_MARK), st.sampled_from(["", "another"])),
    }
    whole = st.fixed_dictionaries(right)
    spoilt = st.fixed_dictionaries(
        {}, optional={name: one | anything for name, one in right.items()} | {"more": anything}
    )
    return _mostly(whole, spoilt, times=2)


def _bodies(call: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    written = st.fixed_dictionaries(
        {
            "json": _mostly(_fields(call), json_values(leaves=5)),
            "ascii": st.booleans(),
            "encoding": st.sampled_from(
                ["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32-be"]
            ),
        }
    )
    raw = st.fixed_dictionaries(
        {
            "raw": st.sampled_from(['{"a":', "[", "9", '"', "{}", "NaN", "\xff\xfe", "\x00"])
            | st.text(st.characters(max_codepoint=255), max_size=30),
            "times": st.sampled_from([1, 1, 2, 5_000, BODY_LIMIT + 1]),
        }
    )
    return _mostly(written, raw, times=7)


_ANSWERS = st.fixed_dictionaries(
    {
        "status": st.sampled_from([200, 200, 200, 204, 302, 400, 401, 404, 429, 500, 599]),
        "type": st.sampled_from(["application/json", "text/html", "text/plain; charset=x", ""]),
        "text": (json_values(leaves=6).map(json.dumps))
        | st.sampled_from(["9" * 5_000, "[" * 3_000, '{"a":' * 500, "<html>", "\xff", "x" * 9_000])
        | TEXTS,
    }
)
_HEADERS = st.lists(
    st.sampled_from(
        [
            ("authorization", f"Bearer {_MARK}"),
            ("toolbench_key", _MARK),
            ("authorization", "Basic eA=="),
            ("authorization", ""),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:1"),
            ("origin", "http://[::"),
            ("content-length", "0"),
            ("content-length", "9" * 20),
            ("content-length", "-1"),
            ("content-type", "text/plain; charset=utf-7"),
        ]
    ).map(list),
    max_size=2,
)


def _readable(call: Mapping[str, Any]) -> dict[str, Any]:
    """Make most calls of a kind that is answered: reading, over TLS, with nothing demanded."""
    api = dict(call["api"])
    if len(json.dumps(api)) % 4:
        api["method"], api["url"] = "GET", "https://api.test/v1"
        api["optional"] = [*api["optional"], *api.pop("required")]
    return {**call, "api": api}


def _cases(call: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "call": st.just(call),
            "answer": _ANSWERS,
            "schema": st.none() | json_values(leaves=3),
            "body": _bodies(call),
            "headers": _mostly(st.just([]), _HEADERS, times=2),
            "host": _mostly(
                st.just("127.0.0.1:8766"), st.sampled_from(["localhost", "[::1]:1"]) | TEXTS
            ),
            "method": _mostly(st.just("POST"), st.sampled_from(["GET", "PUT"])),
            "path": _mostly(
                st.sampled_from(["/virtual", "/rapidapi"]), st.sampled_from(["/", "/virtual/x"])
            ),
            "pieces": st.integers(1, 4),
            "breaks_off": _mostly(st.just(value=False), st.just(value=True)),
        }
    )


_LONG_ANSWER = {
    "call": {
        "api": {
            "id": "C/t/a",
            "category": "C",
            "tool": "t",
            "name": "a",
            "method": "GET",
            "url": "https://api.test/v1",
        }
    },
    "answer": {"status": 200, "type": "text/plain", "text": "x" * 9_000},
    "schema": None,
    "body": {
        "json": {
            "category": "C",
            "tool_name": "t",
            "api_name": "a",
            "tool_input": {},
            "strip": "",
            "toolbench_key": _MARK,
        },
        "ascii": True,
        "encoding": "utf-8",
    },
    "headers": [],
    "host": "127.0.0.1:8766",
    "method": "POST",
    "path": "/virtual",
    "pieces": 1,
    "breaks_off": False,
}
"""More than a response may hold: one draw in hundreds is answered so."""

TARGETS = (
    Target(
        "world",
        "requests to the API world",
        CALLS.map(_readable).flatmap(_cases),
        _check,
        known=(_LONG_ANSWER,),
    ),
)
