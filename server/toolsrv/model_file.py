"""Whether the model that the settings name is there, looked at without loading anything.

Says where the name comes from: who has a broken setting has not named a model just now.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolsrv.model_list import SHIPPED
from toolsrv.models import script_path
from toolsrv_registry.errors import NotFoundError

if TYPE_CHECKING:
    from toolsrv.settings import Settings


def check_model(settings: Settings) -> None:
    """Look at the model's file: that it is there and begins like a GGUF file. Takes no time.

    A profile that is asked for is looked for too.

    Raises:
        NotFoundError: there is no such file, or no such script.
        ModelError: the file is no GGUF file.
        ProfileError: there is no such profile, or it is not acceptable.
    """
    if settings.profile:
        from toolsrv.settings import profiles_folder
        from toolsrv_runtime.profiles.choose import check_name

        check_name(settings.profile, profiles_folder(settings.data_dir))
    model, origin = settings.model, settings.origin("model")
    if isinstance(model, str):
        script = script_path(model)
        if script is not None and not script.is_file():
            raise _missing("the script", script, origin)
    elif model is not None:
        check_there(model, origin)
        from toolsrv_runtime.gguf_header import check_start

        check_start(model)


def check_there(path: Path, origin: str) -> None:
    """Raise NotFoundError where no model file is at ``path``, which ``origin`` names."""
    if not path.exists():
        raise _missing("the model file", path, origin)


def _missing(what: str, path: Path, origin: str) -> NotFoundError:
    named = f", which {origin} names," if origin not in ("", "default") else ""
    return NotFoundError(f"{what} {path}{named} does not exist", hint=_hint(origin))


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
