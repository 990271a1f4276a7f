"""``toolsrv lab train model`` and ``lab episodes``: train a model, write rows to train one on.

Shows steps, loss, tokens per second and time left. The work is done by ``toolsrv_lab.nano`` and
``toolsrv_lab.finetune``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.options import FiniteRange, GivenPath, example, json_option
from toolsrv.cli.output import Bar, console, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import Progress

    from toolsrv_lab.finetune.options import FineTuning

_NOTE_SECONDS = 20.0
_WINDOW_SECONDS = 120.0


class Pace(NamedTuple):
    """How fast a training is: tokens a second, and seconds until its end; None while unknown."""

    tokens_per_second: float | None
    seconds_left: float | None

    def describe(self) -> str:
        """Return it in words, empty while unknown."""
        parts = []
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join(parts)


class PaceKeeper:
    """Reckons the pace from the last two minutes, so that a run that goes on is not misjudged."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()

    def add(self, now: float, done: int, total: int, tokens: int) -> Pace:
        """Note that ``done`` of ``total`` steps and ``tokens`` are reached at ``now`` seconds."""
        self._seen.append((now, done, tokens))
        while len(self._seen) > 2 and self._seen[1][0] < now - _WINDOW_SECONDS:
            self._seen.popleft()
        since, first, before = self._seen[0]
        passed = now - since
        if passed <= 0 or done <= first:
            return Pace(None, None)
        rate = (tokens - before) / passed if tokens > before else None
        return Pace(rate, (total - done) * passed / (done - first))


class TrainingBar:
    """Progress of a training on stderr; ``show`` is its callback."""

    def __init__(self) -> None:
        self._keeper = PaceKeeper()
        self._progress: Progress | None = None
        self._task: Any = None
        self._noted: float | None = None

    def __enter__(self) -> Self:
        screen = console(err=True)
        if screen.is_terminal:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            told = TextColumn("{task.fields[told]}")
            self._progress = Progress(
                TextColumn("training"), BarColumn(), MofNCompleteColumn(), told, console=screen
            )
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, done: int, total: int, loss: float, tokens: int) -> None:
        """Say how far it is: steps, loss, tokens seen."""
        now = time.monotonic()
        pace = self._keeper.add(now, done, total, tokens).describe()
        told = f"loss {loss:.4f}" + (f", {pace}" if pace else "")
        if self._progress is not None:
            if self._task is None:
                self._task = self._progress.add_task("training", total=total, told=told)
            self._progress.update(self._task, completed=done, total=total, told=told)
        elif self._noted is None or now - self._noted > _NOTE_SECONDS or done == total:
            self._noted = now
            note(f"step {done} of {total}: {told}")


def duration(seconds: float) -> str:
    """Return a time in hours and minutes, or in seconds where it is short."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


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
@click.option("--epochs", type=FiniteRange(0, min_open=True),
              help="[default: 2, with --lora 5]")  # fmt: skip
@click.option("--device-batch", type=_COUNT,
              help="Conversations at once on a device. [default: 2, with --lora 4]")  # fmt: skip
@click.option("--learning-rate", type=FiniteRange(0, min_open=True), help="[default: 5e-5]")
@click.option("--max-tokens", type=click.IntRange(16),
              help="Context; longer conversations are left out. [default: 8192]")  # fmt: skip
@click.option("--source-tokens", type=click.IntRange(16),
              help="Context of the base, stretched to --max-tokens. [default: as it says]")  # fmt: skip
@click.option("--precision", type=click.Choice(["auto", "bf16", "f32"]),
              help="[default: bf16 where the device has it]")  # fmt: skip
@click.option("--recompute", is_flag=True, default=None,
              help="Compute activations twice: slower, in a fraction of the memory.")  # fmt: skip
@click.option("--minutes", type=FiniteRange(0, min_open=True),
              help="A GGUF file: end after so many minutes.")  # fmt: skip
@click.option("--step-tokens", type=click.IntRange(64),
              help="A GGUF file: tokens of a step. [default: 4096; on a GPU 49152]")  # fmt: skip
@click.option("--decay", type=FiniteRange(0, 1),
              help="A GGUF file: last share of the run in which the rate falls; 0 where another run "
              "will go on. [default: 0.4]")  # fmt: skip
@click.option("--quantise", type=FiniteRange(0, 1),
              help="A GGUF file: share of the run from which on Q4_0 is trained. [default: 0.5]")  # fmt: skip
@click.option("--save-seconds", type=FiniteRange(0),
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
    from toolsrv_lab.finetune.chat_run import finetune_chat

    if "minutes" not in given:
        raise UsageError("how long may it take?", hint="give --minutes, such as --minutes 60")
    data = [one.expanduser() for one in given.pop("data")]
    start = given.pop("start", None)
    names = {"learning_rate": "rate", "step_tokens": "tokens"}
    settings = {names.get(key, key): value for key, value in given.items()}
    with contextlib.redirect_stdout(sys.stderr):  # it says how it goes; stdout is for the result
        done = finetune_chat(base, data, out, settings, start=start and start.expanduser())
    if as_json:
        emit_json(done.model_dump(mode="json"))
        return
    click.echo(
        f"{done.steps} steps, {done.tokens:,} tokens of {done.rows} rows: held-out loss "
        f"{done.loss:.3f}; the model is in {done.model}"
    )
    note(f"next: toolsrv solve --model {done.model} TASK; on from here: --start {out}")


def _tune(base: Path, out: Path, given: dict[str, Any], *, as_json: bool) -> None:
    from toolsrv_lab.finetune.training import finetune
    from toolsrv_lab.training_runs import SAVE_SECONDS

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


_OUT = GivenPath()


@click.command(epilog=example("toolsrv lab episodes --rows 20 --vocabulary 2048 --out rows"))
@click.option("--out", type=_OUT, required=True, help="Folder for vocabulary and shards.")
@click.option("--rows", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--shard", type=click.IntRange(1), default=1_000, show_default=True,
              help="Rows in a file.")  # fmt: skip
@click.option("--length", type=click.IntRange(128, 8192), default=1_024, show_default=True,
              help="Tokens in a row.")  # fmt: skip
@click.option("--vocabulary", type=click.IntRange(512, 32_000), default=8_192, show_default=True)
@click.option("--own-share", type=FiniteRange(0, 1), default=0.5, show_default=True,
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
    from toolsrv_lab.nano.network import Shape, TrainingOptions, check_shape
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
