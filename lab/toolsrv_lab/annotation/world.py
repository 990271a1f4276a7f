"""The world of one task: real calls where there are real APIs, played answers elsewhere, failures.

An API of the catalog that ships is called for real; another answers with an invented response
(``nano.world``) that depends on the seed and the call alone. What is down fails as APIs do. A twin
is an API of another provider that answers as the one that it stands in for.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolsrv_lab.nano.world import Answer, World
from toolsrv_registry.api import Api
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.result import Consent, Spool
from toolsrv_runtime.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Scene:
    """What is so in one task.

    ``down`` are ids of APIs that fail, ``twins`` maps a twin's id to the API it stands in for,
    ``fields`` an API's id to a field that a later step needs of it.
    """

    seed: str
    down: frozenset[str] = frozenset()
    twins: Mapping[str, Api] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)


class PlayedCaller(Caller):
    """Calls the APIs with the ids ``real`` through another caller, and plays the others."""

    def __init__(self, caller: Caller, real: Collection[str], world: World, scene: Scene) -> None:
        super().__init__(transports={})
        self._through = caller
        self._real = real
        self._world = world
        self._scene = scene

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Call or play ``api``; see ``Caller.call``."""
        scene = self._scene
        try:
            bound = args.bind(api, arguments)
        except ArgumentError as error:
            return self._refused(api, dict(arguments), "bad_arguments", error)
        key = json.dumps([scene.seed, api.id, bound], sort_keys=True)
        rng = random.Random(key)
        if api.id in scene.down:
            return _result(api, bound, self._world.failure(rng))
        origin = scene.twins.get(api.id, api)
        if origin.id in self._real:
            result = await self._through.call(
                origin, arguments, tainted=tainted, consent=consent, spool=spool
            )
            return result.model_copy(update={"api_id": api.id})
        wanted = scene.fields.get(origin.id, "")
        return _result(api, bound, self._world.call(origin, {}, rng, with_field=wanted))


def _result(api: Api, bound: dict[str, Any], answer: Answer) -> CallResult:
    status = 200 if not answer.error else 404 if "404" in answer.error else 503
    return CallResult(
        api_id=api.id,
        arguments=bound,
        url=api.url,
        status=status,
        response=answer.response,
        error=answer.error,
        source="simulated",
        seconds=0.0,
    )
