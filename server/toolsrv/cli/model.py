"""``toolsrv model``: what a model file is and how it would be used; making one (``model_make``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import rim
from toolsrv.cli.model_files import list_, remove, use
from toolsrv.cli.model_make import convert, merge, merge_first, quantize
from toolsrv.cli.model_prompts import prompts
from toolsrv.cli.model_pull import pull
from toolsrv.cli.model_server import tell_special
from toolsrv.cli.options import (
    adapter_option,
    example,
    json_option,
    not_empty,
    profile_option,
)
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.wording import told

if TYPE_CHECKING:
    from toolsrv_runtime.footprint import Footprint
    from toolsrv_runtime.gguf_models import ModelInfo


@click.group(epilog=example("toolsrv model info"))
def model() -> None:
    """Inspect models, bring them here, and make GGUF files of checkpoints."""


for command in (list_, pull, convert, quantize, merge, use, prompts, remove):
    model.add_command(command)


@model.command(
    short_help="Say what a model is and how it is run.",
    epilog=example("toolsrv model info", "toolsrv model info http://127.0.0.1:8000/v1"),
)
@click.argument("path", metavar="[MODEL]", required=False, callback=not_empty)
@profile_option
@adapter_option
@click.option("--gpu-layers", type=int, help="Layers of the model on a GPU; 0: none.")
@json_option
@click.pass_context
@pass_session
def info(
    session: Session,
    context: click.Context,
    /,
    path: str | None,
    profile: str | None,
    adapter: str | None,
    gpu_layers: int | None,
    as_json: bool,
) -> None:
    """Say what the GGUF file (or name) MODEL is, which settings it gets, and why.

    Of addresses of OpenAI-compatible servers: their models, and how each holds a call in shape.
    Without MODEL: the model that is in use.

    Exit codes: 0 it can be used, 1 no server answers, 2 the profile does not fit the model.
    """
    from toolsrv.model_file import check_model
    from toolsrv.settings import profiles_folder
    from toolsrv_runtime.answers.prompts import prompts_told
    from toolsrv_runtime.gguf_models import inspect_model

    flags = {"model": path, "profile": profile, "adapter": adapter, "gpu_layers": gpu_layers}
    settings = session.load(**flags).settings
    place = settings.model
    check_model(settings, origin=None if path is None else "")
    if isinstance(place, str):
        usable = tell_special(
            place,
            settings.engine_model,
            as_json=as_json,
            timeout_s=settings.engine_timeout,
        )
        context.exit(rim.DONE if usable else rim.FAULT)
    place, applied = merge_first(settings)
    found = inspect_model(
        place,
        profile=settings.profile,
        profiles=profiles_folder(settings.data_dir),
        gpu_layers=settings.gpu_layers,
        adapter=applied,
    )
    document: dict[str, Any] = found.model_dump(mode="json")
    if document["profile"]["format"] == "toolllama":
        document["prompts"] = prompts_told(settings.data_dir)
    if as_json:
        emit_json(document)
    else:
        _tell(document, found)
        if found.gpu_remedy:
            note(f"to use the GPU: {found.gpu_remedy}")
    if found.problem:
        note(f"problem: {found.problem}")
        note(f"hint: {found.remedy}")
        context.exit(rim.USAGE)


def _tell(document: dict[str, Any], found: ModelInfo) -> None:
    """Show a model's facts and the fields of its profile, with the reason for each."""
    reasons = document.pop("reasons")
    fields = document.pop("profile")
    if (adapter := found.adapter) is not None:
        document["adapter"] = (
            f"{adapter.path}: rank {adapter.rank}, alpha {adapter.alpha:g}, "
            f"{adapter.matrices} matrices"
        )
    else:
        del document["adapter"]
    document["memory"] = _memory(found.memory, found.profile.context)
    if fields["chat_template"]:
        fields["chat_template"] = f"{len(fields['chat_template']):,} characters of Jinja"
    for key in ("problem", "remedy", "gpu_remedy", *([] if found.gpu_note else ["gpu_note"])):
        del document[key]
    # llama.cpp names the size of a model as "7B", and "?B" where it knows none.
    document["description"] = found.description.replace(" ?B", "")
    table(("model", "value"), [(key.replace("_", " "), told(one)) for key, one in document.items()])
    table(
        ("profile", "value", "why"),
        [(key, told(one), _reason(key, reasons)) for key, one in fields.items()],
    )


def _memory(needs: Footprint, context: int) -> str:
    """Say what a path of ``context`` tokens takes, and with all of a tree kept."""
    from toolsrv_runtime.footprint import resident_cells
    from toolsrv_runtime.footprint import told as bytes_told

    path, tree = needs.total(context), needs.total(resident_cells(context))
    return f"{bytes_told(path)} for one path, {bytes_told(tree)} with a whole tree"


def _reason(key: str, reasons: dict[str, str]) -> str:
    """Return the reason for a profile's field; a reason may stand for several (``rope``)."""
    return next((why for name, why in reasons.items() if key.startswith(name)), "")
