"""Keys of calls: which is sent, where it goes, and that it never comes back."""

from __future__ import annotations

import asyncio
import logging

import httpx
import pytest
from tests.live_calls import api, caller
from tests.runtime.hosts.hostile import HostileHost

from toolsrv_registry.api import SecurityScheme
from toolsrv_runtime.calls import response_body
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.calls.credentials import authorize, has_credentials, key_names
from toolsrv_runtime.calls.request import build_request

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


@pytest.mark.parametrize("key", ["ü", "a\nb", "\x85"])
def test_a_key_that_no_header_can_hold_is_none(key: str) -> None:
    for url in ("https://x.p.rapidapi.com/a", "https://é.p.rapidapi.com/a"):
        target = api(url)
        got = authorize(target, build_request(target, {}), lambda _: key)
        assert "X-RapidAPI-Key" not in got.headers
        assert got.headers["X-RapidAPI-Host"].isascii()
        assert not has_credentials(target, "x.p.rapidapi.com", lambda _: key)


CANARY = "canary-7f3e/+=9 key"


@pytest.mark.parametrize(
    ("scheme", "sent"),
    [
        (SecurityScheme(name="k", kind="apiKey", place="header", key="X-Key"), "X-Key: canary"),
        (SecurityScheme(name="k", kind="apiKey", place="query", key="key"), "key=canary"),
        (SecurityScheme(name="k", kind="apiKey", place="cookie", key="sid"), "Cookie: sid=canary"),
        (SecurityScheme(name="k", kind="http", scheme="bearer"), "Authorization: Bearer canary"),
        (SecurityScheme(name="k", kind="http", scheme="basic"), "Authorization: Basic Y2FuYXJ5"),
    ],
)
def test_a_key_goes_where_the_scheme_says_and_comes_back_from_nowhere(
    scheme: SecurityScheme, sent: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def run() -> tuple[CallResult, str]:
        async with HostileHost() as host, caller(host, keys={"api.test": CANARY}.get) as one:
            got = await one.call(api(host.url("echo"), security=((scheme,),)), {})
            return got, host.heads[-1].decode()

    got, head = asyncio.run(run())
    assert sent in head
    assert got.ok
    for text in (got.model_dump_json(), repr(got), caplog.text):
        assert "canary" not in text
        assert "Y2FuYXJ5" not in text


def test_a_key_goes_to_its_own_host_only() -> None:
    scheme = SecurityScheme(name="k", kind="http", scheme="bearer")

    async def run() -> list[bytes]:
        async with HostileHost() as host, caller(host, keys={"other.test": CANARY}.get) as one:
            await one.call(api(host.url("echo"), security=((scheme,),)), {})
            await one.call(api(host.url("private"), security=((scheme,),)), {})
            heads: list[bytes] = host.heads
            return heads

    assert all(b"canary" not in head for head in asyncio.run(run()))
