"""The word index in memory: how well each API's words fit each part of a text.

BM25F (Robertson and Zaragoza 2009, section 3.6): a term's frequency is summed over the fields, each with its weight and
length normalisation, before it saturates; the product with the term's idf is computed when the
lexicon is made, so a search only adds numbers. Beside it stand, per API, the idf-weighted shares of
its name's and its tool's words that a text has, added up for the few APIs that are asked about.

A search costs O(postings of its terms + APIs); 16,463 APIs take 1 MB per hundred thousand words.
Immutable after it is made. Knows nothing about vectors, files or the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_registry.called import Keys, called, keys
from toolsrv_registry.words import content_words, stem

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
    full_names: Keys

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
        return called(self.full_names, text)

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
            [keys(row.fields[_TOOL], row.fields[_NAME]) for row in rows], np.uint64
        ).reshape(-1, 2),
    )


def _frequencies(fields: Sequence[Sequence[str]], averages: Sequence[float]) -> dict[str, float]:
    """Return term -> weighted, length-normalised frequency over all fields."""
    found: dict[str, float] = defaultdict(float)
    for words, weight, norm, average in zip(fields, _WEIGHTS, _NORMS, averages, strict=True):
        share = weight / (1 - norm + norm * len(words) / average)
        for word in words:
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
