"""How a model is to be run: conversation format, context, rope, stop texts, sampling.

Knows no engine and no file; which profile a model gets is ``profiles.choose``'s to say.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer

from toolsrv_runtime.profiles.sizes import DEFAULTS

KvType = Literal["f16", "q8_0", "q4_0"]
FormatName = Literal["compact", "chat", "toolllama", "remote"]

SORTED = PlainSerializer(
    lambda names: None if names is None else sorted(names), return_type=list[str] | None
)
"""Writes a set of names in their order, so that equal ones are written alike."""

MOST_CANDIDATES = 32
"""APIs that a model may be offered at once."""

MOST_CALLS_PER_TURN = 8
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
    ``compact`` or ``remote``; ``candidates`` how many APIs a task is offered by default (the
    paper's five); ``chat_template`` is the Jinja source that the file carries, and
    ``chat_template_from`` the user's profile that has another ("" for the file's). ``anew_after_give_up``: when the model gives up, other APIs are
    searched for and offered, besides when all that were offered have failed. ``calls_per_turn`` is
    how many calls one reply may hold, at most as many as the task has open needs. ``aids`` and
    ``switches`` are what a chat model gets where a solve names none (``SolveOptions``); ``aids`` None
    are all there are. ``answers_in_place``: the answer is written where the calls were
    made, as a model that was trained on whole conversations does; others answer a question of its own
    about the results.
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
    aids: Annotated[frozenset[str] | None, SORTED] = None
    switches: Annotated[frozenset[str], SORTED] = frozenset()
    answers_in_place: bool = False

    @property
    def draws(self) -> bool:
        """Whether two replies to one prompt may differ; the compact format takes the likeliest."""
        return self.format != "compact" and self.temperature > 0

    @property
    def most_candidates(self) -> int:
        """APIs offered at once at most; the compact format numbers them with one digit."""
        return _COMPACT_CANDIDATES if self.format == "compact" else MOST_CANDIDATES


REMOTE = Profile(
    name="remote",
    format="remote",
    context=8192,
    max_reply_tokens=1024,
    observation_limit=2048,
    calls_per_turn=MOST_CALLS_PER_TURN,
    aids=DEFAULTS["server"].aids,
    switches=DEFAULTS["server"].switches,
)
"""How a chat model of others is run. It knows its context itself, and refuses what is longer."""
