"""``toolsrv model pull``, ``convert``, ``quantize`` and ``merge``: model files from hubs and other files."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import GivenPath, example, json_option, not_empty
from toolsrv.cli.output import Bar, emit_json, listing, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.downloads import endpoint
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.model_list import Entry, ModelList
    from toolsrv.settings import CommandSettings
    from toolsrv_runtime.convert.merge import MergeType
    from toolsrv_runtime.convert.quantize import QuantType
    from toolsrv_runtime.convert.tensors import OutputType
    from toolsrv_runtime.hub import RecommendedModel, RemoteFile

_OUT = click.Path(path_type=Path, dir_okay=False)
_force_option = click.option("--force", is_flag=True, help="Replace a file that is there already.")


@click.command(
    short_help="Make a GGUF file of a LLaMA checkpoint.",
    epilog=example("toolsrv model convert ToolLLaMA-2-7b-v2 --profile toolllama-2 --type f16"),
)
@click.argument("folder", type=GivenPath())
@click.option("--out", type=_OUT, help="The GGUF file. [default: beside the folder]")
@click.option("--type", "kind", type=click.Choice(["f16", "bf16", "f32"]), default="f16",
              show_default=True, help="How weights are kept; norms are always f32.")  # fmt: skip
@click.option("--profile", metavar="NAME|FILE",
              help="Positions and context of toolllama-2, toolllama-1, a profile of yours, or one in "
              "a TOML file. [default: as config.json says]")  # fmt: skip
@_force_option
@json_option
@pass_session
def convert(
    session: Session,
    folder: Path,
    out: Path | None,
    kind: OutputType,
    profile: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the Hugging Face LLaMA checkpoint in FOLDER as a GGUF file."""
    from toolsrv.settings import profiles_folder
    from toolsrv_runtime.convert.checkpoint import convert as work

    session.public()
    profiles = profiles_folder(session.load().settings.data_dir)
    with Bar("converting", "tensors") as bar, interruptible():
        made = work(
            folder.expanduser(),
            out,
            type=kind,
            profile=profile,
            profiles=profiles,
            force=force,
            progress=bar.show,
        )
    _put_on_list(session, made.path, f"converted from {folder.absolute()}")
    for text in made.notes:
        note(f"note: {text}")
    if as_json:
        emit_json(made.model_dump(mode="json"))
        return
    rope = f"positions divided by {made.rope.factor:g}, " if made.rope.kind == "linear" else ""
    click.echo(
        f"{made.tensors} tensors as {kind} in {made.path}: {made.size_bytes:,} bytes, "
        f"{rope}context {made.context:,} tokens"
    )


@click.command(epilog=example("toolsrv model quantize model.f16.gguf --type Q5_K_M"))
@click.argument("model", metavar="NAME|FILE", callback=not_empty)
@click.option("--type", "kind", default="Q8_0", show_default=True,
              type=click.Choice(["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "F16"], case_sensitive=False),
              help="From the largest and most exact to the smallest.")  # fmt: skip
@click.option("--out", type=_OUT, help="The smaller file. [default: beside FILE]")
@_force_option
@json_option
@pass_session
def quantize(
    session: Session, model: str, kind: QuantType, out: Path | None, force: bool, as_json: bool
) -> None:
    """Write a GGUF file, or the one of that name on the list, with smaller weights, by llama.cpp."""
    from toolsrv.model_list import file_of
    from toolsrv_runtime.convert.quantize import quantize as work

    session.public()
    file = file_of(model, session.load().settings.data_dir)
    with Bar("quantising", "tensors") as bar, interruptible():
        made = work(file, out, kind, force=force, progress=bar.show)
    _put_on_list(session, made.path, f"{kind} of {file.absolute()}")
    if as_json:
        emit_json(made.model_dump(mode="json"))
        return
    share = 100 * made.size_bytes / made.source_bytes
    click.echo(f"{kind} in {made.path}: {made.size_bytes:,} bytes, {share:.0f} % of {file.name}")


@click.command(
    short_help="Merge a LoRA adapter into its base model.",
    epilog=example("toolsrv model merge llama-2-7b.Q8_0.gguf ToolLLaMA-7b-LoRA"),
)
@click.argument("base", callback=not_empty)
@click.argument("adapter", type=GivenPath())
@click.option("--out", type=_OUT, help="The merged file. [default: beside BASE]")
@click.option("--type", "kind", default="auto", show_default=True,
              type=click.Choice(["auto", "base", "Q8_0", "F16", "F32"], case_sensitive=False),
              help="Of the changed tensors. auto: Q8_0, floats as in BASE; base: as in BASE where "
              "gguf can quantise to that.")  # fmt: skip
@_force_option
@json_option
@pass_session
def merge(
    session: Session,
    base: str,
    adapter: Path,
    out: Path | None,
    kind: MergeType,
    force: bool,
    as_json: bool,
) -> None:
    """Write a GGUF file of BASE with the LoRA ADAPTER added.

    BASE is a GGUF file or a name on the list of models. ADAPTER is a GGUF LoRA adapter, or a PEFT
    folder (adapter_config.json and adapter_model.safetensors) of a llama, mistral or qwen2 model.
    """
    from toolsrv.model_list import file_of
    from toolsrv_runtime.convert.merge import merge as work
    from toolsrv_runtime.gguf_models import SHIPPED_MODELS

    session.public()
    data_dir = session.load().settings.data_dir
    file = file_of(base, data_dir)
    adapter = adapter.expanduser()
    if out is None and file in SHIPPED_MODELS.values():  # lies among the program's own files
        out = data_dir / "models" / f"{base}.{adapter.absolute().stem}.gguf"
        out.parent.mkdir(parents=True, exist_ok=True)
    with Bar("merging", "tensors") as bar, interruptible():
        made = work(
            file,
            adapter,
            out,
            type=kind,
            expected_sha256=_known_sha256(base, data_dir),
            force=force,
            progress=bar.show,
        )
    _put_on_list(session, made.path, f"{made.base} with the adapter {made.adapter}")
    if as_json:
        emit_json(made.model_dump(mode="json"))
        return
    types = ", ".join(f"{count} as {name}" for name, count in sorted(made.types.items()))
    click.echo(
        f"{made.changed} of {made.tensors} tensors changed ({types}; rank {made.rank}) in "
        f"{made.path}: {made.size_bytes:,} bytes"
    )


def merge_first(settings: CommandSettings) -> tuple[Path | None, Path | None]:
    """Return the model file of the settings and the adapter to apply, PEFT's merged with progress.

    The model is a file. Raises as ``merged_model``.
    """
    from toolsrv.model_loading import is_peft_adapter, with_adapter

    path = settings.model if isinstance(settings.model, Path) else None
    if not is_peft_adapter(settings.adapter):
        return path, settings.adapter
    with Bar("merging the adapter", "tensors") as bar, interruptible():
        return with_adapter(settings, path, bar.show)


def _known_sha256(name: str, data_dir: Path) -> str | None:
    """Return the digest that the list of models has for a name, None where it has none."""
    from toolsrv.model_list import ModelList, is_name

    if not is_name(name):
        return None
    return next((one.sha256 for one in ModelList(data_dir).entries() if one.name == name), None)


def _put_on_list(session: Session, path: str, source: str) -> None:
    from toolsrv.model_list import ModelList

    entry = ModelList(session.load().settings.data_dir).add(Path(path), source=source)
    note(f"on the list as {entry.name}: toolsrv model use {entry.name}")


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
    is taken up by the next one, and the file is held to the SHA-256 that the hub lists. A
    checkpoint is converted and quantised here. HF_ENDPOINT names another hub, HF_TOKEN opens
    private repositories.
    """
    from toolsrv.model_list import ModelList
    from toolsrv.model_pull import parse_repository
    from toolsrv_runtime.hub import find_recommended

    if listed:
        _show_recommended(as_json=as_json)
        return
    if not repo:
        raise UsageError("no model is named", hint="see toolsrv model pull --list")
    models = ModelList(session.load().settings.data_dir)
    if (known := find_recommended(repo)) is None:
        entry = _pull_gguf(models, *parse_repository(repo), name)
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


def _tell(known: RecommendedModel) -> None:
    file = f":{known.file}" if known.file else ""
    note(f"{known.name} is {known.repo}{file}, licence: {known.licence}")


def _pull_gguf(models: ModelList, repo: str, file: str, name: str | None) -> Entry:
    from toolsrv.model_pull import pull_gguf

    entry = pull_gguf(models, repo, file, name, _bring)
    if entry.sha256 is None:
        note("note: the hub lists no SHA-256 of this file; only its size was checked")
    return entry


def _pull_checkpoint(models: ModelList, known: RecommendedModel, name: str) -> Entry:
    """Bring a checkpoint, and make a quantised GGUF file of it; the checkpoint goes afterwards."""
    from toolsrv.model_pull import model_folder
    from toolsrv_runtime.convert.checkpoint import convert
    from toolsrv_runtime.convert.quantize import quantize
    from toolsrv_runtime.hub import checkpoint_files, repo_files
    from toolsrv_runtime.hub.download import file_sha256

    folder = model_folder(models, known.repo)
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
    return models.add(target, source=source, sha256=file_sha256(target), name=name)


def _check_torch(known: RecommendedModel, files: list[RemoteFile]) -> None:
    """Raise UsageError, before gigabytes come, where the weights cannot be read afterwards."""
    pickled = any(one.name.endswith(".bin") for one in files)
    if pickled and importlib.util.find_spec("torch") is None:
        raise UsageError(
            f"the weights of {known.repo} are PyTorch files, and torch is not installed",
            hint="pip install torch, and pull again",
        )


def _bring(files: list[RemoteFile], folder: Path) -> list[Path]:
    from toolsrv_runtime.hub.download import pull as work

    paths = []
    for one in files:
        with Bar(f"pulling {Path(one.name).name}", "bytes") as bar, interruptible():
            paths.append(work(one, folder, endpoint=endpoint(), progress=bar.show))
    return paths


def _show_recommended(*, as_json: bool) -> None:
    from toolsrv_runtime.hub import recommended_models

    found = recommended_models()
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
