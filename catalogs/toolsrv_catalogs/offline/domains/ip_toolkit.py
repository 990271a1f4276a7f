"""IP Toolkit: networks and addresses, no lookup of any host. Library: ipaddress."""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import islice
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, ParameterError, quoted
from toolsrv_catalogs.offline.values.number import whole
from toolsrv_registry.errors import UsageError

tool = Endpoints()
_SIZE = re.compile(r"\s*/\s*([0-9]|[12][0-9]|3[0-2])\s*")


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ipaddress.ip_network(text[:100].replace(" ", ""), strict=False)
    except ValueError:
        raise UsageError(f"{quoted(text)} is not a network; write it like 192.168.0.0/24") from None


def _network_or_size(text: str) -> IPv4Network | IPv6Network | int:
    """Return a network, or the length of an IPv4 prefix that stands alone: ``/28``."""
    match = _SIZE.fullmatch(text)
    return int(match[1]) if match else _network(text)


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ipaddress.ip_address(text[:100].partition("%")[0])  # no host's interface names
    except ValueError:
        raise UsageError(f"{quoted(text)} is not an IP address; write it like 8.8.8.8") from None


Network = Annotated[IPv4Network | IPv6Network, Field(_network)]
NetworkOrSize = Annotated[IPv4Network | IPv6Network | int, Field(_network_or_size)]
Address = Annotated[IPv4Address | IPv6Address, Field(_address)]


@tool.get("/network")
def network_details(network: NetworkOrSize) -> Answer:
    if isinstance(network, int):  # true of every network of that size: no address was told
        one = IPv4Network((0, network))
        return {
            "network": f"any /{network}",
            "netmask": str(one.netmask),
            "usable_hosts": _usable(one),
        }
    usable = _usable(network)
    edge = 0 if usable == network.num_addresses else 1
    return {
        "network": str(network),
        "netmask": str(network.netmask),
        "first_host": str(network[edge]),
        "last_host": str(network[-1 - edge]),
        "broadcast": str(network.broadcast_address) if edge else "none",
        "usable_hosts": usable if usable < 2**53 else f"2^{usable.bit_length() - 1}",
    }


def _usable(network: IPv4Network | IPv6Network) -> int:
    total = network.num_addresses
    return total if network.version == 6 or network.prefixlen >= 31 else total - 2


@tool.get("/address")
def address_info(address: Address) -> Answer:
    kinds = {
        "loopback": address.is_loopback,
        "link local": address.is_link_local,
        "multicast": address.is_multicast,
        "unspecified": address.is_unspecified,
        "private": address.is_private,
        "reserved": address.is_reserved,
        "shared": not address.is_global,  # between carriers and customers, RFC 6598
    }
    return {
        "address": str(address),
        "version": address.version,
        "kind": next((kind for kind, applies in kinds.items() if applies), "public"),
        "public": address.is_global and not address.is_multicast,
        "reverse_dns_name": address.reverse_pointer,
    }


@tool.get("/contains")
def network_contains(network: Network, address: Address) -> Answer:
    return {"network": str(network), "address": str(address), "contains": address in network}


@tool.get("/split")
def split_network(network: NetworkOrSize, prefix: Annotated[int, whole(1, 128)]) -> Answer:
    if isinstance(network, int):
        if not network <= prefix <= ipaddress.IPV4LENGTH:
            raise ParameterError("prefix", f"must be {network} to {ipaddress.IPV4LENGTH}")
        return {"network": f"any /{network}", "prefix": prefix, "count": 2 ** (prefix - network)}
    if not network.prefixlen <= prefix <= network.max_prefixlen:
        raise ParameterError("prefix", f"must be {network.prefixlen} to {network.max_prefixlen}")
    count = 2 ** (prefix - network.prefixlen)
    return {
        "network": str(network),
        "prefix": prefix,
        "count": count if count < 2**53 else f"2^{prefix - network.prefixlen}",
        "subnets": [str(part) for part in islice(network.subnets(new_prefix=prefix), 8)],
    }
