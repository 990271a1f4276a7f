"""Addresses of calls: public ones, hosts of one's own, spellings; an address is read once."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.addresses import (
    AddressResolver,
    address_fault,
    parse_own_hosts,
    spelling_fault,
)
from toolsrv_runtime.calls.request import api_address, web_address
from toolsrv_runtime.errors import PolicyError


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
