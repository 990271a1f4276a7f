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
from toolsrv_runtime.profiles.user import profile_files, read_profile

LLAMA_1_POSITIONS = 2048


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


def _named(name: str, facts: ModelFacts, folder: Path | None, why: str) -> Reasoned:
    path = Path(name).expanduser()
    if path.suffix == ".toml" or len(path.parts) > 1:
        return _told(read_profile(path).applied(facts, path), why)
    known = {one.stem: one for one in profile_files(folder)}
    if own := known.get(name):
        return _told(read_profile(own).applied(facts, own), why)
    if build := BUILTIN.get(name):
        return _told(build(facts), why)
    raise ProfileError(
        f"there is no profile {name!r} ({why})",
        hint=f"choose one of: {', '.join(dict.fromkeys([*known, *BUILTIN]))}; or name a TOML file",
    )


def _toolllama(facts: ModelFacts) -> Reasoned:
    base = facts.base_positions
    if base <= LLAMA_1_POSITIONS:
        return _told(
            BUILTIN["toolllama-1"](facts), f"named ToolLLaMA, on a base of {base} positions"
        )
    return _told(BUILTIN["toolllama-2"](facts), f"named ToolLLaMA, on a base of {base} positions")


def _told(reasoned: Reasoned, why: str) -> Reasoned:
    profile, reasons = reasoned
    return profile, {"name": why, **reasons}
