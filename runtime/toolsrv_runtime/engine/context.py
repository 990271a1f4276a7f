"""llama.cpp's context, typed: KV cache, sequences, decode batches, and the work queued for them.

The only module that calls llama.cpp's context functions. Not thread-safe: the scheduler admits one
thread at a time. Knows no calls, prompts or grammars.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from toolsrv_runtime.engine.hardware import SharedCores
from toolsrv_runtime.engine.sampling import Logits
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.profiles import KvType
from toolsrv_runtime.requirements import is_recurrent
from toolsrv_runtime.stop import Stop

DECODED, NO_ROOM, ABORTED = 0, 1, 2
"""What ``llama_decode`` returns; below zero it failed."""

_LEAST_CARRIED = 256


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def silence_log(level: int, text: bytes, data: Any) -> None:
    """Drop llama.cpp's log: errors reach us as return codes."""


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Tokens in a batch, from ``position`` on; ``logits`` after the last one.

    ``sequences`` hold them together, in the same cells. Those that do must be alike so far.
    """

    sequences: Sequence[int]
    tokens: Sequence[int]
    position: int
    logits: bool


def open_model(path: Path, *, repack: bool = True, gpu_layers: int = 0) -> Any:
    """Return llama.cpp's handle of a GGUF file; free it with ``llama_model_free``.

    ``repack`` lets it rearrange weights for this CPU, which reads all of them. ``gpu_layers`` of
    its layers go to the GPU.

    Raises:
        ModelError: llama.cpp refuses the file.
    """
    llama_cpp.llama_log_set(silence_log, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = gpu_layers
    params.use_extra_bufts = repack and not has_amx()
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    if not model:
        raise ModelError(
            f"llama.cpp cannot load {str(path)!r}: the file is damaged or incomplete, or its "
            "architecture is not supported",
            hint="download or convert the model again",
        )
    return model


def open_adapter(model: Any, path: Path) -> Any:
    """Return llama.cpp's handle of a LoRA adapter for a model, which frees it with itself.

    Raises:
        ModelError: llama.cpp refuses it.
    """
    adapter = llama_cpp.llama_adapter_lora_init(model, str(path).encode())
    if not adapter:
        raise ModelError(
            f"llama.cpp cannot apply the adapter {path.name!r}",
            hint="name the model that it was trained on, or merge it: toolsrv model merge",
        )
    return adapter


class Context:
    """A KV cache of ``cells`` tokens for up to ``sequences`` sequences, and its batch.

    Decodes take their threads from ``cores``.

    ``kv_type`` is how keys and values are stored; all but "f16" need flash attention, for which see
    ``uses_flash_attention``; ``gpu``: layers lie on a GPU. Without it cells of other sequences make
    every decode slower: ``carried`` is how many evaluated tokens that is worth for an idle one,
    None where it costs nothing. ``whole``: the model keeps a state of all that a sequence holds
    (recurrent and hybrid ones), so a sequence is copied, saved and forgotten only as a whole, and
    lost by a decode that was broken off. ``adapter``: a LoRA adapter of the model
    (``open_adapter``), applied in full.

    Raises:
        MemoryError: there is no memory for so many cells.
        ModelError: the adapter cannot be applied.
    """

    def __init__(
        self,
        model: Any,
        *,
        cells: int,
        sequences: int,
        batch: int,
        cores: SharedCores,
        rope_freq_scale: float | None,
        kv_type: KvType = "f16",
        flash_attention: bool | None = None,
        gpu: bool = False,
        adapter: Any = None,
    ) -> None:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = cells
        params.n_batch = params.n_ubatch = batch
        params.n_seq_max = sequences
        params.kv_unified = True
        params.no_perf = True
        params.type_k = params.type_v = getattr(llama_cpp, f"GGML_TYPE_{kv_type.upper()}")
        params.op_offload = gpu
        flash = uses_flash_attention(flash_attention, kv_type, gpu=gpu)
        self.whole = is_recurrent(llama_cpp, model)
        self.carried: int | None = None
        if flash is False and not self.whole:
            self.carried = most_carried_tokens(model)
        if flash is not None:
            params.flash_attn_type = int(flash)
        if rope_freq_scale is not None:
            params.rope_scaling_type = llama_cpp.LLAMA_ROPE_SCALING_TYPE_LINEAR
            params.rope_freq_scale = rope_freq_scale
        self._ctx = llama_cpp.llama_init_from_model(model, params)
        if not self._ctx:
            raise MemoryError
        if adapter is not None:
            self._apply(adapter)
        self._memory = llama_cpp.llama_get_memory(self._ctx)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        self._floats = ctypes.c_float * self._vocabulary
        self._batch = llama_cpp.llama_batch_init(batch, 0, sequences)
        self.batch_size = batch
        self.sequences = sequences
        self._cores = cores

    def _apply(self, adapter: Any) -> None:
        adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(
            ctypes.cast(adapter, llama_cpp.llama_adapter_lora_p_ctypes)
        )
        if llama_cpp.llama_set_adapters_lora(self._ctx, adapters, 1, (ctypes.c_float * 1)(1.0)):
            llama_cpp.llama_free(self._ctx)
            raise ModelError(
                "llama.cpp cannot apply the adapter to this model",
                hint="merge it: toolsrv model merge",
            )

    def close(self) -> None:
        """Free the cache and the batch; once."""
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._ctx)

    def copy(self, source: int, target: int, length: int) -> None:
        """Let ``target`` begin with the first ``length`` tokens of ``source``, sharing cells."""
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, length)

    def cut(self, sequence: int, length: int) -> None:
        """Forget a sequence's tokens from ``length`` on; -1 forgets it whole."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1)

    def save(self, sequence: int, length: int, spare: int) -> bytes:
        """Return the state of a sequence's first ``length`` tokens; ``spare`` is a free sequence."""
        self.copy(sequence, spare, length)
        try:
            size = llama_cpp.llama_state_seq_get_size(self._ctx, spare)
            buffer = (ctypes.c_uint8 * size)()
            written = llama_cpp.llama_state_seq_get_data(self._ctx, buffer, size, spare)
            return bytes(memoryview(buffer)[:written])
        finally:
            self.cut(spare, -1)

    def load(self, sequence: int, state: bytes) -> bool:
        """Make an empty sequence what ``save`` returned; False when llama.cpp refuses it."""
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        if llama_cpp.llama_state_seq_set_data(self._ctx, buffer, len(state), sequence):
            return True
        self.cut(sequence, -1)
        return False

    def decode(
        self, parts: Sequence[BatchPart], *, abort: Callable[[], bool] | None = None
    ) -> tuple[int, list[Logits | None]]:
        """Evaluate parts in one step: (code, a row for each that asks).

        Of parts that share a sequence, the one that comes first in it stands first.

        ``abort`` is asked many times meanwhile. Unless DECODED, nothing was evaluated.
        """
        ends = self._fill(parts)
        callback = llama_cpp.ggml_abort_callback(lambda _: abort() if abort else False)
        if abort is not None:
            llama_cpp.llama_set_abort_callback(self._ctx, callback, None)
        code = self._cores.run(self._decode)
        if abort is not None:
            none = llama_cpp.ggml_abort_callback(0)
            llama_cpp.llama_set_abort_callback(self._ctx, none, None)
        if code != DECODED:
            for part in () if self.whole else parts:
                for sequence in part.sequences:
                    self.cut(sequence, part.position)
            return code, []
        rows = [
            self._row(end) if part.logits else None for part, end in zip(parts, ends, strict=True)
        ]
        return code, rows

    def _decode(self, threads: int) -> int:
        llama_cpp.llama_set_n_threads(self._ctx, threads, threads)
        return int(llama_cpp.llama_decode(self._ctx, self._batch))

    def _fill(self, parts: Sequence[BatchPart]) -> list[int]:
        """Write the batch; return the index of each part's last token in it."""
        batch, index, ends = self._batch, 0, []
        for part in parts:
            for offset, token in enumerate(part.tokens):
                batch.token[index] = token
                batch.pos[index] = part.position + offset
                batch.n_seq_id[index] = len(part.sequences)
                for place, sequence in enumerate(part.sequences):
                    batch.seq_id[index][place] = sequence
                batch.logits[index] = 0
                index += 1
            batch.logits[index - 1] = 1 if part.logits else 0
            ends.append(index - 1)
        batch.n_tokens = index
        return ends

    def _row(self, index: int) -> Logits:
        pointer = llama_cpp.llama_get_logits_ith(self._ctx, index)
        values = self._floats.from_address(ctypes.addressof(pointer.contents))
        return np.frombuffer(values, dtype=np.float32).copy()


def most_carried_tokens(model: Any) -> int:
    """Return for how many evaluated tokens the cells of an idle sequence are carried along.

    To look at a cell takes 4 operations for each value of a token's state in each layer, to
    evaluate a token again 2 for each weight, which run about twice as fast. Few sequences are come
    back to, so a quarter of what evaluating again would cost is paid. At least 256: 1,100 tokens
    were measured to cost the whole on the model that ships, 2,200 on one with 150 million weights.
    """
    width = llama_cpp.llama_model_n_embd(model)
    words = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    weights: int = llama_cpp.llama_model_n_params(model) - words * width
    looking: int = 4 * width * max(1, llama_cpp.llama_model_n_layer(model))
    return max(_LEAST_CARRIED, weights // (4 * looking))


def uses_flash_attention(asked: bool | None, kv_type: KvType, *, gpu: bool) -> bool | None:
    """Return whether flash attention is used: as ``asked``; None leaves it to llama.cpp.

    Where nothing was asked, not on a processor (no ``gpu``): below 64 tokens in a batch llama.cpp's
    kernel goes through each one's cells singly there and takes 5 to 15 times as long for them.
    """
    if asked is None and kv_type == "f16" and not gpu:
        return False
    return asked


def has_amx() -> bool:
    """Whether llama.cpp would repack weights for AMX tiles.

    That path dies of a segmentation fault, and the process with it, where llama.cpp was compiled
    by a GCC whose ``_tile_loadconfig`` reads 8 bytes of 64 (12.2 is one): the rest of the tiles'
    configuration is never written. Nothing tells from here what a library was compiled by;
    without repacking the same CPU uses its AVX-512 kernels.
    """
    try:
        return "amx_int8" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="ignore")
    except OSError:
        return False


@dataclass(slots=True)
class DecodeWork:
    """Parts to be evaluated in this order; ``rows`` are the logits that they ask for, in order.

    ``rollback`` tokens are removed from the end of the resident sequence first.

    ``evaluated`` counts the tokens that are done; ``over`` also when Stop ended it or it
    ``failed``. ``sequence`` is the resident one that grows by it, None where none does.
    """

    parts: Sequence[BatchPart]
    stop: Stop | None
    sequence: int | None
    rollback: int = 0
    evaluated: int = 0
    rows: list[Logits] = field(default_factory=list)
    over: bool = False
    failed: str = ""

    @property
    def left(self) -> int:
        """How many tokens are not evaluated yet."""
        return sum(len(part.tokens) for part in self.parts) - self.evaluated

    @property
    def row(self) -> Logits | None:
        """The logits behind the last token, None until it is evaluated."""
        return self.rows[-1] if self.rows else None

    def next(self, count: int) -> list[BatchPart]:
        """Return the next ``count`` tokens as parts."""
        return list(_cut(self.parts, self.evaluated, self.evaluated + count))


@dataclass(slots=True)
class DecodeCounts:
    """What was done so far.

    ``steps`` are calls of ``llama_decode``, ``shared_steps`` those for several calls at once,
    ``tokens`` were evaluated, of which ``missed`` on a guess that was wrong; ``seconds`` were spent
    inside llama.cpp.
    """

    steps: int = 0
    shared_steps: int = 0
    tokens: int = 0
    missed: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, some: Iterable[DecodeCounts]) -> DecodeCounts:
        """Return the sum of some counts."""
        rows = [astuple(one) for one in some]
        return cls(*(sum(column) for column in zip(*rows, strict=True)))


def _cut(parts: Sequence[BatchPart], begin: int, end: int) -> Iterator[BatchPart]:
    """Yield what lies from token ``begin`` to ``end`` of parts that are counted through."""
    for part in parts:
        size = len(part.tokens)
        first, last = max(begin, 0), min(end, size)
        if first < last:
            tokens, position = part.tokens[first:last], part.position + first
            yield BatchPart(part.sequences, tokens, position, logits=part.logits and last == size)
        begin, end = begin - size, end - size
