"""Results and events of a solve: the outcome at its end, and what is reported while it runs.

Plain frozen data for the terminal, MCP clients and files. Nothing here runs anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_runtime.contract.hints import GivenValue, Question

Status = Literal[
    "answered", "replied", "partial", "needs_input", "gave_up", "cancelled", "interrupted"
]
Source = Literal["offline", "live", "recorded", "simulated"]
NodeKind = Literal["root", "thought", "call", "answer", "give_up", "failed"]
ClaimKind = Literal["number", "date", "time", "name", "identifier"]
Support = Literal["said", "rounded", "counted", ""]

TASK_NODE = 0
"""The node id that stands for the task: the tree's root, where nothing is called."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class KeptFile(_Frozen):
    """A file that a call brought and that was saved.

    ``name`` is that of the saved file, ``path`` where it is; ``uri`` is the resource that MCP
    clients read it as.
    """

    name: str
    media_type: str
    bytes: int
    path: str
    uri: str


class Evidence(_Frozen):
    """One API call an answer rests on (or that was tried): who, with what, what came back.

    ``status`` is the HTTP status code, or 0 when no response came; ``error`` is then the reason.
    ``response`` is the parsed JSON body, or the text where it is not JSON. ``kind`` is the result
    kind of the call (``calls.result.ResultKind``), empty in runs that were kept before there was
    one. A call that is asked for again is answered with what it gave, and stands here once.
    ``characters`` is set where only the start of the response is here: those of the whole as text.
    """

    node: int
    api_id: str
    function: str
    arguments: dict[str, Any]
    status: int
    response: Any
    characters: int = 0
    error: str = ""
    kind: str = ""
    source: Source
    seconds: float
    used: bool = Field(description="True when the call lies on the path of the answer.")
    times: int = Field(
        default=1, description="How often the model asked for the call, on all branches."
    )
    files: tuple[KeptFile, ...] = Field(
        default=(), description="The files that it brought, as they were saved."
    )

    @property
    def ok(self) -> bool:
        """Whether the API answered with a 2xx status."""
        return 200 <= self.status < 300


class Claim(_Frozen):
    """A number, date, time, name or identifier of an answer, and what supports it.

    ``start`` is its place in the answer, in characters. ``how``: a source says it (``said``), says
    a longer number (``rounded``), or is a list of so many items (``counted``); empty when nothing
    supports it. ``nodes`` are the evidence nodes whose responses do; ``in_task``: the task does,
    or a run that it goes on from.
    """

    text: str
    kind: ClaimKind
    start: int
    how: Support = ""
    nodes: tuple[int, ...] = ()
    in_task: bool = False


class Opinion(_Frozen):
    """A second opinion on an answer, by the model that gave it (``SolveOptions.verify``).

    ``node`` is the answer's. ``reason`` says why; where there came no opinion (``none``) it says
    why not, and the answer stands as if accepted.
    """

    node: int
    verdict: Literal["accepted", "rejected", "none"]
    reason: str = ""


class Usage(_Frozen):
    """What a solve cost.

    ``prompt_tokens`` counts every token of every prompt that the model was asked to continue;
    ``evaluated_tokens`` every token that was really evaluated, those of replies that the next one
    depends on included: the rest of the prompts was shared prefix.
    ``generated_tokens`` counts all tokens of the model's replies, ``forced_tokens`` those among
    them that the grammar left no choice about.
    """

    seconds: float = 0.0
    calls: int = 0
    model_calls: int = 0
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    generated_tokens: int = 0
    forced_tokens: int = 0


def total_usage(usages: Sequence[Usage], calls: int) -> Usage:
    """Return what solves cost together that ran at the same time and shared their calls."""
    return Usage(
        seconds=max((one.seconds for one in usages), default=0.0),
        calls=calls,
        model_calls=sum(one.model_calls for one in usages),
        prompt_tokens=sum(one.prompt_tokens for one in usages),
        evaluated_tokens=sum(one.evaluated_tokens for one in usages),
        generated_tokens=sum(one.generated_tokens for one in usages),
        forced_tokens=sum(one.forced_tokens for one in usages),
    )


class Limits(_Frozen):
    """The budget of a solve; at each end the model answers with what is known, in one step more."""

    seconds: float = Field(default=120.0, gt=0)
    calls: int = Field(default=30, ge=1, description="API calls")
    model_calls: int = Field(default=200, ge=1, description="replies of the model")
    tokens: int = Field(default=20_000, ge=1, description="generated tokens")


class Searched(_Frozen):
    """A search for candidates: ``reason`` says why it was made again, empty for the first.

    ``api_ids`` are those that it added to the candidates, best first; none when it found nothing
    new.
    """

    query: str
    reason: str = ""
    api_ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()


def call_text(api_id: str, arguments: Mapping[str, Any]) -> str:
    """Return the same text for calls of one API with equal arguments."""
    return f"{api_id} {json.dumps(arguments, sort_keys=True, default=str)}"


class TreeNode(_Frozen):
    """One node of the search tree: one reply of the model. The root has ``parent`` -1.

    ``pruned`` says that the search turned back here. ``order`` numbers the nodes as the search
    entered them, the root 0 (a node that was never entered has 0 too). ``text`` is what the model
    wrote as arguments, ``arguments`` what was made of it for the call; ``bare`` marks a call that
    came without a thought. ``code`` is what the call came to in ToolBench's numbers
    (``search.tree.Code``), None where nothing was called. A reply that only thinks is a
    ``thought``.
    """

    id: int
    parent: int
    depth: int
    kind: NodeKind
    thought: str = ""
    api_id: str = ""
    function: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    observation: str = ""
    status: int = 0
    pruned: bool = False
    order: int = 0
    text: str = ""
    bare: bool = False
    code: int | None = None


class Cost(_Frozen):
    """What a node of the tree cost: generated tokens of its reply, seconds with its call.

    Beside the tree, not in it, so that two runs of one task can have the same tree.
    """

    node: int
    tokens: int
    seconds: float


class Outcome(_Frozen):
    """How a solve ended.

    ``answered``: the model finished with an answer. ``replied``: it replied to talk with the
    assistant itself, which needs no call and has no evidence. ``partial``: the search ended first
    (a budget, replies that nothing can be made of), or a person declined a call, and ``answer``
    holds the best that was found, "" where nothing was. ``needs_input``: a call requires a value
    that neither the task nor a result holds, and nobody gave it when asked or nobody could be asked
    (``questions``); ``answer`` as with ``partial``. ``gave_up``: the model chose to, or no API
    fits; ``answer`` as with ``partial``. ``cancelled``: stopped from outside; ``answer`` holds the
    best partial answer. ``interrupted``: no solve ends so; a run whose process ended first is kept
    so, with the calls that it had made. ``reason`` says in one line why it ended as it did, ``missing`` what of the
    task an answer leaves open, in the words of the task or of the model (all of it where nothing is
    known), or the request that a person declined. ``given`` are the values that a person gave on
    the way. ``supported`` and ``unsupported`` are the claims of the answer that were traced to a
    response or the task, and those that could not be (``evidence``); ``unread`` counts those of a
    very long answer that were not looked at. ``opinions`` are the second ones, where they were
    asked for. ``notes`` say what prompts had no room for. ``need_keys`` are APIs that fit and were
    left out for what they need (id -> what), and ``candidates`` are all APIs that were available,
    ``searches`` how they were found. ``width`` and ``depth`` are the search's limits, depth in
    ToolBench's nodes (up to three a reply); ``chains`` is the N of CoT@N, else 1. ``run_id``
    is the id under which the run is kept, "" where it is not; ``continues`` is that of the run that
    the task went on from. ``switches`` are those of the solve; ``votes`` how
    many solves were made, of which ``agreed`` state what this answer does, and ``usage`` is that of
    all.
    """

    task: str
    run_id: str = ""
    continues: str = ""
    status: Status
    answer: str
    reason: str
    missing: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    given: tuple[GivenValue, ...] = ()
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()
    supported: tuple[Claim, ...] = ()
    unsupported: tuple[Claim, ...] = ()
    unread: int = 0
    opinions: tuple[Opinion, ...] = ()
    need_keys: dict[str, str] = Field(default_factory=dict)
    candidates: tuple[str, ...]
    searches: tuple[Searched, ...] = ()
    tree: tuple[TreeNode, ...]
    costs: tuple[Cost, ...] = ()
    usage: Usage
    limits: Limits
    strategy: str
    width: int = 2
    depth: int = 24
    chains: int = 1
    switches: tuple[str, ...] = ()
    votes: int = 1
    agreed: int = 1
    model: str
    format: str
    seed: int
    versions: dict[str, str]


class _Event(_Frozen):
    """``vote``: number of the solve that the event is of, where several vote; else 0.

    Nodes are those of that solve's tree.
    """

    vote: int = 0


class CandidatesEvent(_Event):
    """The candidates of this task, best first.

    Comes again when the search for them is made again: ``reason`` says why (empty the first time),
    and the ids are the new ones. ``dead_left_out`` counts APIs that failed when last checked.
    """

    kind: Literal["candidates"] = "candidates"
    seconds: float
    api_ids: tuple[str, ...]
    scores: tuple[float, ...]
    reason: str = ""
    dead_left_out: int = 0


class ThoughtEvent(_Event):
    """The model said what it does next, on the way down from ``parent`` to ``node``."""

    kind: Literal["thought"] = "thought"
    seconds: float
    node: int
    parent: int
    depth: int
    text: str


class CallEvent(_Event):
    """An API is about to be called."""

    kind: Literal["call"] = "call"
    seconds: float
    node: int
    depth: int
    api_id: str
    function: str
    arguments: dict[str, Any]


class ConsentEvent(_Event):
    """A person is asked for consent to a call (``allowed`` None), or has answered."""

    kind: Literal["consent"] = "consent"
    seconds: float
    node: int
    depth: int
    method: str
    host: str
    path: str
    allowed: bool | None


class QuestionEvent(_Event):
    """A person is asked for a value (``answered`` None), or has given one, or nobody did."""

    kind: Literal["question"] = "question"
    seconds: float
    node: int
    depth: int
    parameter: str
    text: str
    answered: bool | None


class ObservationEvent(_Event):
    """An API answered (or failed to).

    ``text`` is what the model reads of it; ``evidence`` is the call with its whole response, which
    is no part of the event as JSON.
    """

    kind: Literal["observation"] = "observation"
    seconds: float
    node: int
    depth: int
    status: int
    text: str
    source: Source
    evidence: Evidence | None = Field(default=None, exclude=True, repr=False)


class BacktrackEvent(_Event):
    """The search left a branch and goes on with another child of ``to``."""

    kind: Literal["backtrack"] = "backtrack"
    seconds: float
    node: int
    to: int
    reason: str


class BudgetEvent(_Event):
    """How much of the budget is used, after each model reply."""

    kind: Literal["budget"] = "budget"
    seconds: float
    usage: Usage
    limits: Limits


class OpinionEvent(_Event):
    """The model has read an answer again: what it says of it."""

    kind: Literal["opinion"] = "opinion"
    seconds: float
    depth: int
    opinion: Opinion


class NoteEvent(_Event):
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


def is_followed(event: Event) -> bool:
    """Whether an event is for whoever follows a solve: of a vote, its first solve and questions."""
    return event.vote == 0 or event.kind == "consent"
