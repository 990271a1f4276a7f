"""OpenAPI's servers: the address that an operation is called at.

A server may be relative to where its document was published, which no file tells; whoever imports
the file may say it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from toolsrv_catalogs.hosts import address_fault

_VARIABLE = re.compile(r"\{([^{}/]+)\}")


def server_of(
    servers: Any, published: str = "", variables: Mapping[str, str] | None = None
) -> tuple[str, list[str]]:
    """Return the address of the best of the servers, HTTPS before others, and the other addresses.

    ``published`` is where the document belongs: what relative servers are relative to, and the
    server itself in place of those with a host, and where the document names none. ``variables``
    are values for what stands in braces. The address is ``""`` where there is none.
    """
    listed = servers if isinstance(servers, list) else []
    filled = [_filled(one, variables or {}) for one in listed if isinstance(one, dict)]
    if published:
        relative = next((one for one in filled if not _has_host(one)), "")
        return _whole(relative, published) if relative else published, []
    filled.sort(key=lambda base: not base.startswith("https://"))
    first = filled[0] if filled else ""
    rest = first.partition("://")[2]
    return first, [one for one in filled[1:] if one.partition("://")[2] != rest]


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
