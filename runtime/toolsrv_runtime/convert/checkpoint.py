"""Convert a checkpoint folder to one GGUF file, written atomically with the gguf package.

``atomic_file`` writes a large file beside its target and renames it at the end. ``GgufWriter``
writes metadata, the list of tensors, then each tensor. A profile may replace the rotary positions
and the context of ``config.json``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import BusyError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.convert import TokenizerError, WriteError
from toolsrv_runtime.convert.architecture import (
    PROFILE_CONTEXT,
    PROFILES,
    Architecture,
    Rope,
    RopeScaling,
    check_rope_positions,
    read_architecture,
)
from toolsrv_runtime.convert.tensors import (
    Floats,
    OutputType,
    Shards,
    TensorSpec,
    check_tensors,
    convert_tensor,
    gguf_names,
    stored_type,
    tensor_specs,
)
from toolsrv_runtime.convert.tokenizer import (
    DOWNLOAD_HINT,
    GgufVocabulary,
    read_tokenizer_json,
    read_tokenizer_model,
)
from toolsrv_runtime.files import check_target
from toolsrv_runtime.profiles.choose import find_user_profile, user_profiles


def check_absent(target: Path) -> None:
    """Refuse a file that is there already, whatever is in it.

    Raises:
        UsageError: there is one.
    """
    if target.exists() or target.is_symlink():
        raise UsageError(
            f"{str(target)!r} is there already",
            hint="name another place with --out, or replace it with --force",
        )


def check_disk_space(fresh: Path, target: Path, size: int) -> None:
    """Raise WriteError where ``size`` bytes have no room on the disk of ``fresh``; names ``target``."""
    free = shutil.disk_usage(fresh.parent).free
    if size > free:
        raise WriteError(
            f"{str(target)!r} needs {size:,} bytes and the disk has {free:,} free",
            hint="free some space, or name another place with --out",
        )


@contextlib.contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield the path of an empty file beside ``target``, and rename it to that at the end.

    It is flushed to the disk before; whatever goes wrong, it is removed and ``target`` is as it
    was. What a killed process left of it is written over the next time.

    Raises:
        UsageError: No file can be made there: the folder is missing, or it is one, or a device.
        WriteError: The folder is closed, or the disk is full.
        BusyError: Another process writes the same file.
    """
    check_target(target)
    fresh = target.with_name(f"{target.name}.partial")
    try:
        with _locked(target):
            try:
                fresh.touch()
                yield fresh
                with fresh.open("r+b") as written:
                    os.fsync(written.fileno())
                fresh.replace(target)
            finally:
                with contextlib.suppress(OSError):  # on Windows while llama.cpp still writes it
                    fresh.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot write {str(target)!r}: {error.strerror or error}",
            hint="free some space, or name another place with --out",
        ) from error


def _locked(target: Path) -> HeldLock:
    try:
        return lock_beside(target)
    except BlockingIOError:
        raise BusyError(
            f"another process is writing {str(target)!r}",
            hint="wait for it, or name another place with --out",
        ) from None


def read_rope_scaling(name: str, folder: Path | None = None) -> RopeScaling:
    """Return what the profile of that name, or in that TOML file, says of positions.

    ``folder`` holds the user's profiles, which go before built-in ones of the same name. What one
    leaves out its base says.

    Raises:
        ProfileError: A TOML file is not acceptable.
        UsageError: There is no such profile, or it says nothing of positions.
    """
    own = find_user_profile(name, folder)
    if own is None:
        if factor := PROFILES.get(name):
            return RopeScaling(factor=factor, context=PROFILE_CONTEXT, built_in=name)
        raise UsageError(
            f"there is no profile {name!r} that says how positions are divided",
            hint=f"choose one of: {', '.join(dict.fromkeys([*user_profiles(folder), *PROFILES]))}; "
            "or name a TOML file",
        )
    profile, path = own
    base = PROFILES.get(profile.base)
    scale = profile.rope_freq_scale or (1 / base if base else None)
    context = profile.context or (PROFILE_CONTEXT if base else None)
    if scale is None or context is None:
        raise UsageError(
            f"{path} says nothing of {'rope_freq_scale' if scale is None else 'context'}, and its "
            f"base {profile.base!r} neither",
            hint="add it, or leave --profile out: config.json decides then",
        )
    return RopeScaling(factor=1 / scale, context=context)


_FILE_TYPES = {"f32": 0, "f16": 1, "bf16": 32}


class GgufWriter:
    """A GGUF file as it is written: metadata, then the list of tensors, then each of them."""

    def __init__(
        self,
        path: Path,
        folder: Path,
        model: Architecture,
        vocabulary: GgufVocabulary,
        kind: OutputType,
    ) -> None:
        import gguf  # noqa: PLC0415 - only when something is converted

        logging.getLogger("gguf").setLevel(logging.CRITICAL)  # what matters raises
        self._writer: Any = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.LLAMA])
        self._names = gguf_names(model.layers)
        self._types: dict[str, Any] = {}
        self._path = path
        self._folder = folder
        self._model = model
        self._vocabulary = vocabulary
        self._kind: OutputType = kind

    def head(self, profile: str) -> None:
        """Set the metadata; ``profile`` is the built-in one that the model is made for, or ""."""
        writer, model = self._writer, self._model
        writer.add_type("model")
        writer.add_name(self._folder.name)
        if profile:
            writer.add_string("toolsrv.profile", profile)
        writer.add_file_type(_FILE_TYPES[self._kind])
        writer.add_quantization_version(2)
        writer.add_vocab_size(model.vocabulary)
        writer.add_context_length(model.positions)
        writer.add_embedding_length(model.width)
        writer.add_block_count(model.layers)
        writer.add_feed_forward_length(model.inner)
        writer.add_head_count(model.heads)
        writer.add_head_count_kv(model.kv_heads)
        writer.add_key_length(model.head_size)
        writer.add_value_length(model.head_size)
        writer.add_layer_norm_rms_eps(model.epsilon)
        self._rope(model.rope)
        self._tokenizer()

    def _rope(self, rope: Rope) -> None:
        import gguf  # noqa: PLC0415 - as above

        self._writer.add_rope_dimension_count(self._model.head_size)
        self._writer.add_rope_freq_base(rope.theta)
        if rope.kind == "linear":
            self._writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            self._writer.add_rope_scaling_factor(rope.factor)
            if rope.original is not None:
                self._writer.add_rope_scaling_orig_ctx_len(rope.original)

    def _tokenizer(self) -> None:
        import gguf  # noqa: PLC0415 - as above

        writer, own = self._writer, self._vocabulary
        writer.add_tokenizer_model(own.model)
        writer.add_tokenizer_pre(own.pre)
        writer.add_token_list(own.tokens)
        if own.scores is not None:
            writer.add_token_scores(own.scores)
        writer.add_token_types(own.kinds)
        if own.add_space_prefix is not None:
            writer.add_add_space_prefix(own.add_space_prefix)
        try:
            special = gguf.SpecialVocab(
                self._folder, load_merges=own.model == "gpt2", n_vocab=len(own.tokens)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise TokenizerError(
                f"the tokenizer's files are damaged: {error}", hint=DOWNLOAD_HINT
            ) from None
        special.special_token_ids = {**own.specials, **special.special_token_ids}
        special.add_special_token.setdefault("bos", own.adds_bos)
        special.add_to_gguf(writer, quiet=True)

    def plan(self, plan: list[TensorSpec], target: Path) -> None:
        """Write metadata and the list of tensors.

        Raises:
            WriteError: There is no room for the file.
        """
        factors = self._model.rope.frequency_factors(self._model.head_size)
        if factors is not None:
            self._writer.add_tensor_info(
                "rope_freqs.weight", factors.shape, factors.dtype, factors.nbytes
            )
        size = 0
        for one in plan:
            raw_type, count = stored_type(one, self._kind)
            self._types[one.name] = raw_type
            # GGUF's writer takes the type from raw_type; any other than uint8 keeps the shape.
            self._writer.add_tensor_info(
                self._names[one.name], one.shape, "float32", count, raw_dtype=raw_type
            )
            size += count
        check_disk_space(self._path, target, size)
        self._writer.write_header_to_file()
        self._writer.write_kv_data_to_file()
        self._writer.write_ti_data_to_file()
        if factors is not None:
            self._writer.write_tensor_data(factors)

    def put(self, one: TensorSpec, values: Floats) -> None:
        """Write the next tensor of the plan."""
        self._writer.write_tensor_data(convert_tensor(one, values, self._types[one.name]))

    def close(self) -> None:
        """Close the file; idempotent."""
        self._writer.close()


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
    decides rotary positions and context instead of ``config.json``. ``force`` replaces a file that
    is there already.

    Raises:
        CheckpointError: The folder cannot be converted; see ``convert.errors`` for its kinds.
        WriteError: The file cannot be written.
        ProfileError: A TOML file is not acceptable.
        UsageError: An unknown profile or type, .bin weights without torch, a profile whose
            context the checkpoint's positions cannot carry or that names none, a file that is
            there already, or one of the checkpoint's own.
    """
    stretch = read_rope_scaling(profile, profiles) if profile is not None else None
    if type not in get_args(OutputType):
        raise UsageError(f"there is no type {type!r}", hint="choose f16, f32 or bf16")
    folder = folder.absolute()
    target = target or folder.with_name(f"{folder.name}.{type}.gguf")
    if not force:
        check_absent(target)
    model = read_architecture(folder)
    _check_no_input(folder, target)
    trained = model.rope.original or model.positions
    notes = []
    if stretch is not None:
        rope = stretch.rope(model.rope)
        check_rope_positions(rope, stretch.context, trained, profile=True)
        model = model.model_copy(update={"rope": rope, "positions": stretch.context})
        if not stretch.built_in:
            notes.append(
                f"the file holds the positions of {profile}; run it with that --profile too"
            )
    elif model.rope.kind == "linear":
        check_rope_positions(model.rope, model.positions, trained, profile=False)
    elif model.rope.kind == "none" and _named_toolllama(folder.name):
        notes.append(
            "config.json says nothing of ToolLLaMA's stretched positions; give --profile "
            f"{' or '.join(PROFILES)} if this is one"
        )
    vocabulary = _vocabulary(folder, model.vocabulary)
    plan = list(tensor_specs(model))
    stored = Shards(folder).tensors
    check_tensors(plan, stored, tied=model.tied)
    with atomic_file(target) as fresh:
        file = GgufWriter(fresh, folder, model, vocabulary, type)
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


def _vocabulary(folder: Path, size: int) -> GgufVocabulary:
    if (folder / "tokenizer.model").is_file():
        return read_tokenizer_model(folder, size)
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer_json(folder, size)
    raise TokenizerError(
        f"there is no tokenizer in {str(folder)!r}: no tokenizer.model and no tokenizer.json",
        hint=DOWNLOAD_HINT,
    )
