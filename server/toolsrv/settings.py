"""Settings, and the layer that each value comes from.

A flag wins over a ``TOOLSRV_*`` environment variable, that over the TOML file, that over the
default. Nothing here opens a model, a store or a socket.

Where the program writes: everything below ``data_dir``. The TOML file stands in the user's
configuration folder; ``TOOLSRV_CONFIG`` names another file, and whoever moves the data folder
(``--data-dir`` or ``TOOLSRV_DATA_DIR``) moves the file with it, to ``<data_dir>/config.toml``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import (
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from toolsrv import config_file, model_list
from toolsrv.config_file import CONFIG_VARIABLE, PREFIX, config_path
from toolsrv.solve_options import RUN_OPTIONS
from toolsrv_registry.errors import UsageError

TOKEN_VARIABLE = f"{PREFIX}TOKEN"
KEY_VARIABLE = f"{PREFIX}ENGINE_KEY"
"""The API key for model servers; no setting, so that no file and no listing has it."""
KEY_PREFIX = f"{PREFIX}KEY_"
_PATHS = ("data_dir", "model", "upload_folder", "simulate")
_MODELS = ("model", "simulate")
SIMULATIONS = ("off", "schema", "model")
Strategy = Literal["dfsdt", "dfs", "react", "cot", "plan"]
Mode = Literal["live", "record", "replay", "offline"]

_PROFILE = "in a profile for the model (docs/model-files.md)"
REMOVED: Mapping[str, str] = {
    **{
        key: f"--{key.replace('_', '-')} of solve, options.{key} of solve_task"
        for key in RUN_OPTIONS
    },
    "switches": f"--switch of solve, options.switches of solve_task, or switches {_PROFILE}",
    "aids": f"--aids of solve, or aids {_PROFILE}",
    "adapter": "toolsrv model merge BASE ADAPTER, or --adapter of solve and serve",
    "profile": "match in a profile of your own (docs/model-files.md), or --profile",
    "grounded": f"grounded {_PROFILE}",
    "calls_per_turn": f"calls_per_turn {_PROFILE}",
    "threads": f"--threads of solve, or threads {_PROFILE}",
    "engine_model": "the setting model, with the name behind the address: http://HOST/v1#NAME",
    "engine_timeout": "the setting max_seconds: a model server may be silent for half of it",
    "simulator": "the setting simulate, which names the model itself",
    "faithful": "--faithful of solve and lab eval",
    "faithful_in": "--faithful-in of solve and lab eval",
    "states_mib": "nothing: the beginnings of prompts take 1 GiB of disk at most",
    "http_port": "--port of serve --http and connect --http",
    "wait_s": "wait_s of solve_task",
}
"""Settings of earlier releases, and what to use instead. In a file or a variable they are noted."""


def _accept(parse: Callable[[str], object], value: str) -> None:
    """Raise ValueError, as pydantic wants it, where a value cannot be read."""
    try:
        parse(value)
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from error


class Settings(BaseSettings):
    """Every setting that is kept, with its default, its limits and what it means.

    What matters to one run only is no setting: see ``CommandSettings`` and ``solve_options``.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    data_dir: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("toolsrv", appauthor=False)),
        description="Folder for everything the program writes.",
    )
    model: Path | str | None = Field(
        default=None,
        description="GGUF file of the model, or its name on the list (toolsrv model list); "
        "empty: the one that ships. Or addresses of OpenAI-compatible servers, with # before the "
        "name of a model there, scripted:FILE, or sampling (the MCP client's own model).",
    )
    strategy: Strategy = Field(
        default="dfsdt",
        description="Search: a tree (also ranked), one chain, chains until one answers, or a tree "
        "for each subtask (plan).",
    )
    max_seconds: float = Field(
        default=120.0, gt=0, le=86_400, allow_inf_nan=False, description="Time for one solve."
    )
    max_calls: int = Field(default=30, ge=1, le=10_000, description="API calls in one solve.")
    max_tokens: int = Field(
        default=20_000, ge=1, le=10_000_000, description="Generated tokens in one solve."
    )
    mode: Mode = Field(
        default="live",
        description="Calls: over the network, the same and recorded, from recordings only, or only "
        "of the catalog that ships.",
    )
    simulate: str = Field(
        default="off",
        max_length=2_000,
        description="Invent what nobody here answers, instead of asking the network: off; schema, by "
        "response schema; model, by the setting model; or another model: a GGUF file, its name, a "
        "server's address. Results say simulated.",
    )
    calls: str = Field(
        default="",
        description="Rules beyond reading, the last one wins: allow POST api.example.com, "
        "allow PUT localhost:8080, deny * catalog:NAME, ask GET, allow PAID HOST.",
    )
    own_hosts: str = Field(
        default="", description="Hosts of your own, at any address, with commas: localhost:8080."
    )
    upload_folder: Path | None = Field(
        default=None,
        description="Folder whose files an MCP client or a model may send, as @PATH; empty: none.",
    )
    call_seconds: float = Field(
        default=20.0, gt=0, le=600, allow_inf_nan=False, description="Time for one API call."
    )
    download_bytes: int = Field(
        default=2_000_000_000, ge=1, description="Most bytes of a response that is saved whole."
    )
    calls_per_second: float = Field(
        default=5.0, ge=0, le=1_000, allow_inf_nan=False, description="To one host; 0: no limit."
    )
    calls_per_day: str = Field(
        default="",
        max_length=20_000,
        description="Most calls per host and day (UTC): 500, api.example.com=50, "
        "catalog:NAME=200; 0 or empty: no limit.",
    )
    parallel: int = Field(
        default=4, ge=1, le=16, description="Runs that a server lets work at once."
    )
    gpu_layers: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="Layers of the model on a GPU; unset: the profile's, else all that fit.",
    )
    chroma_url: str = Field(default="", description="A Chroma server; empty: the embedded one.")
    encoder: str = Field(
        default="",
        description="A sentence-transformers model, by folder or hub name; empty: the one that ships.",
    )
    keep_runs: int = Field(
        default=200, ge=0, le=100_000, description="Latest finished runs kept on disk; 0: none."
    )

    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def come_from(self, origins: Mapping[str, str]) -> Self:
        """Keep where each value came from, for who has only the settings; return them."""
        self._origins = origins
        return self

    def origin(self, key: str) -> str:
        """Return where a value came from, as ``Loaded.origins`` has it; empty where unknown."""
        return self._origins.get(key, "")

    @field_validator("model", mode="before")
    @classmethod
    def _empty_is_shipped(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        if value in ("", model_list.SHIPPED):
            return None
        if model_list.is_special(value):
            return value
        named = None
        if model_list.is_name(value) and "data_dir" in info.data:
            named = model_list.resolve(value, info.data["data_dir"])
        return named or Path(value)

    @field_validator("data_dir", mode="before")
    @classmethod
    def _names_a_folder(cls, value: Any) -> Any:
        if isinstance(value, str) and not value.strip():
            raise ValueError("it names no folder")
        return value

    @field_validator("simulate", mode="before")
    @classmethod
    def _names_a_model(cls, value: Any, info: ValidationInfo) -> Any:
        text = str(value) if isinstance(value, Path) else value
        if not isinstance(text, str) or text in SIMULATIONS or model_list.is_special(text):
            return text
        if not model_list.is_name(text):
            return str(Path(text).expanduser().absolute())
        if "data_dir" in info.data and model_list.resolve(text, info.data["data_dir"]) is None:
            raise ValueError("it is none of off, schema, model, and names no model")
        return text

    @field_validator("data_dir", "model")
    @classmethod
    def _absolute(cls, value: Path | str | None) -> Path | str | None:
        return value.expanduser().absolute() if isinstance(value, Path) else value

    @field_validator("calls")
    @classmethod
    def _is_rules(cls, value: str) -> str:
        if value:
            from toolsrv_runtime.calls.policy import parse_rules

            _accept(parse_rules, value)
        return value

    @field_validator("calls_per_day", mode="before")
    @classmethod
    def _is_limits(cls, value: Any) -> Any:
        value = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if value and isinstance(value, str):
            from toolsrv_runtime.calls.rate_limits import DailyLimits

            _accept(DailyLimits.parse, value)
        return value

    @field_validator("own_hosts")
    @classmethod
    def _names_hosts(cls, value: str) -> str:
        if value:
            from toolsrv_runtime.calls.addresses import parse_own_hosts

            _accept(parse_own_hosts, value)
        return value

    @field_validator("chroma_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only what ``load`` merged: it also keeps each value's origin."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


class CommandSettings(Settings):
    """The settings in force, and how the options of one command have its model run.

    The options are in no file and no variable.
    """

    adapter: Path | None = Field(
        default=None, description="LoRA adapter of the model's file, GGUF or PEFT; empty: none."
    )
    profile: str = Field(
        default="",
        description="How the model is run: a profile by name or TOML file; empty: by the model.",
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Model threads; 0: the profile's, else by the processor's cores.",
    )
    faithful: str = Field(
        default="",
        description="Differences in which ToolBench is followed, with commas; all: in each.",
    )

    @field_validator("adapter", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        if not isinstance(value, str | Path):
            return value
        return Path(value).expanduser().absolute() if value != "" else None

    @field_validator("faithful")
    @classmethod
    def _names_differences(cls, value: str) -> str:
        if value:
            from toolsrv_runtime.toolbench.reference import parse_reference_mode

            _accept(parse_reference_mode, value)
        return value


@dataclass(frozen=True)
class Loaded:
    """The settings in force. ``origins`` says for every key where its value came from.

    ``note`` names settings of earlier releases that were found and have no effect, "" without.
    """

    settings: CommandSettings
    origins: Mapping[str, str]
    path: Path
    note: str = ""


def profiles_folder(data_dir: Path) -> Path:
    """Return the folder of the user's model profiles, beside the settings file."""
    moved = data_dir != Path(platformdirs.user_data_dir("toolsrv", appauthor=False)).absolute()
    return config_path({"data_dir": data_dir} if moved else None).parent / "profiles"


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def load(flags: Mapping[str, Any] | None = None, *, origin: Callable[[str], str] = _flag) -> Loaded:
    """Merge flags (``None`` means not given), environment, file and defaults.

    ``origin`` names the place of a flag in errors and in ``Loaded.origins``.

    Raises:
        UsageError: A value is not acceptable or the file has an unknown key; names the place.
    """
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    path = config_path(given)
    kept, removed = _from_file(path)
    layers: tuple[tuple[dict[str, Any], Callable[[str], str]], ...] = (
        (kept, lambda _: str(path)),
        (_from_environment(), lambda key: f"{PREFIX}{key.upper()}"),
        (given, origin),
    )
    values: dict[str, Any] = {}
    origins = dict.fromkeys(CommandSettings.model_fields, "default")
    for layer, place in layers:
        for key, value in layer.items():
            values[key], origins[key] = value, place(key)
    try:
        settings = CommandSettings.model_validate(values).come_from(origins)
    except ValidationError as error:
        raise _unacceptable(error, origins) from error
    found = {**dict.fromkeys(removed, str(path)), **_removed_variables()}
    told = "; ".join(f"{key} ({place}): use {REMOVED[key]}" for key, place in found.items())
    note = f"without effect, as these are settings no longer: {told}" if found else ""
    return Loaded(settings, origins, path, note)


def parse_value(key: str, text: str, origin: str, flags: Mapping[str, Any] | None = None) -> Any:
    """Return ``text`` as the setting's TOML value; ``flags`` may name the data folder.

    Raises:
        UsageError: No such setting, or the text is not acceptable for it.
    """
    check_key(key, origin)
    try:
        given = {"data_dir": config_file.data_folder(flags), key: text}
        value = getattr(Settings.model_validate(given), key)
    except ValidationError as error:
        raise _unacceptable(error, {key: origin}) from error
    if key == "model" and model_list.is_name(text):
        return "" if value is None else text
    return ("" if value is None else str(value)) if key in _PATHS else value


def check_key(key: str, origin: str, kind: type[Settings] = Settings) -> None:
    """Raise a UsageError that names ``origin`` when ``kind`` has no such setting."""
    known = kind.model_fields
    if key in known:
        return
    if key in REMOVED:
        raise UsageError(f"{origin}: {key!r} is no setting any more", hint=f"use {REMOVED[key]}")
    near = difflib.get_close_matches(key, known, n=1)
    raise UsageError(
        f"{origin}: unknown setting {key!r}",
        hint=(f"did you mean {near[0]!r}? " if near else "") + f"Known: {', '.join(known)}",
    )


def unknown_variables() -> tuple[str, ...]:
    """Return set ``TOOLSRV_*`` variables that mean nothing: most likely misspelt."""
    known = {f"{PREFIX}{key.upper()}" for key in Settings.model_fields}
    known |= {CONFIG_VARIABLE, TOKEN_VARIABLE, KEY_VARIABLE, *_removed_variables().values()}
    return tuple(
        sorted(
            name
            for name in os.environ
            if name.startswith(PREFIX) and name not in known and not name.startswith(KEY_PREFIX)
        )
    )


def _removed_variables() -> dict[str, str]:
    """Return the removed settings that a variable sets, with its name."""
    names = {key: f"{PREFIX}{key.upper()}" for key in REMOVED}
    return {key: name for key, name in names.items() if os.environ.get(name)}


def _from_environment() -> dict[str, Any]:
    found: dict[str, Any] = EnvSettingsSource(Settings)()
    return found


def _from_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the file, and the removed settings that it names."""
    values = config_file.read(path)
    removed = [key for key in values if key in REMOVED]
    for key in removed:
        del values[key]
    for key in values:
        check_key(key, str(path))
    for key in _PATHS:  # relative to the file, not to wherever one stands
        text = values.get(key)
        if isinstance(text, str) and text and not (key in _MODELS and _is_no_path(text)):
            values[key] = path.parent / Path(text).expanduser()
    return values, removed


def _is_no_path(model: str) -> bool:
    return model_list.is_name(model) or model_list.is_special(model)


def _unacceptable(error: ValidationError, origins: Mapping[str, str]) -> UsageError:
    first = error.errors(include_url=False)[0]
    key = str(first["loc"][0])
    reason = first["msg"].removeprefix("Value error, ")
    return UsageError(
        f"{origins.get(key, key)}: {key} = {str(first['input'])[:80]!r} is not acceptable: "
        f"{reason[:1].lower()}{reason[1:]}",
        hint=f"{key}: {_accepted(key)}",
    )


def _accepted(key: str) -> str:
    """Say in words what a setting accepts, from its own schema."""
    field = CommandSettings.model_fields[key]
    schema = TypeAdapter(field.rebuild_annotation()).json_schema()
    words = [field.description or ""]
    if "enum" in schema:
        words.append("One of: " + ", ".join(schema["enum"]) + ".")
    if "minimum" in schema or "maximum" in schema:
        low = schema.get("minimum", f"more than {schema.get('exclusiveMinimum')}")
        words.append(f"A number: {low} to {schema['maximum']}.")
    return " ".join(words)
