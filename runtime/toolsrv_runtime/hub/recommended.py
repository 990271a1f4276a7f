"""Recommended models by short names: the table in ``recommended.toml``, and checkpoints of it.

Says which file of which repository a name stands for. Knows no sizes and no digests: the hub tells
those when a file is brought.
"""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from toolsrv_registry.errors import DataError
from toolsrv_runtime.hub.listing import RemoteFile

QuantType = Literal["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "F16"]

_SMALL = frozenset(
    {
        "config.json",
        "tokenizer.model",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "generation_config.json",
    }
)
_SAFE, _TORCH = ".safetensors", ".bin"


class Recommended(BaseModel):
    """A model for tool calls on a machine with ``memory_gb`` GB.

    ``file`` is a GGUF file of ``repo``; without one the repository is a checkpoint, which
    ``profile`` converts and ``type`` quantises.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    memory_gb: int
    repo: str
    file: str = ""
    profile: str = ""
    type: QuantType = "Q4_K_M"
    licence: str
    note: str


@functools.cache
def recommended() -> tuple[Recommended, ...]:
    """Return the table, by memory."""
    text = files("toolsrv_runtime.hub").joinpath("recommended.toml").read_text("utf-8")
    found = TypeAdapter(list[Recommended]).validate_python(tomllib.loads(text)["model"])
    return tuple(sorted(found, key=lambda one: one.memory_gb))


def short_name(text: str) -> Recommended | None:
    """Return the model that a short name stands for, in any case of letters; else None."""
    return next((one for one in recommended() if one.name == text.lower()), None)


def checkpoint_files(repo: str, found: list[RemoteFile]) -> list[RemoteFile]:
    """Return what a conversion needs of a checkpoint's files, small ones first.

    Of weights in two forms safetensors are taken.

    Raises:
        DataError: The repository holds no checkpoint.
    """
    whole = [one for one in found if "/" not in one.name]
    weights = [one for one in whole if one.name.endswith(_SAFE)] or [
        one for one in whole if one.name.endswith(_TORCH) and one.name.startswith("pytorch_model")
    ]
    small = [one for one in whole if one.name in _SMALL or one.name.endswith(".index.json")]
    if not weights or not any(one.name == "config.json" for one in small):
        raise DataError(
            f"{repo} holds no checkpoint: no config.json, or no weights",
            hint="look at its page on the hub",
        )
    return small + weights
