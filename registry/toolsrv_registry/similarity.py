"""Similarity of a text to APIs: word overlap, cosine, and known example requests.

``ApiScorer`` scores each of a few APIs in [0, 1]. ``Examples`` holds int8 vectors of requests that
people make of known APIs (``models/examples.npz``). Word weights come from the word index. What
was computed for an API is cached. Thread-safe. Knows nothing about rankings or indexes.
"""

from __future__ import annotations

import json
import math
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_hash, document_text
from toolsrv_registry.encoder import Encoder, Vectors
from toolsrv_registry.errors import DataError
from toolsrv_registry.index.lexicon import Lexicon
from toolsrv_registry.words import content_words, stem, words

SHIPPED_EXAMPLES = Path(__file__).parent / "models" / "examples.npz"
_SCALE = 127.0


class Examples:
    """The requests in a file; those of the catalog that ships by default. Thread-safe.

    The file is read when it is first needed. One that is missing or damaged raises DataError then.
    """

    def __init__(self, path: Path = SHIPPED_EXAMPLES) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._found: tuple[str, Mapping[str, npt.NDArray[np.int8]]] | None = None

    def nearest(self, vector: Vectors, document: str, encoder: str) -> float | None:
        """Return the cosine of a unit ``vector`` (dimensions,) with its nearest request.

        ``document`` is the hash of an API's document text, ``encoder`` the digest of the one that
        made the vector. None where there are no requests for both.
        """
        made_by, known = self._read()
        rows = known.get(document)
        if rows is None or made_by != encoder:
            return None
        return float((rows @ vector).max()) / _SCALE

    @cached_property
    def documents(self) -> frozenset[str]:
        """The hashes of the documents that there are requests for."""
        return frozenset(self._read()[1])

    def _read(self) -> tuple[str, Mapping[str, npt.NDArray[np.int8]]]:
        with self._lock:
            if self._found is None:
                self._found = _read(self._path)
            return self._found


def write_examples(
    path: Path, requests: Mapping[str, Vectors], about: Mapping[str, object], encoder: str
) -> None:
    """Write document hash -> unit vectors (n, dimensions): whole or not at all.

    ``about`` says what they were made of, for people. ``encoder`` is the encoder's digest.
    """
    documents = list(requests)
    rows = np.concatenate([np.rint(requests[one] * _SCALE) for one in documents]).astype(np.int8)
    counts = np.asarray([len(requests[one]) for one in documents], np.int32)
    told = json.dumps({**about, "encoder": encoder})
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        np.savez(file, rows=rows, counts=counts, documents=np.asarray(documents), about=told)
    fresh.replace(path)


def spread_out(vectors: Vectors, most: int) -> list[int]:
    """Return the places of up to ``most`` vectors that lie far apart, the first one first.

    Each next one is the farthest from those taken (Gonzalez 1985). O(most * n).
    """
    if len(vectors) <= most:
        return list(range(len(vectors)))
    taken = [0]
    near = vectors @ vectors[0]
    while len(taken) < most:
        taken.append(int(near.argmin()))
        near = np.maximum(near, vectors @ vectors[taken[-1]])
    return taken


def _read(path: Path) -> tuple[str, Mapping[str, npt.NDArray[np.int8]]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            rows, counts = arrays["rows"], arrays["counts"]
            documents: Sequence[str] = arrays["documents"].tolist()
            encoder = str(json.loads(str(arrays["about"]))["encoder"])
        parts = np.split(rows.astype(np.int8), np.cumsum(counts)[:-1])
        return encoder, dict(zip(documents, parts, strict=True))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot read the example requests {path}: {error}",
            hint="reinstall toolsrv: pip install --force-reinstall toolsrv",
        ) from error


_CACHE_LIMIT = 4_096
_TEXT_LIMIT = 1_000
# What a word of the text counts when an API has it in this field.
_NAME, _DESCRIPTION, _PARAMETERS = 1.0, 0.8, 0.6
# A cosine of this model above which two texts mean the same for our purpose, and what the cosine
# counts beside the words: it has been trained on needs in people's words.
_SAME_COSINE = 0.6
_COSINE_WEIGHT = 0.8
# Similarity of an API without examples, estimated from its score: a line through 17,000 pairs of a
# request and an API that has some.
_LEAST_LIKE, _LIKE = 0.15, 0.57

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Overlap:
    """The words of a text that an API has, and their share of its weight, in [0, 1].

    ``share`` is taken of the words that any API has (names and numbers of a task say nothing
    about the choice among APIs); ``coverage`` of all words (what no API speaks of, none can do).
    """

    words: tuple[str, ...]
    share: float
    coverage: float


@dataclass(frozen=True, slots=True)
class _WeightedWord:
    """A word with its inverse document frequency; ``known`` is 0.0 when no API has it."""

    word: str
    stem: str
    weight: float
    known: float


class ApiScorer:
    """Measures texts against APIs with one encoder; ``lexicon`` gives the present catalogs' words."""

    def __init__(
        self, lexicon: Callable[[], Lexicon], encoder: Encoder, examples: Examples | None = None
    ) -> None:
        self._lexicon = lexicon
        self._encoder = encoder
        self._examples = Examples() if examples is None else examples
        self._fields: _BoundedCache[str, tuple[Api, dict[str, float]]] = _BoundedCache(_CACHE_LIMIT)
        self._vectors: _BoundedCache[str, Vectors] = _BoundedCache(_CACHE_LIMIT)
        self._weights: _BoundedCache[str, tuple[Lexicon, tuple[_WeightedWord, ...]]] = (
            _BoundedCache(_CACHE_LIMIT)
        )

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return the score of each API; word overlap alone where the encoder fails."""
        text = text[:_TEXT_LIMIT]
        shares = [self.overlap(text, api).share for api in apis]
        try:
            cosines = self.cosines(text, apis)
        except DataError:
            return shares
        close = [min(max(cosine / _SAME_COSINE, 0.0), 1.0) for cosine in cosines]
        return [
            _COSINE_WEIGHT * near + (1 - _COSINE_WEIGHT) * share
            for near, share in zip(close, shares, strict=True)
        ]

    def similarities(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return how near the text is to the nearest request that people make of each API.

        An API without example requests gets what its score lets expect.
        """
        text = text[:_TEXT_LIMIT]
        near = self._nearest(text, apis)
        unknown = [api for api, one in zip(apis, near, strict=True) if one is None]
        expected = iter([_LEAST_LIKE + _LIKE * one for one in self.scores(text, unknown)])
        return [next(expected) if one is None else one for one in near]

    def _nearest(self, text: str, apis: Sequence[Api]) -> list[float | None]:
        """Return the cosine with each API's nearest request, None where none can be had."""
        try:
            (vector,), digest = self._encoded([text]), self._encoder.digest
            return [
                self._examples.nearest(vector, document_hash(document_text(api)), digest)
                for api in apis
            ]
        except DataError:
            return [None] * len(apis)

    def overlap(self, text: str, api: Api) -> Overlap:
        """Return which content words of the text the API has, and how much they weigh."""
        weighed = self._weighed(text)
        fields = self._words_of(api)
        found = tuple(w.word for w in weighed if w.stem in fields)
        met = sum(w.known * fields.get(w.stem, 0.0) for w in weighed)
        known, everything = sum(w.known for w in weighed), sum(w.weight for w in weighed)
        return Overlap(
            words=found,
            share=met / known if known else 0.0,
            coverage=met / everything if everything else 0.0,
        )

    def met(self, text: str, api: Api) -> tuple[str, ...]:
        """Return the content words of the text that the API has; cheaper than ``overlap``."""
        fields = self._words_of(api)
        return tuple(word for word in content_words(text) if stem(word) in fields)

    def cosines(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return the cosine of the text with each API's document. Raises DataError."""
        rows = self._encoded([text, *map(document_text, apis)])
        return [float(rows[0] @ row) for row in rows[1:]]

    def _encoded(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts; those seen before are kept."""
        missing = [t for t in dict.fromkeys(texts) if self._vectors.get(t) is None]
        fresh = dict(zip(missing, self._encoder.encode(missing), strict=True)) if missing else {}
        for key, vector in fresh.items():
            self._vectors.put(key, vector)
        return [fresh[t] if t in fresh else self._vector(t) for t in texts]

    def _vector(self, text: str) -> Vectors:
        kept = self._vectors.get(text)
        if kept is None:
            # Another thread's texts pushed it out meanwhile.
            kept = self._encoder.encode([text])[0]
        return kept

    def _words_of(self, api: Api) -> dict[str, float]:
        """Return stem -> weight of the best field of an API that has it."""
        kept = self._fields.get(api.id)
        if kept is not None and (kept[0] is api or kept[0] == api):
            return kept[1]
        parameters = " ".join(f"{p.name} {p.description[:200]}" for p in api.parameters)
        about = f"{api.description[:1_000]} {api.tool_description[:300]}"
        heads = f"{api.name} {api.tool} {api.category}"
        fields: dict[str, float] = {}
        for text, weight in ((parameters, _PARAMETERS), (about, _DESCRIPTION), (heads, _NAME)):
            fields |= dict.fromkeys(map(stem, words(text)), weight)
        self._fields.put(api.id, (api, fields))
        return fields

    def _weighed(self, text: str) -> tuple[_WeightedWord, ...]:
        """Return the content words of a text with their weights in the present catalogs."""
        lexicon = self._lexicon()
        kept = self._weights.get(text)
        if kept is None or kept[0] is not lexicon:
            weighed = []
            for word in content_words(text):
                having = lexicon.having(word)
                weight = math.log(1 + (len(lexicon) + 0.5) / (having + 0.5))
                weighed.append(_WeightedWord(word, stem(word), weight, weight if having else 0.0))
            kept = (lexicon, tuple(weighed))
            self._weights.put(text, kept)
        return kept[1]


class _BoundedCache(Generic[Key, Value]):
    """A bounded mapping that forgets what was put first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        return self._items.get(key)

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            self._items[key] = value
            if len(self._items) > self._limit:
                self._items.popitem(last=False)
