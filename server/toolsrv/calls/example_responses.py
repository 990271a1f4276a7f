"""Example responses of a catalog's APIs: from a check's file, recorded calls, or their document."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from toolsrv_catalogs.layout import EXAMPLE
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore
from toolsrv_runtime.check.backends import RecordedBackend
from toolsrv_runtime.check.replies import only_error

MOST = 5
"""Recorded responses of one API whose keys are merged."""


class Examples(NamedTuple):
    """Responses of an API, the first to be shown, and where they come from."""

    responses: list[Any]
    source: Literal["check", "recordings", "document"]


class ExampleResponses:
    """Where examples are looked up, the surest source first; ``open_examples`` opens it."""

    def __init__(self, replies: RecordedBackend | None, recordings: RecordingStore | None) -> None:
        self._replies = replies
        self._recordings = recordings

    def of(self, api: Api, extra: Mapping[str, Any]) -> Examples | None:
        """Return the examples of an API, None without any; ``extra`` is what its source says else.

        Raises:
            DataError: a file or store of replies is damaged.
        """
        if self._replies is not None and not self._replies.refuses(api):
            reply = asyncio.run(self._replies.ask(api, {}))
            if 200 <= reply.status < 300 and _usable(reply.body):
                return Examples([reply.body], "check")
        if self._recordings is not None:
            found = [one for one in self._recordings.responses(api.id, MOST) if _usable(one)]
            if found:
                return Examples(found, "recordings")
        document = _parsed(extra.get("keys", {}).get(EXAMPLE))
        return Examples([document], "document") if _usable(document) else None


@contextmanager
def open_examples(data_dir: Path, file: Path | None) -> Iterator[ExampleResponses]:
    """Open the examples of a data folder; ``file`` holds replies of ``catalog check --record``.

    Raises:
        NotFoundError: there is no such file.
        DataError: a file or store cannot be read.
    """
    path = data_dir / RECORDINGS_FILE
    replies = None if file is None else RecordedBackend(file)
    try:
        recordings = RecordingStore.open(path) if path.exists() else None
        try:
            yield ExampleResponses(replies, recordings)
        finally:
            if recordings is not None:
                recordings.close()
    finally:
        if replies is not None:
            asyncio.run(replies.aclose())


def _usable(value: Any) -> bool:
    """Whether a response is an object or a list with data in it, and no mere error."""
    if not isinstance(value, dict | list) or not value or wellformed.too_deep(value):
        return False
    return not only_error(value)


def _parsed(value: Any) -> Any:
    """Return an example that a document has; ToolBench's are JSON or text of it, often cut."""
    if not isinstance(value, str):
        return value
    try:
        return wellformed.loads(value)
    except (ValueError, RecursionError):
        return None
