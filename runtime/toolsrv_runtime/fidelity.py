"""How far a solve follows ToolBench where ToolBench has a defect: one option per difference.

The default is sane; ``FAITHFUL`` is the reference's behaviour, by which published figures can be
reproduced. The numbers are those of the summary in ToolBench's format notes. Plain frozen data.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_runtime.options import SolveOptions

AssistantTurns = Literal["trained", "reply", "thought"]


class Fidelity(BaseModel):
    """Each field's default is ours; its description says what the reference does and why not.

    ``assistant_turns`` is how a former reply stands in ToolLLaMA's prompt: ``trained`` as in its
    training text, so that a prompt extends the one before it, token by token; ``reply`` as in
    StableToolBench; ``thought`` as in ToolBench.
    """

    model_config = ConfigDict(frozen=True)

    assistant_turns: AssistantTurns = Field(
        default="trained",
        description="2: the reference shows former thoughts without their calls, which ToolLLaMA "
        "was not trained on; with whole replies its scores rise.",
    )
    cut_from_left: bool = Field(
        default=False,
        description="3: the reference cuts a long prompt at its start, so that instructions and "
        "functions go first; ours shrinks the oldest responses, and the head last.",
    )
    match_suffix: bool = Field(
        default=False,
        description="8: the reference calls the first function whose name ends with what was "
        "written, and takes an API's name from the last of equal names: another API is called.",
    )
    depth: int | None = Field(
        default=None,
        description="11: the reference's limit of 12 counts tree nodes, three a reply, so a path "
        "has four calls; ours takes the depth that is set.",
    )
    first_give_up_ends: bool = Field(
        default=False,
        description="12: in the reference a give-up as the very first move ends the search after "
        "one reply; ours tries the next branch.",
    )
    service_observations: bool = Field(
        default=False,
        description="14: the reference shows Python's text of a response, cut at 2,048 and again "
        "at 1,024 characters, with escapes for other alphabets; ours shows it as JSON.",
    )
    literal_replies: bool = Field(
        default=False,
        description="16: the reference lets the model write freely and slices the text, whatever "
        "it is; ours holds replies to the functions on offer and the schema of their arguments.",
    )
    open_end: bool = Field(
        default=False,
        description="In the reference a search that runs out of budget ends without an answer; "
        "ours ends with what is known.",
    )
    calls_repeat: bool = Field(
        default=False,
        description="The reference makes one call as often as it is written; ours leaves a path "
        "that goes round in circles.",
    )
    one_search: bool = Field(
        default=False,
        description="The reference offers one set of APIs; ours puts first what "
        "the matcher finds needed, and searches for others when all failed.",
    )

    def search(self, options: SolveOptions) -> SolveOptions:
        """Return a solve's options with what of the search is the reference's."""
        changed: dict[str, Any] = {}
        if self.depth is not None:
            changed["depth"] = min(self.depth, options.depth)
        if self.first_give_up_ends:
            changed["retry_root"] = False
        if self.open_end:
            changed["close_search"] = False
        if self.calls_repeat:
            changed["close_repeats"] = False
        if self.one_search:
            changed |= {"search_again": False, "look_wider": False}
        return options.model_copy(update=changed)


FAITHFUL = Fidelity(
    assistant_turns="thought",
    cut_from_left=True,
    match_suffix=True,
    depth=12,
    first_give_up_ends=True,
    service_observations=True,
    literal_replies=True,
    open_end=True,
    calls_repeat=True,
    one_search=True,
)
"""What ToolBench does."""
