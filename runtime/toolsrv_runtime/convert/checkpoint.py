"""A Hugging Face LLaMA checkpoint folder as one GGUF file.

Tensor by tensor: memory holds one at a time. The file appears whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert.architecture import read_architecture
from toolsrv_runtime.convert.bpe import read_tokenizer_json
from toolsrv_runtime.convert.errors import TokenizerError
from toolsrv_runtime.convert.fresh import check_free, fresh_file
from toolsrv_runtime.convert.gguf_file import GgufFile
from toolsrv_runtime.convert.rope import PROFILES, Rope, check_positions
from toolsrv_runtime.convert.shards import Shards
from toolsrv_runtime.convert.spm import read_tokenizer_model
from toolsrv_runtime.convert.stretch import read_stretch
from toolsrv_runtime.convert.tensors import OutputType, check, wanted
from toolsrv_runtime.convert.vocabulary import HINT, Vocabulary

Progress = Callable[[int, int], None]
"""Called with (tensors done, tensors in all)."""


class Converted(BaseModel):
    """A GGUF file that was made. Sizes in bytes, ``context`` in tokens."""

    model_config = ConfigDict(frozen=True)

    path: str
    type: OutputType
    size_bytes: int
    tensors: int
    context: int
    rope: Rope
    tokenizer: str
    notes: tuple[str, ...] = ()


def convert(
    folder: Path,
    target: Path | None = None,
    *,
    type: OutputType = "f16",  # noqa: A002 - what GGUF and llama.cpp call it
    profile: str | None = None,
    profiles: Path | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Converted:
    """Write the checkpoint in ``folder`` as a GGUF file (default: beside it, named after it).

    ``profile`` (``toolllama-1``, ``toolllama-2``, one of the folder ``profiles``, a TOML file)
    decides rotary positions and context instead of ``config.json``. ``force`` replaces a file that is there already.

    Raises:
        CheckpointError: The folder cannot be converted; see ``convert.errors`` for its kinds.
        WriteError: The file cannot be written.
        ProfileError: A TOML file is not acceptable.
        UsageError: An unknown profile or type, .bin weights without torch, a profile whose
            context the checkpoint's positions cannot carry or that names none, a file that is
            there already, or one of the checkpoint's own.
    """
    stretch = read_stretch(profile, profiles) if profile is not None else None
    if type not in get_args(OutputType):
        raise UsageError(f"there is no type {type!r}", hint="choose f16, f32 or bf16")
    folder = folder.absolute()
    target = target or folder.with_name(f"{folder.name}.{type}.gguf")
    if not force:
        check_free(target)
    model = read_architecture(folder)
    _check_no_input(folder, target)
    trained = model.rope.original or model.positions
    notes = []
    if stretch is not None:
        rope = stretch.rope(model.rope)
        check_positions(rope, stretch.context, trained, profile=True)
        model = model.model_copy(update={"rope": rope, "positions": stretch.context})
        if not stretch.built_in:
            notes.append(
                f"the file holds the positions of {profile}; run it with that --profile too"
            )
    elif model.rope.kind == "linear":
        check_positions(model.rope, model.positions, trained, profile=False)
    elif model.rope.kind == "none" and _named_toolllama(folder.name):
        notes.append(
            "config.json says nothing of ToolLLaMA's stretched positions; give --profile "
            f"{' or '.join(PROFILES)} if this is one"
        )
    vocabulary = _vocabulary(folder, model.vocabulary)
    plan = list(wanted(model))
    stored = Shards(folder).tensors
    check(plan, stored, tied=model.tied)
    with fresh_file(target) as fresh:
        file = GgufFile(fresh, folder, model, vocabulary, type)
        try:
            file.head(stretch.built_in if stretch is not None else "")
            file.plan(plan, target)
            for at, one in enumerate(plan):
                file.put(one, stored[one.name].read())
                if progress is not None:
                    progress(at + 1, len(plan))
        finally:
            file.close()
    return Converted(
        path=str(target),
        type=type,
        size_bytes=target.stat().st_size,
        tensors=len(plan),
        context=model.positions,
        rope=model.rope,
        tokenizer=f"{vocabulary.model} ({vocabulary.pre})",
        notes=(*notes, *vocabulary.notes),
    )


def _check_no_input(folder: Path, target: Path) -> None:
    """Refuse a target that is a file of the checkpoint, also under another name."""
    if not (folder.is_dir() and target.is_file()):
        return
    for one in folder.iterdir():
        if one.suffix != ".gguf" and one.is_file() and one.samefile(target):
            raise UsageError(
                f"the result would replace {one.name!r}, a file that it is made from",
                hint="name another with --out",
            )


def _named_toolllama(name: str) -> bool:
    return "toolllama" in re.sub(r"[^a-z]", "", name.lower())


def _vocabulary(folder: Path, size: int) -> Vocabulary:
    if (folder / "tokenizer.model").is_file():
        return read_tokenizer_model(folder, size)
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer_json(folder, size)
    raise TokenizerError(
        f"there is no tokenizer in {str(folder)!r}: no tokenizer.model and no tokenizer.json",
        hint=HINT,
    )
