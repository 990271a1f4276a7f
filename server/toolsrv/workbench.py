"""The one place where the parts are put together: settings in, registry, caller, solver out.

The command line and the MCP server both work at this bench. Every part is built when it is first
needed, once, whoever asks and from whichever thread; what nobody needs is never imported.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolsrv.models import load_special
from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError, UsageError

if TYPE_CHECKING:  # downhill imports, kept out of start-up
    from pathlib import Path

    from toolsrv.settings import Settings
    from toolsrv_registry.api import Api, Catalog
    from toolsrv_registry.registry import Registry
    from toolsrv_registry.retriever import SearchResult
    from toolsrv_runtime.answers.prompts import Prompts
    from toolsrv_runtime.calls.caller import Caller
    from toolsrv_runtime.engine.base import Engine
    from toolsrv_runtime.engine.chat import ChatModel
    from toolsrv_runtime.fidelity import Fidelity
    from toolsrv_runtime.profile import Profile
    from toolsrv_runtime.solve import SolveOptions, Solver

T = TypeVar("T")
log = logging.getLogger(__name__)
Progress = Callable[[int, int], None]


class Once(Generic[T]):
    """A part that is built on the first ``get``; a failed build is tried again next time."""

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._part: T | None = None

    def get(self) -> T:
        """Return the part; concurrent callers wait for the one that builds it."""
        with self._lock:
            if self._part is None:
                self._part = self._build()
            return self._part

    def take(self) -> T | None:
        """Return the part if it is built, and forget it."""
        with self._lock:
            part, self._part = self._part, None
            return part


class Workbench:
    """The parts of toolsrv for one set of settings. Methods block; call them in a thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        load_engine: Callable[[], tuple[Engine, Profile]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take the settings; ``load_engine`` stands in for the model that they name.

        ``progress`` hears (done, total) while the index is built; from the building thread.
        """
        self.settings = settings
        self.progress = progress
        self._registry: Once[Registry] = Once(self._open_registry)
        self._indexed: Once[Registry] = Once(self._build_index)
        self._model: Once[tuple[Engine | ChatModel, Profile]] = Once(
            load_engine or self._load_model
        )
        self._caller: Once[Caller] = Once(self._make_caller)

    def registry(self) -> Registry:
        """Return the open registry; its index may be old or missing.

        Raises:
            DataError: The data folder or what is in it cannot be used.
        """
        return self._registry.get()

    def searchable(self) -> Registry:
        """Return the open registry with an index that fits the catalogs, built where needed.

        Where no index can be built, or a large one is not built yet, a search goes by words alone
        and says so.

        Raises:
            DataError: The data folder or what is in it cannot be used.
        """
        return self._indexed.get()

    def caller(self) -> Caller:
        """Return the caller; it belongs to the event loop that first uses it."""
        return self._caller.get()

    def model(self) -> tuple[Engine | ChatModel, Profile]:
        """Return the model of the settings, ready, and how it is run.

        Raises:
            DataError: The model cannot be used, or its server does not answer.
            NotFoundError: There is no such file.
            UsageError: The MCP client's own model is meant.
        """
        return self._model.get()

    def engine(self) -> tuple[Engine, Profile]:
        """Return the model as ``model`` does, for work that needs its tokens.

        Raises:
            UsageError: It is somebody else's chat model; otherwise as for ``model``.
        """
        from toolsrv_runtime.engine.chat import ChatModel

        engine, profile = self.model()
        if isinstance(engine, ChatModel):
            raise UsageError(
                f"this needs a model of this machine, and {engine.name} is none",
                hint="name a GGUF file with --model, or leave it out for the one that ships",
            )
        return engine, profile

    def solver(self, model: tuple[Engine | ChatModel, Profile] | None = None) -> Solver:
        """Return a solver on ``model``, without one on the model of the settings.

        Raises:
            DataError: The model, the data folder or what is in it cannot be used.
        """
        from toolsrv.offered import Offered
        from toolsrv_runtime.solve import Solver

        registry = self.searchable()
        engine, profile = model or self.model()
        return Solver(
            retriever=Offered(registry, self.caller().can_call),
            engine=engine,
            profile=profile,
            caller=self.caller(),
            prompts=self.prompts() if profile.format == "toolllama" else None,
            fidelity=self.fidelity(),
        )

    def prompts(self) -> Prompts:
        """Return what the user has given of ToolBench's own sentences.

        Raises:
            DataError: They are damaged.
        """
        from toolsrv_runtime.answers.prompts import stored_prompts

        return stored_prompts(self.settings.data_dir)

    def fidelity(self) -> Fidelity:
        """Return how far a solve follows ToolBench."""
        from toolsrv_runtime.fidelity import FAITHFUL, Fidelity

        return FAITHFUL if self.settings.faithful else Fidelity()

    def options(self, **given: Any) -> SolveOptions:
        """Return the solve's options: what is given (not ``None``), else the settings.

        ``max_seconds``, ``max_calls``, ``max_model_calls`` and ``max_tokens`` are the budget.
        """
        from toolsrv_runtime.outcome import Limits
        from toolsrv_runtime.solve import SolveOptions

        value = self.settings.model_dump() | {k: v for k, v in given.items() if v is not None}
        return SolveOptions(
            strategy=value["strategy"],
            chains=value["chains"],
            width=value["width"],
            depth=value["depth"],
            candidates=value["candidates"],
            seed=value["seed"],
            category=value.get("category"),
            verify=value["verify"],
            limits=Limits(
                seconds=value["max_seconds"],
                calls=value["max_calls"],
                model_calls=value["max_model_calls"],
                tokens=value["max_tokens"],
            ),
        )

    def search(
        self,
        text: str,
        limit: int,
        *,
        offset: int = 0,
        category: str | None = None,
        tool: str | None = None,
        catalog: str | None = None,
        include_dead: bool = False,
    ) -> SearchResult:
        """Return the APIs that fit a text, best first (``Retriever.search``).

        Raises:
            NotFoundError: No such category, tool or catalog.
            UsageError: The catalog is disabled.
        """
        self._check(category, tool)
        return self.searchable().retriever.search(
            text,
            limit,
            offset=offset,
            category=category,
            tool=tool,
            catalog=catalog,
            include_dead=include_dead,
        )

    def api(self, api_id: str) -> Api:
        """Return one API.

        Raises:
            NotFoundError: No such API; the hint names similar ids.
        """
        return self.registry().store.get(api_id)

    def check_category(self, category: str | None) -> None:
        """Raise NotFoundError when a category is named that no API has."""
        self._check(category, None)

    def domains(self) -> tuple[str, ...]:
        """Return what the catalogs in use are about; opens nothing heavy.

        The tools' names while they are few, else the categories. Of imported catalogs only
        categories of ToolBench's list: a client's model reads this, and their words are not ours.
        """
        imported, hidden = _imported(self.settings.data_dir)
        tools = [tool for one in load_catalogs() if one.name not in hidden for tool in one.tools]
        few = len(tools) <= NAMED_TOOLS and not imported
        return tuple(sorted({tool.name if few else tool.category for tool in tools} | imported))

    def _check(self, category: str | None, tool: str | None) -> None:
        """Look at the names first: they are known before an index is built or a model loaded."""
        if category is not None:
            category = self.registry().store.resolve_category(category)
        if tool is not None:
            self.registry().store.resolve_tool(tool, category=category)

    def warm(self) -> None:
        """Build what the first request will need; a large model is left for when it is used."""
        self.searchable().warm().join()
        model = self.settings.model
        if isinstance(model, str):  # a server needs no loading
            return
        if model is None or (model.is_file() and model.stat().st_size <= WARM_MODEL_BYTES):
            self._model.get()

    def close(self) -> None:
        """Let go of the registry; it opens again when it is needed."""
        if (registry := self._registry.take()) is not None:
            registry.close()
        self._indexed.take()

    async def aclose(self) -> None:
        """Let go of everything that is open."""
        self.close()
        if (caller := self._caller.take()) is not None:
            await caller.aclose()

    def _open_registry(self) -> Registry:
        from toolsrv_registry.registry import Registry

        folder = self.settings.data_dir
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot use the data folder {folder}: {error.strerror or error}",
                hint="name another folder with --data-dir or TOOLSRV_DATA_DIR",
            ) from error
        return Registry.open(folder, load_catalogs(), chroma_url=self.settings.chroma_url or None)

    def _make_caller(self) -> Caller:
        from toolsrv.callers import make_caller

        return make_caller(self.settings, lambda: self.registry().store)

    def _build_index(self) -> Registry:
        registry = self.registry()
        try:
            if registry.store.size() <= INDEXED_AT_ONCE:
                registry.ensure_index(self.progress)
        except DataError as error:
            log.warning("no vector index: %s (%s)", error.message, error.hint)
        return registry

    def _load_model(self) -> tuple[Engine | ChatModel, Profile]:
        if isinstance(self.settings.model, str):
            return load_special(
                self.settings.model,
                engine_model=self.settings.engine_model,
                silence_s=self.settings.engine_timeout,
            )
        return self._load_engine(self.settings.model)

    def _load_engine(self, path: Path | None) -> tuple[Engine, Profile]:
        from toolsrv.settings import profiles_folder
        from toolsrv_runtime.models import load_engine

        if path is not None and not path.exists():
            raise NotFoundError(
                f"model file {path} does not exist",
                hint="name a GGUF file with --model, one of: toolsrv model list, or leave it out "
                "for the one that ships",
            )
        return load_engine(
            path,
            threads=self.settings.threads or None,
            grounded=self.settings.grounded,
            profile=self.settings.profile,
            profiles=profiles_folder(self.settings.data_dir),
            states=self.settings.data_dir / "states" if self.settings.states_mib else None,
            states_bytes=self.settings.states_mib << 20,
        )


INDEXED_AT_ONCE = 2_000
"""Up to so many APIs the index is built when it is needed; beyond, by import and `index build`."""
NAMED_TOOLS = 60
WARM_MODEL_BYTES = 64 * 1024 * 1024


def load_catalogs() -> tuple[Catalog, ...]:
    """Return the catalogs that ship; imported ones are in the store."""
    from toolsrv_catalogs.offline import load_offline_catalog

    return (load_offline_catalog(),)


def _imported(folder: Path) -> tuple[set[str], set[str]]:
    """Return the known categories of imported catalogs, and the names of disabled catalogs."""
    from toolsrv_catalogs.categories import CATEGORIES
    from toolsrv_registry.store import STORE_FILE, Store

    shipped = {one.name for one in load_catalogs()}
    if not (folder / STORE_FILE).exists():
        return set(), set()
    try:
        with Store.open(folder / STORE_FILE) as store:
            catalogs = store.catalogs()
            hidden = {one.name for one in catalogs if not one.enabled}
            if all(one.name in shipped for one in catalogs if one.enabled):
                return set(), hidden
            return set(CATEGORIES & store.categories().keys()), hidden
    except ToolsrvError as error:  # told by the first request that needs the store
        log.warning("the catalogs cannot be listed: %s", error.message)
        return set(), set()
