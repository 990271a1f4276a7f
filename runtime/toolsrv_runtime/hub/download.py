"""Download a file from a hub, or with a fetcher of the caller's, whole or not at all.

A broken download is resumed by a range request, also by a later call. The file appears only when
its SHA-256 is the expected one. Files of web addresses are fetched by ``web``.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol

from toolsrv_registry.errors import BusyError, DataError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_registry.file_names import portable_name
from toolsrv_runtime.hub import (
    HubError,
    RemoteFile,
    configure,
    etag_sha256,
    translate_errors,
)

Progress = Callable[[int, int], None]
"""Called with (bytes here, bytes in all), of the file that is on its way."""


class DownloadSink(Protocol):
    """What a download is appended to: the part of a file that fetching needs."""

    def write(self, data: bytes) -> int:
        """Append bytes; return how many."""

    def tell(self) -> int:
        """Return how many bytes are here."""

    def seek(self, place: int) -> int:
        """Go back to a place."""

    def truncate(self) -> int:
        """Drop what stands behind the place."""


Fetch = Callable[[RemoteFile, DownloadSink], None]
"""Appends what is missing of a file; raises OSError without a number when a connection breaks."""

TRIES = 3
"""Attempts in a row without a new byte, after those that huggingface_hub makes itself."""


def pull(
    file: RemoteFile,
    folder: Path,
    *,
    endpoint: str | None = None,
    progress: Progress | None = None,
    fetch: Fetch | None = None,
) -> Path:
    """Bring ``file`` into ``folder`` and return its path; one that is here already stays.

    ``fetch`` brings the bytes; else they come from the hub at ``endpoint``.

    Raises:
        NotFoundError: The file is gone, or needs a token.
        HubError: The connection broke and did not come back, or the content is wrong.
        DataError: The disk has no room.
        BusyError: Another process brings the same file.
    """
    target = folder / file_name(file)
    if target.is_file() and _is_complete(target, file):
        return target
    tag = (file.sha256 or file.commit)[:12]
    partial = target.with_name(f"{target.name}.{tag}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(partial):
            with partial.open("ab") as stream:
                _check_room(file, stream.tell(), folder)
                _fetch(file, stream, fetch or _from_hub(endpoint), progress)
                stream.flush()
                os.fsync(stream.fileno())
            _verify_digest(file, partial)
            partial.replace(target)
    except OSError as error:
        raise _disk_error(error, file, partial) from error
    return target


def file_name(file: RemoteFile) -> str:
    """Return the name that a file of a hub has on this machine."""
    return portable_name(Path(file.name).name)


def _is_complete(path: Path, file: RemoteFile) -> bool:
    if path.stat().st_size != file.size_bytes:
        return False
    return file.sha256 is None or file_sha256(path) == file.sha256


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _locked(partial: Path) -> HeldLock:
    try:
        return lock_beside(partial)
    except BlockingIOError:
        raise BusyError(f"another process is bringing {partial.name}", hint="wait for it") from None


def _check_room(file: RemoteFile, here: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if (need := file.size_bytes - here) > free:
        raise DataError(
            f"{file.name} needs {need:,} more bytes and the disk of {folder} has {free:,} free",
            hint="free some space, or name another data folder with --data-dir",
        )


def _from_hub(endpoint: str | None) -> Fetch:
    def fetch(file: RemoteFile, sink: DownloadSink) -> None:
        with translate_errors(f"{file.repo}:{file.name}", endpoint):
            _get(file, sink, endpoint)

    return fetch


def _fetch(file: RemoteFile, stream: BinaryIO, fetch: Fetch, progress: Progress | None) -> None:
    """Append to ``stream`` what is missing; a broken connection is taken up again."""
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with

    configure()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it tells of every retry
    if stream.tell() > file.size_bytes:
        stream.truncate(0)
        stream.seek(0)
    counted = _Counted(stream, file.size_bytes, progress)
    tries = TRIES
    while counted.tell() < file.size_bytes:
        before = counted.tell()
        try:
            fetch(file, counted)
        except (httpx2.TransportError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's, not the connection's
            tries = TRIES if counted.tell() > before else tries - 1
            if not tries:
                _connection_error(file, counted.tell(), error)


def _get(file: RemoteFile, counted: DownloadSink, endpoint: str | None) -> None:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415 - heavy
    from huggingface_hub.file_download import http_get  # noqa: PLC0415 - heavy
    from huggingface_hub.utils._headers import build_hf_headers  # noqa: PLC0415 - heavy
    from huggingface_hub.utils.tqdm import silent_tqdm  # noqa: PLC0415 - heavy

    url = hf_hub_url(
        file.repo, file.name, repo_type=file.kind, revision=file.commit, endpoint=endpoint
    )
    told = get_hf_file_metadata(url, endpoint=endpoint)
    if told.size not in (None, file.size_bytes):
        raise HubError(
            f"{file.repo}:{file.name} has {told.size:,} bytes at the hub, and {file.size_bytes:,} "
            "were expected",
            hint="nothing was read; its owner may have replaced it",
        )
    listed = etag_sha256(told.etag)
    if file.sha256 and listed and listed != file.sha256:
        raise HubError(
            f"the hub lists the SHA-256 {listed} for {file.repo}:{file.name}, not {file.sha256}",
            hint="nothing was read; its owner may have replaced it",
        )
    place = told.location
    own_host = place.split("/")[2:3] == url.split("/")[2:3]
    http_get(
        place,
        counted,  # type: ignore[arg-type]  # the part of BinaryIO that it uses
        resume_size=counted.tell(),
        headers=build_hf_headers() if own_host else {},  # a token goes to the hub alone
        expected_size=file.size_bytes,
        displayed_filename=file.name,
        tqdm_class=silent_tqdm,
    )


class _Counted:
    """A file that is appended to and tells how long it is."""

    def __init__(self, stream: BinaryIO, total: int, progress: Progress | None) -> None:
        self._stream = stream
        self._total = total
        self._progress = progress

    def write(self, data: bytes) -> int:
        count = self._stream.write(data)
        if self._progress is not None:
            self._progress(self._stream.tell(), self._total)
        return count

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, place: int) -> int:
        return self._stream.seek(place)

    def truncate(self) -> int:
        return self._stream.truncate()


def _verify_digest(file: RemoteFile, partial: Path) -> None:
    """Remove a download that is not what the hub lists, and say so."""
    if file.sha256 is None or (found := file_sha256(partial)) == file.sha256:
        return
    partial.unlink()
    raise HubError(
        f"what arrived as {file.repo}:{file.name} is not what the hub lists: SHA-256 {found} "
        f"instead of {file.sha256}",
        hint="nothing was kept; pull it again, and mistrust the connection if it happens twice",
    )


def _disk_error(error: OSError, file: RemoteFile, partial: Path) -> DataError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return DataError(
            f"cannot write {partial}: {error.strerror or error}",
            hint="name another data folder with --data-dir",
        )
    return DataError(
        f"the disk is full: {partial.stat().st_size:,} of {file.size_bytes:,} bytes of "
        f"{file.name} are here",
        hint="free some space and pull again: it goes on from there",
    )


def _connection_error(file: RemoteFile, here: int, error: Exception) -> NoReturn:
    raise HubError(
        f"the connection broke at {here:,} of {file.size_bytes:,} bytes of {file.name}: "
        f"{error or type(error).__name__}",
        hint="pull again: it goes on from there",
    ) from error
