"""Is a host a host, and an address an address?

Form only: no name is looked up, and a private address is a fine form (what may be called is
decided where calls are made). Underscores are taken, because names with them are in use.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

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
