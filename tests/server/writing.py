"""A host that can be written to, the catalog that names it, and persons who are asked."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store

_SPEC = importlib.util.spec_from_file_location(
    "faulty_host_that_is_written_to", Path(__file__).parents[1] / "faulty_host.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
FaultyHost = _MODULE.FaultyHost
TASK = "WRITE {word} into the notebook of notes"


def serve(host: Any, data_dir: Path, *, only: bool = False) -> None:
    """Put a catalog with one API that changes something into a data folder, ``only`` it if so."""
    api = Api(
        id="Notes/notes/write",
        category="Notes",
        tool="notes",
        name="write",
        description="Write a word into the notebook of notes",
        method="POST",
        url=f"{host.url}/write",
        required=(Parameter(name="text", description="The word"),),
    )
    data_dir.mkdir(exist_ok=True)
    with Store.open(data_dir / STORE_FILE) as store:
        store.put_catalog(
            Catalog(name="theirs", tools=(Tool(category="Notes", name="notes", apis=(api,)),))
        )
        if only:
            store.set_enabled("offline", enabled=False)


class Person:
    """Answers forms; ``says`` makes of the question ``accept``, ``decline`` or ``cancel``.

    ``ok`` is what an accepted form is filled in with.
    """

    def __init__(self, says: Callable[[str], Awaitable[str]], *, ok: bool = True) -> None:
        self.asked: list[str] = []
        self._says = says
        self._ok = ok

    async def __call__(self, context: Any, params: Any) -> Any:
        from mcp.types import ElicitResult

        del context
        self.asked.append(params.message)
        action = await self._says(params.message)
        content = {"ok": self._ok} if action == "accept" else None
        return ElicitResult(action=action, content=content)  # type: ignore[arg-type]


def always(action: str, *, ok: bool = True) -> Person:
    """Return a person who always says the same."""

    async def says(_question: str) -> str:
        return action

    return Person(says, ok=ok)
