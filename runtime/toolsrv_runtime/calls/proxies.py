"""Which proxy a request goes through, as the environment says: HTTP_PROXY, HTTPS_PROXY, NO_PROXY.

Read as Python's own urllib reads them: lower case before upper case, ALL_PROXY where the scheme has
none, NO_PROXY by host, domain or ``*``. The value of a variable may hold a password and is in no
message. Knows nothing of connections.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib import request
from urllib.parse import unquote
from urllib.request import getproxies_environment

import httpx

from toolsrv_runtime.errors import PolicyError

_SCHEMES = frozenset({"http", "https"})
_SOCKS = frozenset({"socks5", "socks5h"})
_WRITE = "write it as http://HOST:PORT, or unset it"


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy; ``login`` is its user and password."""

    url: httpx.URL
    login: tuple[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies of an environment: scheme -> address, and ``no`` for what goes without one."""

    by_scheme: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of_environment(cls) -> Self:
        """Return the proxies that the environment of this process names."""
        return cls(getproxies_environment())

    def for_url(self, url: httpx.URL) -> Proxy | None:
        """Return the proxy for an address, None where it is reached directly.

        Raises:
            PolicyError: the proxy cannot be used.
        """
        text = self.by_scheme.get(url.scheme) or self.by_scheme.get("all", "")
        if not text:
            return None
        netloc = f"[{url.host}]" if ":" in url.host else url.host
        netloc += f":{url.port}" if url.port else ""
        if self._goes_without(netloc):
            return None
        variable = f"{url.scheme}_proxy" if self.by_scheme.get(url.scheme) else "all_proxy"
        return _proxy(text, variable.upper())

    def _goes_without(self, netloc: str) -> bool:
        named = {"no": "", **self.by_scheme}
        return bool(request.proxy_bypass_environment(netloc, named))  # type: ignore[attr-defined]


def _proxy(text: str, variable: str) -> Proxy:
    try:
        url = httpx.URL(text if "://" in text else f"http://{text}")
        login = (unquote(url.username), unquote(url.password)) if url.userinfo else None
        bare = url.copy_with(userinfo=b"", path="/", query=None, fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise PolicyError(f"{variable} names no proxy that can be used", hint=_WRITE) from None
    if url.scheme in _SOCKS:
        if importlib.util.find_spec("socksio") is None:
            raise PolicyError(
                f"{variable} names a SOCKS proxy, and the package socksio is not installed",
                hint='pip install "toolsrv[socks]", or set an HTTP proxy, or unset it',
            )
    elif url.scheme not in _SCHEMES:
        raise PolicyError(
            f"{variable} names a proxy of the kind {url.scheme[:20]!r}, which cannot be used",
            hint=_WRITE,
        )
    if not url.host or (url.port or 1) > 65_535:
        raise PolicyError(f"{variable} names no proxy that can be used", hint=_WRITE)
    return Proxy(bare, login)
