"""GGUF files: what one is, how it is run, and loading it.

The only module that turns a path into an engine. llama.cpp itself reads the file, so what this
says is what the engine sees.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.profile import Profile, choose

SHIPPED_MODEL = Path(__file__).parent / "models" / "nano.q8_0.gguf"

SMALL_MODEL_BYTES = 64_000_000
"""Up to this size one thread evaluates a model."""

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_VALUE_BYTES = 1 << 16


class ModelInfo(BaseModel):
    """What a GGUF file holds, the profile chosen for it and why.

    ``size_bytes`` is the file's, ``parameters`` a count; ``context_train`` is in tokens.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    name: str
    architecture: str
    description: str
    parameters: int
    size_bytes: int
    context_train: int
    vocabulary: int
    chat_template: bool
    profile: Profile
    reasons: dict[str, str]


def inspect_model(path: Path | None = None) -> ModelInfo:
    """Return what the file (default: the model that ships) is, without evaluating anything.

    Raises:
        ModelError: no such file, not a GGUF, or one that llama.cpp refuses.
    """
    path = path or SHIPPED_MODEL
    _check_header(path)
    import llama_cpp  # noqa: PLC0415 - heavy

    from toolsrv_runtime.engine.llama import open_model  # noqa: PLC0415 - heavy

    model = open_model(path, repack=False)  # with its tensors: a damaged file is found now
    try:
        metadata = _metadata(llama_cpp, model)
        vocab = llama_cpp.llama_model_get_vocab(model)
        trained = llama_cpp.llama_model_n_ctx_train(model)
        compact = _has_token(llama_cpp, vocab, " use #1")
        profile, reasons = choose(
            metadata, filename=path.name, trained_context=trained, compact_tokens=compact
        )
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(model, buffer, 256)
        return ModelInfo(
            path=str(path),
            name=metadata.get("general.name", path.stem),
            architecture=metadata.get("general.architecture", "unknown"),
            description=buffer.value.decode(errors="replace"),
            parameters=llama_cpp.llama_model_n_params(model),
            size_bytes=path.stat().st_size,
            context_train=trained,
            vocabulary=llama_cpp.llama_vocab_n_tokens(vocab),
            chat_template="tokenizer.chat_template" in metadata,
            profile=profile,
            reasons=reasons,
        )
    finally:
        llama_cpp.llama_model_free(model)


def load_engine(
    path: Path | None = None, *, threads: int | None = None, grounded: bool | None = None
) -> tuple[Engine, Profile]:
    """Load a GGUF (default: the one that ships) under the profile that fits it. Blocks.

    ``grounded`` overrides what the profile says of it.

    Raises:
        ModelError: see ``inspect_model``.
    """
    from toolsrv_runtime.engine.llama import LlamaEngine  # noqa: PLC0415 - heavy

    path = path or SHIPPED_MODEL
    profile = inspect_model(path).profile
    if grounded is not None:
        profile = profile.model_copy(update={"grounded": grounded})
    engine = LlamaEngine(
        path,
        context=profile.context,
        threads=threads or _threads(path),
        rope_freq_scale=profile.rope_freq_scale,
    )
    return engine, profile


def _threads(path: Path) -> int:
    """Return how many threads to evaluate with.

    One for a small model: its threads would mostly wait for each other, and on busy cores two of
    them were measured at a hundredth of the speed of one.
    """
    small = path.stat().st_size < SMALL_MODEL_BYTES
    return 1 if small else max(1, len(os.sched_getaffinity(0)))


def _check_header(path: Path) -> None:
    hint = "give the path of a GGUF file, or leave --model out for the model that ships"
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except FileNotFoundError:
        raise ModelError(f"there is no model file {str(path)!r}", hint=hint) from None
    except OSError as error:
        raise ModelError(
            f"the model file {str(path)!r} cannot be read: {error.strerror}", hint=hint
        ) from None
    if head[:4] != _MAGIC:
        raise ModelError(f"{str(path)!r} is not a GGUF file", hint=hint)
    version = int.from_bytes(head[4:8], "little")
    if version not in _VERSIONS:
        raise ModelError(
            f"{str(path)!r} is GGUF version {version}; versions 2 and 3 can be read",
            hint="convert the model anew with a current llama.cpp",
        )


def _metadata(llama_cpp: Any, model: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    buffer = ctypes.create_string_buffer(_VALUE_BYTES)
    for index in range(llama_cpp.llama_model_meta_count(model)):
        llama_cpp.llama_model_meta_key_by_index(model, index, buffer, _VALUE_BYTES)
        key = buffer.value.decode(errors="replace")
        llama_cpp.llama_model_meta_val_str_by_index(model, index, buffer, _VALUE_BYTES)
        found[key] = buffer.value.decode(errors="replace")
    return found


def _has_token(llama_cpp: Any, vocab: Any, text: str) -> bool:
    """Whether ``text`` is one token of its own."""
    data = text.encode()
    buffer = (llama_cpp.llama_token * (len(data) + 2))()
    count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, True)
    return bool(count == 1)
