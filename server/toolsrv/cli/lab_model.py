"""``toolsrv lab train model``: the work is done by ``toolsrv_lab.finetune``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.import_view import Bar
from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import example, json_option
from toolsrv.cli.output import emit_json, note
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv_lab.finetune.options import FineTuning

_PATH = click.Path(path_type=Path)
_NOTE_SECONDS = 20.0


@click.command(
    epilog=example(
        "toolsrv lab train model --base Llama-2-7b-hf --data train.json --out run --lora",
        "toolsrv model convert run/model --type f16",
    )
)
@click.option("--base", type=_PATH,
              help="Fine-tune the Hugging Face LLaMA checkpoint in this folder.")  # fmt: skip
@click.option("--data", type=_PATH, required=True,
              help="Conversations in ToolBench's training format, a JSON list or JSON lines.")  # fmt: skip
@click.option("--out", type=_PATH, required=True,
              help="Folder of the run: checkpoints, log.jsonl, loss.svg, model.")  # fmt: skip
@click.option("--dev", type=_PATH, help="Held-out conversations; the best epoch on them is kept.")
@click.option("--lora", is_flag=True, help="Train a low-rank adapter and merge it.")
@click.option("--rank", type=click.IntRange(1), help="LoRA: rank. [default: 8]")
@click.option("--alpha", type=click.IntRange(1), help="LoRA: alpha. [default: 16]")
@click.option("--targets", metavar="A,B", help="LoRA: layers. [default: q_proj,v_proj]")
@click.option("--epochs", type=click.FloatRange(0, min_open=True),
              help="[default: 2, with --lora 5]")  # fmt: skip
@click.option("--steps", type=click.IntRange(1), help="End after so many steps.")
@click.option("--batch", type=click.IntRange(1),
              help="Conversations in a step, on all devices. [default: 64, with --lora 8]")  # fmt: skip
@click.option("--device-batch", type=click.IntRange(1),
              help="Of them at once on a device. [default: 2, with --lora 4]")  # fmt: skip
@click.option("--learning-rate", type=click.FloatRange(0, min_open=True), help="[default: 5e-5]")
@click.option("--max-tokens", type=click.IntRange(16),
              help="Context; longer conversations are left out. [default: 8192]")  # fmt: skip
@click.option("--source-tokens", type=click.IntRange(16),
              help="Context of the base, stretched to --max-tokens. [default: as it says]")  # fmt: skip
@click.option("--precision", type=click.Choice(["auto", "bf16", "f32"]),
              help="[default: bf16 where the device has it]")  # fmt: skip
@click.option("--recompute", is_flag=True, default=None,
              help="Compute activations twice: slower, in a fraction of the memory.")  # fmt: skip
@click.option("--seed", type=int, help="[default: 0]")
@click.option("--save-seconds", type=click.FloatRange(0), default=100, show_default=True,
              help="Most seconds between two checkpoints.")  # fmt: skip
@json_option
def train_model(
    base: Path | None,
    data: Path,
    out: Path,
    dev: Path | None,
    lora: bool,
    rank: int | None,
    alpha: int | None,
    targets: str | None,
    save_seconds: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Fine-tune a LLaMA on conversations, with the paper's settings.

    Run it again after a stop and it goes on; at most two minutes are lost. The loss counts the
    last turn of each conversation. For several GPUs: torchrun --nproc-per-node N -m toolsrv …
    """
    from toolsrv_lab.finetune.training import finetune

    if base is None:
        raise UsageError("which model is to be trained?", hint="name a checkpoint with --base")
    options = _options(lora, {"rank": rank, "alpha": alpha, "targets": targets}, given)
    told = time.monotonic()
    with Bar("training", "steps") as bar, interruptible():

        def progress(done: int, total: int, loss: float) -> None:
            nonlocal told
            bar.show(done, total)
            if time.monotonic() - told > _NOTE_SECONDS or done in {1, total}:
                told = time.monotonic()
                note(f"step {done} of {total}: loss {loss:.4f}")

        done = finetune(
            base.expanduser(),
            data.expanduser(),
            out.expanduser(),
            options,
            dev=dev and dev.expanduser(),
            progress=progress,
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


def _options(lora: bool, adapter: dict[str, Any], given: dict[str, Any]) -> FineTuning:
    from toolsrv_lab.finetune.options import defaults

    options = defaults(lora=lora)
    adapter = {key: value for key, value in adapter.items() if value is not None}
    if adapter and options.lora is None:
        raise UsageError(f"--{next(iter(adapter))} is a setting of LoRA", hint="add --lora")
    if options.lora is not None:
        if "targets" in adapter:
            adapter["targets"] = tuple(adapter["targets"].split(","))
        given["lora"] = options.lora.model_copy(update=adapter)
    return options.model_copy(
        update={key: value for key, value in given.items() if value is not None}
    )
