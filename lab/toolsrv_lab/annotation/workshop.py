"""An annotation over a registry: whose APIs are real, where is searched, who plays the rest."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter

from toolsrv_catalogs.offline import OFFLINE_CATALOG, load_offline_catalog
from toolsrv_lab.annotation.annotators import Annotator, Surroundings
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.listing import CatalogFinder
from toolsrv_lab.annotation.pipeline import Progress, Report, annotate, solve
from toolsrv_lab.annotation.store import AnswerFolder
from toolsrv_lab.execution import Cluster, LocalPool, RayPool
from toolsrv_lab.nano.world import World
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_registry.registry import Registry
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.toolbench.answer_files import Answer, parse_answer

_TASK: TypeAdapter[Assignment] = TypeAdapter(Assignment)


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
    """Annotate in this process, ``workers`` tasks at a time; see ``pipeline.annotate``. Blocks."""
    place = Workplace(annotator, registry, catalogs, apis)

    async def main(world: World) -> Report:
        async with place.open(world) as around:
            pool: LocalPool[Assignment, Answer] = LocalPool(
                lambda one: solve(annotator, one, around), workers
            )
            return await annotate(
                assignments, folder, annotator.name, pool, left_out=left_out, progress=progress
            )

    with World(()) as world:  # it has an event loop of its own
        return asyncio.run(main(world))


def annotate_on(
    cluster: Cluster,
    open_place: Callable[[], Workplace],
    teacher: str,
    assignments: Sequence[Assignment],
    folder: AnswerFolder,
    *,
    left_out: dict[str, int],
    progress: Progress,
) -> Report:
    """Annotate on a Ray cluster; ``open_place`` is called in each worker. Blocks."""
    pool: RayPool[Assignment, Answer] = RayPool(
        cluster, partial(AnnotationWorker, open_place), encode=_written, decode=_read
    )
    return asyncio.run(
        annotate(assignments, folder, teacher, pool, left_out=left_out, progress=progress)
    )


@dataclass(frozen=True, slots=True)
class Workplace:
    """What annotating needs: a teacher, and a registry with the catalogs that it works on."""

    annotator: Annotator
    registry: Registry
    catalogs: Sequence[str]
    apis: Mapping[str, Api]

    @contextlib.asynccontextmanager
    async def open(self, world: World) -> AsyncIterator[Surroundings]:
        """Give what all tasks share: real calls of the catalog that ships, played ones of others."""
        offline = frozenset(api.id for api in load_offline_catalog().apis)
        real = offline if OFFLINE_CATALOG in self.catalogs else frozenset[str]()
        alone = self.catalogs[0] if len(self.catalogs) == 1 else None
        finder = CatalogFinder(self.registry.retriever, self.apis.keys(), alone)
        async with default_caller() as caller:
            yield Surroundings(finder, self.apis, real, caller, world)


class AnnotationWorker:
    """Annotates one task after the other, in a process of a cluster; lives as long as that."""

    def __init__(self, open_place: Callable[[], Workplace]) -> None:
        self._place = open_place()
        self._runner = asyncio.Runner()
        self._opened = self._place.open(World(()))
        self._around = self._runner.run(self._opened.__aenter__())

    def run(self, task: str) -> str:
        """Return the answer file of a task, both as JSON. Raises ToolsrvError."""
        assignment = _TASK.validate_json(task)
        found = self._runner.run(solve(self._place.annotator, assignment, self._around))
        return json.dumps(found.document())


def _written(assignment: Assignment) -> str:
    return _TASK.dump_json(assignment).decode()


def _read(text: str) -> Answer:
    return parse_answer(wellformed.loads(text), "the worker's answer")
