"""Chroma collections, embedded or by URL: open, create, read, query and drop.

No telemetry and no downloads. An embedded folder is checked for damage, and graph folders of no
collection are found.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from toolsrv_registry.encoder import Vectors
from toolsrv_registry.errors import DataError, MemoryShortError, UsageError
from toolsrv_registry.host_resources import (
    FREE_MEMORY_HINT,
    disk_shortage,
    is_memory_error,
    is_memory_scarce,
)

DATABASE = "chroma.sqlite3"
# Present once Chroma has saved a graph; without it the folder's files are scratch space and the
# database alone counts.
_SAVED = "index_metadata.pickle"


def database_fault(folder: Path) -> str:
    """Return what is wrong with the folder's database, ``""`` if nothing."""
    path = folder / DATABASE
    if not path.exists():
        return ""
    try:
        # Read-write, so that SQLite may roll back what a killed process left.
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=20)
        try:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        # Busy is not broken: whoever writes there leaves it whole.
        return "" if error.sqlite_errorcode == sqlite3.SQLITE_BUSY else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if found == "ok" else " ".join(found.split())


def emptied_fault(folder: Path) -> str:
    """Return what is wrong where a database that held collections is there and empty."""
    try:
        size = (folder / DATABASE).stat().st_size
    except OSError:
        return f"{DATABASE} cannot be read"
    return "" if size else f"{DATABASE} is empty"


def graph_hashes(folder: Path) -> dict[str, str]:
    """Return relative path -> SHA-256 of all saved graph files."""
    saved = [path.parent for path in folder.glob(f"*/{_SAVED}")]
    files = [file for directory in saved for file in directory.iterdir() if file.is_file()]
    return {str(file.relative_to(folder)): _sha256(file) for file in sorted(files)}


def graph_fault(folder: Path, hashes: Mapping[str, str]) -> str:
    """Return which of the hashed files is missing or altered, ``""`` if none."""
    for name, digest in hashes.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if _sha256(path) != digest:
            return f"{name} was altered"
    return ""


def orphan_graphs(folder: Path) -> list[Path]:
    """Return the graph folders that belong to no collection; none when that cannot be told."""
    uri = f"file:{quote(str(folder / DATABASE))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=20)
        try:
            used = {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return []
    return [path for path in folder.iterdir() if _is_segment(path) and path.name not in used]


def _is_segment(path: Path) -> bool:
    try:
        return path.is_dir() and str(uuid.UUID(path.name)) == path.name
    except ValueError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


PREFIX = "toolsrv-"
REBUILD = "run `toolsrv index build`"
# Of the nearest 64 of 16,463 vectors a query finds 97 % in 0.7 ms; 400 finds all in 1.1. What it
# misses is far down the list, and words find most of it.
_HNSW = {"space": "cosine", "ef_construction": 100, "ef_search": 128}
# Of a collection that is searched in a flat copy the graph is hardly used: half the time to build.
_THIN = {"space": "cosine", "ef_construction": 40, "ef_search": 128, "max_neighbors": 8}
_BATCH = 1_000
_ANSWER_SECONDS = 5.0
# A search waits so long for a server that hangs, then goes by words; a build has the patience.
_SEARCH_SECONDS = 10.0
_BUILD_SECONDS = 60.0


class Chroma:
    """One place with collections. Thread-safe; opens with the first operation."""

    def __init__(self, *, folder: Path, url: str | None = None) -> None:
        self._folder = folder
        self._url = url
        self._lock = threading.RLock()
        self._client: Any = None
        # The collection last used: asking for it costs a search half a millisecond.
        self._known: tuple[Any, str, Any] | None = None
        self._inode = 0
        self._patience = _SEARCH_SECONDS
        if url is not None:
            _address(url)

    @property
    def place(self) -> str:
        """``embedded``, or the server's URL: what an index pointer is kept under."""
        return "embedded" if self._url is None else self._url

    @property
    def present(self) -> bool:
        """Whether there may be collections; looks only at the folder."""
        return self._url is not None or (self._folder / DATABASE).is_file()

    def open(self) -> None:
        """Open the place now rather than with the first operation."""
        self._opened()

    def close(self) -> None:
        """Let go of the place; the next operation opens it again."""
        with self._lock:
            if self._client is not None:
                sessions = _sessions(self._client)
                self._client.close()
                for session in sessions:
                    session.close()
                self._client = None
                self._known = None

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Wait longer for a server inside: for builds, which ask for more at once."""
        self._wait(_BUILD_SECONDS)
        try:
            yield
        finally:
            self._wait(_SEARCH_SECONDS)

    def wipe(self) -> None:
        """Delete an embedded place with all it holds."""
        if self._url is None:
            self.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def tidy(self) -> None:
        """Delete what dropped collections left in an embedded place; only for its one writer."""
        if self._url is None:
            for path in orphan_graphs(self._folder):
                shutil.rmtree(path, ignore_errors=True)

    def hashes(self) -> dict[str, str]:
        """Return the hashes of an embedded place's graph files, nothing for a server."""
        return {} if self._url is not None else graph_hashes(self._folder)

    def check(self, hashes: Mapping[str, str]) -> None:
        """Raise DataError when an embedded place is damaged, or lacks these graph files unchanged.

        MemoryShortError when there is no memory to tell.
        """
        if self._url is None:
            self._refuse(emptied_fault(self._folder) or database_fault(self._folder))
            self._refuse(graph_fault(self._folder, hashes))

    def _refuse(self, fault: str) -> None:
        """Raise for an embedded place with a fault, if there is one."""
        if fault and is_memory_scarce():
            raise MemoryShortError(
                f"no memory to check the vector index in {self._folder}: {fault}",
                hint=FREE_MEMORY_HINT,
            )
        if fault:
            raise DataError(f"the vector index in {self._folder} is damaged: {fault}", hint=REBUILD)

    def size(self) -> int:
        """Return the bytes of an embedded place, 0 for a server."""
        if self._url is not None or not self._folder.is_dir():
            return 0
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def names(self, owner: str) -> list[str]:
        """Return our collections here: on a server only those of this owner."""
        with self._explained("list the collections"):
            found = self._opened().list_collections()
        ours = [c for c in found if c.name.startswith(PREFIX)]
        if self._url is not None:
            ours = [c for c in ours if (c.metadata or {}).get("owner") == owner]
        return [c.name for c in ours]

    def kin(self, encoder_digest: str) -> list[str]:
        """Return the collections on a server with vectors of this encoder, whoever's they are."""
        if self._url is None:
            return []
        with self._explained("list the collections"):
            found = self._opened().list_collections()
        return [c.name for c in found if (c.metadata or {}).get("encoder") == encoder_digest]

    def create(self, name: str, owner: str, encoder_digest: str, *, thin: bool = False) -> None:
        """Make an empty collection; a ``thin`` graph builds faster and finds a little less."""
        with self._explained(f"make the collection {name}", writing=True):
            self._opened().create_collection(
                name,
                configuration={"hnsw": dict(_THIN if thin else _HNSW)},
                metadata={"owner": owner, "encoder": encoder_digest},
                embedding_function=None,
            )

    def drop(self, name: str) -> None:
        """Delete a collection."""
        self._known = None
        with self._explained(f"delete the collection {name}"):
            self._opened().delete_collection(name)

    def count(self, name: str) -> int:
        """Return the number of vectors in a collection."""
        with self._explained(f"read the collection {name}"):
            return int(self._collection(name).count())

    def add(
        self, name: str, ids: Sequence[str], vectors: Vectors, places: Sequence[dict[str, str]]
    ) -> None:
        """Add vectors (n, d) with their ids and the fields they are filtered by."""
        with self._explained(f"write the collection {name}", writing=True):
            collection = self._collection(name)
            for at in range(0, len(ids), _BATCH):
                part = slice(at, at + _BATCH)
                collection.add(
                    ids=list(ids[part]), embeddings=vectors[part], metadatas=list(places[part])
                )

    def vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the stored vectors (d,) of those ids that exist."""
        found: dict[str, Vectors] = {}
        with self._explained(f"read the collection {name}"):
            collection = self._collection(name)
            for at in range(0, len(ids), _BATCH):
                rows = collection.get(ids=list(ids[at : at + _BATCH]), include=["embeddings"])
                for key, vector in zip(rows["ids"], rows["embeddings"], strict=True):
                    found[key] = np.asarray(vector, dtype=np.float32)
        return found

    def everything(self, name: str) -> dict[str, Vectors]:
        """Return all vectors (d,) of a collection by id."""
        with self._explained(f"read the collection {name}"):
            ids = self._collection(name).get(include=[])["ids"]
        return self.vectors(name, ids)

    def query(
        self, name: str, vectors: Vectors, limit: int, where: dict[str, str]
    ) -> list[list[tuple[str, float]]]:
        """Return per query vector the (id, cosine) of the nearest, best first."""
        conditions: list[dict[str, str]] = [{key: value} for key, value in where.items()]
        condition = {"$and": conditions} if len(conditions) > 1 else next(iter(conditions), None)
        with self._explained(f"search the collection {name}"):
            collection = self._collection(name)
            rows = collection.query(
                query_embeddings=vectors, n_results=limit, where=condition, include=["distances"]
            )
        return [
            [(key, 1.0 - float(distance)) for key, distance in zip(keys, distances, strict=True)]
            for keys, distances in zip(rows["ids"], rows["distances"], strict=True)
        ]

    def _collection(self, name: str) -> Any:
        client = self._opened()
        known = self._known
        if known is None or known[:2] != (client, name):
            found = client.get_collection(name, embedding_function=None)
            self._known = known = (client, name, found)
        return known[2]

    def _opened(self) -> Any:
        with self._lock:
            if self._client is not None and self._inode != self._present_inode():
                # Another process made the folder anew; the open client reads deleted files.
                self.close()
            if self._client is None:
                with self._explained("open the vector index"):
                    self._client = self._connect()
                self._inode = self._present_inode()
            return self._client

    def _present_inode(self) -> int:
        if self._url is not None:
            return 0
        try:
            return (self._folder / DATABASE).stat().st_ino
        except OSError:
            return 0

    def _connect(self) -> Any:
        chromadb = importlib.import_module("chromadb")
        settings = chromadb.config.Settings(_env_file=None, anonymized_telemetry=False)
        if self._url is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._refuse(database_fault(self._folder))
            return chromadb.PersistentClient(path=str(self._folder), settings=settings)
        host, port, ssl = _address(self._url)
        # Chroma's client waits for ever; ask once ourselves whether anybody answers.
        httpx = importlib.import_module("httpx")
        httpx.get(f"{self._url.rstrip('/')}/api/v2/heartbeat", timeout=_ANSWER_SECONDS)
        client = chromadb.HttpClient(host=host, port=port, ssl=ssl, settings=settings)
        for session in _sessions(client):
            session.timeout = self._patience
        return client

    def _wait(self, seconds: float) -> None:
        with self._lock:
            self._patience = seconds
            for session in _sessions(self._client) if self._url is not None else ():
                session.timeout = seconds

    @contextmanager
    def _explained(self, doing: str, *, writing: bool = False) -> Iterator[None]:
        """Turn whatever Chroma raises into DataError.

        Its Rust core panics on a damaged folder, and a panic is a BaseException of its own.
        """
        try:
            yield
        except DataError:
            raise
        except Exception as error:
            raise self._failure(doing, error, writing=writing) from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise self._failure(doing, error, writing=writing) from error

    def _failure(self, doing: str, error: BaseException, *, writing: bool) -> DataError:
        where = self._url or str(self._folder)
        text = (str(error) or type(error).__name__).splitlines()[0][:300]
        if self._url is None and (is_memory_error(error) or is_memory_scarce()):
            return MemoryShortError(
                f"no memory to {doing} in {where}: {text}", hint=FREE_MEMORY_HINT
            )
        if self._url is not None and type(error).__name__ != "NotFoundError":
            hint = f"check that a Chroma server answers at {where}"
        elif self._url is None and (left := disk_shortage(self._folder)):
            text = f"the disk is full, {left} ({text})"
            hint = f"free some disk space and {REBUILD}"
        elif writing:
            hint = f"check its disk (room, quota, limit on file sizes) and {REBUILD}"
        else:
            hint = REBUILD
        return DataError(f"cannot {doing} in {where}: {text}", hint=hint)


def _sessions(client: Any) -> list[Any]:
    """Return the HTTP sessions of a server's client, which its ``close`` leaves open."""
    clients = (client, getattr(client, "_admin_client", None))
    found = [getattr(getattr(c, "_server", None), "_session", None) for c in clients]
    return [session for session in found if session is not None]


def _address(url: str) -> tuple[str, int, bool]:
    """Return host, port and whether TLS is used; raises UsageError."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port is None:
        raise UsageError(
            f"{url!r} is not the address of a Chroma server", hint="write http://127.0.0.1:8000"
        )
    return parts.hostname, port, parts.scheme == "https"
