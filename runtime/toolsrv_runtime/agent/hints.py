"""Task hints of the matcher alone: which words of a task no successful call has served."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from toolsrv_registry.functions import Function
from toolsrv_runtime.agent import coverage
from toolsrv_runtime.contract.hints import MadeCall, NoHints
from toolsrv_runtime.formats.base import Move, Prior, Step


class MatcherHints(NoHints):
    """Searches for the task as it is written; open parts are the matcher's needs."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior

    def uncovered(
        self, task: str, functions: Sequence[Function], results: Iterable[MadeCall]
    ) -> tuple[str, ...]:
        """Return the needs that no successful call of ``results`` served, in the task's words."""
        by_id = {function.api.id: function.name for function in functions}
        distinct = {
            (one.api_id, json.dumps(dict(one.arguments), sort_keys=True, default=str)): one.api_id
            for one in results
            if one.ok and one.api_id in by_id
        }
        made = [Step(Move(None, by_id[api_id], "{}"), "", ok=True) for api_id in distinct.values()]
        wanted, _ = coverage.needs(task, functions, self._prior)
        return coverage.unserved(wanted, made)
