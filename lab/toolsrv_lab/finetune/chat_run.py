"""A chat model fine-tuned from a GGUF file: what goes in is looked at first, one file comes out.

The training itself is ``chat_training``, which runs on its own too. A run ends when its minutes or
epochs are over, or by Ctrl-C; another goes on from its weights.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.conversations.build import template_source
from toolsrv_lab.extras import load
from toolsrv_lab.finetune.gguf_parts import assemble
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.gguf_header import read_header

MASTERS = "masters.pt"
MODEL = "model.gguf"
_LONGEST_HEAD = 1 << 16
_HINT = "write it with: toolsrv lab convert ANSWERS --format chat --base BASE.gguf --out rows.xz"


class Tuned(BaseModel):
    """What a run came to; ``loss`` is that on held-out rows, in the type that is written."""

    model_config = ConfigDict(frozen=True)

    model: str
    rows: int
    steps: int
    tokens: int
    loss: float


def tune(
    base: Path,
    data: Sequence[Path],
    out: Path,
    settings: Mapping[str, float | int],
    *,
    start: Path | None = None,
) -> Tuned:
    """Train and write ``out/model.gguf``. ``settings`` are options of ``chat_training``.

    ``start`` is the folder of a run whose weights this one goes on from. Prints how it goes.

    Raises:
        UsageError: a base that cannot be trained here, or torch is not installed.
        ModelError: the base is missing or no GGUF file.
        NotFoundError: a file of rows, or of weights, is missing.
        DataError: a file of rows is damaged.
    """
    check_base(base)
    for path in data:
        check_rows(path)
    if start is not None and not (start / MASTERS).is_file():
        raise NotFoundError(
            f"{str(start)!r} holds no {MASTERS}", hint="name the folder of an earlier run"
        )
    training = load("toolsrv_lab.finetune.chat_training")
    said = ["--base", base, "--out", out, "--data", *data]
    said += ["--resume", start / MASTERS] if start is not None else []
    for name, value in settings.items():
        said += [f"--{name}", value]
    training.main([str(one) for one in said])
    model = out / MODEL
    assemble(base, out, model, template=template_source(), name=out.name, profile="small")
    log: dict[str, Any] = json.loads((out / "blocks.json").read_text("utf-8"))["log"]
    last = log["steps"][-1]
    return Tuned(
        model=str(model), rows=log["rows"], steps=last["step"], tokens=last["tokens"],
        loss=last["held"],
    )  # fmt: skip


def check_base(path: Path) -> None:
    """Raise UsageError for a model whose forward pass ``chat_training`` does not have."""
    header = read_header(path)
    names = {one.name for one in gguf.GGUFReader(path).tensors}
    if header.architecture != "llama":
        why = f"it is {header.architecture!r}"
    elif "output.weight" in names:
        why = "its output has weights of its own"
    elif any(name.endswith(".bias") for name in names):
        why = "it has biases"
    else:
        return
    raise UsageError(
        f"{path.name!r} cannot be trained from its GGUF file: {why}",
        hint="take a LLaMA with tied embeddings, such as SmolLM2; or a checkpoint's folder as --base",
    )


def check_rows(path: Path) -> None:
    """Raise NotFoundError or DataError unless a file begins as rows do."""
    try:
        with lzma.open(path) as file:
            size = int.from_bytes(file.read(8), "little")
            head = json.loads(file.read(min(size, _LONGEST_HEAD)))
            filled = head["rows"] > 0 and head["tokens"] > 0
    except FileNotFoundError:
        raise NotFoundError(f"there is no file of rows {str(path)!r}", hint=_HINT) from None
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror}", hint=_HINT) from None
    except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError, RecursionError):
        filled = False
    if not filled:
        raise UsageError(f"{str(path)!r} is no file of rows", hint=_HINT)
