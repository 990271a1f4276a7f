"""The llama.cpp engine: one model, a unified KV cache, a sequence per tree path.

Shared prefixes are copied between sequences at no cost (``llama_memory_seq_cp``) and never
evaluated twice; llguidance gives the token mask and the tokens that the grammar forces, which are
appended without sampling. Calls from several threads are decoded together, or, where the model is
small, beside each other (``pools``). Knows nothing about conversations.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import llguidance

from toolsrv_runtime.contract.models import (
    Completion,
    OptionScores,
    Prompt,
    Sampling,
    SpecialTokens,
)
from toolsrv_runtime.engine.context import (
    Context,
    DecodeCounts,
    open_adapter,
    open_model,
    uses_flash_attention,
)
from toolsrv_runtime.engine.generation import OptionScorer, ReplyWriter
from toolsrv_runtime.engine.hardware import SharedCores
from toolsrv_runtime.engine.pools import (
    CachePool,
    CachePools,
    PrefixCache,
    pool_count,
    shared_prefix,
)
from toolsrv_runtime.engine.prefix_cache import StateStore, model_fingerprint
from toolsrv_runtime.engine.sampling import Draft, ReplyPrefix, generate_permitted
from toolsrv_runtime.engine.scheduler import BRANCH_SEQUENCES, SPARE_SEQUENCES, Scheduler
from toolsrv_runtime.engine.vocabulary import GrammarCache, Vocabulary
from toolsrv_runtime.errors import ContextError, ModelError
from toolsrv_runtime.profiles import KvType
from toolsrv_runtime.requirements import (
    BATCH,
    STATES,
    further_cells,
    is_recurrent,
    resident_cells,
    split_parts,
)
from toolsrv_runtime.stop import Stop

SEQUENCES = 16
"""Tree paths that stay resident at once (ids of llama.cpp sequences)."""

WHOLE_SEQUENCES = 4
"""The same of a recurrent model, where each is a whole state of ``STATES`` in all."""

SLOW_MODEL_BYTES = 200_000_000
"""From this size on one decode can take a noticeable part of a second, so it is interruptible.

Below it calls get caches of their own: so many cells are as much to read as the weights.
"""


class LlamaEngine:
    """A GGUF model. Loading maps the file; the first token comes within milliseconds after.

    ``context`` is the length of one path; ``cells`` (default: ``resident_cells``) is how much of
    the tree stays resident, both in tokens. ``stop_texts`` end a reply where one of them is
    written; neither it nor a token that it begins in is part of the reply. ``bos`` None does what
    the file says. ``interruptible``: whether Stop breaks off a decode; None decides by size.

    ``states`` keeps evaluated prompt prefixes from one process to the next. A decode gets
    ``threads`` at most, all at once ``cores`` (default: ``threads``). ``lanes`` is how many caches
    calls share; None decides by size and cores, and takes no more than ``most_lanes``.

    ``batch`` tokens are evaluated in one step at most; ``gpu_layers`` layers lie on the GPU.
    ``adapter`` is a GGUF LoRA adapter of the model, applied to all that it evaluates.

    A call that is alone gives the same bits every time; calls that are decoded together may
    differ in the last ones, because a matrix product of several rows is summed in another order.

    Raises:
        ModelError: llama.cpp refuses the file or the adapter.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int,
        threads: int,
        cores: int | None = None,
        rope_freq_scale: float | None = None,
        cells: int | None = None,
        stop_texts: Sequence[str] = (),
        bos: bool | None = None,
        kv_type: KvType = "f16",
        flash_attention: bool | None = None,
        states: StateStore | None = None,
        interruptible: bool | None = None,
        lanes: int | None = None,
        most_lanes: int | None = None,
        batch: int = BATCH,
        gpu_layers: int = 0,
        adapter: Path | None = None,
    ) -> None:
        self._path = path
        self._adapter = adapter
        self.gpu_layers = gpu_layers
        gpu = gpu_layers > 0
        self._model = open_model(path, gpu_layers=gpu_layers)
        self._vocabulary = Vocabulary(self._model, bos=bos)
        self._grammars = GrammarCache(self._vocabulary.grammar)
        slow = llama_cpp.llama_model_size(self._model) >= SLOW_MODEL_BYTES
        cells = max(context, cells or resident_cells(context))
        shared = SharedCores(max(threads, cores or 0), most=threads, watched=not gpu)
        about = (llama_cpp.__version__, cells, rope_freq_scale, kv_type, flash_attention, gpu)
        files = [*split_parts(path), *([adapter] if adapter is not None else [])]
        owner = model_fingerprint(files, *about) if states is not None else ""
        applied = self._open_adapter(adapter)

        whole = is_recurrent(llama_cpp, self._model)
        resident, branches = (
            (WHOLE_SEQUENCES, STATES - SPARE_SEQUENCES - WHOLE_SEQUENCES)
            if whole
            else (SEQUENCES, BRANCH_SEQUENCES)
        )

        def lane(number: int) -> CachePool:
            room = min(cells, further_cells(context)) if number else cells
            cache = Context(
                self._model,
                cells=room,
                sequences=resident + SPARE_SEQUENCES + branches,
                batch=min(batch, context),
                cores=shared,
                rope_freq_scale=rope_freq_scale,
                kv_type=kv_type,
                flash_attention=flash_attention,
                gpu=gpu,
                adapter=applied,
            )
            broken_off = slow if interruptible is None else interruptible
            scheduler = Scheduler(cache, cells=room, sequences=resident, interruptible=broken_off)
            return CachePool(
                scheduler, PrefixCache(scheduler, states, owner) if states is not None else None
            )

        apart = (
            not slow
            and not whole
            and uses_flash_attention(flash_attention, kv_type, gpu=gpu) is False
        )
        several = pool_count(max(threads, cores or 0)) if apart else 1
        try:
            self._lanes = CachePools(
                lane, shared, count=lanes or min(several, most_lanes or several)
            )
        except MemoryError:
            llama_cpp.llama_model_free(self._model)
            raise ModelError(
                f"no memory for a context of {context} tokens of {path.name!r}",
                hint="choose a smaller model",
            ) from None
        except ModelError:
            llama_cpp.llama_model_free(self._model)
            raise
        self._context = context
        self._stop_texts = tuple(text.encode() for text in stop_texts if text)
        self._closed = False

    def _open_adapter(self, path: Path | None) -> Any:
        try:
            return None if path is None else open_adapter(self._model, path)
        except ModelError:
            llama_cpp.llama_model_free(self._model)
            raise

    @property
    def name(self) -> str:
        """The file's stem, and that of its adapter."""
        return self._path.stem + (f" + {self._adapter.stem}" if self._adapter else "")

    @property
    def context(self) -> int:
        """Tokens of one path, prompt and reply together."""
        return self._context

    @property
    def special_tokens(self) -> SpecialTokens:
        """The vocabulary's special tokens, as chat templates and grammars name them."""
        return self._vocabulary.special

    @property
    def scheduler(self) -> Scheduler:
        """What decodes for calls, the first where there are several; for measurements and tests."""
        return self._lanes.made[0].scheduler

    @property
    def counts(self) -> DecodeCounts:
        """What was done so far, for all calls."""
        return DecodeCounts.of(lane.scheduler.counts for lane in self._lanes.made)

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's tokens."""
        return self._vocabulary

    def close(self) -> None:
        """Free context and model when no call works any more; idempotent."""
        if not self._closed:
            self._closed = True
            self._lanes.close()
            llama_cpp.llama_model_free(self._model)

    def count(self, prompt: Prompt) -> int:
        """Return the prompt's length in tokens."""
        with self._inside():
            return len(self._vocabulary.prompt(prompt))

    def generate(
        self,
        prompt: Prompt,
        *,
        grammar: str,
        max_tokens: int,
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        stop: Stop | None = None,
        excluded: Sequence[str] = (),
    ) -> Completion:
        """Continue ``prompt`` inside ``grammar``; see ``Engine.generate``."""
        with self._inside():
            begin = self._grammars.matcher(grammar)
            tokens = self._vocabulary.prompt(prompt)
            room = min(max_tokens, self._room(tokens))
            head = self._head(prompt)
            with self._lanes.lend(tokens, stop) as lane:
                evaluated = (
                    lane.prefixes.ready(head, stop) if lane.prefixes is not None and head else 0
                )

                def write(turn: ReplyPrefix) -> Draft:
                    matcher = begin.deep_copy() if excluded else begin  # written once without
                    writing = self.writing(lane.scheduler, matcher, sampling, stop)
                    writing.choices = [] if excluded else None
                    writing.begin(turn.tokens)
                    reply = writing.reply(tokens, room, head=len(head))
                    return Draft(reply, writing.choices or ())

                reply = generate_permitted(write, excluded, self._vocabulary.spelled)
                return dataclasses.replace(reply, evaluated=reply.evaluated + evaluated)

    def writing(
        self,
        scheduler: Scheduler,
        matcher: llguidance.LLMatcher,
        sampling: Sampling,
        stop: Stop | None,
    ) -> ReplyWriter:
        """Return what writes one reply; measurements replace it by one that repeats a recording."""
        return ReplyWriter(scheduler, self._vocabulary, matcher, sampling, stop, self._stop_texts)

    def score(self, prompt: Prompt, options: Sequence[str]) -> OptionScores:
        """Return log P(option | prompt); options that share leading tokens share their work."""
        with self._inside():
            tokens = self._vocabulary.prompt(prompt)
            self._room(tokens)
            spelled = [self._vocabulary.text(option, special=True) for option in options]
            with self._lanes.lend(tokens) as lane:
                scoring = OptionScorer(lane.scheduler, spelled)
                values = scoring.values(tokens, head=len(self._head(prompt)))
                return OptionScores(tuple(values), len(tokens), scoring.evaluated)

    def _head(self, prompt: Prompt) -> list[int]:
        """Return the tokens that other prompts share; empty where none are said to be."""
        head = shared_prefix(prompt)
        return self._vocabulary.prompt(head) if head else []

    def _room(self, tokens: Sequence[int]) -> int:
        """Return how many tokens still fit behind ``tokens``: at least one, or ContextError."""
        room = self._context - len(tokens)
        if room < 1:
            raise ContextError(
                f"the prompt has {len(tokens)} tokens and the model's context {self._context}",
                hint="offer fewer candidates, or a model with a longer context",
            )
        return room

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """Be a call that ``close`` waits for; ModelError where it has begun."""
        with self._lanes.inside():
            if self._closed:
                raise ModelError("the engine is closed", hint="start a new one")
            yield
