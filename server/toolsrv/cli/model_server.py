"""Models that are no file, looked at for ``toolsrv model info`` and ``use``: servers, scripts."""

from __future__ import annotations

import math

from toolsrv.cli.output import emit_json, note, table


def tell_special(
    model: str, engine_model: str, *, as_json: bool, timeout_s: float = math.inf
) -> bool:
    """Tell what a model is that is no GGUF file; ``model`` as the setting spells it.

    ``timeout_s`` is how long a server may be silent where that is less than ``INSPECT_S``.

    Return whether it can be used: of several servers one is enough.

    Raises:
        NotFoundError: there is no such script.
        DataError: the script cannot be used.
    """
    from toolsrv.models import script_path
    from toolsrv_runtime.models.openai.load import INSPECT_S, inspect_servers
    from toolsrv_runtime.models.openai.place import is_url
    from toolsrv_runtime.models.scripted import load_script

    if not is_url(model):
        if (script := script_path(model)) is not None:
            load_script(script)  # raises what is wrong with it
        _tell([{"model": model}], {"model": model}, as_json=as_json)
        return True
    found = inspect_servers(model, model=engine_model, within_s=min(timeout_s, INSPECT_S), say=note)
    servers = [one.model_dump(mode="json") for one in found]
    rows = [{**one, "models": ", ".join(one["models"])} for one in servers]
    _tell(rows, {"servers": servers}, as_json=as_json)
    for one in found:
        if one.error:
            note(f"problem: {one.error}")
            note(f"hint: {one.hint}")
    return not all(one.error for one in found)


def usable_special(model: str, engine_model: str, *, timeout_s: float) -> str:
    """Return how the setting is to spell a model that is no GGUF file, when it can be used.

    Of several servers one is enough; ``timeout_s`` as for ``tell_special``.

    Raises:
        ModelError: no server answers as it must.
        NotFoundError: there is no such script.
        DataError: the script cannot be used.
    """
    from toolsrv.models import script_path
    from toolsrv_runtime.errors import ModelError
    from toolsrv_runtime.models.openai.load import INSPECT_S, inspect_servers
    from toolsrv_runtime.models.openai.place import is_url
    from toolsrv_runtime.models.scripted import load_script

    if (script := script_path(model)) is not None:
        load_script(script)
        return f"scripted:{script.absolute()}"  # wherever one stands later
    if not is_url(model):
        return model
    found = inspect_servers(model, model=engine_model, within_s=min(timeout_s, INSPECT_S), say=note)
    problems = [one for one in found if one.error]
    if len(problems) == len(found):
        raise ModelError(
            problems[0].error,
            hint=f"start it first, or unchecked: toolsrv config set model {model}",
        )
    for one in problems:
        note(f"note: {one.error}")
    return model


def _tell(rows: list[dict[str, str]], document: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        emit_json(document)
        return
    for one in rows:
        table(("model", "value"), [(key, value or "") for key, value in one.items()])
