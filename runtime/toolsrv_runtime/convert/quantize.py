"""Quantise a GGUF file with llama.cpp. The result is written atomically."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.convert import QuantizeError
from toolsrv_runtime.convert.checkpoint import atomic_file, check_absent

QuantType = Literal["Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "F16"]

Progress = Callable[[int, int], None]
"""Called with (tensors done, tensors in all), from another thread."""

_STEP = re.compile(rb"\[\s*(\d+)/\s*(\d+)\]")
_ERROR_LEVEL = 4


class Quantized(BaseModel):
    """A quantised file and what it was made from; sizes in bytes."""

    model_config = ConfigDict(frozen=True)

    path: str
    type: QuantType
    size_bytes: int
    source: str
    source_bytes: int


def quantize(
    source: Path,
    target: Path | None,
    type: QuantType,  # noqa: A002 - what llama.cpp calls it
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Quantized:
    """Write the GGUF file ``source`` with smaller weights (default: beside it).

    Rows whose length the type cannot divide get the nearest type that can; llama.cpp decides.
    ``force`` replaces a file that is there already.

    Raises:
        ModelError: ``source`` is no GGUF file that llama.cpp can load.
        QuantizeError: It is quantised already, or llama.cpp failed.
        WriteError: The file cannot be written.
        UsageError: An unknown type, the target is the source, or it is there already.
    """
    from toolsrv_runtime.gguf_models import inspect_model  # noqa: PLC0415 - loads llama.cpp

    if type not in get_args(QuantType):
        raise UsageError(
            f"there is no type {type!r}", hint=f"choose one of: {', '.join(get_args(QuantType))}"
        )
    inspect_model(source)
    _check_source(source)
    target = target or source.with_name(f"{_stem(source)}.{type.lower()}.gguf")
    if target.exists() and target.samefile(source):
        raise UsageError(
            "the result would replace the file it is made from", hint="name another with --out"
        )
    if not force:
        check_absent(target)
    with atomic_file(target) as fresh:
        _run(source, fresh, type, progress)
    return Quantized(
        path=str(target),
        type=type,
        size_bytes=target.stat().st_size,
        source=str(source),
        source_bytes=source.stat().st_size,
    )


def _stem(source: Path) -> str:
    """Return the file's name without ``.gguf`` and without the type it is in."""
    return re.sub(r"[.-](f16|f32|bf16)$", "", source.stem, flags=re.IGNORECASE)


def _check_source(source: Path) -> None:
    import gguf  # noqa: PLC0415 - only when something is quantised

    whole = {"F32", "F16", "BF16"}
    kinds = {one.tensor_type.name for one in gguf.GGUFReader(source).tensors} - whole
    if kinds:
        raise QuantizeError(
            f"{str(source)!r} is quantised already ({', '.join(sorted(kinds))}); doing it again "
            "would add to the loss",
            hint="start from the f16, bf16 or f32 file",
        )


def _run(source: Path, fresh: Path, kind: QuantType, progress: Progress | None) -> None:
    """Quantise on a thread of its own, so that Ctrl-C is heard while llama.cpp works."""
    import llama_cpp  # noqa: PLC0415 - heavy

    from toolsrv_runtime.engine.context import silence_log  # noqa: PLC0415 - heavy

    last = b""

    @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
    def listen(level: int, text: bytes, data: Any) -> None:
        nonlocal last
        del data
        if (found := _STEP.search(text)) and progress is not None:
            progress(int(found[1]), int(found[2]))
        elif level == _ERROR_LEVEL and text.strip():
            last = text.strip()

    params = llama_cpp.llama_model_quantize_default_params()
    prefix = "LLAMA_FTYPE_MOSTLY_"
    params.ftype = getattr(llama_cpp, f"{prefix}{kind}")
    outcome: list[int] = []
    # llama.cpp opens the file itself, some time after it has begun. By its name it would make one
    # anew that an interrupt has removed; as an open one it stays removed.
    held = os.open(fresh, os.O_RDWR)
    opened = Path(f"/proc/self/fd/{held}")
    target = opened if opened.exists() else fresh

    def work() -> None:
        outcome.append(
            llama_cpp.llama_model_quantize(
                str(source).encode(), str(target).encode(), ctypes.byref(params)
            )
        )
        os.close(held)  # not before: another file could get its number

    llama_cpp.llama_log_set(listen, ctypes.c_void_p(0))
    try:
        thread = threading.Thread(target=work, name="quantize", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
    finally:
        llama_cpp.llama_log_set(silence_log, ctypes.c_void_p(0))
    if outcome != [0]:
        free = shutil.disk_usage(fresh.parent).free
        reason = last.decode(errors="replace").rpartition(": ")[2] or "no reason given"
        raise QuantizeError(
            f"llama.cpp could not quantise {source.name!r} to {kind}: {reason}",
            hint=f"the disk has {free:,} bytes free; free some space, or name another place",
        )
