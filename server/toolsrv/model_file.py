"""Whether the model that the settings name is there, looked at without loading anything.

Says where the name comes from: who has a broken setting has not named a model just now.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolsrv.model_list import SHIPPED
from toolsrv.models import script_path
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.file_in import absence

if TYPE_CHECKING:
    from toolsrv.settings import Settings


_ADAPTER_HINT = 'name a LoRA adapter (GGUF, or a PEFT folder), or turn it off: --adapter ""'


def check_model(settings: Settings, *, origin: str | None = None) -> None:
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
        from toolsrv.settings import profiles_folder
        from toolsrv_runtime.profiles.choose import check_name

        check_name(settings.profile, profiles_folder(settings.data_dir))
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


def check_adapter(settings: Settings) -> None:
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
            hint='leave --adapter out, or turn the setting off: --adapter ""',
        )
    _check("the adapter", settings.adapter, settings.origin("adapter"), _ADAPTER_HINT)
    from toolsrv.merged import is_peft
    from toolsrv_runtime.convert.adapter import inspect_adapter

    if is_peft(settings.adapter):
        from toolsrv_runtime.convert.peft import files_of

        files_of(settings.adapter)
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
            f"{what} {path}{named} {absence(path)}", hint=hint or _hint(origin)
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
