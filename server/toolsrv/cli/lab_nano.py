"""The laboratory's commands about the small model that ships; the work is ``toolsrv_lab.nano``'s."""

from __future__ import annotations

import time
from pathlib import Path

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session

_IN = click.Path(exists=True, path_type=Path)
_OUT = click.Path(path_type=Path)
_NOTE_SECONDS = 20.0


@click.command(epilog=example("toolsrv lab episodes --rows 20 --vocabulary 2048 --out rows"))
@click.option("--out", type=_OUT, required=True, help="Folder for vocabulary and shards.")
@click.option("--rows", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--shard", type=click.IntRange(1), default=1_000, show_default=True,
              help="Rows in a file.")  # fmt: skip
@click.option("--length", type=click.IntRange(128, 8192), default=1_024, show_default=True,
              help="Tokens in a row.")  # fmt: skip
@click.option("--vocabulary", type=click.IntRange(512, 32_000), default=8_192, show_default=True)
@click.option("--own-share", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="Share of the needs that the catalog that ships serves.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
@pass_session
def episodes(
    session: Session,
    out: Path,
    rows: int,
    shard: int,
    length: int,
    vocabulary: int,
    own_share: float,
    workers: int,
    seed: int,
    as_json: bool,
) -> None:
    """Write solved tasks over the enabled catalogs as rows to train a small model on.

    Run it again after a stop and it writes the shards that are missing.
    """
    from toolsrv_lab.nano.pipeline import Plan, write_rows

    registry = session.workbench().registry()
    plan = Plan(rows, shard, length, vocabulary, own_share, seed)
    with Bar("writing", "rows") as bar, interruptible():
        files = write_rows(
            registry.store.apis(),
            registry.index.encoder,
            out,
            plan,
            workers=workers,
            progress=bar.show,
        )
    if as_json:
        emit_json({"folder": str(out), "shards": len(files), "plan": plan._asdict()})
        return
    click.echo(f"{len(files)} shards in {out}; next: toolsrv lab train nano --rows {out} --out DIR")


@click.command(epilog=example("toolsrv lab train nano --rows rows --out run"))
@click.option("--rows", "folder", type=_IN, required=True, help="Made by lab episodes.")
@click.option("--out", type=_OUT, required=True, help="Folder of the run: checkpoint, curve.")
@click.option("--steps", type=click.IntRange(1), default=4_000, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=8, show_default=True,
              help="Rows in a step.")  # fmt: skip
@click.option("--width", type=click.IntRange(32), default=256, show_default=True)
@click.option("--layers", type=click.IntRange(1), default=6, show_default=True)
@click.option("--heads", type=click.IntRange(1), default=8, show_default=True)
@click.option("--inner", type=click.IntRange(32), default=704, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def train_nano(
    folder: Path,
    out: Path,
    steps: int,
    batch: int,
    width: int,
    layers: int,
    heads: int,
    inner: int,
    seed: int,
    as_json: bool,
) -> None:
    """Train a small model from nothing; run it again after a stop and it goes on."""
    from toolsrv_lab.nano.network import Shape
    from toolsrv_lab.nano.pipeline import HELD_OUT_ROWS, VOCABULARY
    from toolsrv_lab.nano.rows import shards
    from toolsrv_lab.nano.training import TrainingOptions, train
    from toolsrv_lab.nano.vocabulary import read_vocabulary

    vocabulary = read_vocabulary(folder / VOCABULARY)
    shape = Shape(vocabulary=len(vocabulary), width=width, layers=layers, heads=heads, inner=inner)
    options = TrainingOptions(steps=steps, rows=batch, seed=seed)
    note(f"{shape.parameters:,} parameters")
    told = time.monotonic()
    with Bar("training", "steps") as bar, interruptible():

        def progress(done: int, total: int, loss: float) -> None:
            nonlocal told
            bar.show(done, total)
            if time.monotonic() - told > _NOTE_SECONDS or done in {1, total}:
                told = time.monotonic()
                note(f"step {done} of {total}: loss {loss:.4f}")

        files = list(shards(folder))
        held_out = folder / HELD_OUT_ROWS
        weights = train(shape, vocabulary, files, held_out, out, options, progress=progress)
    if as_json:
        emit_json({"weights": str(weights), "shape": shape.model_dump()})
        return
    click.echo(f"the weights: {weights}; next: toolsrv lab export nano {out} --rows {folder}")


@click.command(epilog=example("toolsrv lab export nano run --rows rows --out nano.q8_0.gguf"))
@click.argument("run", type=_IN)
@click.option("--rows", "folder", type=_IN, required=True, help="Where the vocabulary is.")
@click.option("--out", type=_OUT, required=True, help="The GGUF file, quantised to Q8_0.")
@click.option("--name", default="toolsrv-nano", show_default=True)
@json_option
def export_nano(run: Path, folder: Path, out: Path, name: str, as_json: bool) -> None:
    """Turn a finished run into a GGUF that llama.cpp runs."""
    import tempfile

    from toolsrv_lab.nano.export import export_gguf
    from toolsrv_lab.nano.pipeline import VOCABULARY
    from toolsrv_lab.nano.vocabulary import read_vocabulary
    from toolsrv_runtime.convert.quantize import quantize

    vocabulary = read_vocabulary(folder / VOCABULARY)
    with tempfile.TemporaryDirectory() as scratch:
        whole = export_gguf(run, vocabulary, Path(scratch) / "whole.gguf", name=name)
        made = quantize(whole, out, "Q8_0")
    if as_json:
        emit_json(made.model_dump(mode="json"))
        return
    click.echo(f"{made.path}: {made.size_bytes / 1e6:.1f} MB; try: toolsrv solve --model {out} …")
