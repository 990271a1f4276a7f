"""Options of a solve: search strategy, search size, budget, and the earlier runs that it continues.

Plain frozen data. Where an earlier run is stored is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.outcome import Limits, Source
from toolsrv_runtime.profiles import MAX_CANDIDATES, SORTED_NAMES

KNOWN_LIMIT = 40_000
"""Characters of one response that count as known."""


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call that succeeded. ``function`` is the name that its model used, ``response`` its body."""

    api_id: str
    function: str
    arguments: dict[str, Any]
    response: Any
    status: int = 200
    source: Source = "live"


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """One run.

    ``answer`` may be partial or empty, ``calls`` are in the order in which they were made,
    ``run_id`` is the name of whoever keeps it. ``interrupted``: it never came to its end, so that a
    call it made is not made again by the run that goes on from it.
    """

    task: str
    answer: str
    calls: tuple[EarlierCall, ...] = ()
    run_id: str = ""
    interrupted: bool = False

    @property
    def known(self) -> str:
        """All that it says, as text: an answer may rest on it."""
        said = [self.task, self.answer]
        for call in self.calls:
            response = call.response
            text = (
                response
                if isinstance(response, str)
                else json.dumps(response, ensure_ascii=False, default=str)
            )
            said.append(text[:KNOWN_LIMIT])
        return "\n".join(filter(None, said))


Strategy = Literal["dfsdt", "dfs", "react", "cot"]
StrategyName = Literal["dfsdt", "dfs", "react", "cot", "plan"]
"""``plan`` is ``dfsdt`` with the switch ``plan``."""

Switch = Literal["plan", "progressive", "constraints", "self-check"]
SWITCHES: tuple[Switch, ...] = get_args(Switch)
"""The switches of LLift, each alone and together with the others, over any strategy.

``plan``: the model names the subtasks first, each has a small search of its own. ``progressive``:
functions are shown by name and one line, and documented where the model asks for it.
``constraints``: the conditions that a task sets are listed, and results and answer are checked
against them. ``self-check``: the model reads its draft of an answer against the results once.
"""


MOST_VOTES = 16
"""Solves of one vote."""


def parse_names(text: str, known: Iterable[str], what: str) -> frozenset[str] | None:
    """Return the names in a text with commas between them: "" is None, "none" the empty set.

    Raises:
        UsageError: a name is not ``known``; ``what`` says of what kind it is.
    """
    named = frozenset(filter(None, map(str.strip, text.split(","))))
    if not named:
        return None
    if named == {"none"}:
        return frozenset()
    if unknown := sorted(named.difference(known)):
        raise UsageError(
            f"there is no {what} {unknown[0]!r}",
            hint=f"any of {', '.join(sorted(known))} with commas between them, or none",
        )
    return named


class SolveOptions(BaseModel):
    """How to solve.

    ``strategy``: a tree in pre-order (``dfsdt``) or best child first (``dfs``), one chain
    (``react``), or up to ``chains`` chains until one answers (``cot``: CoT@N). ``depth`` counts
    tree nodes, three per round (the paper uses 12); ``candidates`` None leaves their number to the
    model's profile, which may also take fewer (``Profile.max_candidates``).

    Five switches where the reference is left: ``retry_root``, a give-up as the first action costs
    the root one child, not the whole search; ``close_repeats``, a call is made once, and a path
    that asks for it a third time ends there; ``close_search``, a search that has to end is closed
    with an answer; ``search_again``, other APIs are searched for when all candidates failed;
    ``look_wider``, of more hits than there are candidates those come first that the matcher finds
    the task to need.

    For chat models: ``switches`` (``SWITCHES``) and ``aids`` (``agent.guidance.AIDS``), None for
    those of the model's profile; ``votes``: so many solves with seeds from ``seed`` on, the answer
    whose values most of them state. The budget is that of all together.

    ``verify``: the model reads its answer again and may reject one, which continues the search.

    ``earlier`` are the runs that the task goes on from, oldest first: what they were asked,
    answered and found is known, and the APIs that they called are candidates again.

    ``keep_on_fault``: an engine that fails leaves what is known by then, as a partial answer;
    False, for evaluations, raises its error.
    """

    model_config = ConfigDict(frozen=True)

    strategy: StrategyName = "dfsdt"
    chains: int = Field(default=5, ge=1, le=32)
    width: int = Field(default=2, ge=1, le=8)
    depth: int = Field(default=24, ge=3, le=96)
    candidates: int | None = Field(default=None, ge=1, le=MAX_CANDIDATES)
    limits: Limits = Limits()
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    category: str | None = None
    search_again: bool = True
    look_wider: bool = True
    retry_root: bool = True
    close_repeats: bool = True
    close_search: bool = True
    switches: Annotated[frozenset[Switch] | None, SORTED_NAMES] = None
    aids: Annotated[frozenset[str] | None, SORTED_NAMES] = None
    votes: int = Field(default=1, ge=1, le=MOST_VOTES)
    verify: bool = False
    earlier: tuple[EarlierRun, ...] = ()
    keep_on_fault: bool = True

    @model_validator(mode="before")
    @classmethod
    def _plan_is_a_switch(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("strategy") == "plan":
            switches = frozenset(value.get("switches") or ()) | {"plan"}
            return {**value, "strategy": "dfsdt", "switches": switches}
        return value

    @property
    def most_chains(self) -> int:
        """The N of CoT@N; 1 for every other strategy."""
        return self.chains if self.strategy == "cot" else 1
