"""The catalog that ships: real APIs that do real work with no network.

Light to import: the descriptions are read on demand, the application and the libraries behind
it only when they are first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolsrv_catalogs.offline.descriptions import OFFLINE_CATALOG, load_offline_catalog

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["OFFLINE_CATALOG", "OFFLINE_HOST", "create_app", "load_offline_catalog"]

OFFLINE_HOST = "offline.toolsrv.invalid"


def create_app() -> Starlette:
    """Return the ASGI application that answers for ``OFFLINE_HOST``."""
    from toolsrv_catalogs.offline import app  # noqa: PLC0415 - starlette loads on demand

    return app.create_app()
