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


def server_of(servers: Any, published: str = "") -> str:
    """Return the address of the best of the servers, HTTPS before others; ``""`` for none.

    ``published`` is where the document belongs: what relative servers are relative to, and the
    server itself where the document names none.
    """
    listed = servers if isinstance(servers, list) else []
    bases = [_whole(_filled(one), published) for one in listed if isinstance(one, dict)]
    bases.sort(key=lambda base: not base.startswith("https://"))
    return bases[0] if bases else published


def server_fault(base: str) -> str:
    """Return why no call can go to a server; ``""`` when one can."""
    if _has_host(base):
        return address_fault(base)
    said = f"its server {base[:80]!r} is no whole address" if base else "names no server"
    return f"{said} (import it again with --server URL)"


def _filled(server: Mapping[str, Any]) -> str:
    """Return a server's address with its variables filled by their defaults."""
    given = server.get("variables")
    variables = given if isinstance(given, dict) else {}

    def fill(match: re.Match[str]) -> str:
        known = variables.get(match[1])
        variable = known if isinstance(known, dict) else {}
        allowed = variable.get("enum")
        first = allowed[0] if isinstance(allowed, list) and allowed else match[0]
        return str(variable.get("default", first))

    url = server.get("url")
    return _VARIABLE.sub(fill, url).strip() if isinstance(url, str) else ""


def _whole(base: str, published: str) -> str:
    if not published or _has_host(base):
        return base
    try:
        return urljoin(published, base)
    except ValueError:  # told as it stands
        return base


def _has_host(base: str) -> bool:
    return "://" in base.partition("?")[0]
