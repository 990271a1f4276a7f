"""One object for everything the registry knows: store, vector index, retriever.

``Registry.open`` puts the given catalogs into the data directory (only what changed) and imports
nothing heavy: listing, describing and calling APIs work without Chroma or onnxruntime. Those load
with the first search, or before it in the background with ``warm``. Several threads may share a
registry, and several processes a data directory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from toolsrv_registry.api import Api, Catalog
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.encoder import Encoder, OnnxEncoder, Progress
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.index.vectors import Index, IndexStatus
from toolsrv_registry.search.retriever import Retriever
from toolsrv_registry.storage.store import Store


class Registry:
    """Store, index and retriever of one data directory; ``Registry.open`` makes one."""

    def __init__(self, store: Store, index: Index, retriever: Retriever) -> None:
        self.store = store
        self.index = index
        self.retriever = retriever
        self._warming: threading.Thread | None = None

    @classmethod
    def open(
        cls,
        data_dir: Path,
        catalogs: Sequence[Catalog] = (),
        *,
        chroma_url: str | None = None,
        encoder: Encoder | None = None,
    ) -> Self:
        """Open a data directory, making it if need be, and bring the given catalogs up to date.

        Catalogs that are in the store already stay as they are; in a directory that cannot be
        written all do. ``encoder`` is the shipped one
        unless given; ``chroma_url`` names a Chroma server instead of ``data_dir/chroma``.

        Raises DataError when the directory cannot be used, BusyError when another process holds
        it, UsageError for a malformed URL.
        """
        encoder = OnnxEncoder() if encoder is None else encoder
        store = Store.open(data_dir / STORE_FILE)
        try:
            index = Index(store, encoder, folder=data_dir, url=chroma_url)
            for catalog in () if store.read_only else catalogs:
                store.put_catalog(catalog)
        except ToolsrvError:
            store.close()
            raise
        return cls(store, index, Retriever(store, index, encoder))

    def get(self, api_id: str) -> Api:
        """Return one API; raises NotFoundError with the nearest ids in its hint."""
        return self.store.get(api_id)

    def ensure_index(self, progress: Progress | None = None) -> IndexStatus:
        """Build the vector index unless it is up to date; return its status."""
        if self.index.state() == "ready":
            return self.index.status()
        return self.index.build(progress)

    def warm(self) -> threading.Thread:
        """Load vectors, encoder, word index and ranker in the background; return the thread.

        Failures wait for the first search, which tells them.
        """
        thread = threading.Thread(target=self._load, name="toolsrv-registry-warm", daemon=True)
        thread.start()
        self._warming = thread
        return thread

    def close(self) -> None:
        """Close the store and let go of Chroma, once a ``warm`` under way has ended."""
        if self._warming is not None:
            self._warming.join()
        self.retriever.close()
        self.index.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> None:
        try:
            self.index.encoder.encode(["warm"])
            self.index.load()
            self.retriever.load()
        except ToolsrvError:
            return
