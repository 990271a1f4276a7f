"""Which profile a model gets: the one asked for, else by its file, and why.

In this order: what the setting ``profile`` names; what the file's metadata names
(``toolsrv.profile``); the user's profile that says it is for this model; the compact format's
tokens; the name ToolLLaMA; ``chat``.
"""

from __future__ import annotations

from pathlib import Path

from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.profiles.builtin import BUILTIN, Reasoned
from toolsrv_runtime.profiles.facts import ModelFacts
from toolsrv_runtime.profiles.user import UserProfile, profile_files, read_profile

LLAMA_1_POSITIONS = 2048

_BY_MACHINE = {
    "gpu_layers": "all that fit a GPU, where llama.cpp has one",
    "threads": "by the processor's cores and the model's size",
}


def choose(facts: ModelFacts, *, asked: str = "", folder: Path | None = None) -> Reasoned:
    """Return the profile for a model and the reason for each choice; ``name`` has one too.

    ``asked`` is the name of a profile or a TOML file; ``folder`` holds the user's profiles, which
    go before built-in ones of the same name.

    Raises:
        ProfileError: There is no such profile, or a TOML file is not acceptable.
    """
    if asked:
        return _named(asked, facts, folder, "asked for")
    if said := facts.metadata.get("toolsrv.profile"):
        return _named(said, facts, folder, "named in the file's metadata")
    for path in profile_files(folder):
        own = read_profile(path)
        if own.fits(facts):
            return _told(own.applied(facts, path), f"{path} says that it is for this model")
    if facts.compact_tokens:
        return _told(BUILTIN["compact"](facts), "the vocabulary has the compact format's tokens")
    if facts.is_toolllama:
        return _toolllama(facts)
    return _told(BUILTIN["chat"](facts), "no other profile fits: any instruct model")


def own_profile(name: str, folder: Path | None) -> tuple[UserProfile, Path] | None:
    """Return the user's profile of that name, or in that TOML file, and where it is.

    Raises:
        ProfileError: The TOML file is not acceptable.
    """
    path = Path(name).expanduser()
    if path.suffix != ".toml" and len(path.parts) < 2:
        known = own_profiles(folder)
        if name not in known:
            return None
        path = known[name]
    return read_profile(path), path


def own_profiles(folder: Path | None) -> dict[str, Path]:
    """Return the user's profiles by name."""
    return {one.stem: one for one in profile_files(folder)}


def check_name(name: str, folder: Path | None) -> None:
    """Raise ProfileError where no profile has that name, or its TOML file is not acceptable."""
    if own_profile(name, folder) is None and name not in BUILTIN:
        raise _unknown(name, folder, "asked for")


def _unknown(name: str, folder: Path | None, why: str) -> ProfileError:
    known = ", ".join(dict.fromkeys([*own_profiles(folder), *BUILTIN]))
    return ProfileError(
        f"there is no profile {name!r} ({why})",
        hint=f"choose one of: {known}; or name a TOML file",
    )


def _named(name: str, facts: ModelFacts, folder: Path | None, why: str) -> Reasoned:
    if own := own_profile(name, folder):
        profile, path = own
        return _told(profile.applied(facts, path), why)
    if build := BUILTIN.get(name):
        return _told(build(facts), why)
    raise _unknown(name, folder, why)


def _toolllama(facts: ModelFacts) -> Reasoned:
    base = facts.base_positions
    if base <= LLAMA_1_POSITIONS:
        return _told(
            BUILTIN["toolllama-1"](facts), f"named ToolLLaMA, on a base of {base} positions"
        )
    return _told(BUILTIN["toolllama-2"](facts), f"named ToolLLaMA, on a base of {base} positions")


def _told(reasoned: Reasoned, why: str) -> Reasoned:
    profile, reasons = reasoned
    return profile, {"name": why, **_BY_MACHINE, **reasons}
