"""Samples as flat arrays of numbers, and steps of a training made of them. Numpy alone.

A row is an API's tokens and behind them a text's: [CLS] name, description, parameters [SEP] text
[SEP] facts. Each API and each text is kept once, whatever number of samples it is in. Rows of a
batch lie flat, one behind the other, the shortest first; only attention sees padding, in a few
parts of like length.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Array]

BEHIND = 1_000
"""A place in a text is told as so much more than its number, one in an API as its number."""
DOCUMENT, TEXT, CLAUSE, FACT = range(4)
"""The kinds of tokens, as ``toolsrv_registry.pairing`` has them."""

_MOST_OTHERS = 16
_HARDEST = 0.7
"""How often the first of a sample's others, which its text asks for too, is among those taken."""
_PARTS = 5
_ROUND = 16
"""Rows are padded to multiples of it: attention is faster."""


class Part(NamedTuple):
    """Rows of like length: how many, the longest, and where their tokens begin and end."""

    rows: int
    longest: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What a network reads at once: arrays by name, and the parts for attention.

    ``groups``, ``choices`` and ``aims`` count what the three losses are means of.
    """

    arrays: Arrays
    parts: tuple[Part, ...]
    groups: int
    choices: int
    aims: int

    @property
    def tokens(self) -> int:
        """The number of its tokens, without padding."""
        return len(self.arrays["ids"])


class _Flat(NamedTuple):
    """Rows of a batch: group, API, text and sample of each, whether the API serves, and lengths."""

    group: Array
    document: Array
    text: Array
    sample: Array
    serves: Array
    length: Array

    def taken(self, which: Array) -> _Flat:
        return _Flat(*(one[which] for one in self))


class Rows:
    """The samples of a file of ``matching.tables``. Raises OSError or ValueError for another."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            self._a: Arrays = {name: file[name] for name in file.files}
        a = self._a
        if "sample_text" not in a:
            raise ValueError("no rows of a matcher")
        self.made_of = str(a["made_of"])
        self._ids = np.concatenate([a["document_ids"], a["text_ids"]])
        self._lengths = {k: a[f"{k}_length"].astype(np.int64) for k in ("document", "text")}
        self._begins = {
            name: _begins(a[f"{name}_{what}"])
            for name, what in (
                ("document", "length"), ("text", "length"), ("marker", "count"),
                ("option", "count"), ("other", "count"), ("aim", "count"),
            )
        }  # fmt: skip
        self._text_shift = len(a["document_ids"])
        self._allowed = np.unpackbits(a["text_allowed"])[: len(a["text_ids"])].astype(bool)

    def __len__(self) -> int:
        return len(self._a["sample_text"])

    def step(self, samples: Array, others: int, rng: np.random.Generator, most: int) -> list[Batch]:
        """Return a step on some samples, in batches of hardly more than ``most`` tokens.

        Each sample is a group: the API that serves, where there is one, and some of its others.
        """
        flat = self._flat(samples, others, rng)
        own = np.bincount(flat.group, flat.length, minlength=len(samples))
        piece = ((np.cumsum(own) - own) // most)[flat.group]
        return [self._batch(flat.taken(piece == one), others) for one in np.unique(piece)]

    def _flat(self, samples: Array, others: int, rng: np.random.Generator) -> _Flat:
        """Return the rows of samples, the shortest first."""
        a = self._a
        count = np.minimum(a["other_count"][samples].astype(np.int64), _MOST_OTHERS)
        key = rng.random((len(samples), _MOST_OTHERS))
        key[:, 0] = np.where(rng.random(len(samples)) < _HARDEST, -1.0, key[:, 0])
        key[np.arange(_MOST_OTHERS)[None] >= count[:, None]] = np.inf
        order = np.argsort(key, 1)[:, :others]
        at = np.minimum(
            self._begins["other"][samples][:, None] + order, max(0, len(a["other"]) - 1)
        )
        beside = a["other"][at] if len(a["other"]) else np.zeros_like(at)
        serves = a["sample_api"][samples].astype(np.int64)
        documents = np.concatenate([serves[:, None], beside.astype(np.int64)], 1)
        beside_is = np.arange(order.shape[1])[None] < count[:, None]
        group, column = np.nonzero(np.concatenate([(serves >= 0)[:, None], beside_is], 1))
        document = documents[group, column]
        text = a["sample_text"][samples][group].astype(np.int64)
        length = self._lengths["document"][document] + self._lengths["text"][text]
        flat = _Flat(group, document, text, samples[group], column == 0, length)
        return flat.taken(np.argsort(length, kind="stable"))

    def _batch(self, flat: _Flat, others: int) -> Batch:
        names, group = np.unique(flat.group, return_inverse=True)
        flat = flat._replace(group=group)
        seats = _seats(flat, len(names), others + 1)
        start = np.cumsum(flat.length) - flat.length
        tokens, row, place = self._tokens(flat, start)
        parts, slots = _parts(flat.length, start, row, place)
        has = (seats[:, 1] >= 0) & flat.serves[np.maximum(seats[:, 0], 0)]
        weights = 1 / np.maximum(1, (seats >= 0).sum(1))
        arrays: Arrays = {
            **tokens, "slots": slots, "starts": start, "seats": seats, "chosen": has,
            "weights": weights[flat.group].astype(np.float32),
            "serves": flat.serves.astype(np.float32),
        }  # fmt: skip
        aims = self._pointers(flat, start, arrays)
        return Batch(arrays, parts, len(names), int(has.sum()), aims)

    def _tokens(self, flat: _Flat, start: Array) -> tuple[Arrays, Array, Array]:
        """Return ids, kinds and places of tokens, and of each its row and where in it it is."""
        _, row, place = _runs(start, flat.length)
        before = self._lengths["document"][flat.document][row]
        text, inside = flat.text[row], place - before
        begins = self._begins
        ids = self._ids[
            np.where(
                inside < 0,
                begins["document"][flat.document][row] + place,
                self._text_shift + begins["text"][text] + inside,
            )
        ]
        clause = self._a["text_clause"].astype(np.int64)[text]
        ends = self._a["text_end"].astype(np.int64)[text]
        kinds = np.select(
            [inside < 0, inside >= ends, (inside >= clause[:, 0]) & (inside < clause[:, 1])],
            [DOCUMENT, FACT, CLAUSE],
            TEXT,
        )
        return {"ids": ids.astype(np.int64), "kinds": kinds, "places": place}, row, place

    def _pointers(self, flat: _Flat, start: Array, arrays: Arrays) -> int:
        """Add what the pointing heads read and are to find; return the number of aims."""
        a = self._a
        rows = np.nonzero(flat.serves & (a["aim_count"][flat.sample] > 0))[0]
        if not len(rows):
            return 0
        some, begin = flat.taken(rows), start[rows]
        longest = _rounded(int(some.length.max()))
        at, row, place = _runs(begin, some.length)
        # Padding points at tokens far apart: gradients of one alone would wait for each other.
        given = (np.arange(len(rows) * longest) * 7 % int(flat.length.sum())).reshape(-1, longest)
        given[row, place] = at
        markers, first, last = self._places(some, longest)
        at, row, _ = _runs(self._begins["aim"][some.sample], a["aim_count"][some.sample])
        aims = a["aim"][at].astype(np.int64)
        before = self._lengths["document"][some.document][row][:, None]
        found = np.where(aims[:, 1:] >= BEHIND, aims[:, 1:] - BEHIND + before, aims[:, 1:])
        arrays |= {
            "given": given, "markers": markers + begin[:, None], "firsts": first, "lasts": last,
            "aim_row": row, "aim_marker": aims[:, 0], "aim_first": found[:, 0],
            "aim_last": found[:, 1],
        }  # fmt: skip
        return len(aims)

    def _places(self, some: _Flat, longest: int) -> tuple[Array, Array, Array]:
        """Return where markers stand, and where what they point at may begin and may end."""
        a = self._a
        counts = a["marker_count"][some.document].astype(np.int64)
        shape = (len(counts), int(counts.max()))
        at, row, column = _runs(self._begins["marker"][some.document], counts)
        markers, free = np.zeros(shape, np.int64), np.zeros(shape, bool)
        markers[row, column] = a["marker"][at]
        free[row, column] = ~a["marker_listed"][at]
        words = np.zeros((len(counts), longest), bool)
        lengths = self._lengths["text"][some.text]
        at, row, column = _runs(self._begins["text"][some.text], lengths)
        words[row, column + self._lengths["document"][some.document][row]] = self._allowed[at]
        first = free[:, :, None] & words[:, None]
        last = first.copy()
        counts = a["option_count"][some.document].astype(np.int64)
        at, row, _ = _runs(self._begins["option"][some.document], counts)
        option = a["option"][at].astype(np.int64)
        first[row, option[:, 0], option[:, 1]] = True
        last[row, option[:, 0], option[:, 2]] = True
        first[:, :, 0] = last[:, :, 0] = True
        return markers, first, last


def epochs(count: int, groups: int, seed: int) -> Iterator[Array]:
    """Yield samples for steps for ever: each comes once before any comes again."""
    epoch = 0
    while True:
        order = np.random.default_rng([seed, 0, epoch]).permutation(count)
        for begin in range(0, max(1, count - groups + 1), groups):
            yield order[begin : begin + groups]
        epoch += 1


def _seats(flat: _Flat, groups: int, most: int) -> Array:
    """Return the rows of each group (groups, most): what serves at 0, -1 where no row is."""
    order = np.lexsort((np.arange(len(flat.group)), ~flat.serves, flat.group))
    ranked = flat.group[order]
    seats = np.full((groups, most), -1)
    seats[ranked, np.arange(len(order)) - np.searchsorted(ranked, ranked)] = order
    return seats


def _parts(length: Array, start: Array, row: Array, place: Array) -> tuple[tuple[Part, ...], Array]:
    """Return attention's parts, and where in its padded part each token stands."""
    bounds = [len(length) * part // _PARTS for part in range(_PARTS + 1)]
    parts, slots = [], []
    for first, after in itertools.pairwise(bounds):
        if after == first:
            continue
        longest = _rounded(int(length[first:after].max()))
        begin, end = int(start[first]), int(start[after - 1] + length[after - 1])
        slots.append((row[begin:end] - first) * longest + place[begin:end])
        parts.append(Part(after - first, longest, begin, end))
    return tuple(parts), np.concatenate(slots)


def _rounded(length: int) -> int:
    return -(-length // _ROUND) * _ROUND


def _begins(lengths: Array) -> Array:
    ends: Array = np.cumsum(lengths.astype(np.int64))
    return np.concatenate([[0], ends])


def _runs(begins: Array, lengths: Array) -> tuple[Array, Array, Array]:
    """Return the places of runs, one behind the other, which run each is of, and where in it."""
    lengths = lengths.astype(np.int64)
    run = np.repeat(np.arange(len(lengths)), lengths)
    inside = np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return begins[run] + inside, run, inside
