"""Requirements of a GGUF model, and whether this machine meets them: format, memory, cores.

``Footprint`` is the memory that a model takes, from the sizes in its header. Free memory is the
least of what the system, the control group and ``ulimit -v`` leave; an unknown limit is no limit.
Files that are no generating model (embeddings, encoder-decoders, adapters, missing parts) raise
ModelError with the reason. Loads no llama.cpp.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import MemoryShortError
from toolsrv_registry.host_resources import addresses_left, core_numbers
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.gguf_header import DOWNLOAD_AGAIN, GgufHeader
from toolsrv_runtime.profiles import KvType

BATCH, GPU_BATCH = 256, 512
"""Tokens that are evaluated in one step at most: on a processor, and on a GPU as llama.cpp has it."""

STATES = 9
"""States that are kept of a recurrent model; see ``engine.llama``."""

_BLOCK = 32
_BLOCK_BYTES: Mapping[KvType, int] = {"f16": 64, "q8_0": 34, "q4_0": 18}
"""Bytes of a block of 32 numbers in ggml's types: a 16-bit scale and the numbers, where quantised."""


class Footprint(BaseModel):
    """Bytes: of the weights, of one token in the KV cache, and of what a batch is worked out in.

    What a batch needs for every token in the cache is part of ``per_token``.
    """

    model_config = ConfigDict(frozen=True)

    weights: int
    per_token: int
    scratch: int

    def total(self, cells: int) -> int:
        """Return the bytes with room for ``cells`` tokens."""
        return self.weights + self.scratch + cells * self.per_token

    def cells_within(self, available: int) -> int:
        """Return for how many tokens there is room in ``available`` bytes; may be negative."""
        return (available - self.weights - self.scratch) // max(1, self.per_token)

    def on_host(self, gpu_layers: int, layers: int) -> Footprint:
        """Return what is left for the processor's memory when ``gpu_layers`` of ``layers`` are not.

        Both count the output as one; the scratch memory of the rest stays as large.
        """
        left = max(0.0, 1 - gpu_layers / max(1, layers))
        return Footprint(
            weights=round(self.weights * left),
            per_token=round(self.per_token * left),
            scratch=self.scratch,
        )

    def caches_within(self, available: int, *, cells: int, further: int) -> int:
        """Return how many caches there is room for, one at least: of ``cells`` tokens the first.

        Each other has ``further`` tokens, and is worked out in memory of its own.
        """
        left = available - self.total(cells)
        return 1 + max(0, left // max(1, self.scratch + further * self.per_token))


def batch_for(*, gpu: bool) -> int:
    """Return how many tokens are evaluated in one step at most.

    On a processor larger batches read no faster: Qwen2.5-Coder 0.5B read prompts of 900 tokens at
    62 tokens for each second of a core with 256, 56 with 512, 53 with 1,024; 1.5B 22 with 256, 20
    with 512.
    """
    return GPU_BATCH if gpu else BATCH


def resident_cells(context: int) -> int:
    """Return how many tokens of a tree are worth keeping beside a path of ``context`` tokens."""
    return context + min(3 * context, 16_384)


def further_cells(context: int) -> int:
    """Return how many tokens each cache beyond the first holds, where a model has several."""
    return 2 * context


def estimate_footprint(
    header: GgufHeader,
    *,
    weights: int,
    vocabulary: int,
    kv_type: KvType = "f16",
    flash_attention: bool = True,
    batch: int = BATCH,
) -> Footprint:
    """Return what a model takes; ``weights`` is the size of its files in bytes.

    ``kv_type`` is how keys and values are kept. Without ``flash_attention`` a batch, of up to
    ``batch`` tokens, has a weight for every cell, in each head.
    """
    layers, width = _number(header, "block_count"), _number(header, "embedding_length")
    heads = _number(header, "attention.head_count") or 1
    size = width // max(1, heads)
    key = _number(header, "attention.key_length") or size
    value = _number(header, "attention.value_length") or size
    state = _state(header, layers, width)
    attends = not state or _number(header, "attention.head_count") > 0
    kv_heads = _per_layer(header.own("attention.head_count_kv"), layers, heads) if attends else 0
    inner = _number(header, "feed_forward_length")
    floats = vocabulary + 4 * width + 2 * inner + heads * batch
    looked_at = 0 if flash_attention else 4 * batch * (heads + 1)
    return Footprint(
        weights=weights,
        per_token=-(-kv_heads * (key + value) * _BLOCK_BYTES[kv_type] // _BLOCK) + looked_at,
        scratch=4 * batch * floats + STATES * state,
    )


def _state(header: GgufHeader, layers: int, width: int) -> int:
    """Return the bytes of a recurrent model's state of one sequence; 0 where it keeps none."""
    inner, size = _number(header, "ssm.inner_size"), _number(header, "ssm.state_size")
    groups = max(1, _number(header, "ssm.group_count"))
    read = max(0, _number(header, "ssm.conv_kernel") - 1) * (inner + 2 * groups * size)
    own = inner * size + read
    if head := _number(header, "wkv.head_size"):
        own = width * (head + 2)
    return 4 * layers * own


def _number(header: GgufHeader, key: str) -> int:
    value = header.own(key)
    if isinstance(value, list):  # one for each layer
        value = max((one for one in value if isinstance(one, int)), default=0)
    return value if isinstance(value, int) and value > 0 else 0


def _per_layer(said: Any, layers: int, otherwise: int) -> int:
    """Return the sum over all layers of a number that may be given once or for each."""
    if isinstance(said, list):
        return sum(one for one in said if isinstance(one, int))
    return layers * (said if isinstance(said, int) and said > 0 else otherwise)


def format_bytes(count: int) -> str:
    """Return a number of bytes as people read it: ``4.1 GB``."""
    for unit, size in _UNITS.items():
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


_UNITS: Mapping[str, int] = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}


_CPUS = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


class ProcessMemory(NamedTuple):
    """Bytes of a process: of its own that lie in memory, and of addresses (what ``ulimit -v`` counts)."""

    own: int
    addresses: int


class MemoryShortage(NamedTuple):
    """Bytes that a process still needs, bytes that are left, and who says so."""

    needed: int
    available: int
    limit: str


NO_MEMORY = ProcessMemory(0, 0)


def available_memory(program: ProcessMemory = NO_MEMORY) -> int | None:
    """Return how many bytes this process may still take, None where nobody says.

    The least of what the machine, the control group and the process's own limit leave.
    ``program`` is what the process comes to without what is asked about: what it has not taken of
    that yet is set aside.
    """
    left = [left - needed for needed, left, _ in _limits(program)]
    return max(0, min(left)) if left else None


def memory_shortage(program: ProcessMemory) -> MemoryShortage | None:
    """Return what is missing for the process to come to ``program``, None where it has room."""
    return next((one for one in _limits(program) if one.needed > one.available), None)


def physical_cores() -> int:
    """Return how many cores this process may run on; two threads of a core count once."""
    cpus = core_numbers()
    if not sys.platform.startswith("linux"):
        import psutil  # noqa: PLC0415 - 10 ms of a start

        return max(1, min(len(cpus), psutil.cpu_count(logical=False) or len(cpus)))
    cores = {_read(_CPUS / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    return max(1, len(cores))


def _limits(program: ProcessMemory) -> list[MemoryShortage]:
    """Return every limit that is known, with what the process still needs of it."""
    import psutil  # noqa: PLC0415 - 10 ms of a start

    taken = psutil.Process().memory_info()
    # Windows counts what is the process's own; of Linux's pages those of files are shared.
    resident = getattr(taken, "private", taken.rss) - getattr(taken, "shared", 0)
    own = max(0, program.own - resident)
    addresses = max(0, program.addresses - taken.vms)
    known = [
        (own, psutil.virtual_memory().available, "the machine"),
        (own, _control_group(), "the control group"),
        (addresses, addresses_left(), "ulimit -v"),
    ]
    return [MemoryShortage(needed, left, who) for needed, left, who in known if left is not None]


def _control_group() -> int | None:
    """Return what is left in the process's own control group (version 2) and those above it."""
    path = re.search(r"^0::(/.*)$", _read(Path("/proc/self/cgroup")), re.MULTILINE)
    if path is None:
        return None
    place = _CGROUP / path[1].lstrip("/")
    left = []
    for folder in (place, *place.parents):
        limit, used = _read(folder / "memory.max"), _read(folder / "memory.current")
        if limit.isdecimal() and used.isdecimal():
            cached = re.search(
                r"^inactive_file (\d+)$", _read(folder / "memory.stat"), re.MULTILINE
            )
            left.append(int(limit) - int(used) + (int(cached[1]) if cached else 0))
        if folder == _CGROUP:
            break
    return min(left, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


ALTERNATIVES = "choose a GGUF of an instruct model: LLaMA, Qwen, Mistral, Gemma …"

_EMBEDDERS = re.compile(r"bert|gemma-embedding|t5encoder|wavtokenizer")
_POOLS_NOTHING = (None, 0)
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


def split_parts(path: Path) -> list[Path]:
    """Return the files that a model lies in: the file itself, or all parts of a split one."""
    found = _PART.search(path.name)
    if found is None:
        return [path]
    stem = path.name[: found.start()]
    count = int(found[2])
    return [path.with_name(f"{stem}-{at:05}-of-{count:05}.gguf") for at in range(1, count + 1)]


def check_model_header(header: GgufHeader) -> None:
    """Refuse what is no generating model at all, and a model whose parts are missing.

    Raises:
        ModelError: says what the file is instead.
    """
    name, kind, own = repr(str(header.path)), header.architecture, header.metadata
    if own.get("general.type") == "adapter":
        raise ModelError(
            f"{name} is a LoRA adapter, not a model",
            hint="name its base model, with --adapter; or: toolsrv model merge",
        )
    if kind == "clip" or own.get("general.type") == "mmproj":
        raise ModelError(f"{name} is the image part of a model, not the model", hint=ALTERNATIVES)
    if _EMBEDDERS.search(kind) or header.own("attention.causal") is False:
        raise ModelError(
            f"{name} is an embedding model ({kind}): it cannot write text", hint=ALTERNATIVES
        )
    if header.own("pooling_type") not in _POOLS_NOTHING:
        raise ModelError(
            f"{name} is a model for embeddings or ranking (it pools its output): it cannot write "
            "text",
            hint=ALTERNATIVES,
        )
    missing = [one.name for one in split_parts(header.path) if not one.is_file()]
    if missing:
        raise ModelError(
            f"{name} is one of {len(split_parts(header.path))} parts, and missing are: "
            f"{', '.join(missing)}",
            hint="download all parts into one folder, and name the first",
        )
    if header.tensors == 0:
        raise ModelError(f"{name} holds a vocabulary and no weights", hint=ALTERNATIVES)


def explain_load_error(header: GgufHeader, error: ModelError) -> ModelError:
    """Return why llama.cpp could not load a file, better than it says itself."""
    import gguf  # noqa: PLC0415 - only when a file is refused

    name = repr(str(header.path))
    if header.architecture not in gguf.MODEL_ARCH_NAMES.values():
        return ModelError(
            f"{name} is a model of the architecture {header.architecture!r}, which "
            f"llama-cpp-python {version('llama-cpp-python')} does not know",
            hint=f"update llama-cpp-python, or {ALTERNATIVES}",
        )
    if header.size < (needed := header.needed()):
        return ModelError(
            f"{name} is incomplete: it has {header.size:,} of {needed:,} bytes", hint=DOWNLOAD_AGAIN
        )
    return error


def check_weights_fit(header: GgufHeader, available: int | None) -> None:
    """Tell a model that could not be loaded because its weights alone do not fit.

    Raises:
        MemoryShortError: with the numbers.
    """
    size = sum(one.stat().st_size for one in split_parts(header.path))
    if available is not None and available < size:
        raise MemoryShortError(
            f"{header.path.name} needs {format_bytes(size)} of memory for its weights and "
            f"{format_bytes(available)} are available",
            hint="close other programs, raise the limit (ulimit -v), or choose a smaller model",
        )


def is_recurrent(llama_cpp: Any, model: Any) -> bool:
    """Whether a model keeps a state of all it has read, which cannot be cut back to a beginning.

    So do recurrent models and hybrid ones: their paths share no beginnings.
    """
    return bool(llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model))


def check_decoder(llama_cpp: Any, model: Any, path: Path) -> None:
    """Refuse models that do not continue a text token by token.

    Raises:
        ModelError: says what kind of model it is.
    """
    kinds = {
        "an encoder-decoder model": llama_cpp.llama_model_has_encoder(model),
        "a diffusion model": llama_cpp.llama_model_is_diffusion(model),
    }
    kind = next((name for name, so in kinds.items() if so), None)
    if kind is not None:
        raise ModelError(
            f"{str(path)!r} is {kind}: it does not continue a text token by token",
            hint=ALTERNATIVES,
        )


def fit_cells(
    path: Path, needs: Footprint, *, context: int, wanted: int, available: int | None
) -> int:
    """Return for how many tokens to make room: ``wanted``, less where memory is short.

    Raises:
        MemoryShortError: not even one path of ``context`` tokens fits.
    """
    if available is None or needs.total(wanted) <= available:
        return wanted
    cells = needs.cells_within(available)
    if cells >= context:
        return cells
    raise MemoryShortError(
        f"{path.name} needs {format_bytes(needs.total(context))} of memory (weights "
        f"{format_bytes(needs.weights)}, {format_bytes(needs.per_token * context)} for a context of "
        f"{context:,} tokens) and {format_bytes(available)} are available",
        hint=_memory_hint(needs, cells),
    )


def _memory_hint(needs: Footprint, cells: int) -> str:
    """Say what would fit."""
    least = 512
    if cells >= least:
        return (
            f"in a profile set context = {cells // 256 * 256}, or close other programs, or raise "
            "the limit (ulimit -v), or quantise the model smaller: toolsrv model quantize"
        )
    return (
        "close other programs, raise the limit (ulimit -v), quantise the model smaller (toolsrv "
        f"model quantize), or choose a smaller one; weights alone take {format_bytes(needs.weights)}"
    )
