"""What leads on from a response: redirects, 304, 202, headers, binary bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.calls.caller import Caller, CallResult, Network
from toolsrv_runtime.calls.policy import Policy, parse_rules
from toolsrv_runtime.calls.response_body import parse_body, safe_filename

_HOST = "https://api.test"


def call(
    responses: Mapping[str, httpx.Response], method: str = "POST", accept: str = ""
) -> tuple[CallResult, list[httpx.Request]]:
    """The result of a call of ``/x`` at a host with these responses, and what it received."""
    seen: list[httpx.Request] = []

    async def host(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = responses[request.url.path]
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=httpx.ByteStream(answer.content)
        )

    api = Api(
        id="C/t/a",
        category="C",
        tool="t",
        name="a",
        method=method,
        url=f"{_HOST}/x",
        optional=(Parameter(name="v", place="body" if method == "POST" else "query"),),
        accept=accept,
    )

    async def run() -> CallResult:
        policy = Policy(rules=parse_rules("allow * api.test"))
        network = Network(httpx.MockTransport(host))
        async with Caller(transports={}, network=network, policy=policy) as caller:
            return await caller.call(api, {"v": "1"})

    return asyncio.run(run()), seen


def to(status: int, location: str = "/y") -> httpx.Response:
    return httpx.Response(status, headers={"Location": location})


def test_after_303_the_result_is_read_with_get() -> None:
    got, seen = call({"/x": to(303), "/y": httpx.Response(200, json={"id": 7})})
    assert [(one.method, one.url.path, one.content) for one in seen] == [
        ("POST", "/x", b'{"v":"1"}'),
        ("GET", "/y", b""),
    ]
    assert "content-type" not in seen[1].headers
    assert (got.kind, got.response) == ("ok", {"id": 7})


def test_after_303_to_another_host_the_call_is_done() -> None:
    got, seen = call({"/x": to(303, "https://other.test/y")})
    assert len(seen) == 1
    assert (got.kind, got.status) == ("ok", 303)
    assert got.headers == {"location": "https://other.test/y"}


@pytest.mark.parametrize("status", [307, 308])
def test_307_and_308_keep_method_and_body(status: int) -> None:
    got, seen = call({"/x": to(status), "/y": httpx.Response(200, json=1)})
    assert [(one.method, one.content) for one in seen] == [("POST", b'{"v":"1"}')] * 2
    assert seen[1].headers["content-type"] == "application/json"
    assert got.ok


@pytest.mark.parametrize("status", [301, 302])
def test_a_post_that_is_moved_is_not_sent_again(status: int) -> None:
    got, seen = call({"/x": to(status)})
    assert len(seen) == 1
    assert (got.kind, got.headers) == ("blocked_by_policy", {"location": "/y"})


@pytest.mark.parametrize("status", [307, 308])
def test_no_post_goes_to_another_host(status: int) -> None:
    got, seen = call({"/x": to(status, "https://other.test/y")})
    assert (len(seen), got.kind) == (1, "blocked_by_policy")


@pytest.mark.parametrize("status", [500, 503])
def test_nobody_is_told_to_send_a_post_again(status: int) -> None:
    got, _ = call({"/x": httpx.Response(status)})
    assert "again later" not in got.hint
    assert "carried out" in got.hint


def test_304_is_no_fault() -> None:
    got, _ = call({"/x": httpx.Response(304, headers={"ETag": '"a"'})}, "GET")
    assert (got.kind, got.headers) == ("ok", {"etag": '"a"'})


def test_headers_that_lead_on_come_with_the_response() -> None:
    job = {"Location": "/jobs/9", "Retry-After": "5", "Set-Cookie": "s=1"}
    got, _ = call({"/x": httpx.Response(202, headers=job)})
    assert got.headers == {"location": "/jobs/9", "retry-after": "5"}
    assert (got.kind, got.retry_after) == ("ok", 5.0)
    link = {"Link": '</x?page=2>; rel="next"'}
    got, _ = call({"/x": httpx.Response(200, headers=link, json=[])}, "GET")
    assert got.headers == {"link": '</x?page=2>; rel="next"'}


def test_the_declared_media_type_is_asked_for() -> None:
    _, seen = call({"/x": httpx.Response(200)}, "GET", accept="application/vnd.shop.v2+json")
    assert seen[0].headers["accept"] == "application/vnd.shop.v2+json"
    _, seen = call({"/x": httpx.Response(200)}, "GET")
    assert seen[0].headers["accept"] == "*/*"


_PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
_WIDE = "text/plain; charset=utf-16"


def answer(content: bytes, media: str | None = None, **headers: str) -> CallResult:
    """The result of a GET that is answered so; ``media`` None: without a media type."""
    given = headers | ({} if media is None else {"Content-Type": media})
    return call({"/x": httpx.Response(200, headers=given, content=content)}, "GET")[0]


@pytest.mark.parametrize(
    ("declared", "content", "media"),
    [
        ("image/png", _PNG, "image/png"),
        ("image/png; charset=utf-8", _PNG, "image/png"),
        ("image/jpeg", _PNG, "image/png"),
        ("text/html", _PNG, "image/png"),
        ("application/json", _PNG, "image/png"),
        (None, _PNG, "image/png"),
        ("nonsense", _PNG, "image/png"),
        ("application/octet-stream", b"a\0b", "application/octet-stream"),
        ("text/plain; charset=utf-8", b"\1\0\2\xff", "application/octet-stream"),
        (None, b"\xfd\xfe\x01", "application/octet-stream"),
        ("application/pdf", b"%PDF-1.7\nonly ASCII", "application/pdf"),
        ("application/vnd.oasis.opendocument.text", b"PK\3\4", "application/vnd.oasis.opendocument.text"),
        ("application/octet-stream", b"PK\3\4", "application/zip"),
        ("audio/x-m4a", b"\0\0\0\x20ftypM4A \0", "audio/x-m4a"),
        ("audio/mpeg", b"ID3\4\0\0", "audio/mpeg"),
    ],
)  # fmt: skip
def test_a_binary_body_is_kept_and_never_read_as_text(
    declared: str | None, content: bytes, media: str
) -> None:
    got = answer(content, declared)
    assert got.response == f"binary, {len(content)} bytes, {media}, not shown"
    assert [(one.content, one.media) for one in got.files] == [(content, media)]
    assert got.ok


@pytest.mark.parametrize(
    ("declared", "content", "text"),
    [
        ("application/octet-stream", b"a,b\n1,2", "a,b\n1,2"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
        ("audio/mpegurl", b"#EXTM3U", "#EXTM3U"),
        ("text/plain; charset=iso-8859-1", b"caf\xe9", "caf\u00e9"),
        (_WIDE, "\ufeffhi".encode("utf-16-le"), "hi"),
        (None, b"plain", "plain"),
        ("image/png", b"", ""),
    ],
)
def test_what_is_text_stays_text(declared: str | None, content: bytes, text: str) -> None:
    got = answer(content, declared)
    assert (got.response.lstrip("\ufeff"), got.files) == (text, ())


def test_json_that_is_bytes_is_no_success() -> None:
    got = answer(b"\1\0\2", "application/json")
    assert (got.kind, got.files[0].content) == ("not_json", b"\1\0\2")


@pytest.mark.parametrize(
    ("header", "name", "safe"),
    [
        ('attachment; filename="a b.png"', "a b.png", "a b.png"),
        ("attachment; filename=\"x.png\"; filename*=UTF-8''na%C3%AFve.png", "naïve.png", "naïve.png"),
        ("attachment; filename=../../etc/passwd", "../../etc/passwd", "passwd.png"),
        ('attachment; filename="C:\\\\evil\\\\con.png"', "C:\\evil\\con.png", "con_.png"),
        ('attachment; filename=".bashrc"', ".bashrc", "bashrc.png"),
        ("attachment; filename*=utf-8''a%E2%80%AEgnp.exe", "agnp.exe", "agnp.exe"),
        ("inline; filename*=nothing''%FF", "\xff", "\xff.png"),
        ("attachment", "", "file.png"),
    ],
)  # fmt: skip
def test_the_name_of_a_file_is_untrusted(header: str, name: str, safe: str) -> None:
    (file,) = answer(_PNG, "image/png", **{"Content-Disposition": header}).files
    assert file.name == name
    assert safe_filename(file.name, file.media) == safe


def test_bytes_over_the_limit_or_with_a_key_are_not_kept() -> None:
    headers = httpx.Headers({"Content-Type": "image/png"})
    large = parse_body(_PNG, headers, too_large=True)
    assert (large.file, large.too_large) == (None, True)
    secret = parse_body(_PNG + b"s3cret-key", headers, too_large=False, secrets=("s3cret-key",))
    assert secret.file is None
    assert "repeats a key" in secret.value
