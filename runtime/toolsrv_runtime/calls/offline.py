"""The catalog that ships, served in-process: an offline API is called exactly as a remote one."""

from __future__ import annotations

import httpx

from toolsrv_catalogs.offline import OFFLINE_HOST, create_app


def transports() -> dict[str, httpx.AsyncBaseTransport]:
    """Return host -> transport for the offline catalog. Handlers load on first use."""
    return {
        OFFLINE_HOST: httpx.ASGITransport(app=create_app(), raise_app_exceptions=False),
    }
