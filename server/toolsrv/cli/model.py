"""``toolsrv model``: inspect, list, use and remove models.

The group holds the commands of ``model_create`` too. Models that are no file, servers and scripts,
are looked at for ``info`` and ``use``. ``prompts`` keeps ToolBench's sentences of a file that the
user has.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import error_handler
from toolsrv.cli.model_create import convert, merge, merge_first, pull, quantize
from toolsrv.cli.options import (
    adapter_option,
    example,
    json_option,
    not_empty,
    profile_option,
)
from toolsrv.cli.output import emit_json, format_value, listing, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.model_loading import is_file
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.model_list import ModelList
    from toolsrv_runtime.gguf_models import ModelInfo
    from toolsrv_runtime.requirements import Footprint


@click.command(
    short_help="Keep ToolBench's own sentences.",
    epilog=example("toolsrv model prompts answer/G1_answer/57_ChatGPT_DFS_woFilter_w2.json"),
)
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@pass_session
def prompts(session: Session, file: Path, as_json: bool) -> None:
    """Keep the sentences of ToolBench that FILE holds, for ToolLLaMA and for answer files.

    FILE is an answer file of ToolBench, or its training file toolllama_G123_dfs_train.json. Only
    sentences with the SHA-256 of those that ToolLLaMA was trained on are kept; what one file lacks
    another may hold. Without them our own wording is used.
    """
    from toolsrv_runtime.toolbench.prompts import PROMPTS_FILE, keep_prompts, read_prompts

    folder = session.load().settings.data_dir
    kept = keep_prompts(folder, read_prompts(file.expanduser()))
    if as_json:
        place = str(folder / PROMPTS_FILE)
        emit_json({"path": place, "missing": kept.missing, "newest_finish": kept.newest})
        return
    click.echo(f"kept in {folder / PROMPTS_FILE}")
    for part in kept.missing:
        note(f"note: {file.name} does not hold {part}: it stays in our own words")
    if kept.finish is not None and not kept.newest:
        note("note: the entry of Finish is that of older data; later files have another")


def print_special_model(model: str, *, as_json: bool) -> bool:
    """Tell what a model is that is no GGUF file; ``model`` as the setting spells it.

    Return whether it can be used: of several servers one is enough.

    Raises:
        NotFoundError: there is no such script.
        DataError: the script cannot be used.
    """
    from toolsrv.model_list import script_path
    from toolsrv_runtime.models.openai import is_url
    from toolsrv_runtime.models.openai.chat import inspect_servers
    from toolsrv_runtime.models.scripted import load_script

    if not is_url(model):
        if (script := script_path(model)) is not None:
            load_script(script)  # raises what is wrong with it
        _print_servers([{"model": model}], {"model": model}, as_json=as_json)
        return True
    found = inspect_servers(model, say=note)
    servers = [one.model_dump(mode="json") for one in found]
    rows = [{**one, "models": ", ".join(one["models"])} for one in servers]
    _print_servers(rows, {"servers": servers}, as_json=as_json)
    for one in found:
        if one.error:
            note(f"problem: {one.error}")
            note(f"hint: {one.hint}")
    return not all(one.error for one in found)


def usable_special(model: str) -> str:
    """Return how the setting is to spell a model that is no GGUF file, when it can be used.

    Of several servers one is enough.

    Raises:
        ModelError: no server answers as it must.
        NotFoundError: there is no such script.
        DataError: the script cannot be used.
    """
    from toolsrv.model_list import script_path
    from toolsrv_runtime.errors import ModelError
    from toolsrv_runtime.models.openai import is_url
    from toolsrv_runtime.models.openai.chat import inspect_servers
    from toolsrv_runtime.models.scripted import load_script

    if (script := script_path(model)) is not None:
        load_script(script)
        return f"scripted:{script.absolute()}"  # wherever one stands later
    if not is_url(model):
        return model
    found = inspect_servers(model, say=note)
    problems = [one for one in found if one.error]
    if len(problems) == len(found):
        raise ModelError(
            problems[0].error,
            hint=f"start it first, or unchecked: toolsrv config set model {model}",
        )
    for one in problems:
        note(f"note: {one.error}")
    return model


def _print_servers(
    rows: list[dict[str, str]], document: dict[str, object], *, as_json: bool
) -> None:
    if as_json:
        emit_json(document)
        return
    for one in rows:
        table(("model", "value"), [(key, value or "") for key, value in one.items()])


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
    from toolsrv import config_file, settings
    from toolsrv.model_list import SHIPPED, SHIPS, is_name
    from toolsrv_runtime.gguf_models import inspect_model

    own = session.load(model=model).settings
    if isinstance(own.model, str):
        model = usable_special(own.model)
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
    place = config_file.config_path(session.flags)
    value = (
        "" if model == SHIPPED else settings.parse_value("model", model, "model use", session.flags)
    )
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
    from toolsrv_runtime.requirements import format_bytes

    if row["missing"]:
        return "missing"
    return format_bytes(row["size_bytes"]) if row["size_bytes"] else ""


def _list(session: Session) -> ModelList:
    from toolsrv.model_list import ModelList

    return ModelList(session.load().settings.data_dir)


@click.group(epilog=example("toolsrv model info"))
def model() -> None:
    """Download, inspect and choose models, and make GGUF files of checkpoints."""


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
    from toolsrv.model_loading import check_model
    from toolsrv.settings import profiles_folder
    from toolsrv_runtime.gguf_models import inspect_model
    from toolsrv_runtime.toolbench.prompts import describe_prompts

    flags = {"model": path, "profile": profile, "adapter": adapter, "gpu_layers": gpu_layers}
    settings = session.load(**flags).settings
    place = settings.model
    check_model(settings, origin=None if path is None else "")
    if isinstance(place, str):
        usable = print_special_model(place, as_json=as_json)
        context.exit(error_handler.DONE if usable else error_handler.FAULT)
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
        document["prompts"] = describe_prompts(settings.data_dir)
    if as_json:
        emit_json(document)
    else:
        _print_model(document, found)
        if found.gpu_remedy:
            note(f"to use the GPU: {found.gpu_remedy}")
    if found.problem:
        note(f"problem: {found.problem}")
        note(f"hint: {found.remedy}")
        context.exit(error_handler.USAGE)


def _print_model(document: dict[str, Any], found: ModelInfo) -> None:
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
    table(
        ("model", "value"),
        [(key.replace("_", " "), format_value(one)) for key, one in document.items()],
    )
    table(
        ("profile", "value", "why"),
        [(key, format_value(one), _reason(key, reasons)) for key, one in fields.items()],
    )


def _memory(needs: Footprint, context: int) -> str:
    """Say what a path of ``context`` tokens takes, and with all of a tree kept."""
    from toolsrv_runtime.requirements import format_bytes, resident_cells

    path, tree = needs.total(context), needs.total(resident_cells(context))
    return f"{format_bytes(path)} for one path, {format_bytes(tree)} with a whole tree"


def _reason(key: str, reasons: dict[str, str]) -> str:
    """Return the reason for a profile's field; a reason may stand for several (``rope``)."""
    return next((why for name, why in reasons.items() if key.startswith(name)), "")
