"""The packaged descriptions of the offline APIs, in ToolBench's format.

Knows where they lie; does not know the application that answers for them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from toolsrv_catalogs.toolbench import read_folder
from toolsrv_registry.api import Catalog

OFFLINE_CATALOG = "offline"


@cache
def load_offline_catalog() -> Catalog:
    """Return the packaged catalog, named ``offline``.

    Raises:
        DataError: a packaged description is damaged.
    """
    with as_file(files(__package__) / "tools") as root:
        return read_folder(root, name=OFFLINE_CATALOG)
