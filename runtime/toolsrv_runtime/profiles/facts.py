"""What a profile is chosen by: a model's metadata, names, and the positions it carries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.profile import Profile


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as its file tells it.

    ``trained_context`` is in tokens; ``compact_tokens``: the vocabulary has the compact format's
    own tokens.
    """

    metadata: Mapping[str, str]
    filename: str
    trained_context: int
    compact_tokens: bool

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
        if self.metadata.get(f"{prefix}.scaling.type", "linear") == "none":
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
        said = self.metadata.get(f"{self.architecture}.rope.scaling.original_context_length", "")
        return int(said) if said.isdecimal() and int(said) > 0 else self.trained_context

    def carried(self, rope_freq_scale: float | None) -> int:
        """Return how many tokens the model can tell apart under a rope scale (None: the file's)."""
        if rope_freq_scale is None:
            return max(self.trained_context, round(self.base_positions * self.rope_factor))
        return round(self.base_positions / rope_freq_scale)


def check_positions(profile: Profile, facts: ModelFacts) -> None:
    """Raise ProfileError where the profile's context is longer than its rope setting carries."""
    carried = facts.carried(profile.rope_freq_scale)
    if profile.context <= carried:
        return
    factor = 1 / profile.rope_freq_scale if profile.rope_freq_scale else facts.rope_factor
    enough = facts.base_positions / profile.context
    raise ProfileError(
        f"the profile {profile.name!r} asks for a context of {profile.context:,} tokens; "
        f"{facts.filename} was trained for {facts.base_positions:,} positions, and divided by "
        f"{factor:g} they carry {carried:,}",
        hint=f"in the profile set rope_freq_scale = {enough:.4g} or context = {carried}",
    )
