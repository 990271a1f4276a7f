"""The calls of a solve, with the files that they bring saved where ``toolsrv call`` saves them.

A model reads that a file was saved and under which name; its bytes and its path stay out of prompts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv import call_files
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.outcome import KeptFile

if TYPE_CHECKING:
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.caller import Caller
    from toolsrv_runtime.calls.result import CallResult, Consent
    from toolsrv_runtime.calls.spool import Spool

log = logging.getLogger(__name__)


class KeptCalls:
    """A caller whose results name the files that were saved of them."""

    def __init__(self, caller: Caller, data_dir: Path, limit: int) -> None:
        """Take the caller, and the most bytes of one file."""
        self._caller = caller
        self._data_dir = data_dir
        self._limit = limit

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """See ``Caller.call``; the result's files are in ``kept``."""
        result = await self._caller.call(
            api,
            arguments,
            tainted=tainted,
            consent=consent,
            spool=spool or call_files.spool(self._data_dir, self._limit),
        )
        if not result.files and result.spooled is None:
            return result
        try:
            return await asyncio.to_thread(keep, result, self._data_dir)
        except ToolsrvError as error:
            log.warning("a file of %s was not saved: %s", result.api_id, error.message)
            return result.model_copy(update={"spooled": None, "hint": error.message})

    def schema(self, api: Api) -> Any:
        """See ``Caller.schema``."""
        return self._caller.schema(api)


def keep(result: CallResult, data_dir: Path) -> CallResult:
    """Return a result with its files saved and named.

    Raises:
        DataError: they cannot be written.
    """
    saved = [
        call_files.kept(call_files.keep_file(data_dir, one, result.api_id), one.media, one.size)
        for one in result.files
    ]
    if (large := result.spooled) is not None:
        path = call_files.keep_spooled(data_dir, large, result.api_id)
        saved.append(call_files.kept(path, large.media, large.size))
    return result.model_copy(
        update={"kept": tuple(saved), "spooled": None, "response": _named(result.response, saved)}
    )


def _named(response: Any, saved: list[KeptFile]) -> Any:
    """Return what stands for a file in a response, with the names under which it was saved."""
    if not isinstance(response, str):
        return response
    names = ", ".join(one.name for one in saved)
    return f"{response.removesuffix(', not shown')}, saved as {names}"
