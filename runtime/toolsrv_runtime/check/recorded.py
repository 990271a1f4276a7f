"""Replies kept in a file: one JSON object a line, written by a check and judged again later.

``{"api_id", "status", "seconds", "headers", "body", "failure", "error"}``, of which ``api_id``
and ``status`` must be there. The last line of an API counts. Bodies stay in the file until they
are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.check.worlds import Reply

LINE_LIMIT = 8_000_000
"""Bytes of a line: a body of 1 MB, escaped."""


class Line(BaseModel):
    """One recorded reply."""

    model_config = ConfigDict(frozen=True)

    api_id: str
    status: int = Field(ge=0, le=999)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    headers: dict[str, str] = {}
    body: Any = None
    failure: Literal["", "timed_out", "unreachable", "broken"] = ""
    error: str = ""


class Recorded:
    """A world that answers from a file. Raises NotFoundError and DataError for a bad file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise NotFoundError(
                f"cannot read the recording {path}: {error.strerror}",
                hint="make one with: toolsrv catalog check --record FILE",
            ) from error
        try:
            self._places = self._index()
        except DataError:
            self._file.close()
            raise

    def refuses(self, api: Api) -> str:
        """Return why the API cannot be judged here, "" when it can."""
        return "" if api.id in self._places else "it is not in the recording"

    async def ask(self, api: Api, arguments: Mapping[str, Any]) -> Reply:
        """Return the recorded reply."""
        del arguments
        self._file.seek(self._places[api.id])
        line = self._parse(self._file.readline(LINE_LIMIT), 0)
        if line is None or line.api_id != api.id:
            raise DataError(f"{self._path} was changed while it was read", hint="start again")
        return Reply(
            status=line.status,
            seconds=line.seconds,
            headers={name.lower(): value for name, value in line.headers.items()},
            body=line.body,
            failure=line.failure or ("" if line.status else "broken"),
            error=line.error,
            source="recorded",
        )

    async def aclose(self) -> None:
        """Close the file."""
        self._file.close()

    def _index(self) -> dict[str, int]:
        places: dict[str, int] = {}
        number = place = 0
        while content := self._file.readline(LINE_LIMIT):
            number += 1
            if content.strip() and (line := self._parse(content, number)) is not None:
                places[line.api_id] = place
            place = self._file.tell()
        return places

    def _parse(self, content: bytes, number: int) -> Line | None:
        if not content.endswith(b"\n"):
            if len(content) >= LINE_LIMIT:
                raise DataError(f"{self._path}: line {number} is longer than {LINE_LIMIT:,} bytes")
            return None  # a recorder that was killed leaves half a line
        try:
            return Line.model_validate(wellformed.loads(content))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            why = f"{where + ': ' if where else ''}{first['msg']}"
        except (ValueError, RecursionError) as error:
            why = f"not JSON: {error}"
        raise DataError(
            f"{self._path}: line {number}: {why}",
            hint="every line is one JSON object with api_id and status",
        )


class Recorder:
    """Appends replies to a file. Use as a context."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise DataError(
                f"cannot write the recording {path}: {error.strerror}", hint="name another file"
            ) from error
        _drop_half_line(self._file)

    def add(self, api_id: str, reply: Reply) -> None:
        """Append one reply."""
        line = {
            "api_id": api_id,
            "status": reply.status,
            "seconds": round(reply.seconds, 3),
            "headers": dict(reply.headers),
            "body": reply.body,
            "failure": reply.failure,
            "error": reply.error,
        }
        text = wellformed.json_text(json.dumps(line, ensure_ascii=False)).encode()
        self._file.write(text + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def _drop_half_line(file: BinaryIO) -> None:
    """Cut what follows the last line feed: half a line of a recorder that was killed."""
    end = file.seek(0, 2)
    keep = end
    while keep:
        start = max(0, keep - 65_536)
        file.seek(start)
        found = file.read(keep - start).rfind(b"\n")
        if found >= 0:
            keep = start + found + 1
            break
        keep = start
    if keep < end:
        file.truncate(keep)
