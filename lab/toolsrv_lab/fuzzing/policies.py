"""Fuzzing targets of the policy and of addresses: what is refused stays refused in every spelling."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import httpx
from hypothesis import strategies as st

from toolsrv_lab.fuzzing.strategies import METHODS, NASTY, SCALARS, TEXTS, Target, hold
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.addresses import AddressResolver, address_fault
from toolsrv_runtime.calls.policy import READ_METHODS, Policy, PolicyRule, consent_for
from toolsrv_runtime.calls.request import OutgoingRequest
from toolsrv_runtime.errors import PolicyError

_REFUSED_4 = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", "192.0.0.192/32",
)  # fmt: skip
_REFUSED_6 = (
    "::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2001:db8::/32",
    "100::/64",
)  # fmt: skip


async def _numeric(host: str, port: int) -> list[str]:
    """Resolve as the system does, numbers only: decimal, octal and hexadecimal ones too."""
    found = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    )
    return [str(one[4][0]) for one in found]


_ADDRESSES = AddressResolver(resolve=_numeric)


def _reached(host: str) -> list[str]:
    """Return the addresses that a call to ``host`` would connect to; none where it is refused."""
    try:
        return asyncio.run(_ADDRESSES.addresses_of(host, 443))
    except (OSError, PolicyError):
        return []


def _parts(number: int, base: str, count: int) -> str:
    """Spell an address in ``count`` parts, the last of which holds the rest."""
    heads = [(number >> (24 - 8 * at)) & 0xFF for at in range(count - 1)]
    rest = number & ((1 << (8 * (5 - count))) - 1)
    return ".".join(format(one, base) for one in [*heads, rest])


def _octal(number: int) -> str:
    return ".".join(f"0{one:o}" for one in number.to_bytes(4, "big"))


def _wide(number: int) -> str:
    return str(ipaddress.IPv4Address(number)).translate(
        {ord(str(d)): 0xFF10 + d for d in range(10)}
    )


def _in_6(prefix: str, shift: int) -> Callable[[int], str]:
    base = int(ipaddress.IPv6Address(prefix))
    return lambda number: str(ipaddress.IPv6Address(base | number << shift))


_SPELLINGS: dict[str, Callable[[int], str]] = {
    "plain": lambda number: str(ipaddress.IPv4Address(number)),
    "decimal": str,
    "hex": hex,
    "octal": lambda number: f"0{number:o}",
    "octal parts": _octal,
    "hex parts": lambda number: ".".join(map(hex, number.to_bytes(4, "big"))),
    "two parts": lambda number: _parts(number, "d", 2),
    "three parts": lambda number: _parts(number, "#x", 3),
    "final dot": lambda number: f"{ipaddress.IPv4Address(number)}.",
    "wide digits": _wide,
    "mapped": lambda number: f"::ffff:{ipaddress.IPv4Address(number)}",
    "mapped hex": _in_6("::ffff:0:0", 0),
    "compatible": _in_6("::", 0),
    "translated": _in_6("::ffff:0:0:0", 0),
    "NAT64": _in_6("64:ff9b::", 0),
    "6to4": _in_6("2002::", 80),
}


def _check_refused(case: Any) -> None:
    spelt = _SPELLINGS[case["spelling"]](case["number"])
    hold(not _reached(spelt), "a refused address is reached", spelt)
    for form in (f"https://{spelt}/x", f"https://[{spelt}]/x"):
        try:
            host = httpx.URL(form).host
        except httpx.InvalidURL:
            continue
        hold(not _reached(host), "a refused address is reached by its URL", form, host)


def _check_six(case: Any) -> None:
    address = str(ipaddress.IPv6Address(case))
    hold(address_fault(address), "an IPv6 address that is not public is refused", address)
    hold(not _reached(address), "it is reached", address)


def _check_any(case: Any) -> None:
    plain = str(ipaddress.IPv4Address(case))
    refused = any(
        ipaddress.IPv4Address(case) in net for net in map(ipaddress.IPv4Network, _REFUSED_4)
    )
    hold(not refused or address_fault(plain), "an address of a closed network is refused", plain)
    for name in ("mapped", "NAT64", "6to4"):
        wrapped = _SPELLINGS[name](case)
        same = bool(address_fault(plain)) <= bool(address_fault(wrapped))
        hold(same, "what is refused plain is refused wrapped", plain, wrapped)
    for address in _reached(plain):
        hold(not refused and address == plain, "what is connected to is the address", address)


def _check_host(case: Any) -> None:
    for address in _reached(case):
        hold(not address_fault(address), "only public addresses are reached", case, address)


def _within(networks: tuple[str, ...]) -> st.SearchStrategy[int]:
    return st.one_of(
        [
            st.integers(int(net.network_address), int(net.broadcast_address))
            for net in map(ipaddress.ip_network, networks)
        ]
    )


_HOSTS = st.lists(
    st.sampled_from(["127", "0", "1", "0x7f", "017", "256", "localhost", "[", "]", "::", "%", "a"])
    | TEXTS,
    min_size=1,
    max_size=5,
)

ADDRESS_TARGETS = (
    Target(
        "addresses",
        "refused addresses in every spelling",
        st.fixed_dictionaries(
            {"number": _within(_REFUSED_4), "spelling": st.sampled_from(sorted(_SPELLINGS))}
        ),
        _check_refused,
        known=({"number": 0x7F000001, "spelling": "translated"},),
    ),
    Target(
        "addresses-6",
        "IPv6 addresses that are not public",
        _within(_REFUSED_6),
        _check_six,
        known=(int(ipaddress.IPv6Address("fec0::1")),),
    ),
    Target(
        "addresses-any",
        "any IPv4 address, plain and wrapped",
        st.integers(0, 2**32 - 1),
        _check_any,
    ),
    Target("hosts", "any text as a host", _HOSTS.map(".".join) | _HOSTS.map("".join), _check_host),
)


def _check_policy(case: Any) -> None:
    api = Api(id="C/t/a", category="C", tool="t", name="a", url="https://api.test/x")
    url = httpx.URL(case["url"]) if case["url"] else httpx.URL(api.url)
    out = OutgoingRequest(case["method"], url)
    rules = tuple(PolicyRule.parse(" ".join(one)) for one in case["rules"])
    consent = consent_for(api, out, case["arguments"], "") if case["consent"] else None
    try:
        asked = Policy(rules=rules).check(
            api, out, case["arguments"], tainted=case["tainted"], consent=consent
        )
    except PolicyError:
        return
    hold(case["url"] in {"", api.url}, "another address is refused", case["url"])
    fit = [one.verdict for one in rules if one.fits(case["method"], "api.test", "")]
    hold(not fit or fit[-1] != "deny", "what is denied is refused", rules)
    if asked is None and consent is None:
        reading = case["method"] in READ_METHODS
        allowed = fit[-1] == "allow" if fit else reading
        hold(allowed, "only what is allowed passes without a question", case["method"], rules)
        hold(reading or not case["tainted"], "no rule stands in for consent in a tainted run")


def _check_rule(case: Any) -> None:
    try:
        rule = PolicyRule.parse(case)
    except UsageError:
        return
    hold(rule.verdict in {"allow", "ask", "deny"}, "a rule has a verdict", rule)


_METHODS = st.sampled_from(METHODS)
_RULES = st.tuples(
    st.sampled_from(["allow", "ask", "deny"]),
    _METHODS | st.just("*"),
    st.sampled_from(["", "api.test", "evil.test", "catalog:x"]),
).map(list)
_ARGUMENTS = st.dictionaries(TEXTS, SCALARS, max_size=2)

POLICY_TARGETS = (
    Target(
        "policy",
        "what passes without a person",
        st.fixed_dictionaries(
            {
                "method": _METHODS,
                "url": st.sampled_from(
                    ["", "https://evil.test/x", "http://api.test/x", "https://a@api.test/x"]
                ),
                "rules": st.lists(_RULES, max_size=4),
                "arguments": _ARGUMENTS,
                "tainted": st.booleans(),
                "consent": st.booleans(),
            }
        ),
        _check_policy,
    ),
    Target(
        "rules",
        "rules for calls as text",
        st.lists(st.sampled_from([*NASTY, "allow", "ask", "deny", "GET", "*", "get"])).map(
            " ".join
        ),
        _check_rule,
        known=("",),
    ),
)
