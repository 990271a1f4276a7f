"""llama.cpp without our engine: token ids, logits of a text, greedy continuation. For comparison."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _silent(level: int, text: bytes, data: Any) -> None:
    """Drop llama.cpp's log."""


class BareLlama:
    """A GGUF file with a float32 cache on one thread."""

    def __init__(self, path: Path | str, *, context: int = 256) -> None:
        llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
        settings = llama_cpp.llama_model_default_params()
        settings.use_extra_bufts = False
        self._model: Any = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        assert self._model, path
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.vocabulary = int(llama_cpp.llama_vocab_n_tokens(self._vocab))
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = context
        params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.n_threads = params.n_threads_batch = 1
        self._context: Any = llama_cpp.llama_init_from_model(self._model, params)
        assert self._context

    def close(self) -> None:
        """Free it."""
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)

    def ids(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids; ``special`` adds what goes before every text. No control token is read."""
        data = text.encode()
        buffer = (llama_cpp.llama_token * (len(data) + 16))()
        count = llama_cpp.llama_tokenize(
            self._vocab, data, len(data), buffer, len(buffer), special, False
        )
        return list(buffer[:count])

    def logits(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Logits after each token: (tokens, vocabulary)."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for at, token in enumerate(ids):
            batch.token[at], batch.pos[at], batch.logits[at] = token, at, 1
            batch.n_seq_id[at] = 1
            batch.seq_id[at][0] = 0
        assert llama_cpp.llama_decode(self._context, batch) == 0
        rows = [
            np.ctypeslib.as_array(
                llama_cpp.llama_get_logits_ith(self._context, at), (self.vocabulary,)
            ).copy()
            for at in range(len(ids))
        ]
        llama_cpp.llama_batch_free(batch)
        return np.stack(rows)


_POOLS = (
    "abcdefghijklmnopqrstuvwxyz ABC", "0123456789 .,-", " \t\n\r", "äöüßéñçøåÆ", "привет мир",
    "北京東京日本語", "العربية", "हिन्दी", "😀👍🏽👨‍👩‍👧", "\u200b\u00a0\u3000\ufeff", "{}[]\"':\\/_", "e\u0301o\u0308n\u0303",
)  # fmt: skip


def random_texts(count: int, seed: int) -> list[str]:
    """Texts of many scripts, blanks, marks, emoji and any code point at all."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        parts = [
            "".join(rng.choices(rng.choice(_POOLS), k=rng.randint(1, 6)))
            for _ in range(rng.randint(1, 12))
        ]
        if rng.random() < 0.2:
            parts.append(
                chr(rng.choice([rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x110000)]))
            )
        texts.append("".join(parts))
    return texts
