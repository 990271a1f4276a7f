"""Shared parts of long lab work: how many tasks at a time, in this process or on a Ray cluster.

The work is done by ``toolsrv_lab.execution``.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from pydantic import BaseModel

from toolsrv.cli.interrupt import signals_as_ctrl_c
from toolsrv.cli.options import FiniteRange
from toolsrv.cli.output import note
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Cell, CellLog, Solver
    from toolsrv_lab.execution import Backend, Codec, Pool
    from toolsrv_registry.errors import ToolsrvError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")
Result = TypeVar("Result", bound=BaseModel)
Setting = TypeVar("Setting")

CLUSTER_WORKERS = 4
"""Actors of a cluster, unless ``--workers`` says otherwise."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What ``scale_options`` gives a command as ``scale``; ``address`` None: this process."""

    workers: int | None = None
    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0

    def check(self, settings: Settings | None) -> None:
        """Check what can be checked before anything is opened; ``settings`` are of a model's bench.

        Raises:
            UsageError: a cluster is named and Ray is not installed, or several tasks at a time are
                wanted of a model of this machine.
        """
        from toolsrv_lab.execution import load_ray
        from toolsrv_runtime.models.openai import is_url

        if self.address is not None:
            load_ray()
        elif (self.workers or 1) > 1 and settings and not is_url(str(settings.model or "")):
            raise UsageError(
                "a model of this machine serves one task at a time",
                hint="leave --workers out, name servers: --model http://host:8000/v1,…, or add --ray",
            )

    def pool(
        self,
        bench: Workbench,
        backend: Callable[[Workbench], Any],
        codec: Codec[T, R],
        *,
        default: int = 1,
    ) -> Pool[T, R]:
        """Return a pool whose tasks are made at the bench, or at one like it in each actor.

        ``backend`` makes the backend of a bench, when there is a task; a cluster needs an importable
        function, or a partial of one. ``default``: workers in this process where ``--workers`` is not given.
        """
        from toolsrv_lab.execution import Cluster, LocalPool, RayPool

        if self.address is None:
            return LocalPool(partial(_open, bench, backend), self.workers or default)
        cluster = Cluster(self.address, self.workers or CLUSTER_WORKERS, self.cpus, self.gpus)
        opened = partial(_open_remote, _settings_of(bench), bench.run, backend)
        return RayPool(cluster, opened, codec, on_lost=_note_lost)


HERE = Scale()
"""One task at a time in this process."""


def scale_options(command: F) -> F:
    """Add the options that say where tasks are made; the command gets them as ``scale``."""

    @functools.wraps(command)
    def packed(*args: Any, **given: Any) -> Any:
        names = ("workers", "address", "cpus", "gpus")
        return command(*args, scale=Scale(**{name: given.pop(name) for name in names}), **given)

    options = (
        click.option("--gpus", type=FiniteRange(0), default=0.0, show_default=True,
                     help="GPUs that each actor of the cluster asks for."),
        click.option("--cpus", type=FiniteRange(0, 64, min_open=True), default=1.0,
                     show_default=True, help="CPUs that each actor of the cluster asks for; less "
                     "where servers do the work."),
        click.option("--ray", "address", metavar="ADDRESS",
                     help="Work on a Ray cluster (HOST:PORT, or auto) with --workers actors."),
        click.option("--workers", type=click.IntRange(1, 256),
                     help="Tasks under way at once. A model of this machine takes one; servers take "
                     "as many as they batch. [default: 1; 4 of a cluster, and of the oracle]"),
    )  # fmt: skip
    decorated: Any = packed
    for option in options:
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def solve_cells(
    bench: Workbench,
    scale: Scale,
    tasks: Mapping[str, T],
    cells: Mapping[Cell, Setting],
    log: CellLog[Result],
    solver: Callable[[Workbench], Solver[T, Setting, Result]],
    *,
    on_fault: Callable[[T, ToolsrvError], Result] | None = None,
    progress: Callable[[bool], None],
) -> None:
    """Solve what the log lacks at the bench or on the cluster, and close the bench. Blocks.

    Where nothing is lacking no model is opened. ``solver`` is as ``backend`` of ``Scale.pool``.

    Raises:
        DataError: a solve failed; says what is kept and how to go on.
    """
    from toolsrv_lab.evaluation.cells import cell_codec, run_on_pool

    backend = partial(_cell_backend, solver, tasks, cells, on_fault)
    pool = scale.pool(bench, backend, cell_codec(log.kind))

    async def main() -> None:
        try:
            await run_on_pool(tasks, cells, log, pool, progress=progress)
        finally:
            await bench.aclose()

    with signals_as_ctrl_c():
        asyncio.run(main())


def _cell_backend(solver: Any, tasks: Any, cells: Any, on_fault: Any, bench: Workbench) -> Any:
    from toolsrv_lab.evaluation.cells import cell_backend

    return cell_backend(solver(bench), tasks, cells, on_fault=on_fault)


def _open(bench: Workbench, backend: Callable[[Workbench], Backend[T, R]]) -> Any:
    return backend(bench)()


def _open_remote(
    settings: dict[str, Any],
    run: Mapping[str, Any],
    backend: Callable[[Workbench], Backend[T, R]],
) -> Any:
    """Open a backend in an actor, at a bench with the same settings."""
    from toolsrv.settings import CommandSettings
    from toolsrv.workbench import Workbench

    return _open(Workbench(CommandSettings.model_validate(settings), run), backend)


def _settings_of(bench: Workbench) -> dict[str, Any]:
    """Return all that is set of a bench, defaults too: a node's own settings must not count."""
    given = bench.settings.model_dump(mode="json", exclude_unset=True)
    return given | {"data_dir": str(bench.settings.data_dir.absolute())}


def _note_lost() -> None:
    note("a worker of the cluster was lost; another one takes its place")
