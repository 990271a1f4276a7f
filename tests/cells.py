"""Solving the cells of an evaluation in this process, one task after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from pydantic import BaseModel

from toolsrv_lab.evaluation.cells import Cell, CellLog, cell_backend, run_on_pool
from toolsrv_lab.execution import Backend, LocalPool, stateless
from toolsrv_registry.errors import ToolsrvError

T = TypeVar("T")
Setting = TypeVar("Setting")
R = TypeVar("R", bound=BaseModel)


async def run_cells(
    tasks: Mapping[str, T],
    cells: Mapping[Cell, Setting],
    log: CellLog[R],
    solve: Callable[[T, Setting], Awaitable[R]],
    *,
    on_fault: Callable[[T, ToolsrvError], R] | None = None,
    progress: Callable[[bool], None] = lambda _fresh: None,
) -> None:
    """Solve what the log lacks."""
    solver: Backend[tuple[T, Setting], R] = stateless(lambda item: solve(*item))
    pool = LocalPool(cell_backend(solver, tasks, cells, on_fault=on_fault), 1)
    await run_on_pool(tasks, cells, log, pool, progress=progress)
