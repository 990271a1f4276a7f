"""``toolsrv model``: what a model file is and how it would be used; making one (``model_make``)."""

from __future__ import annotations

import click

from toolsrv.cli.model_make import convert, quantize
from toolsrv.cli.model_prompts import prompts
from toolsrv.cli.model_server import tell_special
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import compact_json
from toolsrv_registry.errors import NotFoundError


@click.group(epilog=example("toolsrv model info"))
def model() -> None:
    """Inspect models, and make GGUF files of checkpoints."""


model.add_command(convert)
model.add_command(prompts)
model.add_command(quantize)


@model.command(epilog=example("toolsrv model info", "toolsrv model info http://127.0.0.1:8000/v1"))
@click.argument("path", metavar="[MODEL]", required=False)
@json_option
@pass_session
def info(session: Session, path: str | None, as_json: bool) -> None:
    """Say what the GGUF file MODEL is, which settings it gets, and why.

    Of addresses of OpenAI-compatible servers: their models, and how each holds a call in shape.
    Without MODEL: the model that is in use.
    """
    from toolsrv_runtime.answers.prompts import prompts_told
    from toolsrv_runtime.models import inspect_model

    settings = session.load(model=path).settings
    place = settings.model
    if isinstance(place, str):
        tell_special(place, settings.engine_model, as_json=as_json)
        return
    if place is not None and not place.exists():
        raise NotFoundError(
            f"model file {place} does not exist",
            hint="name a GGUF file, or none for the one in use",
        )
    document = inspect_model(place).model_dump(mode="json")
    if document["profile"]["format"] == "toolllama":
        document["prompts"] = prompts_told(settings.data_dir)
    if as_json:
        emit_json(document)
        return
    reasons = document.pop("reasons")
    profile = document.pop("profile")
    table(("model", "value"), [(key.replace("_", " "), one) for key, one in document.items()])
    table(
        ("profile", "value", "why"),
        [
            (key, one if isinstance(one, str) else compact_json(one), _reason(key, reasons))
            for key, one in profile.items()
        ],
    )


def _reason(key: str, reasons: dict[str, str]) -> str:
    """Return the reason for a profile's field; a reason may stand for several (``rope``)."""
    return next((why for name, why in reasons.items() if key.startswith(name)), "")
