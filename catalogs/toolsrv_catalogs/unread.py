"""What stays of the files that an import refuses: the tools that stood in them when last read.

A damaged file is not the removal of its APIs. Were they dropped, they would come back as new ones
once it is mended, and new ones are served at once. Pure; where a tool stood the store knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolsrv_catalogs.findings import shown_path
from toolsrv_catalogs.importer import Reading
from toolsrv_catalogs.selection import only
from toolsrv_catalogs.sources import placed
from toolsrv_registry.api import Catalog, Tool


def refused_files(reading: Reading) -> frozenset[str]:
    """Return the files and folders that are there and were not read, as tools name theirs."""
    named = (
        one.path for one in reading.files if any(entry.what == "file" for entry in one.refused)
    )
    return frozenset(shown_path(str(placed(path) or path)) for path in named) - {
        "",
        *reading.origins,
    }


def with_unread(
    reading: Reading, last: Catalog, origins: Sequence[str]
) -> tuple[Reading, dict[str, int]]:
    """Return a reading with what stays of its refused files, and how many APIs of each.

    Args:
        reading: what was read now.
        last: the catalog of the same source as it was read last.
        origins: the file that each of its tools stood in, ``""`` where that is unknown.
    """
    refused = refused_files(reading)
    now = {api.id for api in reading.catalog.apis}
    tools = list(zip(reading.origins, reading.catalog.tools, strict=True))
    kept: dict[str, int] = {}
    for origin, tool in zip(origins, last.tools, strict=True):
        if _within(origin, refused) and (left := _without(tool, now)).apis:
            tools.append((origin, left))
            kept[origin] = kept.get(origin, 0) + len(left.apis)
    tools.sort(key=lambda one: (one[1].category, one[0]))
    catalog = Catalog(name=reading.catalog.name, tools=tuple(tool for _, tool in tools))
    return replace(reading, catalog=catalog, origins=tuple(path for path, _ in tools)), kept


def _within(origin: str, refused: frozenset[str]) -> bool:
    """Return whether a file, or a folder that it is in, was refused."""
    parts = origin.split("/")
    return any("/".join(parts[:many]) in refused for many in range(1, len(parts) + 1))


def _without(tool: Tool, ids: set[str]) -> Tool:
    """Return a tool without the APIs that another file has now."""
    stays = [at for at, api in enumerate(tool.apis) if api.id not in ids]
    return only(tool, stays)
