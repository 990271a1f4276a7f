"""``toolsrv lab train model``: from nothing, a LLaMA checkpoint, or a chat model's GGUF file.

The work is done by ``toolsrv_lab.nano`` and ``toolsrv_lab.finetune``.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.lab_pace import TrainingBar
from toolsrv.cli.options import GivenPath, example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.finetune.options import FineTuning

_PATH = GivenPath()
_COUNT = click.IntRange(1)
_SIZES = {"width": 256, "layers": 6, "heads": 4, "inner": 704}
_ADAPTER = ("rank", "alpha", "targets")
_SCRATCH = (*_SIZES, "no_compile")
_OF_CHAT = {"data", "learning_rate", "epochs", "seed", "start", "minutes", "step_tokens", "decay",
            "quantise"}  # fmt: skip
_CHAT = ("minutes", "step_tokens", "decay", "quantise")
_TUNING = (
    "data", "dev", "lora", *_ADAPTER, "epochs", "device_batch", "learning_rate", "max_tokens",
    "source_tokens", "precision", "recompute", "save_seconds",
)  # fmt: skip


@click.command(
    epilog=example(
        "toolsrv lab train model --rows rows --out run",
        "toolsrv lab train model --base Llama-2-7b-hf --data train.json --out run --lora",
        "toolsrv lab train model --base SmolLM2.gguf --data rows.xz --minutes 60 --out run",
    )
)
@click.option("--out", type=_PATH, required=True,
              help="Folder of the run: checkpoints, learning curve, model.")  # fmt: skip
@click.option("--steps", type=_COUNT, help="End after so many steps. [default: 4000; all epochs]")
@click.option("--batch", type=_COUNT,
              help="Rows, or conversations on all devices, in a step. [default: 8; 64, with --lora 8]")  # fmt: skip
@click.option("--seed", type=int, help="[default: 0]")
@click.option("--rows", type=_PATH, help="From nothing: the rows of lab episodes.")
@click.option("--width", type=click.IntRange(32), help="From nothing. [default: 256]")
@click.option("--layers", type=_COUNT, help="From nothing. [default: 6]")
@click.option("--heads", type=_COUNT, help="From nothing. [default: 4]")
@click.option("--inner", type=click.IntRange(32), help="From nothing. [default: 704]")
@click.option("--start", type=_PATH,
              help="From nothing or a GGUF file: begin with the weights of the run in this folder.")  # fmt: skip
@click.option("--no-compile", is_flag=True, default=None,
              help="From nothing: begin at once, at half the speed.")  # fmt: skip
@click.option("--base", type=_PATH,
              help="Fine-tune the Hugging Face LLaMA checkpoint in this folder, or a GGUF file.")  # fmt: skip
@click.option("--data", type=_PATH, multiple=True,
              help="Conversations in ToolBench's training format, a JSON list or JSON lines; for a "
              "GGUF file rows of lab convert --format chat, several files too.")  # fmt: skip
@click.option("--dev", type=_PATH, help="Held-out conversations; the best epoch on them is kept.")
@click.option("--lora", is_flag=True, default=None, help="Train a low-rank adapter and merge it.")
@click.option("--rank", type=_COUNT, help="LoRA: rank. [default: 8]")
@click.option("--alpha", type=_COUNT, help="LoRA: alpha. [default: 16]")
@click.option("--targets", metavar="A,B", help="LoRA: layers. [default: q_proj,v_proj]")
@click.option("--epochs", type=click.FloatRange(0, min_open=True),
              help="[default: 2, with --lora 5]")  # fmt: skip
@click.option("--device-batch", type=_COUNT,
              help="Conversations at once on a device. [default: 2, with --lora 4]")  # fmt: skip
@click.option("--learning-rate", type=click.FloatRange(0, min_open=True), help="[default: 5e-5]")
@click.option("--max-tokens", type=click.IntRange(16),
              help="Context; longer conversations are left out. [default: 8192]")  # fmt: skip
@click.option("--source-tokens", type=click.IntRange(16),
              help="Context of the base, stretched to --max-tokens. [default: as it says]")  # fmt: skip
@click.option("--precision", type=click.Choice(["auto", "bf16", "f32"]),
              help="[default: bf16 where the device has it]")  # fmt: skip
@click.option("--recompute", is_flag=True, default=None,
              help="Compute activations twice: slower, in a fraction of the memory.")  # fmt: skip
@click.option("--minutes", type=click.FloatRange(0, min_open=True),
              help="A GGUF file: end after so many minutes.")  # fmt: skip
@click.option("--step-tokens", type=click.IntRange(64),
              help="A GGUF file: tokens of a step. [default: 4096; on a GPU 49152]")  # fmt: skip
@click.option("--decay", type=click.FloatRange(0, 1),
              help="A GGUF file: last share of the run in which the rate falls; 0 where another run "
              "will go on. [default: 0.4]")  # fmt: skip
@click.option("--quantise", type=click.FloatRange(0, 1),
              help="A GGUF file: share of the run from which on Q4_0 is trained. [default: 0.5]")  # fmt: skip
@click.option("--save-seconds", type=click.FloatRange(0),
              help="Most seconds between two checkpoints. [default: 100]")  # fmt: skip
@json_option
def train_model(
    out: Path,
    rows: Path | None,
    base: Path | None,
    data: tuple[Path, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Train a small model from nothing (--rows), or fine-tune a LLaMA (--base, --data).

    A GGUF file as --base, of a LLaMA with tied embeddings (SmolLM2), is trained on rows of whole
    conversations, loss on the assistant's turns, and comes out as OUT/model.gguf with weights in
    Q4_0. It ends with its --minutes or by Ctrl-C; --start OUT goes on.

    Run it again after a stop and it goes on; at most two minutes are lost. Fine-tuning has the
    paper's settings, and its loss counts the last turn of each conversation; for several GPUs:
    torchrun --nproc-per-node N -m toolsrv …
    """
    given = {key: value for key, value in given.items() if value is not None}
    if data:
        given["data"] = data
    if base is None:
        if rows is None:
            raise UsageError(
                "which model is to be trained?",
                hint="name rows with --rows, or a checkpoint with --base and --data",
            )
        _refuse(
            given, (*_TUNING, *_CHAT), "fine-tuning", "name a checkpoint with --base, or leave it"
        )
        _from_nothing(rows.expanduser(), out.expanduser(), given, as_json=as_json)
        return
    if rows is not None:
        raise UsageError("--rows is for a training from nothing", hint="leave it, or leave --base")
    _refuse(given, _SCRATCH, "a training from nothing", "leave it, or leave --base")
    if not data:
        raise UsageError("--base needs conversations", hint="name a file of them with --data")
    base, out = base.expanduser(), out.expanduser()
    if base.is_file():
        _refuse(given, tuple(set(given) - _OF_CHAT), "other trainings", "leave it for a GGUF file")
        _tune_chat(base, out, given, as_json=as_json)
        return
    _refuse(given, (*_CHAT, "start"), "training a GGUF file", "leave it, or name a file as --base")
    if len(data) > 1:
        raise UsageError("several --data are for a GGUF file", hint="put them into one file")
    given["data"] = data[0]
    _tune(base, out, given, as_json=as_json)


def _refuse(given: dict[str, Any], names: tuple[str, ...], whose: str, hint: str) -> None:
    for name in names:
        if name in given:
            raise UsageError(f"--{name.replace('_', '-')} is a setting of {whose}", hint=hint)


def _from_nothing(rows: Path, out: Path, given: dict[str, Any], *, as_json: bool) -> None:
    from toolsrv.cli.lab_nano import train_scratch

    sizes = {name: given.get(name, default) for name, default in _SIZES.items()}
    settings = {
        "steps": given.get("steps", 4_000),
        "rows": given.get("batch", 8),
        "seed": given.get("seed", 0),
        "compiled": "no_compile" not in given,
        "start": given.get("start"),
    }
    weights = train_scratch(rows, out, sizes, settings)
    if as_json:
        emit_json({"weights": str(weights), "shape": sizes, "curve": str(out / "curve.jsonl")})
        return
    click.echo(f"the weights: {weights}; the curve: {out / 'curve.svg'}")
    note(f"next: toolsrv lab export model {out}")


def _tune_chat(base: Path, out: Path, given: dict[str, Any], *, as_json: bool) -> None:
    from toolsrv_lab.finetune.chat_run import tune

    if "minutes" not in given:
        raise UsageError("how long may it take?", hint="give --minutes, such as --minutes 60")
    data = [one.expanduser() for one in given.pop("data")]
    start = given.pop("start", None)
    names = {"learning_rate": "rate", "step_tokens": "tokens"}
    settings = {names.get(key, key): value for key, value in given.items()}
    with contextlib.redirect_stdout(sys.stderr):  # it says how it goes; stdout is for the result
        done = tune(base, data, out, settings, start=start and start.expanduser())
    if as_json:
        emit_json(done.model_dump(mode="json"))
        return
    click.echo(
        f"{done.steps} steps, {done.tokens:,} tokens of {done.rows} rows: held-out loss "
        f"{done.loss:.3f}; the model is in {done.model}"
    )
    note(f"next: toolsrv solve --model {done.model} TASK; on from here: --start {out}")


def _tune(base: Path, out: Path, given: dict[str, Any], *, as_json: bool) -> None:
    from toolsrv_lab.checkpoints import SAVE_SECONDS
    from toolsrv_lab.finetune.training import finetune

    data, dev = given.pop("data").expanduser(), given.pop("dev", None)
    save_seconds = given.pop("save_seconds", SAVE_SECONDS)
    options = _options(given)
    with TrainingBar() as bar, interruptible():
        done = finetune(
            base,
            data,
            out,
            options,
            dev=dev and dev.expanduser(),
            progress=bar.show,
            save_seconds=save_seconds,
        )
    if os.environ.get("RANK", "0") != "0":  # one of torchrun's; the first one tells
        return
    if done.left_out:
        note(
            f"note: {done.left_out} conversations of more than {options.max_tokens} tokens left out"
        )
    if as_json:
        emit_json(done.model_dump(mode="json"))
        return
    click.echo(
        f"{done.steps} steps over {done.conversations} conversations: loss {done.first_loss:.3f} "
        f"to {done.last_loss:.3f}; the model is in {done.model}"
    )
    note(f"next: toolsrv lab export model {out}")


def _options(given: dict[str, Any]) -> FineTuning:
    from toolsrv_lab.finetune.options import defaults

    options = defaults(lora=given.pop("lora", False))
    adapter = {name: given.pop(name) for name in _ADAPTER if name in given}
    if adapter and options.lora is None:
        raise UsageError(f"--{next(iter(adapter))} is a setting of LoRA", hint="add --lora")
    if options.lora is not None:
        if "targets" in adapter:
            adapter["targets"] = tuple(adapter["targets"].split(","))
        given["lora"] = options.lora.model_copy(update=adapter)
    return options.model_copy(update=given)
