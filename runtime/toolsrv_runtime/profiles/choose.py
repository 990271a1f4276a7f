"""Choose the profile of a model: the named one, else by its file; user profiles in TOML.

The order: the named profile, the one in the file's metadata, the user's profile that matches, the
built-in one that fits. Each choice has a reason. A user profile changes fields of a built-in one.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.files import read_file
from toolsrv_runtime.options import Switch
from toolsrv_runtime.profiles import MAX_CALLS_PER_TURN, MAX_CANDIDATES, FormatName, KvType, Profile
from toolsrv_runtime.profiles.builtin import BUILTIN, MAX_ROPE_FACTOR, ExplainedProfile, ModelFacts

_MOST_BYTES = 1 << 20
SERVER = "remote"
"""The base of profiles for models at servers."""
_ABOUT = frozenset({"base", "match", "architecture"})

TokenCount = Annotated[int, Field(ge=64, le=2**31 - 1)]


class UserProfile(BaseModel):
    """Fields of a TOML file; what is left out is as ``base`` says. Meanings: ``Profile``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: str = "chat"
    match: tuple[str, ...] = ()
    architecture: str = ""
    format: FormatName | None = None
    context: TokenCount | None = None
    rope_freq_scale: float | None = Field(default=None, ge=1 / MAX_ROPE_FACTOR, le=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_reply_tokens: int | None = Field(default=None, ge=1, le=65_536)
    stop: tuple[Annotated[str, Field(min_length=1)], ...] | None = None
    bos: bool | None = None
    kv_type: KvType | None = None
    flash_attention: bool | None = None
    gpu_layers: int | None = Field(default=None, ge=0, le=100_000)
    threads: int | None = Field(default=None, ge=1, le=1024)
    observation_limit: int | None = Field(default=None, ge=1, le=1_000_000)
    candidates: int | None = Field(default=None, ge=1, le=MAX_CANDIDATES)
    grounded: bool | None = None
    anew_after_give_up: bool | None = None
    calls_per_turn: int | None = Field(default=None, ge=1, le=MAX_CALLS_PER_TURN)
    aids: frozenset[str] | None = None
    switches: frozenset[Switch] | None = None
    chat_template: str | None = None

    @field_validator("base")
    @classmethod
    def _is_built_in(cls, value: str) -> str:
        if value not in (*BUILTIN, SERVER):
            raise ValueError(f"is none of {', '.join((*BUILTIN, SERVER))}")
        return value

    @field_validator("format")
    @classmethod
    def _is_of_files(cls, value: FormatName | None) -> FormatName | None:
        if value == "remote":
            raise ValueError(
                'is how servers are asked: base = "remote"; set compact, chat or toolllama for a file'
            )
        return value

    def fits(self, facts: ModelFacts) -> bool:
        """Whether the profile says that it is for this model."""
        if not self.match and not self.architecture:
            return False
        if self.architecture and self.architecture != facts.architecture:
            return False
        names = (facts.name.lower(), facts.filename.lower())
        return not self.match or any(
            fnmatchcase(name, one.lower()) for one in self.match for name in names
        )

    @property
    def given(self) -> dict[str, Any]:
        """The fields that the file sets."""
        return self.model_dump(exclude_none=True, exclude=set(_ABOUT))

    def apply(self, facts: ModelFacts, path: Path) -> ExplainedProfile:
        """Return the profile for a model file, named after its own, with reasons.

        Raises ProfileError where it is for models at servers.
        """
        if self.base == SERVER:
            raise ProfileError(
                f"the profile {path} is for models at servers", hint="name another with --profile"
            )
        profile, reasons = BUILTIN[self.base](facts)
        given = self.given
        for key in given:
            before = next((one for one in reasons if key.startswith(one)), None)
            if before is not None and before != key:
                reasons[key] = reasons.pop(before)
            reasons[key] = f"set in {path}"
        if self.chat_template is not None:
            given["chat_template_from"] = str(path)
        return profile.model_copy(update={**given, "name": path.stem}), reasons


def read_profile(path: Path) -> UserProfile:
    """Return the profile in a TOML file.

    Raises:
        ProfileError: It cannot be read, or a key or value is not acceptable; names them.
    """
    try:
        text = read_file(path, _MOST_BYTES).decode()
        return UserProfile.model_validate(tomllib.loads(text))
    except OSError as error:
        raise ProfileError(
            f"cannot read the profile {path}: {error.strerror}",
            hint=f"name a TOML file, or one of: {', '.join(BUILTIN)}",
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path} is not TOML: {error}", hint="mend it at that place") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(one) for one in first["loc"])
        raise ProfileError(
            f"{path}: {place} = {str(first['input'])[:80]!r}: {_reason(first)}",
            hint=f"known are: {', '.join(UserProfile.model_fields)}",
        ) from None


def _reason(error: ErrorDetails) -> str:
    """Say what is wrong with a value in the words of TOML, not of Python."""
    if wanted := _EXPECTED.get(error["type"]):
        return wanted
    said = error["msg"].removeprefix("Value error, ")
    return said.replace("Input should be", "must be", 1)


_EXPECTED = {
    "extra_forbidden": "unknown key",
    "tuple_type": "must be a list of texts",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
}


def profile_files(folder: Path | None) -> list[Path]:
    """Return the TOML files in the user's folder of profiles, by name; it need not exist."""
    return sorted(folder.glob("*.toml")) if folder is not None else []


LLAMA_1_POSITIONS = 2048

_BY_MACHINE = {
    "gpu_layers": "all that fit a GPU, where llama.cpp has one",
    "threads": "by the processor's cores and the model's size",
}


def choose_profile(
    facts: ModelFacts, *, asked: str = "", folder: Path | None = None
) -> ExplainedProfile:
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
        if own.base != SERVER and own.fits(facts):
            return _explained(own.apply(facts, path), f"{path} says that it is for this model")
    if facts.compact_tokens:
        return _explained(
            BUILTIN["compact"](facts), "the vocabulary has the compact format's tokens"
        )
    if facts.is_toolllama:
        return _toolllama(facts)
    return _explained(BUILTIN["chat"](facts), "no other profile fits: any instruct model")


def adapt_server_profile(
    profile: Profile, model: str, *, asked: str = "", folder: Path | None = None
) -> Profile:
    """Return the profile of a model that is no file with what the user's profile changes.

    That is the one that is ``asked`` for, else the first of ``folder`` that matches the model's
    name; its base is ``remote``.

    Raises:
        ProfileError: a TOML file is not acceptable.
    """
    facts = ModelFacts({"general.name": model}, model, 0, compact_tokens=False)
    if asked:
        named = find_user_profile(asked, folder)
        found = [named[0]] if named else []
    else:
        found = [one for path in profile_files(folder) if (one := read_profile(path)).fits(facts)]
    own = next((one for one in found if one.base == SERVER), None)
    return profile if own is None else profile.model_copy(update=own.given)


def find_user_profile(name: str, folder: Path | None) -> tuple[UserProfile, Path] | None:
    """Return the user's profile of that name, or in that TOML file, and where it is.

    Raises:
        ProfileError: The TOML file is not acceptable.
    """
    path = Path(name).expanduser()
    if path.suffix != ".toml" and len(path.parts) < 2:
        known = user_profiles(folder)
        if name not in known:
            return None
        path = known[name]
    return read_profile(path), path


def user_profiles(folder: Path | None) -> dict[str, Path]:
    """Return the user's profiles by name."""
    return {one.stem: one for one in profile_files(folder)}


def check_profile_name(name: str, folder: Path | None) -> None:
    """Raise ProfileError where no profile has that name, or its TOML file is not acceptable."""
    if find_user_profile(name, folder) is None and name not in BUILTIN:
        raise _unknown(name, folder, "asked for")


def _unknown(name: str, folder: Path | None, why: str) -> ProfileError:
    known = ", ".join(dict.fromkeys([*user_profiles(folder), *BUILTIN]))
    return ProfileError(
        f"there is no profile {name!r} ({why})",
        hint=f"choose one of: {known}; or name a TOML file",
    )


def _named(name: str, facts: ModelFacts, folder: Path | None, why: str) -> ExplainedProfile:
    if own := find_user_profile(name, folder):
        profile, path = own
        return _explained(profile.apply(facts, path), why)
    if build := BUILTIN.get(name):
        return _explained(build(facts), why)
    raise _unknown(name, folder, why)


def _toolllama(facts: ModelFacts) -> ExplainedProfile:
    base = facts.base_positions
    if base <= LLAMA_1_POSITIONS:
        return _explained(
            BUILTIN["toolllama-1"](facts), f"named ToolLLaMA, on a base of {base} positions"
        )
    return _explained(
        BUILTIN["toolllama-2"](facts), f"named ToolLLaMA, on a base of {base} positions"
    )


def _explained(reasoned: ExplainedProfile, why: str) -> ExplainedProfile:
    profile, reasons = reasoned
    return profile, {"name": why, **_BY_MACHINE, **reasons}
