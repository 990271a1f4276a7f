"""The laboratory's commands about the small model that ships; the work is ``toolsrv_lab.nano``'s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.lab_pace import TrainingBar
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session

_OUT = click.Path(path_type=Path)


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
    plan = Plan(
        rows=rows, shard=shard, length=length, vocabulary=vocabulary, own_share=own_share, seed=seed
    )
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
    click.echo(f"{len(files)} shards in {out}")
    note(f"next: toolsrv lab train model --rows {out} --out DIR")


def train_scratch(folder: Path, out: Path, sizes: dict[str, int], given: dict[str, Any]) -> Path:
    """Train a small model on the rows in ``folder``; return the file of its weights.

    ``sizes`` are of ``Shape``, ``given`` of ``TrainingOptions``, ``compiled`` and ``start``.
    """
    from toolsrv_lab.nano.network import Shape, check_shape
    from toolsrv_lab.nano.options import TrainingOptions
    from toolsrv_lab.nano.pipeline import HELD_OUT_ROWS
    from toolsrv_lab.nano.rows import shards
    from toolsrv_lab.nano.training import can_compile, train
    from toolsrv_lab.nano.vocabulary import VOCABULARY, read_vocabulary

    compiled, start = given.pop("compiled"), given.pop("start")
    vocabulary = read_vocabulary(folder / VOCABULARY)
    shape = Shape(vocabulary=len(vocabulary), **sizes)
    check_shape(shape)
    files = list(shards(folder))
    note(f"{shape.parameters:,} parameters, {len(files)} shards")
    if compiled and not can_compile():
        note("note: no C++ compiler was found, so each step takes twice the time")
        compiled = False
    with TrainingBar() as bar, interruptible():
        return train(
            shape,
            vocabulary,
            files,
            folder / HELD_OUT_ROWS,
            out,
            TrainingOptions(**given),
            start=start,
            progress=bar.show,
            compiled=compiled,
        )
