"""Hosts, addresses and OpenAPI servers: validate a host, resolve the URL of an operation.

Pure. Sends nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

_LABEL = re.compile(r"(?!-)[\w-]{1,63}(?<!-)")
_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*|0[xX][0-9a-fA-F]+")
_HOST_LIMIT = 253


def host_fault(host: str) -> str:
    """Return why ``host`` is no host name or IP address; ``""`` when it is one."""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        name, _, port = host.rpartition(":")
        if name and port.isascii() and port.isdigit() and int(port) < 65536 and ":" not in name:
            host = name
    if _is_address(host):
        return ""
    labels = host.removesuffix(".").split(".")
    if len(host) > _HOST_LIMIT or not all(_LABEL.fullmatch(label) for label in labels):
        return f"{host[:80]!r} is no host"
    return f"{host[:80]!r} is no IP address" if _NUMBERS.fullmatch(host) else ""


def address_fault(url: str) -> str:
    """Return why ``url`` is no web address; ``""`` when it is one."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018 - raises for a port that is none
    except ValueError as error:
        return f"{url[:80]!r} is no address: {error}"
    if parts.scheme not in {"http", "https"}:
        return f"{url[:80]!r} is no web address"
    # The parser takes line ends and tabs out without a word.
    if parts.username is not None or set(url) & set("\\\t\n\r"):
        return f"{url[:80]!r} hides its host"
    return host_fault(f"[{host}]" if ":" in host else host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_VARIABLE = re.compile(r"\{([^{}/]+)\}")


def server_of(
    servers: Any,
    published: str = "",
    variables: Mapping[str, str] | None = None,
    location: str = "",
) -> tuple[str, list[str]]:
    """Return the address of the best of the servers, HTTPS before HTTP, and the other addresses.

    ``published`` is where the document belongs: what relative servers are relative to, and the
    server itself in place of those with a host, and where the document names none. ``variables``
    are values for what stands in braces. ``location`` is the URL that the document was read from:
    servers without a host are relative to it, and its root is the server of a document that names
    none. The address is ``""`` where there is none.
    """
    listed = servers if isinstance(servers, list) else []
    filled = [_filled(one, variables or {}) for one in listed if isinstance(one, dict)]
    if published:
        relative = next((one for one in filled if not _has_host(one)), "")
        return _whole(relative, published) if relative else published, []
    if location:
        base = urlsplit(location)
        base = base._replace(netloc=base.netloc.rpartition("@")[2], query="", fragment="")
        filled = [
            one if _has_host(one) else _whole(one or "/", base.geturl()) for one in filled or [""]
        ]
    filled.sort(key=_preference)
    first = filled[0] if filled else ""
    rest = first.partition("://")[2]
    return first, [one for one in filled[1:] if one.partition("://")[2] != rest]


def _preference(base: str) -> int:
    """Return the rank of a server: HTTPS, then HTTP and relative ones, then what is not called."""
    scheme = base.partition("://")[0].lower() if _has_host(base) else "http"
    return {"https": 0, "http": 1}.get(scheme, 2)


def server_fault(base: str) -> str:
    """Return why no call can go to a server; ``""`` when one can."""
    if _has_host(base):
        return address_fault(base)
    said = f"its server {base[:80]!r} is no whole address" if base else "names no server"
    return f"{said} (import it again with --server URL)"


def _filled(server: Mapping[str, Any], values: Mapping[str, str]) -> str:
    """Return a server's address with its variables filled, by their defaults where none is given."""
    given = server.get("variables")
    variables = given if isinstance(given, dict) else {}

    def fill(match: re.Match[str]) -> str:
        if match[1] in values:
            return values[match[1]]
        known = variables.get(match[1])
        variable = known if isinstance(known, dict) else {}
        allowed = variable.get("enum")
        first = allowed[0] if isinstance(allowed, list) and allowed else match[0]
        return str(variable.get("default", first))

    url = server.get("url")
    return _VARIABLE.sub(fill, url).strip() if isinstance(url, str) else ""


def _whole(base: str, published: str) -> str:
    try:
        return urljoin(published, base)
    except ValueError:  # told as it stands
        return base


def _has_host(base: str) -> bool:
    return "://" in base.partition("?")[0]
