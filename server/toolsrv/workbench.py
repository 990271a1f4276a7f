"""Composition root: build registry, caller, engine and solver from the settings.

The command line and the MCP server both work at this bench. Every part is built when it is first
needed, once, whoever asks and from whichever thread; what nobody needs is never imported.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolsrv.domains import domains, load_catalogs
from toolsrv.memory import OPENING, SEARCHING, SOLVING, check_memory
from toolsrv.model_loading import load_model, load_simulator
from toolsrv.solve_options import solve_options
from toolsrv.threads import Once, in_thread
from toolsrv_registry.errors import DataError, MemoryShortError, UsageError

if TYPE_CHECKING:  # downhill imports, kept out of start-up
    from toolsrv.settings import CommandSettings
    from toolsrv.views.readiness import Readiness
    from toolsrv_registry.api import Api
    from toolsrv_registry.index.vectors import IndexStatus
    from toolsrv_registry.registry import Registry
    from toolsrv_registry.search.retriever import Hit, SearchResult
    from toolsrv_runtime.calls.caller import Caller
    from toolsrv_runtime.contract.models import ChatModel, Engine
    from toolsrv_runtime.options import SolveOptions
    from toolsrv_runtime.profiles import Profile
    from toolsrv_runtime.solve import Solver
    from toolsrv_runtime.toolbench.prompts import Prompts
    from toolsrv_runtime.toolbench.reference import ReferenceMode

log = logging.getLogger(__name__)
Progress = Callable[[int, int], None]


class Workbench:
    """The parts of toolsrv for one set of settings. Methods block; call them in a thread."""

    def __init__(
        self,
        settings: CommandSettings,
        run: Mapping[str, Any] | None = None,
        *,
        load_engine: Callable[[], tuple[Engine, Profile]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take the settings; ``load_engine`` stands in for the model that they name.

        ``run`` are the options of every solve here that names none of its own.
        ``progress`` hears (done, total) while the index is built; from the building thread.
        """
        self.settings = settings
        self.run = run or {}
        self.progress = progress
        self._registry: Once[Registry] = Once(self._open_registry)
        self._indexed: Once[Registry] = Once(self._build_index)
        self._model: Once[tuple[Engine | ChatModel, Profile]] = Once(
            load_engine or (lambda: load_model(settings))
        )
        self._simulator: Once[tuple[Engine | ChatModel, Profile]] = Once(
            lambda: load_simulator(settings)
        )
        self._caller: Once[Caller] = Once(self._make_caller)
        self._build = (0.0, 0, 0)

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
            DataError: The data folder or what is in it cannot be used, or memory does not suffice.
        """
        return self._indexed.get()

    @property
    def is_searchable(self) -> bool:
        """Whether a search waits for no index that is built or brought up to date. Blocks little."""
        return self._indexed.built and self.registry().index.state() == "ready"

    def build_index(self, progress: Progress | None) -> IndexStatus:
        """Bring the index up to date, however large, and return its status.

        Raises:
            DataError: Chroma, the encoder or the data folder cannot be used, or memory does not
                suffice.
        """
        registry = self.registry()
        check_memory(SEARCHING, registry.store.size())
        return registry.index.build(progress)

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
        from toolsrv_runtime.contract.models import ChatModel

        engine, profile = self.model()
        if isinstance(engine, ChatModel):
            raise UsageError(
                f"this needs a model of this machine, and {engine.name} is none",
                hint="name a GGUF file, or one that ships: nano, small",
            )
        return engine, profile

    def solver(
        self, model: tuple[Engine | ChatModel, Profile] | None = None, *, asks: bool = False
    ) -> Solver:
        """Return a solver on ``model``, without one on the model of the settings.

        ``asks`` says that a person can be asked for consent: then APIs that need it are candidates
        too.

        Raises:
            DataError: The model, the data folder or what is in it cannot be used, or memory does
                not suffice.
        """
        check_memory(SOLVING, self.registry().store.size())
        from toolsrv.calls.callable_apis import CallableRetriever
        from toolsrv.calls.files import FileSavingCaller
        from toolsrv_runtime.solve import Solver

        registry, caller = self.searchable(), self.caller()
        engine, profile = model or self.model()
        return Solver(
            retriever=CallableRetriever(
                registry,
                lambda api: caller.can_call(api, asks=asks),
                lambda api: caller.can_call(api, asks=True),
                lacks=caller.lacks,
                as_called=self.as_called,
                equals=self._equals,
            ),
            engine=engine,
            profile=profile,
            caller=FileSavingCaller(caller, self.settings.data_dir, self.settings.download_bytes),
            prompts=self.prompts() if profile.format == "toolllama" else None,
            fidelity=self.fidelity(),
        )

    def prompts(self) -> Prompts:
        """Return what the user has given of ToolBench's own sentences.

        Raises:
            DataError: They are damaged.
        """
        from toolsrv_runtime.toolbench.prompts import stored_prompts

        return stored_prompts(self.settings.data_dir)

    def fidelity(self) -> ReferenceMode:
        """Return how far a solve follows ToolBench: in all, with other values where some are named."""
        from toolsrv_runtime.toolbench.reference import parse_reference_mode

        return parse_reference_mode(self.settings.faithful)

    @property
    def is_faithful(self) -> bool:
        """Whether a solve follows ToolBench in every difference, but for values that are named."""
        from toolsrv_runtime.toolbench.reference import names_all

        return names_all(self.settings.faithful)

    def options(self, **given: Any) -> SolveOptions:
        """Return a solve's options: what is given (not ``None``), else those of this bench.

        Raises:
            UsageError: a value is not acceptable.
        """
        given = {key: value for key, value in given.items() if value is not None}
        return solve_options(self.settings, {**self.run, **given})

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
        without_vectors: str = "",
        without_matcher: bool = False,
        callable_only: bool = False,
    ) -> SearchResult:
        """Return the APIs that fit a text, best first, in the order of a solve's candidates.

        ``Retriever.search``, reranked by the matcher as the candidates of a solve are. Not for a
        text that names an API in full. Of hits that fit equally well those come first that can be
        called now, then those with the better terms. ``callable_only`` leaves out all others, of
        the first ``CALLABLE_AMONG`` hits. ``without_vectors``: a reason to wait for neither index
        nor encoder nor matcher; words answer. ``without_matcher``: the retriever's order stays.

        Raises:
            NotFoundError: No such category, tool or catalog.
            UsageError: The catalog is disabled.
        """
        self._check(category, tool)
        registry = self.registry() if without_vectors else self.searchable()
        from toolsrv_runtime.agent.candidates import MOST_RERANKED

        unread = bool(without_vectors) or without_matcher
        longer = max(MOST_RERANKED, offset + limit)
        if callable_only:
            longer = CALLABLE_AMONG
        elif offset >= MOST_RERANKED or without_matcher:
            longer = 0
        page = registry.retriever.search(
            text,
            limit,
            offset=offset,
            category=category,
            tool=tool,
            catalog=catalog,
            include_dead=include_dead,
            without_vectors=without_vectors,
            longer=longer,
        )
        if callable_only:
            return self._callable(text, page, limit, offset, by_words=unread)
        if page.named or not longer:
            return page
        read = page.reading.text or text  # the matcher knows no misspelt words and one language
        hits = self._ordered(page.longer, read, bool(without_vectors))
        return page.model_copy(update={"hits": _shown(hits, limit, offset)})

    def readiness(self, apis: Sequence[Api]) -> dict[str, Readiness]:
        """Return what each of some APIs has for a call now, by id; empty where it is not known."""
        from toolsrv.views.readiness import readiness

        return readiness(self.settings, self.registry().store, self.caller, apis)

    def readiness_of(self, api: Api, catalog: str | None = None) -> Readiness | None:
        """Return what one API has, with the terms of a named catalog; None where not known."""
        found = self.readiness([api]).get(api.id)
        terms = self.registry().store.labels.terms([api.id], catalog=catalog).get(api.id)
        if found is None or terms is None or catalog is None:
            return found
        return found.model_copy(update=terms.model_dump())

    def _ordered(self, hits: Sequence[Hit], text: str, by_words: bool) -> list[Hit]:
        """Return hits as a solve orders them, equals by what they have."""
        from toolsrv_runtime.agent.candidates import MOST_RERANKED, rerank

        match = self.registry().retriever.match
        if by_words:
            ranked = list(hits)
        else:
            ranked = [
                one.hit.model_copy(update={"score": one.score}) for one in rerank(hits, text, match)
            ]
        return [*self._equals(ranked[:MOST_RERANKED]), *ranked[MOST_RERANKED:]]

    def _equals(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits with those that fit equally well by what a call of them has."""
        from toolsrv_registry.search.ties import order_ties

        known = self.readiness([hit.api for hit in hits])
        order = {api_id: one.order for api_id, one in known.items()}
        return order_ties(hits, lambda hit: order.get(hit.api.id, ()))

    def _callable(
        self,
        text: str,
        page: SearchResult,
        limit: int,
        offset: int,
        *,
        by_words: bool,
    ) -> SearchResult:
        read = page.reading.text or text
        hits = page.longer if page.named else self._ordered(page.longer, read, by_words)
        known = self.readiness([hit.api for hit in hits])
        able = [hit for hit in hits if hit.api.id in known and known[hit.api.id].callable]
        more = len(able) > offset + limit
        return page.model_copy(
            update={
                "hits": _shown(able, limit, offset),
                "next_offset": offset + limit if more else None,
                "total": None if more else len(able),
                "offset": offset,
            }
        )

    def index_seconds(self) -> float | None:
        """Return how many seconds an index build under way will take on; None where unknown."""
        started, done, total = self._build
        if not 0 < done < total:
            return None
        return (time.monotonic() - started) * (total - done) / done

    def api(self, api_id: str) -> Api:
        """Return one API.

        Raises:
            NotFoundError: No such API; the hint names similar ids.
        """
        return self.registry().store.get(api_id)

    def as_called(self, api: Api) -> Api:
        """Return an API without the parameters that are fixed for its catalog.

        Raises:
            DataError: they cannot be read.
        """
        from toolsrv.calls.catalog_files import FixedFile

        store = self.registry().store
        return FixedFile(self.settings.data_dir).as_called(api, lambda one: store.home(one)[0])

    def check_category(self, category: str | None) -> None:
        """Raise NotFoundError when a category is named that no API has."""
        self._check(category, None)

    def domains(self) -> tuple[str, ...]:
        """Return what the catalogs in use are about; opens nothing heavy."""
        return domains(self.settings.data_dir)

    def _check(self, category: str | None, tool: str | None) -> None:
        """Look at the names first: they are known before an index is built or a model loaded."""
        if category is not None:
            category = self.registry().store.names.resolve_category(category)
        if tool is not None:
            self.registry().store.names.resolve_tool(tool, category=category)

    def warm(self) -> None:
        """Build what the first request will need; a large model is left for when it is used."""
        self.searchable().warm().join()
        model = self.settings.model
        if isinstance(model, str):  # a server needs no loading
            return
        if model is None or (model.is_file() and model.stat().st_size <= WARM_MODEL_BYTES):
            self._model.get()

    def close(self, *, last: bool = False) -> None:
        """Let go of the registry; unless ``last`` it opens again when it is needed."""
        if (registry := self._registry.take(last=last)) is not None:
            registry.close()
        self._indexed.take(last=last)

    async def aclose(self, *, last: bool = False) -> None:
        """Let go of everything that is open; unless ``last`` it opens again when it is needed.

        Solves end before: a call of a model that works is waited for, the next one is refused.
        """
        self.close(last=last)
        if (caller := self._caller.take(last=last)) is not None:
            await caller.aclose()
        await in_thread(lambda: self._close_models(last=last))

    def _close_models(self, *, last: bool) -> None:
        for part in (self._model, self._simulator):
            if (loaded := part.take(last=last)) is not None:
                loaded[0].close()

    def _open_registry(self) -> Registry:
        check_memory(OPENING)
        from toolsrv_registry.encoder import encoder_named
        from toolsrv_registry.registry import Registry

        folder = self.settings.data_dir
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot use the data folder {folder}: {error.strerror or error}",
                hint="name another folder with --data-dir or TOOLSRV_DATA_DIR",
            ) from error
        return Registry.open(
            folder,
            load_catalogs(),
            chroma_url=self.settings.chroma_url or None,
            encoder=encoder_named(self.settings.encoder) if self.settings.encoder else None,
        )

    def _make_caller(self) -> Caller:
        from toolsrv.calls.caller import make_caller
        from toolsrv.settings import SIMULATIONS

        own = self.settings.simulate not in SIMULATIONS
        simulator = self._simulator.get if own else self.model
        seed = self.options().seed
        return make_caller(self.settings, lambda: self.registry().store, simulator, seed)

    def _build_index(self) -> Registry:
        registry = self.registry()
        check_memory(SEARCHING, registry.store.size())
        try:
            if registry.store.size() <= INDEXED_AT_ONCE:
                registry.ensure_index(self._count())
        except MemoryShortError:
            raise
        except DataError as error:
            log.warning("no vector index: %s (%s)", error.message, error.hint)
        return registry

    def _count(self) -> Progress:
        """Return a progress that keeps count for ``index_seconds`` and passes it on."""
        started = time.monotonic()

        def count(done: int, total: int) -> None:
            self._build = (started, done, total)
            if self.progress is not None:
                self.progress(done, total)

        return count


def _shown(hits: Sequence[Hit], limit: int, offset: int) -> tuple[Hit, ...]:
    """Return a page of hits under the places that they have in the list."""
    page = enumerate(hits[offset : offset + limit], start=offset + 1)
    return tuple(hit.model_copy(update={"rank": rank}) for rank, hit in page)


CALLABLE_AMONG = 200
"""Hits among which a search looks for those that can be called now."""
INDEXED_AT_ONCE = 2_000
"""Up to so many APIs the index is built when it is needed; beyond, by import and `index build`."""
WARM_MODEL_BYTES = 64 * 1024 * 1024
