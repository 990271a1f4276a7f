"""Function calls of a chat model, judged by the Berkeley Function Calling Leaderboard's checker.

Each case is one request to the model through the ``ChatModel`` port. ``held``: the reply is held to
calls of the case's functions or of ``no_function_fits``; to one call, as the agent does it, except
in the parallel categories. ``free``: the functions are shown, the reply may be anything, and the
calls that can be parsed from it count. Greedy decoding; no call is made.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.bfcl_data import AST, Bfcl, Case, Checked, original, tools
from toolsrv_lab.evaluation.cells import Cell, CellLog
from toolsrv_lab.evaluation.statistics import Mean, Share, mean, share
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS, no_function_fits_tool
from toolsrv_runtime.contract.models import ChatModel, ChatReply, ChatRequest, ReplyConstraints
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.stop import Stop

Mode = Literal["held", "free"]

CALLS = 8
"""Most calls of a reply in the parallel categories; the data has at most eight."""
MAX_TOKENS = 1024
_TEXT_LIMIT = 2_000

OFFICIAL: Mapping[str, Mapping[str, float]] = {
    "Qwen2.5-0.5B-Instruct (prompt)": {
        "simple_python": 0.7675, "multiple": 0.68,
        "live_simple": 0.5388, "live_multiple": 0.3476, "live_parallel": 0.5625,
        "live_parallel_multiple": 0.1667, "live_irrelevance": 0.1995, "live_relevance": 0.9444,
    },
    "Qwen2.5-1.5B-Instruct (prompt)": {
        "simple_python": 0.89, "multiple": 0.86, "parallel": 0.70, "parallel_multiple": 0.665,
        "live_simple": 0.7016, "live_multiple": 0.5926, "live_parallel": 0.5625,
        "live_parallel_multiple": 0.4167, "live_irrelevance": 0.6066, "live_relevance": 0.8333,
    },
}  # fmt: skip
"""Published scores on BFCL v3, the same AST categories under older names, in full precision.

From github.com/HuanzhiMao/BFCL-Result, folder ``2024-12-29/score``: ``data_live.csv`` and each
model's ``BFCL_v3_simple_score.json``, ``…_multiple_…``, ``…_parallel_multiple_…``; of the 1.5B
simple and parallel from the Bielik technical report's table 22 (leaderboard of 2025). The models are
the general ones of the family, prompted for calls in Python syntax; those in Qwen's own call syntax
("FC") scored 0.9225, 0.87, 0.815 and 0.755 with 1.5B on the four non-live categories (same table).
"""


class CaseResult(BaseModel):
    """What a model replied to one case. ``error``: BFCL's type of error, "" for a right one.

    ``prompt_tokens`` of which ``cached`` were not evaluated again; ``generated`` of which
    ``forced`` were left no choice.
    """

    model_config = ConfigDict(frozen=True)

    mode: Mode
    category: str
    id: str
    valid: bool
    error: str
    calls: tuple[dict[str, Any], ...]
    text: str
    problem: str
    dialect: str
    finish: str
    seconds: float
    prompt_tokens: int
    cached: int
    generated: int
    forced: int


class CategoryFigures(BaseModel):
    """A category in figures: the share of right replies, and per case seconds and tokens."""

    model_config = ConfigDict(frozen=True)

    right: Share
    seconds: Mean
    prompt_tokens: Mean
    evaluated: Mean
    generated: Mean
    errors: dict[str, int]
    dialects: dict[str, int]


def request_of(case: Case, mode: Mode) -> tuple[ChatRequest, dict[str, str]]:
    """Return the request of a case, and the original name of each of its tools."""
    shown, originals = tools(case.functions)
    if mode == "free":
        expected = ReplyConstraints(tuple(originals), calls=CALLS, text=True)
        return ChatRequest(case.messages, shown, expected, max_tokens=MAX_TOKENS), originals
    shown = (*shown, no_function_fits_tool())
    expected = ReplyConstraints(
        tuple(one.name for one in shown),
        calls=CALLS if "parallel" in case.category else 1,
        text=False,
    )
    return ChatRequest(case.messages, shown, expected, max_tokens=MAX_TOKENS), originals


def ask(
    model: ChatModel, case: Case, mode: Mode, package: Bfcl, *, stop: Stop
) -> CaseResult | None:
    """Return what a model makes of a case, None where its reply was broken off. Blocks.

    Raises:
        ModelError: nobody gave a usable reply. A case that is too long for the model is a wrong
            reply instead.
    """
    request, originals = request_of(case, mode)
    start = time.monotonic()
    try:
        reply = model.reply(request, stop=stop)
    except ContextError as error:
        reply = ChatReply(problem=f"context: {error.message}")
    seconds = time.monotonic() - start
    if reply is None:
        return None
    made = [one for one in reply.calls if one.name != NO_FUNCTION_FITS]
    calls = original(made, originals, case.functions)
    checked = package.check(case, calls)
    if mode == "held" and not reply.calls:
        checked = Checked(False, "no_call")  # a broken reply has not said that nothing fits
    return CaseResult(
        mode=mode,
        category=case.category,
        id=case.id,
        valid=checked.valid,
        error=checked.error,
        calls=tuple(calls),
        text=reply.text[:_TEXT_LIMIT],
        problem=reply.problem,
        dialect=reply.dialect,
        finish=reply.finish,
        seconds=round(seconds, 4),
        prompt_tokens=reply.prompt_tokens,
        cached=reply.cached,
        generated=reply.generated,
        forced=reply.forced,
    )


def figures(
    log: CellLog[CaseResult], cells: Iterable[Cell], cases: Sequence[Case]
) -> dict[str, dict[str, CategoryFigures]]:
    """Return the figures by mode (a cell's strategy) and category, of the results that there are."""
    found: dict[str, dict[str, CategoryFigures]] = {}
    for cell in cells:
        groups: dict[str, list[CaseResult]] = {}
        for one in log.of(cell, [case.id for case in cases]):
            groups.setdefault(one.category, []).append(one)
        found[cell.strategy] = {name: _figures(group) for name, group in groups.items()}
    return found


def _figures(results: Sequence[CaseResult]) -> CategoryFigures:
    return CategoryFigures(
        right=share(one.valid for one in results),
        seconds=mean([one.seconds for one in results]),
        prompt_tokens=mean([one.prompt_tokens for one in results]),
        evaluated=mean([one.prompt_tokens - one.cached for one in results]),
        generated=mean([one.generated for one in results]),
        errors=dict(Counter(one.error for one in results if one.error).most_common()),
        dialects=dict(Counter(one.dialect for one in results if one.calls).most_common()),
    )


def official(model: str) -> str:
    """Return the key of ``OFFICIAL`` for a model's name: the same family and size; "" for none."""
    name = model.casefold()
    for key in OFFICIAL:
        family, size = key.casefold().split("-")[:2]
        if family in name and size in name.replace("_", "-").split("-"):
            return key
    return ""


__all__ = ["AST", "OFFICIAL", "CaseResult", "CategoryFigures", "ask", "figures", "official"]
