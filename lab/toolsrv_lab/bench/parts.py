"""The parts a solve needs, put together on a data folder that is gone afterwards.

What the server's workbench does for a person's settings, this does for a measurement: the catalog
that ships, a new index, one model.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_lab.solving import FaultyCaller
from toolsrv_registry.api import Api
from toolsrv_registry.host_resources import usable_cores
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.gguf_models import load_engine
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import Solver


@dataclass(frozen=True)
class Parts:
    """What is open. ``apis`` is the catalog that ships, by id."""

    solver: Solver
    caller: FaultyCaller
    engine: Engine
    profile: Profile
    apis: Mapping[str, Api]


@asynccontextmanager
async def open_parts(model: Path | None, *, threads: int | None = None) -> AsyncIterator[Parts]:
    """Open everything for solving with ``model`` (default: the one that ships); close it after.

    Raises:
        ModelError: The file is missing, or not a model that can be run.
        DataError: No index could be built.
    """
    from toolsrv_catalogs.offline import load_offline_catalog  # noqa: PLC0415 - heavy
    from toolsrv_registry.registry import Registry  # noqa: PLC0415 - heavy
    from toolsrv_runtime.calls.transports import offline_transports  # noqa: PLC0415 - heavy

    engine, profile = load_engine(model, threads=threads or usable_cores())
    catalog = load_offline_catalog()
    try:
        with (
            scratch_folder() as folder,
            Registry.open(folder, [catalog]) as registry,
        ):
            registry.ensure_index()
            async with FaultyCaller(transports=offline_transports()) as caller:
                solver = Solver(
                    retriever=registry.retriever, engine=engine, profile=profile, caller=caller
                )
                apis = {api.id: api for api in catalog.apis}
                yield Parts(solver, caller, engine, profile, apis)
    finally:
        engine.close()
