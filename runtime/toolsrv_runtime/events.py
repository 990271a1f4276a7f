"""What a solve tells while it runs, event by event.

Plain frozen data, as ``outcome`` is; nothing here runs anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_runtime.outcome import Limits, Opinion, Source, Usage


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class CandidatesEvent(_Frozen):
    """The APIs the retriever offers to the model for this task, best first.

    Comes again when the search for them is made again: ``reason`` says why (empty the first time),
    and the ids are the new ones. ``dead_left_out`` counts APIs that failed when last checked.
    """

    kind: Literal["candidates"] = "candidates"
    seconds: float
    api_ids: tuple[str, ...]
    scores: tuple[float, ...]
    reason: str = ""
    dead_left_out: int = 0


class ThoughtEvent(_Frozen):
    """The model said what it does next, on the way down from ``parent`` to ``node``."""

    kind: Literal["thought"] = "thought"
    seconds: float
    node: int
    parent: int
    depth: int
    text: str


class CallEvent(_Frozen):
    """An API is about to be called."""

    kind: Literal["call"] = "call"
    seconds: float
    node: int
    depth: int
    api_id: str
    function: str
    arguments: dict[str, Any]


class ConsentEvent(_Frozen):
    """A person is asked for consent to a call (``allowed`` None), or has answered."""

    kind: Literal["consent"] = "consent"
    seconds: float
    node: int
    depth: int
    method: str
    host: str
    path: str
    allowed: bool | None


class QuestionEvent(_Frozen):
    """A person is asked for a value (``answered`` None), or has given one, or nobody did."""

    kind: Literal["question"] = "question"
    seconds: float
    node: int
    depth: int
    parameter: str
    text: str
    answered: bool | None


class ObservationEvent(_Frozen):
    """An API answered (or failed to)."""

    kind: Literal["observation"] = "observation"
    seconds: float
    node: int
    depth: int
    status: int
    text: str
    source: Source


class BacktrackEvent(_Frozen):
    """The search left a branch and goes on with another child of ``to``."""

    kind: Literal["backtrack"] = "backtrack"
    seconds: float
    node: int
    to: int
    reason: str


class BudgetEvent(_Frozen):
    """How much of the budget is used, after each model reply."""

    kind: Literal["budget"] = "budget"
    seconds: float
    usage: Usage
    limits: Limits


class OpinionEvent(_Frozen):
    """The model has read an answer again: what it says of it."""

    kind: Literal["opinion"] = "opinion"
    seconds: float
    depth: int
    opinion: Opinion


class NoteEvent(_Frozen):
    """Something that a prompt had no room for, or that went another way than usual; told once."""

    kind: Literal["note"] = "note"
    seconds: float
    text: str


Event = Annotated[
    CandidatesEvent
    | ThoughtEvent
    | CallEvent
    | ConsentEvent
    | QuestionEvent
    | ObservationEvent
    | BacktrackEvent
    | BudgetEvent
    | OpinionEvent
    | NoteEvent,
    Field(discriminator="kind"),
]
