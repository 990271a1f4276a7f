"""Reference mode: one option for each defect of ToolBench that a solve can reproduce.

The default is corrected behaviour; ``REFERENCE`` reproduces published figures. The numbers are
those of the summary in ToolBench's format notes. Plain frozen data.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.options import SolveOptions

AssistantTurns = Literal["trained", "reply", "thought"]


class ReferenceMode(BaseModel):
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
        ge=1,
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

    @property
    def label(self) -> str:
        """How a run's record names it: ``faithful``, ``faithful in depth``, or nothing."""
        if self == REFERENCE:
            return "faithful"
        ours = ReferenceMode()
        changed = [
            one for one in ReferenceMode.model_fields if getattr(self, one) != getattr(ours, one)
        ]
        return f"faithful in {' and '.join(changed)}" if changed else ""

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


REFERENCE = ReferenceMode(
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


ALL = "all"
"""Names every difference."""


def _parts(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(",")) if part]


def names_all(text: str) -> bool:
    """Return whether a text names every difference, whatever values it gives to some."""
    return ALL in _parts(text)


def parse_reference_mode(text: str) -> ReferenceMode:
    """Return the default but for the differences that are named, with commas between them.

    A name alone brings back what the reference does; ``assistant_turns=reply`` names a value. With
    ``all`` among them the other names only change values of the reference's.

    Raises:
        UsageError: No difference has such a name, or it takes no such value.
    """
    chosen: dict[str, Any] = REFERENCE.model_dump() if names_all(text) else {}
    for part in _parts(text):
        if part == ALL:
            continue
        name, given, value = (one.strip() for one in part.partition("="))
        if name not in ReferenceMode.model_fields:
            known = ", ".join([ALL, *ReferenceMode.model_fields])
            raise UsageError(
                f"no difference from ToolBench is named {name!r}", hint=f"any of {known}"
            )
        chosen[name] = value if given else getattr(REFERENCE, name)
    try:
        return ReferenceMode(**chosen)
    except ValidationError as error:
        first = error.errors()[0]
        wrong = f"{first['loc'][0]}={first['input']}"
        raise UsageError(
            f"{wrong}: {first['msg']}", hint="the name alone is ToolBench's way"
        ) from None
