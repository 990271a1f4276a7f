"""What a profile is chosen by: a model's metadata, names, and the positions it carries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal

from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.profile import Profile

MOST_STRETCHED = 1024
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
    rope = f"rope_freq_scale = {enough:f} or " if enough * MOST_STRETCHED >= 1 else ""
    raise ProfileError(
        f"the profile {profile.name!r} asks for a context of {profile.context:,} tokens; "
        f"{facts.filename} was trained for {facts.base_positions:,} positions, and divided by "
        f"{factor:g} they carry {carried:,}",
        hint=f"in the profile set {rope}context = {carried}",
    )
