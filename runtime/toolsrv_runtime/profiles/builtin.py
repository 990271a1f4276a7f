"""Built-in profiles, and the facts of a model that they depend on.

``ModelFacts`` holds metadata, names and the number of positions that a model carries. Each built-in
profile comes with a reason for each field. A context that the positions do not carry raises
ProfileError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal

from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.profiles import DEFAULTS, TUNED_SWITCHES, Profile, size_class

MAX_ROPE_FACTOR = 1024
"""By how much a profile may have positions divided; the longest contexts take some hundreds."""

_FOUR_DIGITS = Context(prec=4, rounding=ROUND_DOWN)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as its file tells it.

    ``trained_context`` is in tokens; ``compact_tokens``: the vocabulary has the compact format's
    own tokens; ``parameters`` how many weights it has, 0 where that is not known.
    """

    metadata: Mapping[str, str]
    filename: str
    trained_context: int
    compact_tokens: bool
    parameters: int = 0

    @property
    def name(self) -> str:
        """``general.name``, or nothing."""
        return self.metadata.get("general.name", "")

    @property
    def architecture(self) -> str:
        """``general.architecture``, or nothing."""
        return self.metadata.get("general.architecture", "")

    @property
    def chat_template(self) -> str | None:
        """The Jinja source that the file carries."""
        return self.metadata.get("tokenizer.chat_template")

    @property
    def is_toolllama(self) -> bool:
        """Whether its name or its file's name says ToolLLaMA, in any spelling."""
        return "toolllama" in re.sub(r"[-_ .]", "", f"{self.name} {self.filename}".lower())

    @property
    def rope_factor(self) -> float:
        """By how much the file itself says that positions are divided; 1 where it does not."""
        prefix = f"{self.architecture}.rope"
        if self._scaling == "none":
            return 1.0
        said = self.metadata.get(f"{prefix}.scaling.factor") or self.metadata.get(
            f"{prefix}.scale_linear"
        )
        try:
            return max(1.0, float(said or 1))
        except ValueError:
            return 1.0

    @property
    def base_positions(self) -> int:
        """How many positions the model had before any were stretched.

        A file that names its stretching but no original length has it as its context length
        (llama.cpp reads it so).
        """
        return self._original or self.trained_context

    def carried(self, rope_freq_scale: float | None) -> int:
        """Return how many tokens the model can tell apart under a rope scale (None: the file's).

        Of a file that says both where its positions began and by how much they are divided, the
        context length that it claims counts for nothing; other ways of stretching carry what they
        claim.
        """
        if rope_freq_scale is not None:
            return round(self.base_positions / rope_freq_scale)
        stretched = round(self.base_positions * self.rope_factor)
        if self._original and self.rope_factor > 1 and self._scaling == "linear":
            return stretched
        return max(self.trained_context, stretched)

    @property
    def _scaling(self) -> str:
        """The kind of stretching; linear where the file does not say (llama.cpp reads it so)."""
        return self.metadata.get(f"{self.architecture}.rope.scaling.type", "linear")

    @property
    def _original(self) -> int:
        """The positions before any stretching that the file names, 0 without."""
        said = self.metadata.get(f"{self.architecture}.rope.scaling.original_context_length", "")
        return int(said) if said.isdecimal() else 0


def check_profile(profile: Profile, facts: ModelFacts) -> None:
    """Raise ProfileError where a model cannot be run so: what is wrong, and what to set instead."""
    if profile.kv_type != "f16" and profile.flash_attention is False:
        raise ProfileError(
            f"the profile {profile.name!r} keeps keys and values as {profile.kv_type}, which needs "
            "flash attention, and turns that off",
            hint='in the profile set kv_type = "f16", or leave flash_attention out',
        )
    check_positions(profile, facts)


def check_positions(profile: Profile, facts: ModelFacts) -> None:
    """Raise ProfileError where the profile's context is longer than its rope setting carries."""
    carried = facts.carried(profile.rope_freq_scale)
    if profile.context <= carried:
        return
    factor = 1 / profile.rope_freq_scale if profile.rope_freq_scale else facts.rope_factor
    # Rounded down, or the advice would fall short of the context.
    enough = _FOUR_DIGITS.divide(Decimal(facts.base_positions), Decimal(profile.context))
    rope = f"rope_freq_scale = {enough:f} or " if enough * MAX_ROPE_FACTOR >= 1 else ""
    raise ProfileError(
        f"the profile {profile.name!r} asks for a context of {profile.context:,} tokens; "
        f"{facts.filename} was trained for {facts.base_positions:,} positions, and divided by "
        f"{factor:g} they carry {carried:,}",
        hint=f"in the profile set {rope}context = {carried}",
    )


CHAT_CONTEXT = 8192
"""Context given to a chat model that could carry more: enough for five functions and a path."""

CHAT_CANDIDATES = 8
"""APIs that are found for a task; the matcher leaves about three of them to be shown."""

SMALL_CONTEXT = 2560
"""The longest conversations that the fine-tuned model was trained on (1,600 tokens), and more than half again."""

TOOLLLAMA_CONTEXT = 8192

ExplainedProfile = tuple[Profile, dict[str, str]]
"""A profile, and the reason for each field whose name begins with the key."""

_FREE = "off: the model may write arguments freely within their schema"


def compact(facts: ModelFacts) -> ExplainedProfile:
    """Return how the small model that ships is run, and models trained like it."""
    profile = Profile(
        name="compact",
        format="compact",
        context=facts.trained_context,
        max_reply_tokens=220,
        observation_limit=320,
        candidates=9,
        grounded=True,
        # It calls what it is offered: of 112 development tasks this solved one more, and
        # made four honest give-ups into wrong answers.
        anew_after_give_up=False,
    )
    return profile, {
        "format": "the compact format's own tokens (' use #1' …)",
        "context": f"the model was trained for {facts.trained_context} tokens",
        "rope": "as the file says",
        "stop": "none: the grammar ends a reply",
        "bos": "as the file says",
        "temperature": "the likeliest token is taken",
        "grounded": "small model: arguments are spans of the task, facts of responses or listed values",
    }


def chat(facts: ModelFacts) -> ExplainedProfile:
    """Return how any instruct model is run."""
    trained, template = facts.carried(None), facts.chat_template
    context = min(trained, CHAT_CONTEXT)
    size = size_class(facts.parameters)
    profile = Profile(
        name="chat",
        format="chat",
        context=context,
        candidates=CHAT_CANDIDATES,
        chat_template=template,
        aids=DEFAULTS[size].aids,
        switches=DEFAULTS[size].switches,
    )
    return profile, {
        "format": _why_chat(facts),
        "context": f"{context} of the {trained} tokens the model was trained for",
        "rope": "as the file says",
        "stop": "none: the grammar ends a reply",
        "bos": "as the file says",
        "temperature": "the likeliest token is taken",
        "grounded": _FREE,
        "aids": f"measured for models of its size ({size})",
        "switches": f"measured for models of its size ({size})",
    }


def small(facts: ModelFacts) -> ExplainedProfile:
    """Return how the fine-tuned model that ships is run: any chat model, as far as it was trained."""
    profile, reasons = chat(facts)
    changes = {
        "name": "small",
        "context": min(facts.trained_context, SMALL_CONTEXT),
        "observation_limit": 400,
        "answers_in_place": True,
        "aids": TUNED_SWITCHES,
    }
    return profile.model_copy(update=changes), {
        **reasons,
        "format": "the chat template that it was trained with",
        "context": f"{SMALL_CONTEXT} tokens: it was trained on conversations of up to 1,600",
        "aids": "measured for this model",
        "answers_in_place": "it was trained on whole conversations",
    }


def toolllama_1(facts: ModelFacts) -> ExplainedProfile:
    """Return how a ToolLLaMA on LLaMA 1 (2,048 positions) is run."""
    return _toolllama("toolllama-1", 4, facts)


def toolllama_2(facts: ModelFacts) -> ExplainedProfile:
    """Return how a ToolLLaMA on LLaMA 2 (4,096 positions) is run."""
    return _toolllama("toolllama-2", 2, facts)


def _toolllama(name: str, factor: int, facts: ModelFacts) -> ExplainedProfile:
    said = facts.rope_factor
    profile = Profile(
        name=name,
        format="toolllama",
        context=TOOLLLAMA_CONTEXT,
        # Any number would stand in for the file's own factor.
        rope_freq_scale=None if said > 1 else 1 / factor,
        temperature=0.5,
        stop=("</s>",),
        bos=True,
        chat_template=facts.chat_template,
    )
    return profile, {
        "format": "ToolLLaMA's own: what it was fine-tuned on",
        "context": f"ToolLLaMA was fine-tuned for {TOOLLLAMA_CONTEXT} tokens",
        "rope": f"linear interpolation by {said:g}, as the file says"
        if said > 1
        else f"linear interpolation by {factor}, as it was fine-tuned; the file does not say so",
        "stop": "what ToolLLaMA was trained to end a reply with",
        "bos": "LLaMA's tokenizer puts it before every prompt",
        "temperature": "the paper's sampling",
        "grounded": _FREE,
    }


def _why_chat(facts: ModelFacts) -> str:
    if facts.chat_template:
        return "the file carries a chat template"
    return "the file carries no chat template: plain System/User/Assistant turns are used"


BUILTIN: Mapping[str, Callable[[ModelFacts], ExplainedProfile]] = {
    "compact": compact,
    "chat": chat,
    "small": small,
    "toolllama-1": toolllama_1,
    "toolllama-2": toolllama_2,
}
