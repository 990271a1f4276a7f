"""Resolve hosts to checked addresses; a connection is made to nothing else.

Private, loopback, link-local, multicast, carrier and metadata addresses are refused in every
spelling, also wrapped in IPv6, unless a person named the host as their own. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from toolsrv_catalogs.hosts import host_fault
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.errors import PolicyError

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""From a name and a port to addresses; raises OSError or UnicodeError for an unknown name."""

_IP = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA = frozenset({"168.63.129.16", "192.0.0.192"})
"""Metadata services that look public (Azure's, Oracle's); the others are link-local or private."""

_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
_TRANSLATED = tuple(
    ipaddress.IPv6Network(net) for net in ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96")
)
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)
_BRACKETED = re.compile(r"\[([^\[\]]+)\](:[0-9]{1,5})?")


def spelling_fault(host: str) -> str:
    """Return why a host's spelling is refused: a number that stands for an address; else ""."""
    bare = host.removeprefix("[").removesuffix("]").rstrip(".")
    if not bare:
        return "names no host"
    if "%" in bare:
        return "names a network interface"
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        last = bare.rpartition(".")[2]
        return "spells an address in an unusual way" if _NUMBER.fullmatch(last) else ""
    return ""


def address_fault(address: str) -> str:
    """Return what kind of address this is when it is not a public one; ``""`` when it is.

    Raises:
        ValueError: it is no IP address.
    """
    ip = ipaddress.ip_address(address)
    for one in (ip, *_embedded_ipv4s(ip)):
        if str(one) in METADATA:
            return "a metadata service"
        if one.is_loopback:
            return "a loopback address"
        if one.is_link_local:
            return "a link-local address"
        if one.is_multicast:
            return "a multicast address"
        if one in _SITE_LOCAL or (not one.is_global and not _embedded_ipv4s(one)):
            return "not a public address"
    return ""


def embedded_ipv4(ip: _IP) -> _IP:
    """Return the IPv4 address that is reached at an IPv6 address (mapped, or by NAT64); else it."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if any(ip in net for net in _TRANSLATED):
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def _embedded_ipv4s(ip: _IP) -> list[_IP]:
    """Return the IPv4 addresses that an IPv6 address carries."""
    if isinstance(ip, ipaddress.IPv4Address):
        return []
    found: list[_IP] = []
    if ip.ipv4_mapped is not None:
        found.append(ip.ipv4_mapped)
    if ip.sixtofour is not None:
        found.append(ip.sixtofour)
    if ip.teredo is not None:
        found.extend(ip.teredo)
    if any(ip in net for net in _TRANSLATED) or int(ip) >> 32 == 0:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return found


def parse_own_hosts(text: str) -> frozenset[str]:
    """Read a person's own hosts, with commas between them: ``localhost, [::1]:8080``.

    Raises:
        UsageError: one of them is no host.
    """
    found = set()
    for part in text.split(","):
        one = part.strip().lower().rstrip(".")
        inner = _BRACKETED.fullmatch(one)
        if one and host_fault(f"[{inner[1]}]" if inner else one):
            raise UsageError(
                f"{part.strip()[:80]!r} is no host",
                hint="write hosts with commas between them, without http://: localhost:8080",
            )
        found.add(inner[1] if inner and not inner[2] else one)
    return frozenset(found) - {""}


@dataclass(frozen=True)
class AddressResolver:
    """Finds the addresses of hosts.

    ``own`` names the hosts (``localhost`` or ``localhost:8080``) that may be at any address,
    because a person said so; ``resolve`` asks the system unless a test brings another.
    """

    own: Collection[str] = ()
    resolve: Resolve = field(default_factory=lambda: resolve_by_system)

    def allows_any(self, host: str, port: int) -> bool:
        """Whether a host was named as a person's own."""
        name = host.lower().rstrip(".")
        bracketed = f"[{name}]" if ":" in name else name
        return name in self.own or f"{bracketed}:{port}" in self.own

    async def addresses_of(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, IPv4 first; one that may not be called refuses all.

        Raises:
            OSError: the name does not resolve.
            PolicyError: an address of it is not public.
        """
        own = self.allows_any(host, port)
        if not own and (fault := spelling_fault(host)):
            raise PolicyError(f"{host!r} {fault}", hint=_HINT)
        try:
            found = await self.resolve(host, port)
        except UnicodeError as error:
            raise OSError(f"{host!r} is no name: {error}") from error
        for address in found:
            if not own and (kind := address_fault(address)):
                article = "" if kind.startswith("not ") else ", not a public address"
                raise PolicyError(
                    f"{host} resolves to {address}, which is {kind}{article}", hint=_HINT
                )
        return sorted(found, key=lambda one: ":" in one)


_HINT = "for a service of your own: toolsrv config set own_hosts HOST"


async def resolve_by_system(host: str, port: int) -> list[str]:
    """Resolve a name in a thread that nobody waits for at the end: it can hang for long."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[str]] = loop.create_future()

    def tell(addresses: list[str], error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(addresses)
        else:
            future.set_exception(error)

    def resolve() -> None:
        addresses: list[str] = []
        failed: Exception | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        except (OSError, UnicodeError) as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, addresses, failed)

    threading.Thread(target=resolve, name="toolsrv-resolve", daemon=True).start()
    return await future
