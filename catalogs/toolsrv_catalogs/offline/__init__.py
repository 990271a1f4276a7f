"""The catalog that ships: real APIs that do real work with no network.

Light to import: the descriptions are read on demand, the application and the libraries behind
it only when they are first needed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolsrv_catalogs.toolbench import read_folder
from toolsrv_registry.api import Catalog

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["OFFLINE_CATALOG", "OFFLINE_HOST", "create_app", "load_offline_catalog"]

OFFLINE_HOST = "offline.toolsrv.invalid"
OFFLINE_CATALOG = "offline"


@cache
def load_offline_catalog() -> Catalog:
    """Return the packaged catalog, named ``offline``.

    Raises:
        DataError: a packaged description is damaged.
    """
    from importlib.resources import as_file, files  # noqa: PLC0415 - off the import path

    with as_file(files(__package__) / "tools") as root:
        return read_folder(root, name=OFFLINE_CATALOG)


def create_app() -> Starlette:
    """Return the ASGI application that answers for ``OFFLINE_HOST``."""
    from toolsrv_catalogs.offline import app  # noqa: PLC0415 - starlette loads on demand

    return app.create_app()
