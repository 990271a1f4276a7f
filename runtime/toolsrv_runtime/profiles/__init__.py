"""Model profiles: conversation format, context, rope scaling, stop texts and sampling of a model.

Defaults of aids and switches depend on the model's size class. Knows no files; ``builtin`` holds
the built-in profiles and ``choose_profile`` picks one for a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer

SizeClass = Literal["tiny", "small", "large", "server"]
"""At most 0.3, at most 2 billion parameters, more; ``server``: a model of others, of any size."""

TINY = 300_000_000
SMALL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class SizeDefaults:
    """``aids`` None: all there are (``agent.guidance.AIDS``)."""

    aids: frozenset[str] | None = None
    switches: frozenset[str] = frozenset()


LARGE_SWITCHES = frozenset({"coverage", "exclude", "check", "shortlist", "ask"})
"""For models that choose functions and read values better than a matcher of 23 million parameters."""

TUNED_SWITCHES = frozenset({"coverage", "values", "exclude", "check", "decline", "ask"})
"""For a small model that was trained to choose among functions: on a catalog that the matcher does not
know it chooses better than the matcher: 12 of 22 development tasks there without ``match`` and
``shortlist`` (and before ``decline``), 21 of 52 with all aids."""

DEFAULTS: Mapping[SizeClass, SizeDefaults] = {
    "tiny": SizeDefaults(),
    "small": SizeDefaults(),
    "large": SizeDefaults(aids=LARGE_SWITCHES),
    "server": SizeDefaults(aids=LARGE_SWITCHES),
}


def size_class(parameters: int) -> SizeClass:
    """Return the class of a model that runs here; 0 parameters: not known, taken for large."""
    if not parameters:
        return "large"
    if parameters <= TINY:
        return "tiny"
    return "small" if parameters <= SMALL else "large"


KvType = Literal["f16", "q8_0", "q4_0"]
FormatName = Literal["compact", "chat", "toolllama", "remote"]

SORTED_NAMES = PlainSerializer(
    lambda names: None if names is None else sorted(names), return_type=list[str] | None
)
"""Writes a set of names in their order, so that equal ones are written alike."""

MAX_CANDIDATES = 32
"""Maximum number of candidates."""

MAX_CALLS_PER_TURN = 8
"""Calls that a profile may let one reply hold."""

_COMPACT_CANDIDATES = 9


class Profile(BaseModel):
    """How to run one model. ``context`` and ``max_reply_tokens`` are tokens.

    ``rope_freq_scale`` is one over the factor by which positions are divided (linear
    interpolation); None leaves what the file says. A text of ``stop`` ends a reply. ``bos``:
    whether the token for the beginning goes before every prompt; None as the file says.
    ``gpu_layers`` is how many layers go to a GPU: None all that fit, 0 none. ``threads`` is how
    many threads evaluate; None by the processor's cores and the model's size.
    ``kv_type`` is how keys and values are stored (other than "f16" needs flash attention);
    ``flash_attention`` None is no on processors with "f16", else as llama.cpp likes.

    ``grounded`` limits arguments and answers to what the task and the observations contain;
    ``observation_limit`` is how much of a response enters the prompt: tokens, at most an eighth of
    the context (half of the paper's 1,024 by default), or characters where the format is
    ``compact`` or ``remote``; ``candidates`` the default number of candidates of a task (the
    paper's five); ``chat_template`` is the Jinja source that the file carries, and
    ``chat_template_from`` the user's profile that has another ("" for the file's).
    ``anew_after_give_up``: when the model gives up, other APIs are searched for and offered,
    besides when all that were offered have failed. ``calls_per_turn`` is how many calls one reply
    may hold, at most as many as the task has open needs. ``aids`` and ``switches`` are what a chat
    model gets where a solve names none (``SolveOptions``); ``aids`` None are all there are.
    ``answers_in_place``: the answer is written where the calls were made, as a model that was
    trained on whole conversations does; others answer a question of its own about the results.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    format: FormatName
    context: int
    rope_freq_scale: float | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    max_reply_tokens: int = 512
    stop: tuple[str, ...] = ()
    bos: bool | None = None
    observation_limit: int = 512
    candidates: int = 5
    grounded: bool = False
    anew_after_give_up: bool = True
    chat_template: str | None = None
    chat_template_from: str = ""
    kv_type: KvType = "f16"
    flash_attention: bool | None = None
    gpu_layers: int | None = None
    threads: int | None = None
    calls_per_turn: int = 1
    aids: Annotated[frozenset[str] | None, SORTED_NAMES] = None
    switches: Annotated[frozenset[str], SORTED_NAMES] = frozenset()
    answers_in_place: bool = False

    @property
    def samples(self) -> bool:
        """Whether two replies to one prompt may differ; the compact format takes the likeliest."""
        return self.format != "compact" and self.temperature > 0

    @property
    def max_candidates(self) -> int:
        """Maximum number of candidates of the compact format, which numbers them with one digit."""
        return _COMPACT_CANDIDATES if self.format == "compact" else MAX_CANDIDATES


REMOTE = Profile(
    name="remote",
    format="remote",
    context=8192,
    max_reply_tokens=1024,
    observation_limit=2048,
    calls_per_turn=MAX_CALLS_PER_TURN,
    aids=DEFAULTS["server"].aids,
    switches=DEFAULTS["server"].switches,
)
"""How a chat model of others is run. It knows its context itself, and refuses what is longer."""
