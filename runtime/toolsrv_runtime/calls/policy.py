"""Policy of calls: which calls are allowed, denied, or need a person's consent.

The policy decides, never the model. GET and HEAD to the catalog's own hosts are allowed; all else
needs a person's rule, or consent to that one call. A paid API needs consent of its own, whatever
its method: a rule that allows it says ``PAID`` in the method's place, and ``*`` does not include
it. Once the text of a response has entered a run, rules no longer replace consent. Knows nothing of
how a call is made.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import httpx

from toolsrv_catalogs.hosts import host_fault
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.addresses import embedded_ipv4
from toolsrv_runtime.calls.request import OutgoingRequest, api_address, web_address
from toolsrv_runtime.calls.result import Consent
from toolsrv_runtime.errors import PolicyError

READ_METHODS = frozenset({"GET", "HEAD"})
MCP_SCHEME = "mcp"
PAID = "PAID"
"""In the method's place of a rule: calls that cost money."""
_METHODS = frozenset({PAID, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
PAYING = "a call of this API costs money (PAID)"
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(
    r"(?:\[(?P<address>[^\[\]]+)\]|(?P<host>[^\[\]:]+|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*))"
    r"(?::(?P<port>[^:]+))?"
)
_AMBIGUOUS = re.compile(r"[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?<=:)[0-9]{2,5}")
"""An IPv6 address without brackets whose last group may be a port."""
Decision = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """What a person's setting says of some calls.

    ``method`` is ``*`` for all methods, or ``PAID``; ``host`` and ``catalog`` are empty where the
    rule holds for all. ``host`` is in canonical form (``canonical_host``), ``port`` None for every
    port. Catalogs are compared without regard to case.
    """

    verdict: Decision
    method: str = "*"
    host: str = ""
    catalog: str = ""
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``allow POST api.example.com``, ``deny * catalog:NAME``, ``allow PAID HOST``.

        Raises:
            UsageError: it is no rule, or one that no call can fit.
        """
        verdict, method, place = (*text.split(), "", "", "")[:3]
        verdict, method = verdict.lower(), method.upper()
        known = verdict in {"allow", "ask", "deny"} and (method == "*" or method in _METHODS)
        if not known or len(text.split()) > 3:
            raise UsageError(
                f"{text[:80]!r} is no rule for calls",
                hint="write: allow|ask|deny METHOD [HOST|HOST:PORT|catalog:NAME], METHOD may be *, or PAID",
            )
        said: Decision = verdict  # type: ignore[assignment]
        kind, colon, name = place.partition(":")
        if colon and kind.lower() == "catalog":
            from toolsrv_catalogs.importer import NAME  # noqa: PLC0415 - loads readers

            if not NAME.fullmatch(name):
                raise _no_place(
                    text, f"{name[:80]!r} cannot be a catalog's name", "catalog:NAME, one catalog"
                )
            return cls(said, method, catalog=name)
        if place in {"", "*"}:
            return cls(said, method)
        host, port = _host_and_port(text, place)
        return cls(said, method, host=host, port=port)

    def fits(self, method: str, host: str, catalog: str, port: int | None = None) -> bool:
        """Whether the rule speaks about such a call."""
        return (
            (self.method == method or (self.method == "*" and method != PAID))
            and (not self.host or self.host == canonical_host(host))
            and self.port in {None, port}
            and (not self.catalog or self.catalog.lower() == catalog.lower())
        )

    @property
    def place(self) -> str:
        """Where the rule holds, as a rule is written; ``""`` for everywhere."""
        if self.catalog:
            return f"catalog:{self.catalog}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def canonical_host(host: str) -> str:
    """Return a host in lower case and ASCII (IDNA), an IP address in its short form.

    Brackets around an address and a dot at the end are left out, and an IPv4 address that is
    written as IPv6 is itself. What is no host is returned in lower case.
    """
    bare = host.lower().removeprefix("[").removesuffix("]").rstrip(".")
    try:
        return str(embedded_ipv4(ipaddress.ip_address(bare)))
    except ValueError:
        pass
    if bare.isascii():
        return bare
    try:
        return httpx.URL(f"http://{bare}").raw_host.decode("ascii").rstrip(".")
    except httpx.InvalidURL:
        return bare


def _host_and_port(text: str, place: str) -> tuple[str, int | None]:
    """Return the canonical host of a rule and its port.

    Raises:
        UsageError: it is no host; says what to write instead.
    """
    scheme, has_scheme, rest = place.partition("://")
    if has_scheme and scheme.isalnum():
        host = re.split(r"[/?#]", rest)[0].rpartition("@")[2]
        raise _no_place(text, f"{place[:80]!r} is a URL", f"the host: {host[:80]}" if host else "")
    if "/" in place:
        try:
            ipaddress.ip_network(place, strict=False)
        except ValueError:
            raise _no_place(text, f"{place[:80]!r} is a path or an API's id") from None
        raise _no_place(text, f"{place[:80]!r} is a network", "one rule for each host")
    if "*" in place:
        raise _no_place(text, f"{place[:80]!r} has a wildcard", "one rule for each host")
    if "@" in place:
        raise _no_place(
            text, f"{place[:80]!r} has a user in it", f"the host: {place.rpartition('@')[2][:80]}"
        )
    if _AMBIGUOUS.fullmatch(place):
        head, _, port = place.rpartition(":")
        raise _no_place(
            text, f"{place[:80]!r} may have a port", f"[{place[:60]}] or [{head[:60]}]:{port}"
        )
    found = _HOST.fullmatch(place)
    bare = (found["address"] or found["host"]) if found else ""
    known = canonical_host(bare)
    if not found or host_fault(bare) or host_fault(known) or not known.isascii() or "%" in known:
        raise _no_place(text, f"{place[:80]!r} is no host")
    if found["address"] and ":" not in bare:
        raise _no_place(text, f"{place[:80]!r} is no IPv6 address")
    port = found["port"] or ""
    if not port:
        return known, None
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:9]) < 65_536):
        raise _no_place(text, f"{port[:80]!r} is no port")
    return known, int(port)


def _no_place(text: str, fault: str, instead: str = "") -> UsageError:
    return UsageError(
        f"no call can fit the rule {text.strip()[:80]!r}: {fault}",
        hint=f"write {instead or 'a host (api.example.com, localhost:8080) or catalog:NAME'}",
    )


def parse_rules(text: str) -> tuple[PolicyRule, ...]:
    """Read rules with commas or semicolons between them.

    Raises:
        UsageError: one of them is no rule.
    """
    return tuple(PolicyRule.parse(one) for one in re.split(r"[,;\n]", text) if one.strip())


@dataclass(frozen=True, slots=True)
class Policy:
    """What a person allows beyond reading: ``rules``, the later one winning.

    ``methods`` pass without a question where no rule speaks.
    """

    methods: Collection[str] = field(default=READ_METHODS)
    rules: tuple[PolicyRule, ...] = ()

    def check(
        self,
        api: Api,
        outgoing: OutgoingRequest,
        arguments: Mapping[str, Any],
        *,
        hosts: Collection[str] | None = None,
        catalog: str = "",
        tainted: bool = False,
        consent: Consent | None = None,
        paid: bool = False,
    ) -> Consent | None:
        """Let a call pass (None), or return what a person would have to consent to.

        ``hosts`` are those that can be called, None for the API's own. ``consent`` is what a
        person said yes to, ``tainted`` whether response text has entered the run, ``paid`` whether
        the call costs money.

        Raises:
            PolicyError: the call is refused whatever a person says.
        """
        check_address(api, outgoing.url, hosts)
        verdict = self.verdict(outgoing.method, outgoing.url, catalog)
        if verdict == "deny":
            raise PolicyError(
                f"{api.id}: {outgoing.method} {outgoing.url.host} is denied by your settings",
                hint="see the setting calls: toolsrv config show",
            )
        cost = self.cost_verdict(outgoing.url, catalog) if paid else "allow"
        if cost == "deny":
            raise PolicyError(
                f"{api.id}: paid calls to {outgoing.url.host} are denied by your settings",
                hint="see the setting calls: toolsrv config show",
            )
        reading = outgoing.method in READ_METHODS
        passes = verdict == "allow" and (reading or not tainted)
        if passes and cost == "allow":
            return None
        reasons = [PAYING] if cost == "ask" else []
        if not passes:
            what = outgoing.method if api.mcp is None else "this tool of an MCP server"
            reasons.append(f"{what} may change something" if not reading else "your settings ask")
        reason = ", and ".join(reasons)
        if tainted and not (passes and reading):
            reason += ", and text from a response may have led to it"
        wanted = consent_for(api, outgoing, arguments, reason)
        return None if consent is not None and consent.covers(wanted) else wanted

    def could_pass(
        self, api: Api, catalog: str = "", *, asks: bool = False, paid: bool = False
    ) -> bool:
        """Whether a call of this API passes in any run: by itself, or, where ``asks``, on a yes."""
        try:
            url = api_address(api.url)
        except httpx.InvalidURL:
            return False
        method = api.method.upper()
        verdict = self.verdict(method, url, catalog)
        cost = self.cost_verdict(url, catalog) if paid else "allow"
        if cost == "deny" or (cost == "ask" and not asks):
            return False
        return verdict != "deny" if asks else method in READ_METHODS and verdict == "allow"

    def may_follow(
        self, method: str, source: httpx.URL, target: httpx.URL, *, catalog: str = ""
    ) -> bool:
        """Whether a redirect may be followed: its target, at another port, has rules of its own."""
        said = self.verdict(method, target, catalog)
        return said == "allow" or (said == "ask" and said == self.verdict(method, source, catalog))

    def cost_verdict(self, url: httpx.URL, catalog: str = "") -> Decision:
        """Return what rules say of calls that cost money; without one a person is asked."""
        host, port = url.raw_host.decode("ascii"), url.port or _PORTS.get(url.scheme)
        rules = reversed(self.rules)
        return next((r.verdict for r in rules if r.fits(PAID, host, catalog, port)), "ask")

    def verdict(self, method: str, url: httpx.URL, catalog: str = "") -> Decision:
        """Return what rules and methods say of a request, whoever asks for it."""
        host = url.raw_host.decode("ascii")
        port = url.port or _PORTS.get(url.scheme)
        for rule in reversed(self.rules):
            if rule.fits(method, host, catalog, port):
                return rule.verdict
        return "allow" if method in self.methods else "ask"


def consent_for(
    api: Api, outgoing: OutgoingRequest, arguments: Mapping[str, Any], reason: str
) -> Consent:
    """Return what a person is asked about this call: all that would be sent, but no key."""
    return Consent(
        api_id=api.id,
        method=outgoing.method,
        host=outgoing.url.netloc.decode("ascii"),
        path=outgoing.url.raw_path.decode("ascii"),
        arguments=dict(arguments),
        reason=reason,
    )


def check_address(api: Api, url: httpx.URL, hosts: Collection[str] | None) -> None:
    """Refuse an address that is not the catalog's own, or no web address at all.

    Raises:
        PolicyError: says which.
    """
    if api.mcp is not None:
        if hosts is not None or url.scheme != MCP_SCHEME:
            raise PolicyError(
                f"{api.id} is a tool of an MCP server, and none is reached now",
                hint="only the offline catalog can be called now; see the setting mode",
            )
        return
    template = _template_url(api)
    named = (template.scheme, template.host, template.port)
    if url.scheme not in _PORTS or not url.host:
        raise PolicyError(
            f"{api.id} lives at {url.host or 'no host'!r}, which is no web address",
            hint="choose another API",
        )
    if url.userinfo or (url.scheme, url.host, url.port) != named:
        raise PolicyError(
            f"{api.id}: {url.host!r} is not the host that the catalog names",
            hint="choose another API",
        )
    if hosts is not None and (url.scheme != "https" or url.host not in hosts):
        raise PolicyError(
            f"{api.id} lives at {url.host!r}, which is not served here",
            hint="only the offline catalog can be called now; see the setting mode",
        )


def _template_url(api: Api) -> httpx.URL:
    """Return the address in the catalog up to its path."""
    found = re.match(r"[^/]*//[^/?#]*", api.url)
    try:
        return web_address(found[0] if found else "")
    except httpx.InvalidURL as error:
        raise PolicyError(
            f"{api.id} has no usable address ({error})", hint="choose another API"
        ) from None
