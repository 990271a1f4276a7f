"""What may be called. The policy decides, never the model.

Today's rules: read-only methods, and hosts that a transport is registered for. Knows nothing of
how a call is made.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import httpx

from toolsrv_registry.api import Api
from toolsrv_runtime.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Policy:
    """Read-only by default: ``methods`` that may be used, whatever a catalog says."""

    methods: Collection[str] = field(default=("GET", "HEAD"))

    def check(self, api: Api, url: httpx.URL, hosts: Collection[str]) -> None:
        """Let a call pass or refuse it.

        Raises:
            PolicyError: the method changes state, or no registered host serves the URL.
        """
        if api.method.upper() not in self.methods:
            raise PolicyError(
                f"{api.id} uses {api.method.upper()}, and only {', '.join(self.methods)} is allowed",
                hint="choose an API that only reads",
            )
        if url.scheme != "https" or url.userinfo or url.host not in hosts:
            raise PolicyError(
                f"{api.id} lives at {url.host or 'no host'!r}, which is not served here",
                hint="only the offline catalog can be called in this version",
            )
