"""What a profile, built-in or the user's own, says of positions when a checkpoint is converted."""

from __future__ import annotations

from pathlib import Path

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert.rope import PROFILE_CONTEXT, PROFILES, Stretch
from toolsrv_runtime.profiles.choose import own_profile, own_profiles


def read_stretch(name: str, folder: Path | None = None) -> Stretch:
    """Return what the profile of that name, or in that TOML file, says of positions.

    ``folder`` holds the user's profiles, which go before built-in ones of the same name. What one
    leaves out its base says.

    Raises:
        ProfileError: A TOML file is not acceptable.
        UsageError: There is no such profile, or it says nothing of positions.
    """
    own = own_profile(name, folder)
    if own is None:
        if factor := PROFILES.get(name):
            return Stretch(factor=factor, context=PROFILE_CONTEXT, built_in=name)
        raise UsageError(
            f"there is no profile {name!r} that says how positions are divided",
            hint=f"choose one of: {', '.join(dict.fromkeys([*own_profiles(folder), *PROFILES]))}; "
            "or name a TOML file",
        )
    profile, path = own
    base = PROFILES.get(profile.base)
    scale = profile.rope_freq_scale or (1 / base if base else None)
    context = profile.context or (PROFILE_CONTEXT if base else None)
    if scale is None or context is None:
        raise UsageError(
            f"{path} says nothing of {'rope_freq_scale' if scale is None else 'context'}, and its "
            f"base {profile.base!r} neither",
            hint="add it, or leave --profile out: config.json decides then",
        )
    return Stretch(factor=1 / scale, context=context)
