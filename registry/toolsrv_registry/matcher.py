"""The matcher: which APIs a text, or a clause of it, asks for, and what each argument takes.

A small cross-encoder (int8 ONNX, made by ``toolsrv lab export matcher``) that reads an API and a
text side by side (``pairing``). Where the retriever compares two vectors, it sees every word of
the one beside every word of the other; that costs milliseconds an API, so it is for some tens of
candidates, not for a catalog. Extractive: a value is a run of the text's words or of an earlier
answer's, one of the parameter's allowed values, or there is none (as in SQuAD 2.0: Devlin et al.
2019, 4.3); asked about a whole text it finds the clause in the same way.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry import pairing
from toolsrv_registry.api import Api
from toolsrv_registry.documents import content_hash
from toolsrv_registry.errors import DataError
from toolsrv_registry.host_resources import usable_cores
from toolsrv_registry.onnx_runtime import load_onnx
from toolsrv_registry.pairing import Document, PairedTokens

SHIPPED_MATCHER = Path(__file__).parent / "models" / "matcher"

Logits = npt.NDArray[np.float32]
Fact = tuple[str, str]

_CACHE_LIMIT = 512
_BEST = 12
_LONGEST = 64
"""Tokens of a value."""


class MatcherCard(BaseModel):
    """What ``card.json`` beside the model says of it (further fields are for people).

    ``offset`` is added to the log-odds that an API serves: the model was trained on another share of
    texts that nothing serves than it meets.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    files: dict[str, str]
    offset: float = 0.0


class Span(NamedTuple):
    """Words that may be a value or a clause: of the text (``source`` 0) or of the n-th fact's value.

    ``score`` is the log-probability that these and no others are it.
    """

    source: int
    begin: int
    end: int
    score: float

    def touches(self, other: Span) -> bool:
        """Whether the two have words in common."""
        return self.source == other.source and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True, slots=True)
class MatchRequest:
    """A text, where in it the clause stands that asks, and what earlier calls answered.

    Without a clause the question is about the whole text: whether any of it asks for an API.
    """

    text: str
    clause: tuple[int, int] | None = None
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a parameter's value stands, or a clause. ``none``: the log-probability of nowhere.

    Of a parameter with allowed values: which of them is meant, whatever words say so.
    """

    none: float
    _begins: Logits
    _ends: Logits
    _paired: PairedTokens
    _marker: int

    def listed(self) -> list[tuple[int, float]]:
        """Return numbers and log-probabilities of the allowed values, likeliest first."""
        options = self._paired.options[self._marker]
        found = [
            (at, float(self._begins[one[0]] + self._ends[one[1]]))
            for at, one in enumerate(options)
            if one is not None
        ]
        return sorted(found, key=lambda one: -one[1])

    def best(self, limit: int = 6) -> list[Span]:
        """Return the likeliest runs of words, whole tokens, best first."""
        begins = np.argsort(-self._begins[1:])[:_BEST] + 1
        ends = np.argsort(-self._ends[1:])[:_BEST] + 1
        sources, found = self._paired.sources, []
        for begin in begins:
            for end in ends:
                first, last = sources[begin], sources[end]
                if first is None or last is None or first[0] != last[0]:
                    continue
                if 0 <= end - begin < _LONGEST:
                    score = float(self._begins[begin] + self._ends[end])
                    found.append(Span(first[0], first[1], last[2], score))
        return sorted(found, key=lambda one: -one.score)[:limit]

    def score(self, source: int, begin: int, end: int) -> float:
        """Return the log-probability of a run of words, -inf where the matcher has not seen it."""
        span = pairing.targets(self._paired, {0: (source, begin, end)}).get(0)
        if span is None:
            return -np.inf
        return float(self._begins[span[0]] + self._ends[span[1]])


@dataclass(frozen=True, slots=True)
class Match:
    """What the matcher makes of one API: the log-odds that it serves, and its parameters by name.

    ``clause`` means something where the whole text was asked about: which clause the API serves.
    """

    serves: float
    clause: Slot
    parameters: Mapping[str, Slot]


class Matcher:
    """The matcher in a folder with ``card.json``; the shipped one by default. Thread-safe.

    The files are compared with the card when the model loads; a missing or altered one raises
    DataError then. A run reads one API, because activations are quantised per run; ``threads``
    (default: the cores) run at once.
    """

    def __init__(self, folder: Path = SHIPPED_MATCHER, *, threads: int | None = None) -> None:
        self._folder = folder
        self._threads = threads or usable_cores()
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._matches: OrderedDict[tuple[MatchRequest, str], Match] = OrderedDict()
        self._documents: OrderedDict[str, Document] = OrderedDict()

    @cached_property
    def card(self) -> MatcherCard:
        """The model's card; reading it loads nothing heavy. Raises DataError."""
        path = self._folder / "card.json"
        try:
            return MatcherCard.model_validate(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, ValidationError) as error:
            raise DataError(
                f"cannot read the matcher's card {path}: {error}", hint="reinstall toolsrv"
            ) from error

    def load(self) -> None:
        """Load the model now rather than with the first text. Raises DataError."""
        self._model()

    def close(self) -> None:
        """Stop the threads; the matcher may be used again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:  # its threads may want the lock before they end
            pool.shutdown(wait=True)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        """Return what the matcher makes of each API; what was read before is kept.

        Raises DataError where the model cannot be loaded.
        """
        keys = [(asked, content_hash(api)) for api in apis]
        found = {key: self._matches.get(key) for key in keys}
        missing = {key: api for key, api in zip(keys, apis, strict=True) if found[key] is None}
        if missing:
            _, tokenizer = self._model()
            text = pairing.tokenise(tokenizer, asked.text)
            facts = [
                (pairing.tokenise(tokenizer, name), pairing.tokenise(tokenizer, value))
                for name, value in asked.facts
            ]
            rows = [
                (api, pairing.pair(self._document(api, key[1]), text, asked.clause, facts))
                for key, api in missing.items()
            ]
            fresh = list(self._workers().map(self._one, rows))
            for key, match in zip(missing, fresh, strict=True):
                found[key] = match
                self._keep(key, match)
        return [one for key in keys if (one := found[key]) is not None]

    def _one(self, row: tuple[Api, PairedTokens]) -> Match:
        api, paired = row
        session, _ = self._model()
        serves, begins, ends = session.run(
            None,
            {
                "input_ids": np.asarray([paired.ids], np.int64),
                "kinds": np.asarray([paired.kinds], np.int64),
                "markers": np.asarray(paired.markers, np.int64),
            },
        )
        slots = []
        for at in range(len(paired.markers)):
            firsts, lasts = paired.places(at)
            begin, end = _normal(begins[at], firsts), _normal(ends[at], lasts)
            slots.append(Slot(float(begin[0] + end[0]), begin, end, paired, at))
        names = [one.name for one in pairing.parameters(api)]
        served = float(serves[0]) + self.card.offset
        return Match(served, slots[0], dict(zip(names, slots[1:], strict=True)))

    def _document(self, api: Api, key: str) -> Document:
        kept = self._documents.get(key)
        if kept is None:
            kept = pairing.document(self._model()[1], api)
            with self._lock:
                self._documents[key] = kept
                if len(self._documents) > _CACHE_LIMIT:
                    self._documents.popitem(last=False)
        return kept

    def _keep(self, key: tuple[MatchRequest, str], match: Match) -> None:
        with self._lock:
            self._matches[key] = match
            if len(self._matches) > _CACHE_LIMIT:
                self._matches.popitem(last=False)

    def _workers(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="matcher")
            return self._pool

    def _model(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                loaded = load_onnx(self._folder, self.card.files, of="matcher")
                loaded[1].no_truncation()
                self._loaded = loaded
            return self._loaded


def _normal(logits: Logits, places: Sequence[int]) -> Logits:
    """Return log-probabilities over the tokens at some places, and the first of all."""
    told = np.full_like(logits, np.float32(-1e4))
    kept = [0, *places]
    told[kept] = logits[kept]
    shifted = told - told.max()
    result: Logits = shifted - np.log(np.exp(shifted).sum())
    return result
