"""Options of a solve, from the settings and the values of one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv_runtime.options import SolveOptions


def solve_options(settings: Settings, given: Mapping[str, Any]) -> SolveOptions:
    """Return what is given (not ``None``), else what the settings say.

    ``max_seconds``, ``max_calls``, ``max_model_calls`` and ``max_tokens`` are the budget.
    """
    from toolsrv_runtime.options import SWITCHES, SolveOptions, parse_names
    from toolsrv_runtime.outcome import Limits

    value = settings.model_dump() | {k: v for k, v in given.items() if v is not None}
    switches, aids = value["switches"], value["aids"]
    if isinstance(switches, str):
        switches = parse_names(switches, SWITCHES, "switch")
    if isinstance(aids, str):
        aids = _aids(aids)
    return SolveOptions(
        strategy=value["strategy"],
        chains=value["chains"],
        width=value["width"],
        depth=value["depth"],
        candidates=value["candidates"],
        seed=value["seed"],
        category=value.get("category"),
        verify=value["verify"],
        switches=switches,
        aids=aids,
        votes=value["votes"],
        limits=Limits(
            seconds=value["max_seconds"],
            calls=value["max_calls"],
            model_calls=value["max_model_calls"],
            tokens=value["max_tokens"],
        ),
    )


def _aids(text: str) -> frozenset[str] | None:
    if not text.strip():
        return None
    from toolsrv_runtime.agent.guidance import AIDS
    from toolsrv_runtime.options import parse_names

    return parse_names(text, AIDS, "aid")
