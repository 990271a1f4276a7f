"""``toolsrv model pull``: a model brought from a hub, by its repository or by a short name."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.listing import listing
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.downloads import endpoint
from toolsrv_registry.errors import UsageError
from toolsrv_registry.file_names import portable_name

if TYPE_CHECKING:
    from toolsrv.model_list import Entry, ModelList
    from toolsrv_runtime.hub.listing import RemoteFile
    from toolsrv_runtime.hub.recommended import Recommended


@click.command(
    short_help="Bring a model from a Hugging Face hub.",
    epilog=example(
        "toolsrv model pull qwen3-4b",
        "toolsrv model pull Qwen/Qwen3-4B-GGUF:Qwen3-4B-Q4_K_M.gguf",
        "toolsrv model pull --list",
    ),
)
@click.argument("repo", metavar="NAME|REPO[:FILE]", required=False)
@click.option("--list", "listed", is_flag=True, help="List the models that have a short name.")
@click.option("--name", help="Name on the list. [default: the short name, else the file's]")
@json_option
@pass_session
def pull(session: Session, repo: str | None, listed: bool, name: str | None, as_json: bool) -> None:
    """Bring a model from a Hugging Face hub, and put it on the list.

    NAME is a recommended model's short name (--list), REPO:FILE a GGUF file. A pull that breaks off
    is taken up by the next one, and the file is held to the SHA-256 that the hub lists. A checkpoint
    is converted and quantised here. HF_ENDPOINT names another hub, HF_TOKEN opens private
    repositories.
    """
    from toolsrv.model_list import ModelList
    from toolsrv_runtime.hub.recommended import short_name

    if listed:
        _show_recommended(as_json=as_json)
        return
    if not repo:
        raise UsageError("no model is named", hint="see toolsrv model pull --list")
    models = ModelList(session.load().settings.data_dir)
    if (known := short_name(repo)) is None:
        owner, _, file = repo.partition(":")
        if "/" not in owner:
            raise UsageError(
                f"there is no short name {owner!r} of a model",
                hint="see toolsrv model pull --list, or name a repository: OWNER/NAME[:FILE]",
            )
        entry = _pull_gguf(models, owner, file, name)
    elif known.file:
        _tell(known)
        entry = _pull_gguf(models, known.repo, known.file, name or known.name)
    else:
        _tell(known)
        entry = _pull_checkpoint(models, known, name or known.name)
    if as_json:
        emit_json(entry.model_dump())
        return
    click.echo(f"{entry.name} is here: {entry.path}")
    note(f"use it with: toolsrv model use {entry.name}")


def _tell(known: Recommended) -> None:
    file = f":{known.file}" if known.file else ""
    note(f"{known.name} is {known.repo}{file}, licence: {known.licence}")


def _pull_gguf(models: ModelList, repo: str, file: str, name: str | None) -> Entry:
    from toolsrv_runtime.hub.listing import gguf_files, pick
    from toolsrv_runtime.hub.pull import file_name

    chosen = pick(repo, gguf_files(repo, endpoint=endpoint()), file or None)
    folder = _folder(models, repo)
    if name is not None:
        models.check_name(name, folder / file_name(chosen[0]))
    path = _bring(chosen, folder)[0]
    first = chosen[0]
    if first.sha256 is None:
        note("note: the hub lists no SHA-256 of this file; only its size was checked")
    source = f"{repo}:{first.name}@{first.commit[:12]}"
    return models.add(path, source=source, sha256=first.sha256, name=name)


def _pull_checkpoint(models: ModelList, known: Recommended, name: str) -> Entry:
    """Bring a checkpoint, and make a quantised GGUF file of it; the checkpoint goes afterwards."""
    from toolsrv_runtime.convert.checkpoint import convert
    from toolsrv_runtime.convert.quantize import quantize
    from toolsrv_runtime.hub.listing import repo_files
    from toolsrv_runtime.hub.pull import sha256
    from toolsrv_runtime.hub.recommended import checkpoint_files

    folder = _folder(models, known.repo)
    target = folder.with_name(f"{folder.name}.{known.type.lower()}.gguf")
    models.check_name(name, target)
    files = checkpoint_files(known.repo, repo_files(known.repo, endpoint=endpoint()))
    _check_torch(known, files)
    source = f"{known.repo}@{files[0].commit[:12]}, converted, {known.type}"
    if not target.is_file():
        _bring(files, folder)
        whole = folder.with_name(f"{folder.name}.f16.gguf")
        with Bar("converting", "tensors") as bar, interruptible():
            made = convert(
                folder, whole, profile=known.profile or None, force=True, progress=bar.show
            )
        for text in made.notes:
            note(f"note: {text}")
        with Bar("quantising", "tensors") as bar, interruptible():
            quantize(whole, target, known.type, progress=bar.show)
        whole.unlink()
        shutil.rmtree(folder)
    return models.add(target, source=source, sha256=sha256(target), name=name)


def _check_torch(known: Recommended, files: list[RemoteFile]) -> None:
    """Raise UsageError, before gigabytes come, where the weights cannot be read afterwards."""
    pickled = any(one.name.endswith(".bin") for one in files)
    if pickled and importlib.util.find_spec("torch") is None:
        raise UsageError(
            f"the weights of {known.repo} are PyTorch files, and torch is not installed",
            hint="pip install torch, and pull again",
        )


def _folder(models: ModelList, repo: str) -> Path:
    return models.folder.joinpath(*map(portable_name, repo.split("/")))


def _bring(files: list[RemoteFile], folder: Path) -> list[Path]:
    from toolsrv_runtime.hub.pull import pull as work

    paths = []
    for one in files:
        with Bar(f"pulling {Path(one.name).name}", "bytes") as bar, interruptible():
            paths.append(work(one, folder, endpoint=endpoint(), progress=bar.show))
    return paths


def _show_recommended(*, as_json: bool) -> None:
    from toolsrv_runtime.hub.recommended import recommended

    found = recommended()
    if as_json:
        emit_json([one.model_dump() for one in found])
        return
    listing(
        ("name", "memory#", "from", "licence", "note"),
        [
            (
                one.name,
                f"{one.memory_gb} GB",
                f"{one.repo}:{one.file}" if one.file else one.repo,
                one.licence,
                one.note,
            )
            for one in found
        ],
        title="Models for tool calls, by the memory of the machine",
    )
