"""Which processors llama.cpp can compute on here, and how many layers go to a GPU.

Reads ggml's registry: the backends that llama.cpp was built with and the devices that they found.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolsrv_runtime.footprint import Footprint, told

Kind = Literal["cpu", "gpu", "igpu", "accelerator"]

_KINDS: tuple[Kind, ...] = ("cpu", "gpu", "igpu", "accelerator")
_NO_GPU = frozenset({"CPU", "BLAS", "RPC"})
"""Backends that are no GPU of this machine."""

_SPARE = 512 << 20
"""Bytes of a GPU that stay free: for its driver's own buffers, and for the screen."""

_REBUILD = "pip install --force-reinstall --no-cache-dir llama-cpp-python"


@dataclass(frozen=True, slots=True)
class Device:
    """A device of ggml; ``free`` and ``total`` are bytes of its memory, 0 where it does not say."""

    name: str
    description: str
    kind: Kind
    free: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model is computed.

    ``gpu_layers`` of ``layers`` (its blocks and its output) lie on the GPU; ``device`` names it in
    words, ``why`` says why not all of them do, or none ("" where all do), and ``remedy`` the
    command that changes that ("" where none does).
    """

    gpu_layers: int
    layers: int
    device: str
    why: str = ""
    remedy: str = ""

    def without_gpu(self, why: str) -> Placement:
        """Return the placement on the processor instead."""
        return Placement(0, self.layers, "processor", why)


def backends() -> tuple[str, ...]:
    """Return the names of the backends that llama.cpp was built with, as "CPU" and "CUDA"."""
    ggml = _ggml()
    count = ggml.ggml_backend_reg_count()
    return tuple(
        ggml.ggml_backend_reg_name(ggml.ggml_backend_reg_get(at)).decode() for at in range(count)
    )


def devices() -> tuple[Device, ...]:
    """Return the devices that the backends found."""
    ggml, found = _ggml(), []
    for at in range(ggml.ggml_backend_dev_count()):
        one = ggml.ggml_backend_dev_get(at)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        ggml.ggml_backend_dev_memory(one, ctypes.byref(free), ctypes.byref(total))
        kind = ggml.ggml_backend_dev_type(one)
        found.append(
            Device(
                ggml.ggml_backend_dev_name(one).decode(errors="replace"),
                ggml.ggml_backend_dev_description(one).decode(errors="replace"),
                _KINDS[kind] if 0 <= kind < len(_KINDS) else "accelerator",
                free.value,
                total.value,
            )
        )
    return tuple(found)


def shared_memory() -> bool:
    """Whether the GPUs here use the processor's own memory, as Apple's and built-in ones do."""
    gpus = [one for one in devices() if one.kind in ("gpu", "igpu")]
    return sys.platform == "darwin" or any(one.kind == "igpu" for one in gpus)


def place(
    *,
    asked: int | None,
    layers: int,
    needs: Footprint,
    cells: int,
    built: Sequence[str],
    found: Sequence[Device],
    hardware: str = "",
) -> Placement:
    """Return where to compute a model of ``layers`` blocks with room for ``cells`` tokens.

    ``asked`` is the number of layers for the GPU, None for all that fit. ``built`` are
    ``backends()``, ``found`` ``devices()``, ``hardware`` is ``gpu_hardware()``.
    """
    whole = layers + 1
    gpus = [one for one in found if one.kind in ("gpu", "igpu")]
    if not gpus:
        return Placement(0, whole, "processor", *_no_gpu(built, hardware))
    names = " and ".join(f"{one.description} ({one.name})" for one in gpus)
    if asked == 0:
        return Placement(0, whole, "processor", f"gpu_layers is 0; there is {names}")
    fitting = fitting_layers(layers, needs, cells, sum(one.free for one in gpus))
    wanted = min(whole, fitting if asked is None else asked)
    device, why, remedy = names, "", ""
    if wanted < whole:
        device = f"{names}: {wanted} of {whole} layers"
        why = f"{told(sum(one.free for one in gpus))} of its memory are free"
        if asked is not None:
            why = f"gpu_layers is {asked}"
    if asked is not None and wanted > fitting:
        why, remedy = f"only {fitting} layers are likely to fit", "toolsrv config unset gpu_layers"
    if wanted == 0:
        return Placement(0, whole, "processor", f"no layer fits {names}: {why}")
    return Placement(wanted, whole, device, why, remedy)


def fitting_layers(layers: int, needs: Footprint, cells: int, free: int) -> int:
    """Return how many of a model's layers, output included, fit ``free`` bytes of a GPU.

    All where a GPU does not say what is free (0).
    """
    whole = layers + 1
    if free == 0:
        return whole
    each = needs.weights / whole + needs.per_token * cells / max(1, layers)
    return max(0, min(whole, int((free - _SPARE - needs.scratch) / max(1.0, each))))


def gpu_hardware(*, system: str = sys.platform, root: Path = Path("/")) -> str:
    """Return the backend for the GPU that this machine seems to have, as CMake calls it; or ""."""
    if system == "darwin":
        return "METAL"
    nvidia = (root / "proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi")
    if nvidia:
        return "CUDA"
    drawing = root / "dev/dri"
    return "VULKAN" if drawing.is_dir() and any(drawing.glob("renderD*")) else ""


def rebuild(backend: str) -> str:
    """Return the command that builds llama.cpp for a backend: CUDA, VULKAN or METAL."""
    return f'CMAKE_ARGS="-DGGML_{backend}=on" {_REBUILD}'


def _no_gpu(built: Sequence[str], hardware: str) -> tuple[str, str]:
    """Return why no GPU is used, and the command that changes it."""
    kinds = [one for one in built if one not in _NO_GPU]
    if kinds:
        return f"llama.cpp was built for {' and '.join(kinds)}, which found no GPU", ""
    if hardware:
        why = f"llama.cpp was built without a GPU backend; this machine seems to take {hardware}"
        return why, rebuild(hardware)
    return "llama.cpp was built without a GPU backend, and no GPU was seen here", ""


def _ggml() -> Any:
    import llama_cpp  # noqa: PLC0415 - heavy

    ggml: Any = llama_cpp.llama_cpp._lib  # noqa: SLF001 - it re-exports ggml's functions
    for name, result in (
        ("reg_get", ctypes.c_void_p),
        ("reg_name", ctypes.c_char_p),
        ("dev_get", ctypes.c_void_p),
        ("dev_name", ctypes.c_char_p),
        ("dev_description", ctypes.c_char_p),
    ):
        getattr(ggml, f"ggml_backend_{name}").restype = result
    for name in ("reg_count", "dev_count"):
        getattr(ggml, f"ggml_backend_{name}").restype = ctypes.c_size_t
    ggml.ggml_backend_dev_type.restype = ctypes.c_int
    ggml.ggml_backend_dev_memory.restype = None
    for name in ("reg_get", "dev_get"):
        getattr(ggml, f"ggml_backend_{name}").argtypes = [ctypes.c_size_t]
    for name in ("reg_name", "dev_name", "dev_description", "dev_type"):
        getattr(ggml, f"ggml_backend_{name}").argtypes = [ctypes.c_void_p]
    size = ctypes.POINTER(ctypes.c_size_t)
    ggml.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, size, size]
    return ggml
