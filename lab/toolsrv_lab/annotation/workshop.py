"""An annotation over a registry: whose APIs are real, where is searched, who plays the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from toolsrv_catalogs.offline import OFFLINE_CATALOG, load_offline_catalog
from toolsrv_lab.annotation.annotators import Annotator, Surroundings
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.listing import CatalogFinder
from toolsrv_lab.annotation.pipeline import Progress, Report, annotate
from toolsrv_lab.annotation.store import AnswerFolder
from toolsrv_lab.nano.world import World
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_registry.registry import Registry
from toolsrv_runtime.calls.caller import default_caller


def catalog_names(registry: Registry, given: Collection[str]) -> list[str]:
    """Return the names of the catalogs to work on: the given ones, else the enabled ones."""
    return sorted(given) or sorted(one.name for one in registry.store.catalogs() if one.enabled)


def usable_apis(registry: Registry, catalogs: Sequence[str]) -> dict[str, Api]:
    """Return the APIs of some catalogs by id.

    Raises:
        NotFoundError: there is no such catalog.
        UsageError: they have no API.
    """
    found = {api.id: api for name in catalogs for api in registry.store.apis(catalog=name)}
    if not found:
        which = f"the catalog {', '.join(catalogs)} has" if catalogs else "no enabled catalog has"
        raise UsageError(
            f"{which} {'no' if catalogs else 'an'} API to call",
            hint="see toolsrv catalog list; import a catalog, or enable one",
        )
    return found


def annotate_over(
    registry: Registry,
    catalogs: Sequence[str],
    apis: Mapping[str, Api],
    assignments: Sequence[Assignment],
    folder: AnswerFolder,
    annotator: Annotator,
    *,
    workers: int,
    left_out: dict[str, int],
    progress: Progress,
) -> Report:
    """Annotate with the retriever of a registry; see ``pipeline.annotate``. Blocks."""
    real = frozenset(api.id for api in load_offline_catalog().apis)
    ours = real if OFFLINE_CATALOG in catalogs else frozenset[str]()
    finder = CatalogFinder(
        registry.retriever, apis.keys(), catalogs[0] if len(catalogs) == 1 else None
    )

    async def main(world: World) -> Report:
        async with default_caller() as caller:
            return await annotate(
                assignments,
                folder,
                annotator,
                Surroundings(finder, apis, ours, caller, world),
                workers=workers,
                left_out=left_out,
                progress=progress,
            )

    with World(()) as world:
        return asyncio.run(main(world))
