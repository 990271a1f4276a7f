"""The model of the settings, loaded: a GGUF file, or what ``models`` knows.

Knows which settings a model needs; imports llama.cpp only when it loads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolsrv.memory import SOLVING
from toolsrv.merged import Progress, is_peft, merged_model
from toolsrv.model_file import check_adapter, check_there
from toolsrv.models import is_special, load_special
from toolsrv.settings import Settings, profiles_folder

if TYPE_CHECKING:  # numpy, httpx and llama.cpp come along
    from toolsrv_runtime.contract.chat import ChatModel
    from toolsrv_runtime.engine.base import Engine
    from toolsrv_runtime.profile import Profile


def load_model(settings: Settings) -> tuple[Engine | ChatModel, Profile]:
    """Return the model of the settings, ready, and how it is run. Blocks.

    Raises:
        DataError: the model cannot be used, or its server does not answer.
        NotFoundError: there is no such file.
        UsageError: the MCP client's own model is meant.
    """
    if isinstance(settings.model, str):
        model, profile = load_special(
            settings.model,
            engine_model=settings.engine_model,
            silence_s=settings.engine_timeout,
            within_s=settings.max_seconds,
        )
    else:
        model, profile = _load_file(settings, settings.model, settings.origin("model"))
    if settings.calls_per_turn is None:
        return model, profile
    return model, profile.model_copy(update={"calls_per_turn": settings.calls_per_turn})


def load_simulator(settings: Settings) -> tuple[Engine | ChatModel, Profile]:
    """Return the model of the setting ``simulator``, as ``load_model`` does."""
    name = settings.simulator
    if not is_special(name):
        plain = settings.model_copy(update={"profile": "", "adapter": None})
        return _load_file(plain, Path(name).expanduser(), settings.origin("simulator"))
    return load_model(settings.model_copy(update={"model": name, "profile": ""}))


def _load_file(settings: Settings, path: Path | None, origin: str) -> tuple[Engine, Profile]:
    from toolsrv_runtime.gguf_models import load_engine

    if path is not None:
        check_there(path, origin)
    check_adapter(settings)
    path, adapter = with_adapter(settings, path)
    return load_engine(
        path,
        threads=settings.threads or None,
        gpu_layers=settings.gpu_layers,
        grounded=settings.grounded,
        profile=settings.profile,
        profiles=profiles_folder(settings.data_dir),
        states=settings.data_dir / "states" if settings.states_mib else None,
        states_bytes=settings.states_mib << 20,
        program=SOLVING.memory(),
        adapter=adapter,
    )


def with_adapter(
    settings: Settings, path: Path | None, progress: Progress | None = None
) -> tuple[Path | None, Path | None]:
    """Return the model file to open, and the adapter to apply to it, None where it is merged.

    Blocks while a PEFT adapter is merged for the first time. Raises as ``merged_model``.
    """
    adapter = settings.adapter
    if adapter is None or not is_peft(adapter):
        return path, adapter
    return merged_model(path, adapter, settings.data_dir, progress), None
