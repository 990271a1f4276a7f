"""Vector index over the store's documents, keyed by content and encoder.

A new collection is built beside the old one; a pointer switches to it when it is complete. The
progress of a build is kept in a small file that other processes read.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.documents import contents_hash
from toolsrv_registry.encoder import Encoder, Progress, Vectors
from toolsrv_registry.errors import DataError, MemoryShortError
from toolsrv_registry.file_lock import acquire_lock
from toolsrv_registry.index.chroma import PREFIX, REBUILD, Chroma
from toolsrv_registry.index.flat import MOST, FlatFile, FlatIndex
from toolsrv_registry.storage.entries import Document, IndexPointer
from toolsrv_registry.storage.store import Store

_EVERY_S = 1.0


class BuildState(BaseModel):
    """A build under way: texts done and in all, texts a second, the process that builds."""

    model_config = ConfigDict(frozen=True)

    done: int
    total: int
    per_second: float
    pid: int


class BuildProgress:
    """The file of one data folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> BuildState | None:
        """Return how far a build under way is, None where there is none."""
        try:
            found = BuildState.model_validate(json.loads(self._path.read_text("utf-8")))
        except (OSError, ValueError, ValidationError):
            return None
        return found if psutil.pid_exists(found.pid) else None

    @contextmanager
    def recording(self, progress: Progress | None) -> Iterator[Progress]:
        """Yield a progress that keeps the file up to date and passes everything on."""
        started = time.monotonic()
        known, written = -1, -_EVERY_S

        def show(done: int, total: int) -> None:
            nonlocal known, written
            known = done if known < 0 else known  # those were known before
            now = time.monotonic()
            if now - written >= _EVERY_S:
                written = now
                rate = (done - known) / max(now - started, 0.001)
                self._write(
                    BuildState(done=done, total=total, per_second=round(rate, 1), pid=os.getpid())
                )
            if progress is not None:
                progress(done, total)

        try:
            yield show
        finally:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _write(self, building: BuildState) -> None:
        fresh = self._path.with_name(f"{self._path.name}.new")
        with suppress(OSError):  # a build goes on where only this cannot be written
            fresh.write_text(building.model_dump_json(), "utf-8")
            fresh.replace(self._path)


_log = logging.getLogger(__name__)
_ENCODE_BATCH = 512

Result = TypeVar("Result")
State = Literal["ready", "stale", "missing"]


class IndexStatus(BaseModel):
    """What a search would use; ``building`` is how far a build under way is.

    ``stale`` means an older index is in use while the catalogs have changed. ``apis`` counts
    the indexed texts (equal texts share one), ``bytes`` is the folder's size (0 for a server).
    """

    model_config = ConfigDict(frozen=True)

    state: State
    apis: int
    encoder: str
    built_at: str
    collection: str
    bytes: int
    place: str
    building: BuildState | None = None


class Index:
    """The vector index of one store and one encoder.

    Thread-safe; nothing heavy loads until the first build or query.
    ``folder`` holds the embedded Chroma and the lock file; ``url`` names a Chroma server instead.
    """

    def __init__(
        self, store: Store, encoder: Encoder, *, folder: Path, url: str | None = None
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._folder = folder
        self._chroma = Chroma(folder=folder / "chroma", url=url)
        self._flat = FlatFile(folder / "vectors.npz")
        self._progress = BuildProgress(folder / "index.progress")
        self._checked = ""
        self._current = store.kept(
            lambda: store.pointers.get(self._chroma.place, self._encoder.digest)
        )

    @property
    def encoder(self) -> Encoder:
        """The encoder of this index."""
        return self._encoder

    def state(self) -> State:
        """Return whether the index fits the store's present contents; cheap."""
        pointer = self._pointer()
        if pointer is None:
            return "missing"
        return "ready" if pointer.content_hash == self._store.content_hash() else "stale"

    def status(self) -> IndexStatus:
        """Describe the index; imports nothing heavy."""
        pointer = self._pointer()
        return IndexStatus(
            state=self.state(),
            apis=pointer.documents if pointer else 0,
            encoder=self._encoder.name,
            built_at=pointer.built_at if pointer else "",
            collection=pointer.collection if pointer else "",
            bytes=self._chroma.size(),
            place=self._chroma.place,
            building=self._progress.read(),
        )

    def load(self) -> None:
        """Read the flat copy, or open Chroma, now rather than with the first search."""
        if self._pointer() is None or self.flat() is None:
            self._chroma.open()

    def close(self) -> None:
        """Let go of Chroma."""
        self._chroma.close()

    def build(self, progress: Progress | None = None) -> IndexStatus:
        """Bring the index up to date and return its status.

        Checks an index that claims to be ready, and builds a damaged one anew (with a warning in
        the log). Waits while another process builds. Raises DataError when Chroma or the encoder
        cannot be used at all.
        """
        with self._alone(), self._chroma.patient():
            previous = self._usable()
            if previous is None and self._pointer() is not None:
                # Opening the place has made it anew, empty, under the pointer of the old one.
                _log.warning("the vector index is gone; building it anew")
                self._forget()
            if self.state() != "ready":
                with self._progress.recording(progress) as counted:
                    self._build(previous, counted)
        return self.status()

    def flat(self) -> FlatIndex | None:
        """Return the index as a flat copy; None where ``query`` has to be asked instead.

        That is a server's index, and one of too many texts. Raises as ``query`` does.
        """
        pointer = self._pointer()
        if pointer is not None and (self._chroma.place != "embedded" or pointer.documents > MOST):
            return None

        def read(pointer: IndexPointer) -> FlatIndex:
            name = pointer.collection
            return self._flat.get(name, lambda: self._chroma.everything(name))

        return self._reading(read)

    def query(
        self,
        vectors: Vectors,
        limit: int,
        *,
        category: str | None = None,
        tool: str | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Return per row of ``vectors`` (n, d) the nearest (document hash, cosine), best first.

        Filters are stored names (``Store.resolve_category``). Raises DataError when there is no
        index or it cannot be read.
        """
        where = {k: v for k, v in (("category", category), ("tool", tool)) if v is not None}
        return self._reading(
            lambda pointer: (
                self._chroma.query(
                    pointer.collection, vectors, min(limit, pointer.documents), where
                )
                if pointer.documents
                else [[] for _ in vectors]
            )
        )

    def vectors(self, hashes: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored vectors (d,) of documents, without those the index lacks."""
        return self._reading(lambda pointer: self._chroma.vectors(pointer.collection, hashes))

    def _reading(self, read: Callable[[IndexPointer], Result]) -> Result:
        """Run a read on the current collection, once more if it was replaced meanwhile."""
        pointer = self._pointer()
        if pointer is None:
            raise DataError("there is no vector index yet", hint=REBUILD)
        try:
            self._check(pointer)
            return read(pointer)
        except DataError:
            newer = self._store.pointers.get(self._chroma.place, self._encoder.digest)
            if newer is None or newer.collection == pointer.collection:
                raise
            # The folder may have been made anew under the open one.
            self._chroma.close()
            return read(newer)

    def _check(self, pointer: IndexPointer) -> None:
        """Compare the collection's files with their hashes, once per collection and process."""
        if self._checked != pointer.collection:
            self._chroma.check(pointer.files)
            self._checked = pointer.collection

    def _pointer(self) -> IndexPointer | None:
        if not self._chroma.present:
            return None
        return self._current.get()

    def _usable(self) -> IndexPointer | None:
        """Return the pointer if its collection can be read and is whole; else clear the way."""
        pointer = self._pointer()
        try:
            if pointer is not None:
                self._chroma.check(pointer.files)
            names = self._chroma.names(self._store.owner())
            if pointer is None:
                return None
            if pointer.collection in names and self._whole(pointer):
                return pointer
            _log.warning("the vector index is incomplete; building it anew")
        except DataError as error:
            if self._chroma.place != "embedded" or isinstance(error, MemoryShortError):
                raise
            _log.warning("the vector index is damaged (%s); building it anew", error.message)
            self._chroma.wipe()
            self._store.pointers.drop(self._chroma.place)
            return None
        self._forget()
        return None

    def _forget(self) -> None:
        self._store.pointers.drop(self._chroma.place, encoder_digest=self._encoder.digest)

    def _whole(self, pointer: IndexPointer) -> bool:
        if self._chroma.count(pointer.collection) != pointer.documents:
            return False
        probe = np.zeros((1, self._encoder.dimensions), dtype=np.float32)
        probe[0, 0] = 1.0
        if pointer.documents:
            self._chroma.query(pointer.collection, probe, 1, {})
        return True

    def _build(self, previous: IndexPointer | None, progress: Progress | None) -> None:
        owner, place = self._store.owner(), self._chroma.place
        kept = {pointer.collection for pointer in self._store.pointers.at(place)}
        for name in self._chroma.names(owner):
            if name not in kept:
                self._chroma.drop(name)
        self._chroma.tidy()
        documents = self._store.documents()
        content = contents_hash(document.hash for document in documents)
        # The random part keeps a build apart from the remains of one that died.
        name = f"{PREFIX}{content[:12]}-{self._encoder.digest[:8]}-{secrets.token_hex(4)}"
        before = self._chroma.hashes()
        try:
            thin = self._chroma.place == "embedded" and len(documents) <= MOST
            self._chroma.create(name, owner, self._encoder.digest, thin=thin)
            self._fill(name, documents, previous, progress)
            self._check_complete(name, len(documents))
        except BaseException:
            # A full disk gets its room back now, not with the next build.
            with suppress(DataError):
                self._chroma.drop(name)
                self._chroma.tidy()
            raise
        files = {key: value for key, value in self._chroma.hashes().items() if key not in before}
        self._store.pointers.set(
            IndexPointer(
                place=place,
                encoder=self._encoder.name,
                encoder_digest=self._encoder.digest,
                collection=name,
                content_hash=content,
                documents=len(documents),
                built_at=datetime.now(UTC).isoformat(timespec="seconds"),
                files=files,
            )
        )
        if previous is not None:
            self._chroma.drop(previous.collection)
            self._chroma.tidy()
        self.flat()

    def _check_complete(self, name: str, documents: int) -> None:
        if self._chroma.count(name) != documents or not self._chroma.present:
            raise DataError("the new vector index is incomplete", hint=REBUILD)

    def _fill(
        self,
        name: str,
        documents: Sequence[Document],
        previous: IndexPointer | None,
        progress: Progress | None,
    ) -> None:
        known = self._known(previous, [document.hash for document in documents])
        old = [document for document in documents if document.hash in known]
        new = [document for document in documents if document.hash not in known]
        if old:
            self._add(name, old, np.stack([known[document.hash] for document in old]))
        if progress is not None:
            progress(len(old), len(documents))
        for at in range(0, len(new), _ENCODE_BATCH):
            part = new[at : at + _ENCODE_BATCH]
            shifted = _shifted(progress, len(old) + at, len(documents))
            vectors = self._encoder.encode([d.text for d in part], progress=shifted)
            self._add(name, part, vectors)

    def _known(self, pointer: IndexPointer | None, hashes: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors that need not be computed: our own, and on a server those of others."""
        found = {} if pointer is None else self._chroma.vectors(pointer.collection, hashes)
        for name in self._chroma.kin(self._encoder.digest):
            missing = [key for key in hashes if key not in found]
            if not missing:
                break
            with suppress(DataError):  # its owner may drop it meanwhile
                found |= self._chroma.vectors(name, missing)
        shape = (self._encoder.dimensions,)
        return {key: vector for key, vector in found.items() if vector.shape == shape}

    def _add(self, name: str, documents: Sequence[Document], vectors: Vectors) -> None:
        places = [{"category": d.category, "tool": d.tool_key} for d in documents]
        self._chroma.add(name, [document.hash for document in documents], vectors, places)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the builders' lock; the system releases it when its holder dies."""
        path = self._folder / "index.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            held = acquire_lock(path)
        except OSError as error:
            raise DataError(
                f"cannot write {path}: {error.strerror}", hint="set another data directory"
            ) from error
        with held:
            yield


def _shifted(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Return a progress for a part of the work that counts on from ``done``."""
    return None if progress is None else lambda n, _: progress(done + n, total)
