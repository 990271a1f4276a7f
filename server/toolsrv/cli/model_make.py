"""``toolsrv model convert`` and ``quantize``: GGUF files made from checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session

if TYPE_CHECKING:
    from toolsrv_runtime.convert.quantize import QuantType
    from toolsrv_runtime.convert.tensors import OutputType

_OUT = click.Path(path_type=Path, dir_okay=False)
_force_option = click.option("--force", is_flag=True, help="Replace a file that is there already.")


@click.command(
    short_help="Make a GGUF file of a LLaMA checkpoint.",
    epilog=example("toolsrv model convert ToolLLaMA-2-7b-v2 --profile toolllama-2 --type f16"),
)
@click.argument("folder", type=click.Path(path_type=Path))
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
@click.argument("model", metavar="NAME|FILE")
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


def _put_on_list(session: Session, path: str, source: str) -> None:
    from toolsrv.model_list import ModelList

    entry = ModelList(session.load().settings.data_dir).add(Path(path), source=source)
    note(f"on the list as {entry.name}: toolsrv model use {entry.name}")
