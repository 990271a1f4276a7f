"""Live calls through proxies of the environment, against a real proxy on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import ssl
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import trustme
from tests.login_host import LoginHost
from tests.proxy_server import ProxyServer
from tests.runtime.hosts.hostile import HostileHost

from toolsrv_registry.api import Api, SecurityScheme
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.caller import Caller, CallResult, Network
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.rate_limits import HostLimiter, HostLimits
from toolsrv_runtime.calls.transports import Connections, Proxies
from toolsrv_runtime.errors import PolicyError

LIMITS = CallLimits(seconds=8, connect_s=4, read_s=4)
KEY = "key-of-the-host"


@pytest.fixture
def host() -> Iterator[Any]:
    with LoginHost() as one:
        yield one


def api(url: str, *groups: tuple[SecurityScheme, ...]) -> Api:
    return Api(id="C/t/a", category="C", tool="t", name="a", url=url, security=groups)


async def nowhere(name: str, port: int) -> list[str]:
    raise OSError(f"{name} is unknown here, {port}")


async def public(name: str, port: int) -> list[str]:
    del name, port
    return ["93.184.215.14"]


async def private(name: str, port: int) -> list[str]:
    del name, port
    return ["93.184.215.14", "10.0.0.7"]


async def called(
    target: Api,
    proxies: dict[str, str],
    addresses: AddressResolver,
    trust: ssl.SSLContext | None = None,
) -> CallResult:
    network = Network(
        transport=Connections(addresses, proxies=Proxies(proxies), trust=trust),
        keys=lambda _: KEY,
        hosts=HostLimiter(HostLimits(rate=0)),
        own=addresses.allows_any,
    )
    async with Caller(transports={}, limits=LIMITS, network=network) as caller:
        return await caller.call(target, {})


def test_a_call_over_http_goes_through_the_proxy_once_its_address_is_checked(host: Any) -> None:
    async def run() -> tuple[CallResult, list[bytes]]:
        async with ProxyServer() as proxy:
            via = {"http": f"http://127.0.0.1:{proxy.port}"}
            target = api(host.url("echo?a=1", "api.test"))
            return await called(target, via, AddressResolver(resolve=public)), proxy.heads

    got, heads = asyncio.run(run())
    assert got.ok
    assert heads[0].startswith(f"GET http://api.test:{host.port}/echo?a=1 HTTP/1.1".encode())
    assert got.response["headers"]["Host"] == f"api.test:{host.port}"


@pytest.mark.parametrize("resolve", [private, nowhere])
def test_no_proxy_is_asked_for_a_host_whose_address_is_not_known_to_be_public(
    host: Any, resolve: Any
) -> None:
    async def run() -> tuple[list[CallResult], list[bytes]]:
        async with ProxyServer() as proxy:
            via = dict.fromkeys(("http", "https"), f"http://127.0.0.1:{proxy.port}")
            addresses = AddressResolver(resolve=resolve)
            urls = (host.url("echo", "api.test"), f"https://api.test:{host.port}/echo")
            return [await called(api(url), via, addresses) for url in urls], proxy.heads

    got, heads = asyncio.run(run())
    kind = "blocked_by_policy" if resolve is private else "network_error"
    assert [one.kind for one in got] == [kind, kind]
    assert heads == []
    assert host.requests == []


def test_a_spelt_address_is_refused_before_a_proxy_is_asked() -> None:
    async def run() -> tuple[CallResult, list[bytes]]:
        async with ProxyServer() as proxy:
            via = {"http": f"http://127.0.0.1:{proxy.port}"}
            return await called(api("http://0x7f000001/x"), via, AddressResolver()), proxy.heads

    got, heads = asyncio.run(run())
    assert (got.kind, heads) == ("blocked_by_policy", [])


def test_a_name_of_ones_own_may_be_the_proxys_to_resolve(host: Any) -> None:
    async def run() -> tuple[CallResult, list[bytes]]:
        async with ProxyServer() as proxy:
            via = {"http": f"127.0.0.1:{proxy.port}"}
            addresses = AddressResolver(own={"inside.test"}, resolve=nowhere)
            target = api(host.url("echo", "inside.test"))
            return await called(target, via, addresses), proxy.heads

    got, heads = asyncio.run(run())
    assert got.ok
    assert len(heads) == 1


def tls(authority: trustme.CA) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server that is api.test, and of a client that trusts it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.test").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


@pytest.mark.parametrize("login", ["", "ann:pass word-3"])
def test_https_is_tunnelled_and_the_proxy_sees_no_key(login: str) -> None:
    server, client = tls(trustme.CA())
    scheme = SecurityScheme(name="k", kind="http", scheme="bearer")

    async def run() -> tuple[CallResult, list[bytes], list[bytes]]:
        async with HostileHost(tls=server) as host, ProxyServer(login=login) as proxy:
            user = f"{login.replace(' ', '%20')}@" if login else ""
            via = {"https": f"http://{user}127.0.0.1:{proxy.port}"}
            target = api(host.url("fine"), (scheme,))
            got = await called(target, via, AddressResolver(resolve=public), client)
            return got, proxy.heads, host.heads

    got, heads, seen = asyncio.run(run())
    assert got.ok
    assert heads[0].startswith(b"CONNECT api.test:")
    assert KEY.encode() not in b"".join(heads)
    assert KEY.encode() in seen[0]
    assert b"Proxy-Authorization" not in seen[0]


def test_a_proxy_that_refuses_is_a_network_error_without_its_password(host: Any) -> None:
    async def run() -> list[CallResult]:
        async with ProxyServer(login="a:b", refuses=True) as proxy:
            via = dict.fromkeys(("http", "https"), f"http://ann:wrong-one@127.0.0.1:{proxy.port}")
            urls = (host.url("echo", "api.test"), "https://api.test/echo")
            addresses = AddressResolver(resolve=public)
            return [await called(api(url), via, addresses) for url in urls]

    for got in asyncio.run(run()):
        assert got.kind == "network_error"
        assert "proxy" in got.error
        assert "wrong-one" not in got.model_dump_json()
    assert host.requests == []


@pytest.mark.parametrize("no", ["127.0.0.1", "*", "other.test, 127.0.0.1"])
def test_what_no_proxy_names_is_reached_directly(host: Any, no: str) -> None:
    via = {"http": "http://127.0.0.1:9", "no": no}
    got = asyncio.run(called(api(host.url("echo")), via, AddressResolver(own={"127.0.0.1"})))
    assert got.ok


def test_the_environment_names_the_proxy_of_each_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    plain, secure = httpx.URL("http://api.test/x"), httpx.URL("https://api.test/x")
    assert Proxies.of_environment().for_url(plain) is None
    monkeypatch.setenv("HTTP_PROXY", "http://one:8080")
    monkeypatch.setenv("all_proxy", "http://all:1")
    monkeypatch.setenv("NO_PROXY", "away.test")
    found = Proxies.of_environment()
    assert [str(one.url) for one in map(found.for_url, (plain, secure)) if one] == [
        "http://one:8080/",
        "http://all:1/",
    ]
    assert found.for_url(httpx.URL("https://x.away.test/")) is None


@pytest.mark.parametrize(
    "text", ["ftp://one:1", "http://", "http://[::1", "http://one:99999999", "socks4://one:1"]
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_value(text: str) -> None:
    address = text.replace("one", "ann:word-5@one")
    with pytest.raises(PolicyError) as raised:
        Proxies({"http": address}).for_url(httpx.URL("http://api.test/"))
    assert "word-5" not in f"{raised.value.message} {raised.value.hint}"
    assert "HTTP_PROXY" in raised.value.message


def test_socks_without_its_package_is_refused_with_what_to_install(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    via = {"all": "socks5://127.0.0.1:9"}
    got = asyncio.run(
        called(api(host.url("echo", "api.test")), via, AddressResolver(resolve=public))
    )
    assert got.kind == "blocked_by_policy"
    assert "socksio" in got.error
    assert "toolsrv[socks]" in got.hint


def test_socks_is_used_where_its_package_is_there(host: Any) -> None:
    pytest.importorskip("socksio")

    async def run() -> tuple[CallResult, list[bytes]]:
        async with ProxyServer(socks=True) as proxy:
            via = {"all": f"socks5://127.0.0.1:{proxy.port}"}
            target = api(host.url("echo", "api.test"))
            return await called(target, via, AddressResolver(resolve=public)), proxy.heads

    got, heads = asyncio.run(run())
    assert got.ok
    assert heads == [b"api.test"]
