"""A user's own profiles: TOML files that change fields of a built-in one.

``match`` lists patterns (``*`` and ``?``, any case) for the model's name and its file's name;
``architecture`` is GGUF's. A profile with neither is used where it is asked for by name.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from toolsrv_runtime.errors import ProfileError
from toolsrv_runtime.file_in import read_file
from toolsrv_runtime.options import Switch
from toolsrv_runtime.profile import MOST_CALLS_PER_TURN, MOST_CANDIDATES, FormatName, KvType
from toolsrv_runtime.profiles.builtin import BUILTIN, Reasoned
from toolsrv_runtime.profiles.facts import MOST_STRETCHED, ModelFacts

_MOST_BYTES = 1 << 20
_ABOUT = frozenset({"base", "match", "architecture"})

Tokens = Annotated[int, Field(ge=64, le=2**31 - 1)]


class UserProfile(BaseModel):
    """Fields of a TOML file; what is left out is as ``base`` says. Meanings: ``Profile``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: str = "chat"
    match: tuple[str, ...] = ()
    architecture: str = ""
    format: FormatName | None = None
    context: Tokens | None = None
    rope_freq_scale: float | None = Field(default=None, ge=1 / MOST_STRETCHED, le=1)
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
    candidates: int | None = Field(default=None, ge=1, le=MOST_CANDIDATES)
    grounded: bool | None = None
    anew_after_give_up: bool | None = None
    calls_per_turn: int | None = Field(default=None, ge=1, le=MOST_CALLS_PER_TURN)
    aids: frozenset[str] | None = None
    switches: frozenset[Switch] | None = None
    chat_template: str | None = None

    @field_validator("base")
    @classmethod
    def _is_built_in(cls, value: str) -> str:
        if value not in BUILTIN:
            raise ValueError(f"is none of {', '.join(BUILTIN)}")
        return value

    @field_validator("format")
    @classmethod
    def _is_of_files(cls, value: FormatName | None) -> FormatName | None:
        if value == "remote":
            raise ValueError(
                "is how servers are asked, and a profile is for a model file; "
                "set compact, chat or toolllama"
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

    def applied(self, facts: ModelFacts, path: Path) -> Reasoned:
        """Return the profile for a model, named after its file, with reasons."""
        profile, reasons = BUILTIN[self.base](facts)
        given: dict[str, Any] = self.model_dump(exclude_none=True, exclude=set(_ABOUT))
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
    if wanted := _WANTED.get(error["type"]):
        return wanted
    said = error["msg"].removeprefix("Value error, ")
    return said.replace("Input should be", "must be", 1)


_WANTED = {
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
