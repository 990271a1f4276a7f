"""The llama.cpp engine: one model, one unified KV cache, a sequence per tree path.

Drives llama-cpp-python's low-level calls. Shared prefixes are copied between sequences at no
cost (``llama_memory_seq_cp``) and never evaluated twice; llguidance gives the token mask and the
tokens that the grammar forces, which are appended without sampling. Knows nothing about
conversations.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import llama_cpp
import llguidance
import numpy as np
from llguidance.llamacpp import lltokenizer_from_vocab
from numpy.typing import NDArray

from toolsrv_runtime.engine.base import Prompt, Reply, Sampling, Scores
from toolsrv_runtime.engine.cache import SequenceCache
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError
from toolsrv_runtime.footprint import resident_cells
from toolsrv_runtime.stop import Stop

Logits = NDArray[np.float32]

SEQUENCES = 16
"""Tree paths that stay resident at once (ids of llama.cpp sequences)."""

SLOW_MODEL_BYTES = 200_000_000
"""From this size on one decode can take a noticeable part of a second, so it is interruptible."""


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def quiet(level: int, text: bytes, data: Any) -> None:
    """Drop llama.cpp's log: errors reach us as return codes."""


def open_model(path: Path, *, repack: bool = True) -> Any:
    """Return llama.cpp's handle of a GGUF file; free it with ``llama_model_free``.

    ``repack`` lets it rearrange weights for this CPU, which reads all of them.

    Raises:
        ModelError: llama.cpp refuses the file.
    """
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.use_extra_bufts = repack and not _has_amx()
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    if not model:
        raise ModelError(
            f"llama.cpp cannot load {str(path)!r}: the file is damaged or incomplete, or its "
            "architecture is not supported",
            hint="download or convert the model again",
        )
    return model


class LlamaEngine:
    """A GGUF model. Loading maps the file; the first token comes within milliseconds after.

    ``context`` is the length of one path; ``cells`` (default: ``resident_cells``) is how much of
    the tree stays resident, both in tokens. ``stop_texts`` end a reply where one of them is
    written; neither it nor a token that it begins in is part of the reply. ``bos`` None does what
    the file says.

    Raises:
        ModelError: llama.cpp refuses the file.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int,
        threads: int,
        rope_freq_scale: float | None = None,
        cells: int | None = None,
        stop_texts: Sequence[str] = (),
        bos: bool | None = None,
        batch: int = 256,
    ) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._model = open_model(path)
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = cells = max(context, cells or resident_cells(context))
        params.n_batch = params.n_ubatch = self._batch_size = min(batch, context)
        params.n_seq_max = SEQUENCES
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True
        params.no_perf = True
        if rope_freq_scale is not None:
            params.rope_scaling_type = llama_cpp.LLAMA_ROPE_SCALING_TYPE_LINEAR
            params.rope_freq_scale = rope_freq_scale
        self._ctx = llama_cpp.llama_init_from_model(self._model, params)
        if not self._ctx:
            llama_cpp.llama_model_free(self._model)
            raise ModelError(
                f"no memory for a context of {context} tokens of {path.name!r}",
                hint="choose a smaller model",
            )
        self._memory = llama_cpp.llama_get_memory(self._ctx)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        with warnings.catch_warnings():
            # llguidance still asks for token attributes by llama.cpp's older name.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._tokenizer = lltokenizer_from_vocab(self._vocab)
        self._batch = llama_cpp.llama_batch_init(self._batch_size, 0, 1)
        self._cache = SequenceCache(slots=SEQUENCES, cells=cells)
        self._context = context
        self._interruptible = llama_cpp.llama_model_size(self._model) >= SLOW_MODEL_BYTES
        file_bos = bool(llama_cpp.llama_vocab_get_add_bos(self._vocab))
        self._bos = file_bos if bos is None else bos
        self._stop_texts = tuple(text.encode() for text in stop_texts if text)
        self._texts: dict[tuple[str, bool], tuple[int, ...]] = {}
        self._closed = False

    @property
    def name(self) -> str:
        """The file's stem."""
        return self._path.stem

    @property
    def context(self) -> int:
        """Tokens of one path, prompt and reply together."""
        return self._context

    def close(self) -> None:
        """Free context and model; idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                llama_cpp.llama_batch_free(self._batch)
                llama_cpp.llama_free(self._ctx)
                llama_cpp.llama_model_free(self._model)

    def count(self, prompt: Prompt) -> int:
        """Return the prompt's length in tokens."""
        with self._lock:
            self._check_open()
            return len(self._tokenize(prompt))

    def generate(
        self,
        prompt: Prompt,
        *,
        grammar: str,
        max_tokens: int,
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        stop: Stop | None = None,
    ) -> Reply:
        """Continue ``prompt`` inside ``grammar``; see ``Engine.generate``."""
        with self._lock:
            self._check_open()
            matcher = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0)
            if matcher.is_error():
                raise GrammarError(f"the grammar does not compile: {matcher.get_error()}")
            tokens = self._tokenize(prompt)
            room = min(max_tokens, self._room(tokens))
            rng = np.random.default_rng(sampling.seed)
            return self._continue(tokens, matcher, room, sampling, rng, stop)

    def score(self, prompt: Prompt, options: Sequence[str]) -> Scores:
        """Return log P(option | prompt); options that share leading tokens share their work."""
        evaluated = 0
        rows: dict[tuple[int, ...], NDArray[np.float64]] = {}
        values: list[float] = []
        with self._lock:
            self._check_open()
            tokens = self._tokenize(prompt)
            self._room(tokens)
            for option in options:
                total = 0.0
                spelled = self._tokenize_text(option, special=True)
                for index, token in enumerate(spelled):
                    head = spelled[:index]
                    if head not in rows:
                        sequence, new = self._resident([*tokens, *head], reserve=1)
                        evaluated += new
                        if sequence is None:
                            raise ModelError("llama.cpp stopped in the middle of a score")
                        rows[head] = _log_softmax(self._logits())
                    total += float(rows[head][token])
                values.append(total)
        return Scores(tuple(values), len(tokens), evaluated)

    def _continue(
        self,
        tokens: list[int],
        matcher: llguidance.LLMatcher,
        room: int,
        sampling: Sampling,
        rng: np.random.Generator,
        stop: Stop | None,
    ) -> Reply:
        written: list[int] = []
        forced = evaluated = 0
        finish: Literal["grammar", "length", "stopped"] = "length"
        sequence: int | None = None
        pending: list[int] = []
        while len(written) < room:
            if stop is not None and stop.is_set():
                finish = "stopped"
                break
            ahead = matcher.compute_ff_tokens()[: room - len(written)]
            if ahead and matcher.consume_tokens(ahead):
                written += ahead
                pending += ahead
                forced += len(ahead)
            if matcher.is_stopped():
                finish = "grammar"
                break
            if len(written) >= room:
                break
            if sequence is None:
                sequence, new = self._resident([*tokens, *pending], reserve=room, stop=stop)
            else:
                new = len(pending)
                sequence = sequence if self._evaluate(sequence, pending, stop=stop) else None
            if sequence is None:
                finish = "stopped"
                break
            evaluated += new
            mask = np.frombuffer(matcher.compute_logit_bias(), dtype=np.uint8)[: self._size]
            token = _draw(self._logits(), mask != 0, sampling, rng)
            if llama_cpp.llama_vocab_is_eog(self._vocab, token):
                finish = "grammar"
                break
            if not matcher.consume_token(token):
                raise GrammarError(f"the grammar broke off: {matcher.get_error()}")
            written.append(token)
            pending = [token]
            if self._stop_text_at(written) is not None:
                break
        if self._cut_at_stop_text(written):
            finish = "grammar"
        text = self._tokenizer.decode_bytes(written).decode("utf-8", errors="replace")
        return Reply(text, tuple(written), finish, len(tokens), evaluated, forced)

    def _stop_text_at(self, written: list[int]) -> int | None:
        """Return where in the reply's bytes a stop text begins, None without one."""
        if not self._stop_texts:
            return None
        said = self._tokenizer.decode_bytes(written)
        return min((at for one in self._stop_texts if (at := said.find(one)) >= 0), default=None)

    def _cut_at_stop_text(self, written: list[int]) -> bool:
        """Drop the tokens from the first stop text on; False when there is none."""
        end = self._stop_text_at(written)
        if end is None:
            return False
        while written and len(self._tokenizer.decode_bytes(written)) > end:
            written.pop()
        return True

    def _resident(
        self, tokens: list[int], *, reserve: int, stop: Stop | None = None
    ) -> tuple[int | None, int]:
        """Make ``tokens`` resident and their last logits current; return (sequence, evaluated)."""
        plan = self._cache.plan(tokens, reserve=reserve)
        for dropped in plan.drop:
            llama_cpp.llama_memory_seq_rm(self._memory, dropped, -1, -1)
        if plan.source == plan.target:
            llama_cpp.llama_memory_seq_rm(self._memory, plan.target, plan.keep, -1)
        elif plan.source >= 0:
            llama_cpp.llama_memory_seq_cp(self._memory, plan.source, plan.target, 0, plan.keep)
        self._cache.commit(plan, tokens[: plan.keep])
        rest = tokens[plan.keep :]
        if not self._evaluate(plan.target, rest, start=plan.keep, stop=stop):
            return None, 0
        return plan.target, len(rest)

    def _evaluate(
        self,
        sequence: int,
        tokens: Sequence[int],
        *,
        start: int | None = None,
        stop: Stop | None = None,
    ) -> bool:
        """Decode ``tokens`` behind ``sequence``; False when Stop interrupted it."""
        position = (
            start
            if start is not None
            else llama_cpp.llama_memory_seq_pos_max(self._memory, sequence) + 1
        )
        with self._abort_on(stop):
            for offset in range(0, len(tokens), self._batch_size):
                part = tokens[offset : offset + self._batch_size]
                final = offset + len(part) == len(tokens)
                if stop is not None and stop.is_set() and not final:
                    return self._lost(sequence)
                self._fill(part, position + offset, sequence, logits=final)
                code = llama_cpp.llama_decode(self._ctx, self._batch)
                if code == 1 and self._drop_all_but(sequence):  # no room: cells were not shared
                    code = llama_cpp.llama_decode(self._ctx, self._batch)
                if code == 2:
                    return self._lost(sequence)
                if code != 0:
                    self._lost(sequence)
                    raise ModelError(
                        f"llama.cpp could not evaluate {len(tokens)} tokens (code {code})",
                        hint="the model may need more memory than there is",
                    )
        self._cache.extend(sequence, tokens)
        return True

    def _drop_all_but(self, sequence: int) -> bool:
        """Free the cells of every other sequence; False when there is none."""
        others = self._cache.others(sequence)
        for other in others:
            llama_cpp.llama_memory_seq_rm(self._memory, other, -1, -1)
            self._cache.forget(other)
        return bool(others)

    def _lost(self, sequence: int) -> bool:
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._cache.forget(sequence)
        return False

    def _fill(self, tokens: Sequence[int], position: int, sequence: int, *, logits: bool) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = position + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequence
            batch.logits[index] = 0
        batch.logits[len(tokens) - 1] = 1 if logits else 0

    @contextlib.contextmanager
    def _abort_on(self, stop: Stop | None) -> Iterator[None]:
        """Let llama.cpp ask ``stop`` inside one decode, where a decode can last seconds."""
        if stop is None or not self._interruptible:
            yield
            return
        callback = llama_cpp.ggml_abort_callback(lambda _: stop.is_set())
        llama_cpp.llama_set_abort_callback(self._ctx, callback, None)
        try:
            yield
        finally:
            none = llama_cpp.ggml_abort_callback(0)
            llama_cpp.llama_set_abort_callback(self._ctx, none, None)

    def _logits(self) -> Logits:
        pointer = llama_cpp.llama_get_logits_ith(self._ctx, -1)
        return np.ctypeslib.as_array(pointer, shape=(self._size,))

    def _tokenize(self, prompt: Prompt) -> list[int]:
        tokens = [llama_cpp.llama_vocab_bos(self._vocab)] if self._bos else []
        for piece in prompt:
            if piece.tokens is not None:
                tokens += piece.tokens
            else:
                tokens += self._tokenize_text(piece.text, special=piece.special)
        return tokens

    def _tokenize_text(self, text: str, *, special: bool) -> tuple[int, ...]:
        key = (text, special)
        known = self._texts.get(key)
        if known is None:
            if len(self._texts) > 4096:
                self._texts.clear()
            known = self._tokenize_raw(text.encode("utf-8", errors="replace"), special=special)
            if len(text) <= 4096:
                self._texts[key] = known
        return known

    def _tokenize_raw(self, data: bytes, *, special: bool) -> tuple[int, ...]:
        size = len(data) + 8
        while True:
            buffer = (llama_cpp.llama_token * size)()
            count = llama_cpp.llama_tokenize(
                self._vocab,
                data,
                len(data),
                buffer,
                size,
                False,
                special,
            )
            if count >= 0:
                return tuple(buffer[:count])
            size = -count

    def _room(self, tokens: Sequence[int]) -> int:
        """Return how many tokens still fit behind ``tokens``: at least one, or ContextError."""
        room = self._context - len(tokens)
        if room < 1:
            raise ContextError(
                f"the prompt has {len(tokens)} tokens and the model's context {self._context}",
                hint="offer fewer candidates, or a model with a longer context",
            )
        return room

    def _check_open(self) -> None:
        if self._closed:
            raise ModelError("the engine is closed", hint="start a new one")


def _has_amx() -> bool:
    """Whether llama.cpp would repack weights for AMX tiles.

    That path dies of a segmentation fault on some such machines (llama.cpp issue 20824) and the
    process with it; without repacking the same CPU uses its AVX-512 kernels.
    """
    try:
        return "amx_int8" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="ignore")
    except OSError:
        return False


def _draw(
    logits: Logits, allowed: NDArray[np.bool_], sampling: Sampling, rng: np.random.Generator
) -> int:
    masked = np.where(allowed, logits, -np.inf)
    if sampling.temperature <= 0:
        return int(masked.argmax())
    scaled = (masked - masked.max()) / sampling.temperature
    weights = np.exp(scaled.astype(np.float64))
    weights /= weights.sum()
    if sampling.top_p < 1:
        order = np.argsort(-weights, kind="stable")
        keep = int(np.searchsorted(np.cumsum(weights[order]), sampling.top_p)) + 1
        weights[order[keep:]] = 0
        weights /= weights.sum()
    return int(rng.choice(len(weights), p=weights))


def _log_softmax(logits: Logits) -> NDArray[np.float64]:
    row = logits.astype(np.float64)
    top = float(row.max())
    result: NDArray[np.float64] = row - top - math.log(float(np.exp(row - top).sum()))
    return result
