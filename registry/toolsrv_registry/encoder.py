"""Sentence encoders: texts to unit vectors.

``Encoder`` is the port. ``OnnxEncoder`` runs the int8 model that ships with the package and needs
no network, torch or download. ``SentenceTransformersEncoder`` wraps any sentence-transformers
model (extra ``lab``). ``HashingEncoder`` is a small deterministic fake for tests.

Heavy libraries load when the first text is encoded, never before. Knows nothing about APIs or
indexes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.host_resources import usable_cores
from toolsrv_registry.onnx_runtime import load_onnx, read_onnx

Vectors = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (texts done, texts in all)."""

SHIPPED_ENCODER = Path(__file__).parent / "models" / "encoder"

# 256 tokens never need more; a long text costs no more than its beginning.
_CHARACTER_LIMIT = 8_000


class Encoder(Protocol):
    """Turns texts into L2-normalised vectors."""

    @property
    def name(self) -> str:
        """A name for people."""

    @property
    def digest(self) -> str:
        """A hash of everything that decides the vectors: equal digests, equal vectors."""

    @property
    def dimensions(self) -> int:
        """The length of a vector."""

    def check(self) -> None:
        """Raise DataError where its files cannot be used; loads nothing heavy."""

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Return float32 vectors of shape (texts, dimensions), each of length 1."""


class EncoderCard(BaseModel):
    """What ``card.json`` beside an ONNX encoder says of it (further fields are for people)."""

    model_config = ConfigDict(frozen=True)

    name: str
    dimensions: int
    max_tokens: int
    files: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """One hash over the files and the token limit."""
        parts = [f"{name}={value}" for name, value in sorted(self.files.items())]
        return hashlib.sha256("\n".join([*parts, str(self.max_tokens)]).encode()).hexdigest()


class OnnxEncoder:
    """An ONNX sentence encoder from a folder with ``card.json``; the shipped one by default.

    The graph pools and normalises. Each text is run alone, several at once on ``threads``
    threads: activations are quantised per batch, so a text's vector would otherwise depend on
    its neighbours, and without padding this is also the fastest way (2 cores: 627 documents/s
    against 455 in padded batches of 16). Thread-safe.

    The files are compared with the card when the model loads; a missing or altered one raises
    DataError.
    """

    def __init__(self, folder: Path = SHIPPED_ENCODER, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise UsageError(f"an encoder needs at least 1 thread, not {threads}")
        self._folder = folder
        self._threads = threads or usable_cores()
        self._lock = threading.Lock()
        self._card: EncoderCard | None = None
        self._model: tuple[Any, Any] | None = None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def card(self) -> EncoderCard:
        """The model's card; reading it loads nothing heavy."""
        if self._card is None:
            self._card = _read_card(self._folder)
        return self._card

    @property
    def name(self) -> str:
        """The model's name from its card."""
        return self.card.name

    @property
    def digest(self) -> str:
        """A hash over the model files and the token limit."""
        return self.card.digest

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self.card.dimensions

    def check(self) -> None:
        """Compare the files with the card; raises DataError for a missing or altered one."""
        read_onnx(self._folder, self.card.files, of="encoder")

    def load(self) -> None:
        """Load the model now rather than with the first text."""
        self._loaded()

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Return unit vectors (n, dimensions); the text is cut at the card's token limit."""
        result = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        if not texts:
            return result
        session, tokenizer = self._loaded()

        def one(text: str) -> Vectors:
            ids = tokenizer.encode(_readable(text)).ids
            feed = {"input_ids": np.asarray([ids], dtype=np.int64)}
            vector: Vectors = session.run(None, feed)[0][0]
            return vector

        # Longest first, so that no thread is left with a long text at the end.
        waiting = deque(sorted(range(len(texts)), key=lambda at: -len(texts[at])))
        finished: deque[int] = deque()

        def work(told: Progress | None) -> None:
            while True:
                try:
                    at = waiting.popleft()
                except IndexError:
                    return
                result[at] = one(texts[at])
                finished.append(at)
                _report(told, len(finished), len(texts))

        # The caller's thread works too: a search has few texts, and to hand one over costs time.
        helpers = min(self._threads, len(texts)) - 1
        others = [self._workers().submit(work, None) for _ in range(helpers)]
        try:
            work(progress)
        finally:
            waiting.clear()
            for other in others:
                other.result()
        _report(progress, len(texts), len(texts))
        return result

    def _workers(self) -> ThreadPoolExecutor:
        """Return the threads, kept between calls: starting them costs a search a millisecond."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="toolsrv-encoder")
            return self._pool

    def _loaded(self) -> tuple[Any, Any]:
        with self._lock:
            if self._model is None:
                loaded = load_onnx(self._folder, self.card.files, of="encoder")
                loaded[1].enable_truncation(self.card.max_tokens)
                self._model = loaded
            return self._model


class SentenceTransformersEncoder:
    """Any sentence-transformers model, by hub name or local folder (extra ``lab``).

    The digest covers all files of a local folder, or the hub name with its commit. Loading a hub
    name may download; that is the caller's choice.
    """

    def __init__(self, name_or_path: str, *, batch_size: int = 32) -> None:
        self._source = name_or_path
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._model: Any = None
        self._digest = ""

    @property
    def name(self) -> str:
        """The hub name, or the folder's name."""
        return Path(self._source).name if Path(self._source).is_dir() else self._source

    @property
    def digest(self) -> str:
        """A hash of the model's files, or of its hub name and commit."""
        if not self._digest:
            folder = Path(self._source)
            if folder.is_dir():
                self._digest = _folder_digest(folder)
            elif folder.is_absolute():
                raise self._missing()
            else:
                config = getattr(self._loaded()[0], "auto_model", None)
                commit = getattr(getattr(config, "config", None), "_commit_hash", None)
                text = f"{self._source}@{commit or 'unknown'}"
                self._digest = hashlib.sha256(text.encode()).hexdigest()
        return self._digest

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        model = self._loaded()
        renamed = getattr(model, "get_embedding_dimension", None)  # sentence-transformers 5.2
        return int((renamed or model.get_sentence_embedding_dimension)())

    def check(self) -> None:
        """Find nothing: no card says what its files should be."""

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Return unit vectors (n, dimensions)."""
        model = self._loaded()
        rows = []
        for start in range(0, len(texts), self._batch_size):
            part = [_readable(text) for text in texts[start : start + self._batch_size]]
            rows.append(model.encode(part, normalize_embeddings=True, show_progress_bar=False))
            _report(progress, start + len(part), len(texts))
        if not rows:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return np.concatenate(rows).astype(np.float32)

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                if Path(self._source).is_absolute() and not Path(self._source).is_dir():
                    raise self._missing()
                try:
                    library = importlib.import_module("sentence_transformers")
                except ImportError as error:
                    raise UsageError(
                        f"the encoder {self._source!r} needs sentence-transformers",
                        hint="pip install '.[lab]' in toolsrv's sources, or use the encoder that ships",
                    ) from error
                try:
                    self._model = library.SentenceTransformer(self._source)
                except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
                    raise DataError(
                        f"cannot load the encoder {self._source!r}: {_first_line(error)}",
                        hint="give the folder of a sentence-transformers model",
                    ) from error
            return self._model

    def _missing(self) -> DataError:
        return DataError(
            f"there is no encoder in {self._source}",
            hint="bring the folder back, or: toolsrv index build --encoder shipped",
        )


def encoder_named(name: str) -> Encoder:
    """Return the encoder of a folder or a hub name: one exported here, or a sentence-transformers model.

    Nothing is loaded yet.
    """
    folder = Path(name)
    exported = (folder / "card.json").is_file() and not (folder / "modules.json").exists()
    return OnnxEncoder(folder) if exported else SentenceTransformersEncoder(name)


class HashingEncoder:
    """A deterministic fake: each word adds a fixed pseudo-random direction. For tests."""

    def __init__(self, dimensions: int = 64, *, name: str = "hashing") -> None:
        self._dimensions = dimensions
        self._name = name

    @property
    def name(self) -> str:
        """The given name."""
        return self._name

    @property
    def digest(self) -> str:
        """A hash of name and dimensions."""
        return hashlib.sha256(f"{self._name}/{self._dimensions}".encode()).hexdigest()

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._dimensions

    def check(self) -> None:
        """Find nothing: it has no files."""

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Return unit vectors (n, dimensions); equal word bags give equal vectors."""
        result = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        for at, text in enumerate(texts):
            # The constant keeps the vector of a text without words from being zero.
            for word in ("", *_readable(text).lower().split()):
                seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
                result[at] += np.random.default_rng(seed).standard_normal(
                    self._dimensions, dtype=np.float32
                ) * (1.0 if word else 0.05)
            result[at] /= np.linalg.norm(result[at])
            _report(progress, at + 1, len(texts))
        return result


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def _readable(text: str) -> str:
    """Return the beginning of a text without lone surrogates, which no tokeniser accepts."""
    return text[:_CHARACTER_LIMIT].encode("utf-8", "replace").decode("utf-8")


def _folder_digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{path.relative_to(folder)}={digest}\n".encode())
    return total.hexdigest()


def _read_card(folder: Path) -> EncoderCard:
    path = folder / "card.json"
    try:
        return EncoderCard.model_validate(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise DataError(
            f"cannot read the encoder's card {path}: {error}", hint="reinstall toolsrv"
        ) from error
