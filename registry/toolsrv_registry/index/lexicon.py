"""Word index in memory: BM25F over names, descriptions and parameters; APIs by full name.

It is built when the catalogs change and kept in one file beside the store.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_registry.index.array_files import array_texts, read_arrays, text_array, write_arrays
from toolsrv_registry.storage.store import Store
from toolsrv_registry.words import content_words, stem, words

NameKeys = npt.NDArray[np.uint64]

# No catalog has longer names than some 25 words; a text of more is a task.
_NAME_WORDS_LIMIT = 30
# What may stand between the two names.
_JOINING = frozenset({"by", "for", "from", "in", "of", "on"})


def name_keys(tool: str, name: str) -> tuple[int, int]:
    """Return the keys of an API from the words of its tool's name and of its own."""
    return _key(f"{tool} {name}".split()), _key(f"{name} {tool}".split())


def is_name_length(text: str) -> bool:
    """Say whether a text is short enough for a name; cheap, and known before anything is read."""
    return len(text.split(maxsplit=_NAME_WORDS_LIMIT)) <= _NAME_WORDS_LIMIT


def rows_named(known: NameKeys, text: str) -> list[int]:
    """Return the rows of ``known`` (n, 2) that the text names and nothing beside."""
    said = words(text) if is_name_length(text) else []
    if not 1 < len(said) <= _NAME_WORDS_LIMIT:
        return []
    wanted = {_key(said)}
    for at, word in enumerate(said[1:-1], start=1):
        if word in _JOINING:
            wanted.add(_key([*said[:at], *said[at + 1 :]]))
    return np.flatnonzero(np.isin(known, np.asarray(list(wanted), np.uint64)).any(axis=1)).tolist()


def _key(said: Sequence[str]) -> int:
    letters = "".join(said).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(letters, digest_size=8).digest(), "little")


Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

# Weight and length normalisation of name, tool, category, description, the tool's description and
# parameters; chosen on the tuning half of ToolBench's development queries.
_WEIGHTS = (2.2, 2.0, 1.0, 1.2, 0.6, 0.5)
_NORMS = (0.3, 0.2, 0.0, 0.5, 0.5, 0.6)
_NAME, _TOOL, _DESCRIPTION = 0, 1, 3
_K1 = 1.2
# A word that no API has says most about what cannot be done.
_UNKNOWN = 9.0
_TERM_LIMIT = 64
# These say nothing about an API.
_EMPTY_WORDS = frozenset({"api", "v1", "v2", "v3"})


class Entry(NamedTuple):
    """What the lexicon is made from: one visible API, its words per field as in ``Columns``."""

    api_id: str
    document_hash: str
    category: str
    tool_key: str
    catalog: str
    fields: tuple[str, ...]


class Postings(NamedTuple):
    """Sparse rows, one per term: ``places[starts[t]:starts[t + 1]]`` and their ``values``."""

    starts: npt.NDArray[np.int64]
    places: Integers
    values: Floats

    def totals(self, terms: Sequence[Sequence[int]], size: int) -> Floats:
        """Return for each of several lists of terms the sum of their rows, dense (lists, size)."""
        sums = np.zeros((len(terms), size), np.float32)
        for row, listed in zip(sums, terms, strict=True):
            spans = [slice(self.starts[term], self.starts[term + 1]) for term in listed]
            if spans:
                places = np.concatenate([self.places[span] for span in spans])
                values = np.concatenate([self.values[span] for span in spans])
                row[:] = np.bincount(places, weights=values, minlength=size)
        return sums

    def by_place(self, size: int) -> Columns:
        """Return the same numbers by place, for places below ``size``. O(n log n)."""
        order = np.argsort(self.places, kind="stable")
        terms = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        starts = np.searchsorted(self.places[order], np.arange(size + 1))
        return Columns(starts.astype(np.int64), terms[order], self.values[order])


class Columns(NamedTuple):
    """Sparse columns, one per place: ``terms[starts[p]:starts[p + 1]]`` and their ``values``."""

    starts: npt.NDArray[np.int64]
    terms: Integers
    values: Floats

    def totals(self, terms: Sequence[Sequence[int]], places: Places, known: int) -> Floats:
        """Return for each of several lists of terms the sums at some places (lists, places).

        ``known`` is the number of all terms. Costs what the places have, not what the terms have.
        """
        starts, sizes = self.starts[places], self.starts[places + 1] - self.starts[places]
        of = np.repeat(np.arange(len(places)), sizes)
        at = np.arange(len(of)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        own, values = self.terms[at], self.values[at]
        sums = np.empty((len(terms), len(places)), np.float32)
        for row, listed in zip(sums, terms, strict=True):
            wanted = np.zeros(known, np.float32)
            wanted[listed] = 1.0
            row[:] = np.bincount(of, weights=values * wanted[own], minlength=len(places))
        return sums


@dataclass(frozen=True, slots=True)
class Fit:
    """How the APIs fit the parts of a text by their words.

    ``words`` (parts, APIs): BM25F. ``full`` (parts,): what an API with every word of the part
    could reach. ``terms``: the known words of each part, by number.
    """

    words: Floats
    full: Floats
    terms: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Lexicon:
    """All visible APIs by their words. Arrays run over the APIs in one fixed order."""

    ids: tuple[str, ...]
    hashes: tuple[str, ...]
    categories: tuple[str, ...]
    tool_keys: tuple[str, ...]
    catalogs: tuple[str, ...]
    terms: tuple[str, ...]
    idf: Floats
    words: Postings
    names: Postings
    tools: Postings
    tool_numbers: Integers
    tool_weights: Floats
    name_lengths: Integers
    described: npt.NDArray[np.bool_]
    full_names: NameKeys

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Document hash -> places of its APIs."""
        found: dict[str, list[int]] = defaultdict(list)
        for at, key in enumerate(self.hashes):
            found[key].append(at)
        return dict(found)

    @cached_property
    def category_numbers(self) -> Integers:
        """The number of each API's category."""
        return np.unique(self.categories, return_inverse=True)[1].astype(np.int32)

    def fit(self, parts: Sequence[str]) -> Fit:
        """Return how the APIs fit the parts; the first part is the whole text."""
        size = len(self)
        known, full = [], []
        for part in parts:
            stems = list(dict.fromkeys(map(stem, content_words(part)[:_TERM_LIMIT])))
            known.append([self._numbers[one] for one in stems if one in self._numbers])
            weights = [
                float(self.idf[self._numbers[s]]) if s in self._numbers else _UNKNOWN for s in stems
            ]
            full.append(sum(weights) * (_K1 + 1))
        return Fit(self.words.totals(known, size), np.asarray(full, np.float32), known)

    def named(self, fit: Fit, places: Places) -> Floats:
        """Return the share in [0, 1] of an API's name that a part has (parts, places)."""
        return self._names_of.totals(fit.terms, places, len(self.terms))

    def tool_named(self, fit: Fit, places: Places) -> Floats:
        """Return the share in [0, 1] of a tool's name that the whole text has (places,)."""
        share: Floats = self._tools_of.totals(fit.terms[:1], places, len(self.terms))[0]
        return share

    def having(self, word: str) -> int:
        """Return how many APIs have a word, in any form with its stem."""
        term = self._numbers.get(stem(word))
        return 0 if term is None else int(self.words.starts[term + 1] - self.words.starts[term])

    def called(self, text: str) -> list[int]:
        """Return the places of the APIs whose tool's and own name the text is, in either order."""
        return rows_named(self.full_names, text)

    def within(
        self,
        category: str | None,
        tool: str | None,
        catalog: str | None,
        among: frozenset[str] | None = None,
    ) -> npt.NDArray[np.bool_] | None:
        """Return which APIs lie in a place, None for all of them."""
        wanted = ((category, self.categories), (tool, self.tool_keys), (catalog, self.catalogs))
        masks = [
            np.asarray([one == name for one in having], np.bool_)
            for name, having in wanted
            if name is not None
        ]
        if among is not None:
            masks.append(np.asarray([one in among for one in self.ids], np.bool_))
        return np.logical_and.reduce(masks) if masks else None

    @cached_property
    def _names_of(self) -> Columns:
        return self.names.by_place(len(self))

    @cached_property
    def _tools_of(self) -> Columns:
        return self.tools.by_place(len(self))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {term: at for at, term in enumerate(self.terms)}


def make_lexicon(entries: Iterable[Entry]) -> Lexicon:
    """Return the lexicon of the given APIs. O(words); 16,463 APIs take about 2 s."""
    rows = list(entries)
    fields = [tuple([stem(word) for word in field.split()] for field in row.fields) for row in rows]
    averages = [
        max(1.0, sum(len(one[at]) for one in fields) / max(1, len(fields)))
        for at in range(len(_WEIGHTS))
    ]
    frequencies = [_frequencies(one, averages) for one in fields]
    having: dict[str, int] = defaultdict(int)
    for one in frequencies:
        for term in one:
            having[term] += 1
    terms = tuple(sorted(having))
    numbers = {term: at for at, term in enumerate(terms)}
    counts = np.asarray([having[term] for term in terms], np.float32)
    idf = np.log(1 + (len(rows) - counts + 0.5) / (counts + 0.5)).astype(np.float32)
    weights = dict(zip(terms, idf.tolist(), strict=True))
    tools = dict.fromkeys((row.catalog, row.category, row.tool_key) for row in rows)
    tool_numbers = {key: at for at, key in enumerate(tools)}
    names, tool_words = (_shares(fields, at, weights) for at in (_NAME, _TOOL))
    return Lexicon(
        ids=tuple(row.api_id for row in rows),
        hashes=tuple(row.document_hash for row in rows),
        categories=tuple(row.category for row in rows),
        tool_keys=tuple(row.tool_key for row in rows),
        catalogs=tuple(row.catalog for row in rows),
        terms=terms,
        idf=idf,
        words=_postings(
            [
                {t: weights[t] * f * (_K1 + 1) / (f + _K1) for t, f in one.items()}
                for one in frequencies
            ],
            numbers,
        ),
        names=_postings([shares for shares, _ in names], numbers),
        tools=_postings([shares for shares, _ in tool_words], numbers),
        tool_numbers=np.asarray(
            [tool_numbers[row.catalog, row.category, row.tool_key] for row in rows], np.int32
        ),
        tool_weights=np.asarray([total for _, total in tool_words], np.float32),
        name_lengths=np.asarray([len(shares) for shares, _ in names], np.int32),
        described=np.asarray([len(one[_DESCRIPTION]) > 2 for one in fields], np.bool_),
        full_names=np.asarray(
            [name_keys(row.fields[_TOOL], row.fields[_NAME]) for row in rows], np.uint64
        ).reshape(-1, 2),
    )


def _frequencies(fields: Sequence[Sequence[str]], averages: Sequence[float]) -> dict[str, float]:
    """Return term -> weighted, length-normalised frequency over all fields."""
    found: dict[str, float] = defaultdict(float)
    for field, weight, norm, average in zip(fields, _WEIGHTS, _NORMS, averages, strict=True):
        share = weight / (1 - norm + norm * len(field) / average)
        for word in field:
            found[word] += share
    return found


def _shares(
    fields: Sequence[Sequence[Sequence[str]]], at: int, weights: dict[str, float]
) -> list[tuple[dict[str, float], float]]:
    """Return per API the terms of a field with their share of its weight, and that weight."""
    found = []
    for one in fields:
        terms = [term for term in dict.fromkeys(one[at]) if term not in _EMPTY_WORDS]
        total = sum(weights[term] for term in terms)
        found.append(({term: weights[term] / total for term in terms} if total else {}, total))
    return found


def _postings(rows: Sequence[dict[str, float]], numbers: dict[str, int]) -> Postings:
    count = sum(map(len, rows))
    terms = np.fromiter((numbers[term] for row in rows for term in row), np.int32, count)
    values = np.fromiter((value for row in rows for value in row.values()), np.float32, count)
    places = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows])
    order = np.argsort(terms, kind="stable")
    starts = np.searchsorted(terms[order], np.arange(len(numbers) + 1))
    return Postings(starts.astype(np.int64), places[order], values[order])


_log = logging.getLogger(__name__)

LEXICON_FILE = "lexicon.npz"
_FORMAT = "2"
# A small catalog's lexicon is made as fast as it is read.
_WORTH_KEEPING = 2_000
_TEXTS = ("ids", "hashes", "categories", "tool_keys", "catalogs", "terms")
_POSTINGS = ("words", "names", "tools")
_NUMBERS = ("idf", "tool_numbers", "tool_weights", "name_lengths", "described", "full_names")


class LexiconCache:
    """Gives the lexicon of a store's present contents."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.path.parent / LEXICON_FILE
        self._lock = threading.Lock()
        self._current: tuple[str, Lexicon] | None = None

    def current(self) -> Lexicon:
        """Return the lexicon of the visible APIs; cheap while nothing changed.

        Raises DataError when the store cannot be read.
        """
        state = f"{_FORMAT} {self._store.state_hash()}"
        with self._lock:
            if self._current is None or self._current[0] != state:
                self._current = (state, self._load(state) or self._make(state))
            return self._current[1]

    def _load(self, state: str) -> Lexicon | None:
        try:
            arrays = read_arrays(self._path)
            return _read_lexicon(arrays) if str(arrays["state"]) == state else None
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            _log.warning("the word index %s is damaged (%s); making it anew", self._path, error)
            return None

    def _make(self, state: str) -> Lexicon:
        lexicon = make_lexicon(self._entries())
        if len(lexicon) >= _WORTH_KEEPING:
            try:
                _write_lexicon(self._path, state, lexicon)
            except OSError as error:
                _log.warning("cannot keep the word index in %s: %s", self._path, error.strerror)
        return lexicon

    def _entries(self) -> Iterator[Entry]:
        for api_id, key, category, tool, catalog, *fields in self._store.word_rows():
            yield Entry(api_id, key, category, tool, catalog, tuple(fields))


def _write_lexicon(path: Path, state: str, lexicon: Lexicon) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {"state": np.asarray(state)}
    arrays |= {name: text_array(getattr(lexicon, name)) for name in _TEXTS}
    for name in _POSTINGS:
        postings: Postings = getattr(lexicon, name)
        arrays |= {f"{name}.{part}": value for part, value in postings._asdict().items()}
    arrays |= {name: getattr(lexicon, name) for name in _NUMBERS}
    write_arrays(path, arrays)


def _read_lexicon(arrays: Mapping[str, npt.NDArray[Any]]) -> Lexicon:
    parts: dict[str, Any] = {name: array_texts(arrays[name]) for name in _TEXTS}
    for name in _POSTINGS:
        parts[name] = Postings(*(arrays[f"{name}.{part}"] for part in Postings._fields))
    parts |= {name: arrays[name] for name in _NUMBERS}
    lexicon = Lexicon(**parts)
    sizes = {len(parts[name]) for name in (*_TEXTS[:-1], *_NUMBERS[1:])}
    if len(sizes) != 1 or len(lexicon.idf) != len(lexicon.terms):
        raise ValueError("its parts do not belong together")
    return lexicon
