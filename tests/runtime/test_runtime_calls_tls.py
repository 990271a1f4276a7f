"""Live calls over TLS and HTTP/2, against servers on loopback."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme
from tests.live_calls import PATIENT, QUICK, api, caller, loopback
from tests.runtime.hosts.hostile import HostileHost

from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.caller import Caller, CallResult, Network
from toolsrv_runtime.calls.exchange import CallLimits
from toolsrv_runtime.calls.transports import Connections


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_side(authority: trustme.CA, name: str, *, http2: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    return context


def client_side(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize("http2", [False, True])
def test_tls_is_verified_for_the_name_and_http2_is_taken_where_offered(
    authority: trustme.CA, http2: bool
) -> None:
    async def run() -> None:
        tls = server_side(authority, "api.test", http2=http2)
        async with (
            HostileHost(tls=tls, http2=http2) as host,
            caller(host, trust=client_side(authority)) as one,
        ):
            got = await one.call(api(host.url("fine")), {})
            assert got.response == {"a": 2 if http2 else 1}, got.error

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("status_299", "ok", 299),
        ("status_999", "server_error", 999),
        ("status_2000", "network_error", 0),
        ("status_0", "network_error", 0),
        ("status_-5", "network_error", 0),
        ("status_", "network_error", 0),
        ("status_abc", "network_error", 0),
        ("status_" + "9" * 5_000, "network_error", 0),
        ("broken_frame", "network_error", 0),
    ],
)
def test_whatever_a_host_says_over_http2_is_a_typed_result(
    authority: trustme.CA, path: str, kind: str, status: int
) -> None:
    async def run() -> None:
        tls = server_side(authority, "api.test", http2=True)
        async with (
            HostileHost(tls=tls, http2=True) as host,
            caller(host, CallLimits(seconds=8), trust=client_side(authority)) as one,
        ):
            got = await one.call(api(host.url(path)), {})
            assert (got.kind, got.status) == (kind, status), got.error

    asyncio.run(run())


def test_tls_that_breaks_after_its_handshake_is_a_network_error(authority: trustme.CA) -> None:
    tls = server_side(authority, "api.test", http2=False)

    async def garble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read, write = ssl.MemoryBIO(), ssl.MemoryBIO()
        talk = tls.wrap_bio(read, write, server_side=True)
        asked = b""
        while not asked:
            read.write(await reader.read(65_536))
            try:
                talk.do_handshake()
                asked = talk.read()
            except ssl.SSLWantReadError:
                writer.write(write.read())
        writer.write(write.read() + b"\x17\x03\x03\x00\x20" + b"no record" + bytes(23))
        await writer.drain()
        writer.close()

    async def run() -> CallResult:
        async with await asyncio.start_server(garble, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            addresses = AddressResolver(own={f"api.test:{port}"}, resolve=loopback)
            network = Network(transport=Connections(addresses, trust=client_side(authority)))
            async with Caller(transports={}, network=network) as one:
                return await one.call(api(f"https://api.test:{port}/x"), {})

    assert asyncio.run(run()).kind == "network_error"


def test_broken_tls_is_a_network_error(authority: trustme.CA) -> None:
    async def run(name: str, trust: ssl.SSLContext | None) -> str:
        tls = server_side(authority, name, http2=False)
        async with HostileHost(tls=tls) as host, caller(host, PATIENT, trust=trust) as one:
            got = await one.call(api(host.url("fine")), {})
            assert not host.heads
            return got.kind

    assert asyncio.run(run("api.test", None)) == "network_error"
    assert asyncio.run(run("other.test", client_side(authority))) == "network_error"

    async def no_tls() -> CallResult:
        async with HostileHost() as host, caller(host, QUICK) as one:
            return await one.call(api(f"https://api.test:{host.port}/fine"), {})

    assert asyncio.run(no_tls()).kind in {"network_error", "timed_out"}
