"""Result of a call: kind, response, required consent, and large responses in part files.

``ResultKind`` is a closed list. ``CallResult`` is shared by every backend that answers calls.
``CallReadiness`` says before a call whether it can be made. A response that is too large for memory
is written to a part file while it arrives (``Spool``). Knows nothing of requests or policies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls import response_body as bodies
from toolsrv_runtime.calls.response_body import (
    NAME_LIMIT,
    Attachment,
    content_disposition_filename,
    detect_media_type,
    is_textual,
    sniff_media_type,
)
from toolsrv_runtime.outcome import KeptFile, Source

if TYPE_CHECKING:
    import httpx

PART_PREFIX = ".toolsrv-"
PART_SUFFIX = ".part"
_SNIFFED_BYTES = 8_192
_WRITE_BYTES = 1 << 20
_FILE_MODE = 0o600


def _ignore_progress(_done: int, _in_all: int | None) -> None:
    """Do nothing with progress."""


@dataclass(frozen=True, slots=True)
class Spool:
    """Where a large response goes: the folder of its part file, and the most bytes of it.

    ``texts``: text and JSON go there too, not only bytes that are no text. ``progress`` is called
    with (bytes here, bytes in all or None) on the event loop's thread.
    """

    folder: Path
    limit: int
    texts: bool = False
    progress: Callable[[int, int | None], None] = field(default=_ignore_progress, repr=False)


@dataclass(frozen=True, slots=True)
class Spooled:
    """A response in a part file: its media type and the name that its host gives it (untrusted)."""

    part: Path
    size: int
    media: str
    name: str


class SpoolError(Exception):
    """A response could not be kept whole; says why, and ``hint`` what to do where that is known."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def declared_size(response: httpx.Response) -> int | None:
    """Return the size of a body as its headers state it, None where they do not.

    A compressed body's is unknown.
    """
    length = response.headers.get("content-length", "")
    plain = response.headers.get("content-encoding", "").strip().lower() in {"", "identity"}
    return int(length) if plain and length.isascii() and length.isdecimal() else None


async def read_or_spool(
    response: httpx.Response, limit: int, spool: Spool, hidden: Collection[str] = ()
) -> tuple[bytes, Spooled | None, bool]:
    """Return a body of up to ``limit`` bytes, or the part file that a larger one was written to.

    The third value says that the bytes are only the beginning of a body that is not written: a
    text, or one that is known to be larger than the spool's limit.

    Raises:
        SpoolError: it grew larger than the spool's limit, repeats one of ``hidden``, or cannot be
            written.
        body.EncodingError: the compression is unknown or broken.
        httpx.TransportError: the connection breaks.
    """
    head = bytearray()
    pieces = bodies.iter_decompressed(response)
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            head += piece
            if len(head) > limit:
                break
        else:
            return bytes(head), None, False
        size = declared_size(response)
        is_wanted = spool.texts or bodies.is_binary(bytes(head), response.headers)
        if not is_wanted or (size or 0) > spool.limit:
            return bytes(head[:limit]), None, True
        with _part(spool.folder) as (path, file):
            written = _Writer(file, spool, size, hidden)
            await written.add(bytes(head))
            async for piece in pieces:
                await written.add(piece)
            await written.flush()
    declared = response.headers.get("content-type", "")
    name = bodies.redact(
        content_disposition_filename(response.headers.get("content-disposition", "")), hidden
    )
    shown = clean(" ".join(name.split()), NAME_LIMIT)
    media = bodies.redact(_media(bytes(head[:_SNIFFED_BYTES]), declared), hidden)
    return b"", Spooled(path, written.size, media, shown), False


def _media(head: bytes, declared: str) -> str:
    """Return the media type of a body; a text's is the declared one."""
    kind = declared.partition(";")[0].strip().lower()
    return (
        kind
        if is_textual(kind) and not sniff_media_type(head)
        else detect_media_type(head, declared)
    )


class _Writer:
    """Bytes that are written in large pieces, and looked through for keys."""

    def __init__(
        self, file: BinaryIO, spool: Spool, in_all: int | None, hidden: Collection[str]
    ) -> None:
        self.size = 0
        self._file = file
        self._spool = spool
        self._in_all = in_all
        self._hidden = [one.encode(errors="replace") for one in hidden if bodies.is_redactable(one)]
        self._tail = b""
        self._waiting = bytearray()

    async def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._spool.limit:
            raise SpoolError(
                f"the response has more than {self._spool.limit:,} bytes, the most that is saved"
            )
        self._waiting += piece
        if len(self._waiting) >= _WRITE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        seen = self._tail + bytes(self._waiting)
        if any(one in seen for one in self._hidden):
            raise SpoolError(
                "the response repeats a key and is not kept",
                "choose another API, or ask its provider",
            )
        longest = max(map(len, self._hidden), default=1)
        self._tail = seen[-longest:]
        data, self._waiting = bytes(self._waiting), bytearray()
        try:
            await asyncio.to_thread(self._file.write, data)
        except OSError as error:
            raise _unwritable(self._spool.folder, error) from error
        self._spool.progress(self.size, self._in_all)


@contextlib.contextmanager
def _part(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a new file of a folder that stays only if the block ends well."""
    path = folder / f"{PART_PREFIX}{secrets.token_hex(8)}{PART_SUFFIX}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    except OSError as error:
        raise _unwritable(folder, error) from error
    ended = False
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            yield path, file
        ended = True
    finally:
        if not ended:
            with contextlib.suppress(OSError):
                path.unlink()


def _unwritable(folder: Path, error: OSError) -> SpoolError:
    return SpoolError(
        f"the response cannot be written to {folder}: {error.strerror or error}",
        "free some space, or save it somewhere else",
    )


KeyState = Literal["", "set", "missing"]


@dataclass(frozen=True, slots=True)
class CallReadiness:
    """What a call has.

    ``callable``: by itself, or once a person says yes, which ``asks`` tells. ``key`` is empty where
    none is needed; ``lacks`` what is missing, as ``credentials.missing_credentials``. ``offline``:
    this machine answers. ``calls_left`` of the host today, None without a limit.
    """

    callable: bool
    asks: bool = False
    key: KeyState = ""
    lacks: str = ""
    offline: bool = False
    calls_left: int | None = None


ResultKind = Literal[
    "ok",
    "bad_arguments",
    "unauthorized",
    "not_subscribed",
    "rate_limited",
    "not_found",
    "gone",
    "timed_out",
    "blocked_by_policy",
    "needs_consent",
    "declined",
    "needs_input",
    "too_large",
    "not_json",
    "server_error",
    "network_error",
    "replay_miss",
]
RESULT_KINDS: tuple[ResultKind, ...] = get_args(ResultKind)

_BY_STATUS: dict[int, ResultKind] = {
    0: "network_error",
    401: "unauthorized",
    402: "not_subscribed",
    403: "unauthorized",
    404: "not_found",
    408: "timed_out",
    410: "gone",
    413: "bad_arguments",
    429: "rate_limited",
    504: "timed_out",
}


def kind_of_status(status: int) -> ResultKind:
    """Return the kind that an HTTP status alone speaks for (0: no response came)."""
    if 200 <= status < 300:
        return "ok"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "bad_arguments" if 400 <= status < 500 else "server_error"


class Consent(BaseModel):
    """What a person is asked to allow, and then allows or declines: this one call and no other.

    ``arguments`` are those that would be sent; ``reason`` says why a person is asked.
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    method: str
    host: str
    path: str
    arguments: dict[str, Any]
    reason: str = ""

    def covers(self, other: Consent) -> bool:
        """Whether this consent was given for exactly that call."""
        return self.model_copy(update={"reason": ""}) == other.model_copy(update={"reason": ""})

    @property
    def request(self) -> str:
        """The request line of the call: method, host and path."""
        return f"{self.method} {self.host}{self.path}"


AskConsent = Callable[[Consent], Coroutine[Any, Any, bool | None]]
"""Ask a person for consent to one call: True allowed, False declined, None nobody answered.

Cancelled when nobody waits for the answer any more.
"""


class CallResult(BaseModel):
    """One call and what it came to.

    ``status`` is the HTTP status, 0 when no response came; ``response`` is the JSON value or the
    text; ``error`` is empty exactly when the call succeeded; ``seconds`` is wall time. ``hint``
    says what to do next, or that a call went well without the key that it asks for, ``page`` where
    to subscribe, ``retry_after`` how many seconds the host asks to be left alone, ``headers`` those
    of the response that lead on (``location``, ``link``, …), ``files`` what it brought as bytes,
    ``spooled`` the part file of a response that was too large for memory (who made the call moves
    or removes it), ``kept`` the files of it that were saved, ``consent`` what a person would have
    to allow or has declined, and ``nearest`` the recorded arguments that are most like those of a
    ``replay_miss``.
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    arguments: dict[str, Any]
    url: str
    status: int
    response: Any
    error: str
    source: Source
    seconds: float
    kind: ResultKind = Field(default_factory=lambda known: kind_of_status(known["status"]))
    hint: str = ""
    page: str = ""
    retry_after: float | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    files: tuple[Attachment, ...] = ()
    spooled: Spooled | None = Field(default=None, exclude=True)
    kept: tuple[KeptFile, ...] = ()
    consent: Consent | None = None
    nearest: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the API answered with success, and with something that can be used."""
        return self.kind == "ok"

    @property
    def unavailable(self) -> bool:
        """Whether the API is out of service, so that other arguments would change nothing.

        A 500 may be blamed on an argument, and a time-out on the moment; what was simulated says
        nothing of the API.
        """
        out = self.kind in _UNAVAILABLE or self.status in _OUT_OF_SERVICE
        return out and self.source != "simulated"

    @property
    def refused(self) -> bool:
        """Whether the call was refused here, before anything was sent."""
        return self.status == 0 and self.kind in _REFUSED


_UNAVAILABLE = frozenset(
    {"unauthorized", "not_subscribed", "rate_limited", "gone", "network_error"}
)
_OUT_OF_SERVICE = frozenset({502, 503})
_REFUSED = frozenset(
    {
        "bad_arguments",
        "blocked_by_policy",
        "needs_consent",
        "declined",
        "needs_input",
        "unauthorized",
    }
)


def declined_result(result: CallResult) -> CallResult:
    """Return the result of a call that needed consent once a person has declined it."""
    request = f" {result.consent.request}" if result.consent else " this call"
    return result.model_copy(
        update={
            "kind": "declined",
            "error": f"{result.api_id}: the person said no to{request}: the call must not be "
            "retried or worked around, neither by this API nor by another that does the same",
            "hint": "only the person may run it again and say yes",
        }
    )
