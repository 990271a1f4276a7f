"""Callers that record calls, and callers that replay recordings.

A recording caller returns what a replay of the same call returns. A replaying caller opens no
connection.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx

from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, Network, unknown_origin
from toolsrv_runtime.calls.credentials import ANY_SECRET, KeyLookup
from toolsrv_runtime.calls.exchange import CallLimits, Exchange
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.recordings import Recording, call_key
from toolsrv_runtime.calls.recordings.storage import RecordingStore
from toolsrv_runtime.calls.request import OutgoingRequest, build_request
from toolsrv_runtime.calls.result import CallResult, Consent, ResultKind, Spool
from toolsrv_runtime.errors import ArgumentError, PolicyError
from toolsrv_runtime.outcome import Source

log = logging.getLogger(__name__)

_NOT_RECORDED: frozenset[ResultKind] = frozenset(
    {"bad_arguments", "needs_consent", "replay_miss", "unauthorized"}
)
"""What a replay finds out by itself, where nothing was sent."""
_SHOWN = 300


class RecordingCaller(Caller):
    """A caller that keeps what its calls came to. What it returns is what a replay will."""

    def __init__(
        self,
        recordings: RecordingStore,
        *,
        policy: Policy | None = None,
        transports: Mapping[str, httpx.AsyncBaseTransport],
        limits: CallLimits | None = None,
        network: Network | None = None,
        home: Callable[[Api], ApiOrigin] = unknown_origin,
    ) -> None:
        """Take the store, which is closed with the caller, and what ``Caller`` takes."""
        self._recordings = recordings
        self._secrets: set[str] = set()
        self._noted: set[str] = set()
        self._failed = False
        if network is not None:
            network = replace(network, keys=self._noting(network.keys))
        super().__init__(
            policy=policy, transports=transports, limits=limits, network=network, home=home
        )

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Call ``api`` and record what came of it."""
        result = await super().call(api, arguments, tainted=tainted, consent=consent, spool=spool)
        if result.status == 0 and result.kind in _NOT_RECORDED:
            return result
        try:
            entry = Recording.from_result(api, result, frozenset(self._secrets))
        except ArgumentError as error:
            self._tell(error)
            return result
        await asyncio.to_thread(self._write, lambda: self._recordings.add(entry))
        told = entry.model_dump(include={"response", "error", "hint", "page"})
        return result.model_copy(update=told | {"headers": entry.headers, "files": entry.files})

    async def aclose(self) -> None:
        """Close all connections and the store."""
        await super().aclose()
        self._recordings.close()

    def _noting(self, keys: KeyLookup) -> KeyLookup:
        """Return ``keys``, with every secret remembered here and its name in the recordings."""

        def noted(name: str) -> str:
            secret = keys(name)
            if secret:
                self._secrets.add(secret)
            if secret and name not in self._noted:
                self._noted.add(name)
                self._write(lambda: self._recordings.note_key(name))
            return secret

        return noted

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except ToolsrvError as error:
            self._tell(error)

    def _tell(self, error: ToolsrvError) -> None:
        if not self._failed:
            self._failed = True
            log.warning("calls are not recorded: %s (%s)", error.message, error.hint)


class ReplayingCaller(Caller):
    """A caller that gives recorded results again and opens no connection."""

    reaches = False

    def __init__(
        self,
        recordings: RecordingStore,
        *,
        policy: Policy | None = None,
        home: Callable[[Api], ApiOrigin] = unknown_origin,
    ) -> None:
        """Take the store, which is closed with the caller; policy and home decide the readiness."""
        self._recordings = recordings
        had = recordings.key_names()
        network = Network(transport=_Nowhere(), keys=lambda name: ANY_SECRET if name in had else "")
        super().__init__(policy=policy, transports={}, network=network, home=home)

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Return what is recorded of the call; ``replay_miss`` where nothing is.

        Raises:
            DataError: the recordings cannot be read.
        """
        if (found := self._find(api, arguments)) is not None:
            return found
        result = await super().call(api, arguments, tainted=tainted, consent=consent, spool=spool)
        result = result.model_copy(update={"source": "recorded"})
        return self._missed(api, result) if result.kind == "replay_miss" else result

    async def aclose(self) -> None:
        """Close the store."""
        await super().aclose()
        self._recordings.close()

    def _find(self, api: Api, arguments: Mapping[str, Any]) -> CallResult | None:
        """Look a call up; one that does not fit its API may be in an imported recording."""
        try:
            bound = args.bind(api, arguments)
            url = str(build_request(api, bound).url)
        except (ArgumentError, PolicyError):
            bound, url = dict(arguments), api.url
        try:
            entry = self._recordings.find(call_key(api, bound))
        except ArgumentError:  # told as for any call
            return None
        return None if entry is None else entry.result(bound, url)

    async def _exchange(
        self, api: Api, outgoing: OutgoingRequest, spool: Spool | None
    ) -> tuple[Exchange, Source]:
        """Reach nobody: a call that is not recorded ends here."""
        del outgoing, spool
        return Exchange("replay_miss", 0, None, f"no call of {api.id} is recorded"), "recorded"

    def _missed(self, api: Api, result: CallResult) -> CallResult:
        near = self._recordings.nearest(api.id, result.arguments)
        error = result.error
        if near is not None:
            shown = json.dumps(near, ensure_ascii=False)[:_SHOWN]
            error = f"no such call of {api.id} is recorded; the nearest is {shown}"
        hint = "record it with --mode record, or import a pack: toolsrv recordings import FILE"
        return result.model_copy(update={"error": error, "hint": hint, "nearest": near})


class _Nowhere(httpx.AsyncBaseTransport):
    """A transport that sends nothing."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.UnsupportedProtocol("nothing is sent in a replay", request=request)
