"""The model of the settings: checked, merged with its adapter, loaded.

A check loads nothing and says where the name comes from. A PEFT adapter is merged into its base
once and kept in the data folder, since llama.cpp applies GGUF adapters only. The name of a merged
file holds the digests of its sources; the least used files are deleted. Imports llama.cpp only when
a model is loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsrv.config_file import exclusive_lock, write_atomic
from toolsrv.memory import SOLVING
from toolsrv.model_list import SHIPPED, file_of, is_special, load_special, script_path
from toolsrv.settings import profiles_folder
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_registry.file_names import portable_name
from toolsrv_runtime.files import describe_absence

if TYPE_CHECKING:
    from toolsrv.settings import CommandSettings
    from toolsrv_runtime.contract.models import ChatModel, Engine
    from toolsrv_runtime.profiles import Profile

_ADAPTER_HINT = "name a LoRA adapter: GGUF, or a PEFT folder"


def check_model(settings: CommandSettings, *, origin: str | None = None) -> None:
    """Look at the model's file: that it is there and begins like a GGUF file. Takes no time.

    A profile that is asked for is looked for too. ``origin`` says where the model's name stands,
    where that is no option of its own; None: as the settings have it.

    Raises:
        NotFoundError: there is no such file, or no such script.
        ModelError: the file is no GGUF file.
        DataError: it cannot be looked at.
        ProfileError: there is no such profile, or it is not acceptable.
    """
    if settings.profile:
        from toolsrv_runtime.profiles.choose import check_profile_name

        check_profile_name(settings.profile, profiles_folder(settings.data_dir))
    model = settings.model
    origin = settings.origin("model") if origin is None else origin
    if isinstance(model, str):
        if (script := script_path(model)) is not None:
            _check("the script", script, origin)
            if not script.is_file():
                raise DataError(
                    f"the script {script} is no file but a "
                    f"{'folder' if script.is_dir() else 'pipe, socket or device'}",
                    hint=_hint(origin),
                )
    elif model is not None:
        check_there(model, origin)
        from toolsrv_runtime.gguf_header import check_start

        check_start(model)
    check_adapter(settings)


def check_adapter(settings: CommandSettings) -> None:
    """Look at the LoRA adapter of the settings: that it is there and for a model file.

    Raises:
        NotFoundError: there is none.
        AdapterError: it is no LoRA adapter.
        DataError: it cannot be looked at.
        UsageError: the model is no file.
    """
    if settings.adapter is None:
        return
    if isinstance(settings.model, str):
        raise UsageError(
            f"the adapter {settings.adapter.name} is for a model file, not for {settings.model}",
            hint="leave --adapter out",
        )
    _check("the adapter", settings.adapter, settings.origin("adapter"), _ADAPTER_HINT)
    from toolsrv_runtime.convert.adapter import inspect_adapter

    if is_peft_adapter(settings.adapter):
        from toolsrv_runtime.convert.adapter import peft_files

        peft_files(settings.adapter)
        return
    inspect_adapter(settings.adapter)


def check_there(path: Path, origin: str) -> None:
    """Look whether a model file is at ``path``, which ``origin`` names.

    Raises:
        NotFoundError: there is none.
        DataError: it cannot be looked at.
    """
    _check("the model file", path, origin)


def is_file(path: Path) -> bool:
    """Whether a file is there, as far as this user may see."""
    try:
        return path.is_file()
    except OSError:  # a folder on the way that may not be entered
        return False


def _check(what: str, path: Path, origin: str, hint: str = "") -> None:
    named = f", which {origin} names," if origin not in ("", "default") else ""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(
            f"{what} {path}{named} {describe_absence(path)}", hint=hint or _hint(origin)
        ) from None
    except PermissionError:
        raise DataError(
            f"{what} {path}{named} cannot be looked at: a folder on the way there may not be entered",
            hint=f"check their permissions: namei -l {path}",
        ) from None
    except OSError as error:
        raise DataError(
            f"{what} {path}{named} cannot be looked at: {error.strerror}",
            hint=hint or _hint(origin),
        ) from None


def _hint(origin: str) -> str:
    """Say what to do, by where the name stands: an option, a variable or the settings file."""
    if origin.endswith(".toml"):
        return f"toolsrv model use {SHIPPED} (the one that ships), or one of: toolsrv model list"
    if origin.startswith("TOOLSRV_"):
        return f"unset {origin} for the one that ships, or name a GGUF file there"
    return (
        "name a GGUF file, one of: toolsrv model list, or leave it out for the one that is set: "
        "toolsrv config show"
    )


FOLDER = "merged"
KEPT = 3
"""Merged files; the least used are deleted."""

_DIGESTS = "digests.json"
_SHOWN = 16
"""Characters of a digest in a file's name."""

Progress = Callable[[int, int], None]


def is_peft_adapter(adapter: Path | None) -> bool:
    """Whether an adapter is PEFT's, which is merged before it is used."""
    from toolsrv_runtime.convert.adapter import is_peft

    return adapter is not None and is_peft(adapter)


def merged_model(
    base: Path | None, adapter: Path, data_dir: Path, progress: Progress | None = None
) -> Path:
    """Return the GGUF file of ``base`` (None: the model that ships) with ``adapter`` merged.

    It is made where it is not there yet. Blocks; of two processes at once one makes it.

    Raises:
        ModelError: as ``toolsrv_runtime.convert.merge``.
        DataError: the data folder cannot be used.
    """
    from toolsrv_runtime.convert.adapter import peft_files
    from toolsrv_runtime.convert.merge import merge
    from toolsrv_runtime.gguf_header import read_header
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL

    base = base or SHIPPED_MODEL
    read_header(base)  # says what is wrong with it
    config, weights = peft_files(adapter)
    folder = data_dir / "models" / FOLDER
    with exclusive_lock(folder / ".lock"):
        known = _known(folder)
        digests = [_digest(path, known) for path in (base, config, weights)]
        write_atomic(folder / _DIGESTS, json.dumps(known))
        key = hashlib.sha256(" ".join(digests).encode()).hexdigest()[:_SHOWN]
        name = portable_name(f"{base.stem[:60]}.{config.parent.absolute().name[:60]}")
        target = folder / f"{name}.{key}.gguf"
        if not target.is_file():
            merge(base, adapter, target, force=True, progress=progress)
        os.utime(target)
        _tidy(folder, target)
    return target


def _known(folder: Path) -> dict[str, Any]:
    """Return the digests that are known; a damaged file of them is forgotten."""
    try:
        found = json.loads((folder / _DIGESTS).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path, known: dict[str, Any]) -> str:
    """Return a file's SHA-256, read from the file where it changed since."""
    from toolsrv_runtime.convert.adapter import sha256

    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    kept = known.get(str(path.absolute()))
    if isinstance(kept, list) and len(kept) == 2 and kept[0] == stamp:
        return str(kept[1])
    digest = sha256(path)
    known[str(path.absolute())] = [stamp, digest]
    return digest


def _tidy(folder: Path, used: Path) -> None:
    """Delete all but the files that were used last."""
    found = sorted(folder.glob("*.gguf"), key=lambda one: one.stat().st_mtime, reverse=True)
    for one in found[KEPT:]:
        if one != used:
            with contextlib.suppress(OSError):  # on Windows while it is used
                one.unlink()


def load_model(settings: CommandSettings) -> tuple[Engine | ChatModel, Profile]:
    """Return the model of the settings, ready, and how it is run. Blocks.

    Raises:
        DataError: the model cannot be used, or its server does not answer.
        NotFoundError: there is no such file.
        UsageError: the MCP client's own model is meant.
    """
    if isinstance(settings.model, str):
        from toolsrv_runtime.models.openai import SILENCE_S
        from toolsrv_runtime.profiles.choose import adapt_server_profile

        silence_s = max(SILENCE_S, settings.max_seconds / 2)  # the other half is for another server
        model, profile = load_special(
            settings.model, silence_s=silence_s, within_s=settings.max_seconds
        )
        folder = profiles_folder(settings.data_dir)
        return model, adapt_server_profile(
            profile, model.name, asked=settings.profile, folder=folder
        )
    return _load_file(settings, settings.model, settings.origin("model"))


def load_simulator(settings: CommandSettings) -> tuple[Engine | ChatModel, Profile]:
    """Return the model that the setting ``simulate`` names, as ``load_model`` does."""
    name = settings.simulate
    model = name if is_special(name) else file_of(name, settings.data_dir)
    plain = settings.model_copy(update={"model": model, "profile": "", "adapter": None})
    return load_model(plain.come_from({"model": settings.origin("simulate")}))


def _load_file(settings: CommandSettings, path: Path | None, origin: str) -> tuple[Engine, Profile]:
    from toolsrv_runtime.gguf_models import load_engine

    if path is not None:
        check_there(path, origin)
    check_adapter(settings)
    path, adapter = with_adapter(settings, path)
    return load_engine(
        path,
        threads=settings.threads or None,
        gpu_layers=settings.gpu_layers,
        profile=settings.profile,
        profiles=profiles_folder(settings.data_dir),
        states=settings.data_dir / "states",
        program=SOLVING.memory(),
        adapter=adapter,
    )


def with_adapter(
    settings: CommandSettings, path: Path | None, progress: Progress | None = None
) -> tuple[Path | None, Path | None]:
    """Return the model file to open, and the adapter to apply to it, None where it is merged.

    Blocks while a PEFT adapter is merged for the first time. Raises as ``merged_model``.
    """
    adapter = settings.adapter
    if adapter is None or not is_peft_adapter(adapter):
        return path, adapter
    return merged_model(path, adapter, settings.data_dir, progress), None
