"""``toolsrv model list``, ``use`` and ``remove``: the user's models by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.listing import listing
from toolsrv.cli.model_server import usable_special
from toolsrv.cli.options import example, json_option, not_empty
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.model_file import is_file
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.model_list import ModelList


@click.command(
    "list", short_help="List the models that have a name.", epilog=example("toolsrv model list")
)
@json_option
@pass_session
def list_(session: Session, as_json: bool) -> None:
    """List the models that have a name: pulled, made, and those that ship.

    A model in use that has none (a file or a server that the settings name) stands at the end.
    """
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL, SHIPPED_MODELS

    loaded = session.load()
    model = loaded.settings.model or SHIPPED_MODEL
    used = str(model if isinstance(model, str) else model.absolute())
    rows: list[dict[str, Any]] = [
        {"name": name, "path": str(path), "source": "ships with toolsrv",
         "size_bytes": path.stat().st_size, "sha256": None, "added": ""}
        for name, path in SHIPPED_MODELS.items()
    ]  # fmt: skip
    rows += [one.model_dump() for one in _list(session).entries()]
    if used not in {row["path"] for row in rows}:
        rows.append(_unnamed(model, used, loaded.origins["model"]))
    for row in rows:
        row["in_use"] = row["path"] == used
        row["missing"] = row["path"] != model and not is_file(Path(row["path"]))
    if as_json:
        emit_json({"models": rows})
        return
    listing(
        ("", "name", "size#", "source", "file"),
        [
            (
                "*" if row["in_use"] else "",
                row["name"],
                _size(row),
                row["source"],
                row["path"],
            )
            for row in rows
        ],
        names=1,
        title="Models (* in use)",
    )


@click.command(
    short_help="Make a model the one that solves use.", epilog=example("toolsrv model use nano")
)
@click.argument("model", metavar="NAME|FILE|URL", callback=not_empty)
@json_option
@pass_session
def use(session: Session, model: str, as_json: bool) -> None:
    """Make a model the one that solves use, if it can be used: the setting "model".

    A file is opened, a server is asked for a short reply, and a script (scripted:FILE) is read.
    """
    from toolsrv import config_file, places, settings
    from toolsrv.model_list import SHIPPED, SHIPS, is_name
    from toolsrv_runtime.gguf_models import inspect_model

    own = session.load(model=model).settings
    if isinstance(own.model, str):
        model = usable_special(own.model, own.engine_model, timeout_s=own.engine_timeout)
    else:
        if (
            is_name(model)
            and model not in SHIPS
            and not (own.model is not None and is_file(own.model))
        ):
            _list(session).get(model)  # tells which names there are
        info = inspect_model(
            own.model, profile=own.profile, profiles=settings.profiles_folder(own.data_dir)
        )
        if info.problem:
            raise UsageError(info.problem, hint=info.remedy)
    place = places.config_path(session.flags)
    value = "" if model == SHIPPED else settings.parse_value("model", model, "model use")
    config_file.write_key(place, "model", value)
    origin = session.load().origins["model"]
    if origin not in (str(place), "default"):
        note(f"note: {origin} is set and wins over the file")
    if as_json:
        emit_json({"model": model, "path": str(place)})
    else:
        note(f"{place}: model = {value or SHIPPED}")


@click.command(
    short_help="Take a model off the list.", epilog=example("toolsrv model remove model.f16 --yes")
)
@click.argument("name", callback=not_empty)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_session
def remove(session: Session, name: str, yes: bool, as_json: bool) -> None:
    """Take a model off the list; a file that was pulled is deleted, any other stays."""
    from toolsrv.model_list import SHIPPED, SHIPS

    models = _list(session)
    if name in SHIPS and all(one.name != name for one in models.entries()):
        raise UsageError(
            f"{name!r} ships with toolsrv and cannot be removed",
            hint="use another model with: toolsrv model use NAME",
        )
    entry = models.get(name)
    if str(session.load().settings.model) == entry.path:
        raise UsageError(f"{name!r} is in use", hint=f"first: toolsrv model use {SHIPPED}")
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("removing a model asks first", hint="say --yes")
        click.confirm(f"Remove {name} ({entry.path})?", abort=True, err=True)
    _, deleted = models.remove(name)
    if as_json:
        emit_json({"name": name, "path": entry.path, "deleted": deleted})
        return
    kept = "its file is deleted" if deleted else f"its file stays: {entry.path}"
    click.echo(f"{name} is off the list; {kept}")


def _unnamed(model: Path | str, place: str, origin: str) -> dict[str, Any]:
    """Return the row of a model that is in use without being on the list."""
    size = model.stat().st_size if isinstance(model, Path) and is_file(model) else 0
    return {"name": "", "path": place, "source": f"named by {origin}", "size_bytes": size,
            "sha256": None, "added": ""}  # fmt: skip


def _size(row: dict[str, Any]) -> str:
    """Return how large a row's file is; nothing for a model that is none."""
    from toolsrv_runtime.footprint import told

    if row["missing"]:
        return "missing"
    return told(row["size_bytes"]) if row["size_bytes"] else ""


def _list(session: Session) -> ModelList:
    from toolsrv.model_list import ModelList

    return ModelList(session.load().settings.data_dir)
