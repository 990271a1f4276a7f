"""Download published files into the data folder: from a hub, a web address or this disk.

Each comes with its origin: who published it, which revision, which digest, which licence. A file is
checked against the digest that is known before anything reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote, urljoin, urlsplit

from toolsrv_catalogs.published import Published
from toolsrv_catalogs.sources import FILE_LIMIT, ours
from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError, UsageError
from toolsrv_registry.file_names import portable_name
from toolsrv_registry.storage.entries import Origin

if TYPE_CHECKING:
    from toolsrv_runtime.calls.addresses import AddressResolver
    from toolsrv_runtime.hub import RemoteFile

FOLDER = "downloads"
"""Where they lie in a data folder."""
MOST_FILES = 2_000
"""Files that one document on the web may lead to."""

Progress = Callable[[int, int], None]
"""Called with (bytes here, bytes in all)."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is here and whole, and where it came from; ``place``: where its web address led to."""

    path: Path
    origin: Origin
    place: str = ""


def endpoint() -> str | None:
    """Return the hub that the environment names, None for the usual one."""
    return os.environ.get("HF_ENDPOINT") or None


def fetch_published(source: Published, data_dir: Path, progress: Progress) -> Download:
    """Bring a published file from its hub; one that is here and right is not brought again.

    Raises:
        UsageError: It is not at a hub; says where it is.
        NotFoundError, DataError, BusyError: As ``hub.download``.
    """
    from toolsrv_runtime.hub.download import file_sha256, pull

    if not source.repo:
        raise UsageError(
            f"{source.name} is at no hub: {source.title}",
            hint=f"bring the file yourself from {source.page}, and name it with --file",
        )
    file = _remote(source)
    folder = data_dir.joinpath(FOLDER, *map(portable_name, source.repo.split("/")))
    path = pull(file, folder, endpoint=endpoint(), progress=progress)
    return Download(
        path,
        Origin(
            title=source.title,
            address=source.repo,
            file=source.file,
            revision=file.commit,
            size_bytes=file.size_bytes,
            sha256=file.sha256 or file_sha256(path),
            licence=source.licence or _licence(source),
        ),
    )


def _remote(source: Published) -> RemoteFile:
    """Return the file as the table knows it, or as the hub's headers describe it."""
    from toolsrv_runtime.hub import RemoteFile, remote_file

    if source.sha256 and source.size_bytes is not None:
        return RemoteFile(
            repo=source.repo,
            name=source.file,
            size_bytes=source.size_bytes,
            sha256=source.sha256,
            commit=source.revision,
            kind="dataset",
        )
    found = remote_file(
        source.repo,
        source.file,
        kind="dataset",
        revision=source.revision,
        endpoint=endpoint(),
    )
    return found.model_copy(update={"sha256": source.sha256}) if source.sha256 else found


def _licence(source: Published) -> str:
    """Return the licence that the hub states; the file is here, so silence is no fault."""
    from toolsrv_runtime.hub import dataset_licence

    try:
        return dataset_licence(source.repo, endpoint=endpoint())
    except (DataError, NotFoundError):
        return ""


def fetch_web(
    url: str, data_dir: Path, addresses: AddressResolver, *, sha256: str, progress: Progress
) -> Download:
    """Bring the file at a web address, held to ``sha256`` where that is given.

    Raises:
        UsageError, NotFoundError, DataError, BusyError, PolicyError: As ``hub.download``.
    """
    from toolsrv_runtime.hub import download
    from toolsrv_runtime.hub.web import UnsizedError, fetch_web, web_file

    place = urlsplit(url)
    folder = data_dir / FOLDER / portable_name(place.netloc.replace(":", "_"))
    try:
        file = web_file(url, addresses, sha256=sha256.lower() or None)
    except UnsizedError:
        return _bring_unsized(url, folder, addresses, sha256=sha256.lower())
    if not sha256:  # nothing says whether what was brought before is still what stands there
        (folder / download.file_name(file)).unlink(missing_ok=True)
    path = download.pull(
        file, folder, progress=progress, fetch=lambda one, sink: fetch_web(one, sink, addresses)
    )
    return Download(path, _origin(url, file.name, path), file.place)


def _bring_unsized(url: str, folder: Path, addresses: AddressResolver, *, sha256: str) -> Download:
    from toolsrv_runtime.hub.web import fetch_unsized

    name = PurePosixPath(unquote(urlsplit(url).path)).name or "download"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / portable_name(name)
    place = fetch_unsized(url, path, addresses)
    origin = _origin(url, name, path)
    if sha256 and origin.sha256 != sha256:
        path.unlink()
        raise DataError(
            f"{url} has the SHA-256 {origin.sha256}, not {sha256}", hint="check the digest"
        )
    return Download(path, origin, place)


class WebFolder:
    """Reads the other files of a document on the web: those below its own folder there.

    A document that was moved has two folders, that of ``place``, where its address led to, and that
    of the address. What is in none of them is asked for once. A server that fails is asked no more,
    and as what was read is then only a part, the end of the context raises why.
    """

    def __init__(self, url: str, addresses: AddressResolver, *, place: str = "") -> None:
        from toolsrv_runtime.hub.web import WebReader

        self._folders = list(dict.fromkeys(urljoin(one, ".") for one in (place or url, url)))
        self._reader = WebReader(addresses)
        self._missing: set[PurePosixPath] = set()
        self._read = 0
        self._fault: ToolsrvError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let go of the connections; raise for which fault files are missing that may be there."""
        self._reader.__exit__()
        if self._fault is not None and (kind is None or issubclass(kind, ToolsrvError)):
            raise self._fault from None

    def __call__(self, path: PurePosixPath) -> bytes | None:
        """Return the file at a path relative to the document; None where there is none."""
        if self._fault is not None or path in self._missing:
            return None
        if not ours(path) or path.is_absolute() or ".." in path.parts:
            return None
        self._read += 1
        if self._read > MOST_FILES:
            self._fault = DataError(
                f"the document at {self._folders[0]} refers to more than {MOST_FILES} files",
                hint="download its folder yourself and name that",
            )
            return None
        for folder in self._folders:
            try:
                return self._reader.read(urljoin(folder, quote(str(path))), FILE_LIMIT)
            except NotFoundError:
                continue
            except ToolsrvError as error:
                self._fault = error
                return None
        self._missing.add(path)
        return None


def check_local(path: Path, *, sha256: str = "", source: Published | None = None) -> Download:
    """Return a file of this disk, held to the digest of ``source`` or ``sha256``.

    Raises:
        NotFoundError: There is no such file.
        DataError: It is not the file that the digest names.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no file {str(path)!r}", hint="name a file on this disk")
    wanted = (sha256 or (source.sha256 if source else "")).lower()
    origin = _origin(str(path.resolve()), path.name, path)
    if wanted and origin.sha256 != wanted:
        raise DataError(
            f"{str(path)!r} has the SHA-256 {origin.sha256}, not {wanted}",
            hint="get it again; to take another version as it is: toolsrv catalog import PATH",
        )
    if source is None:
        return Download(path, origin)
    known = {"title": source.title, "licence": source.licence}
    if source.sha256:
        known |= {"address": source.repo, "revision": source.revision}
    return Download(path, origin.model_copy(update=known))


def _origin(address: str, name: str, path: Path) -> Origin:
    from toolsrv_runtime.hub.download import file_sha256

    return Origin(
        title=name,
        address=address,
        file=name,
        size_bytes=path.stat().st_size,
        sha256=file_sha256(path),
    )
