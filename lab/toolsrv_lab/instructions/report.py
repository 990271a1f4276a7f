"""What the texts of instruction files are like: lengths, variety, nearness to API documents.

Figures that fall or rise with a file's size (distinct n-grams, shared openings and endings,
overlap) are taken on samples of one size for all files that are compared, drawn with a seed. A
text's length is counted in blank-separated words; n-grams and content words are those of
``toolsrv_registry.words``, without case and punctuation. Time and memory are linear in the files.
Knows nothing about how a file was made.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, quantiles
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.retrieval.queries import Query
from toolsrv_registry.api import Api
from toolsrv_registry.documents import columns
from toolsrv_registry.errors import UsageError
from toolsrv_registry.words import content_words, stems, words

TOKENS = 100_000
"""Most tokens of the sample for distinct n-grams."""

OVERLAP_TEXTS = 500
"""Most texts that are compared with each other."""

GRAMS = (1, 2, 3, 4)
_EDGE = 4
_OVERLAP = 5
_MOST_NEEDS = 5


class Spread(BaseModel):
    """Minimum, 10th percentile, median, 90th percentile and maximum of some counts."""

    model_config = ConfigDict(frozen=True)

    min: float
    p10: float
    median: float
    p90: float
    max: float


class Sizes(NamedTuple):
    """How large the samples are: tokens for distinct n-grams, texts for edges and overlap."""

    tokens: int
    texts: int
    overlap: int


class Figures(BaseModel):
    """The figures of one file; shares are from 0 to 1.

    ``distinct``: different n-grams over all, by n. ``same_start``, ``same_end``: texts whose first
    or last four words another has too. ``overlap``: of each text's 5-grams the share that stands
    in the text most like it. ``in_document``: of each text's content words the share that stands in
    the documents of its APIs too, over the ``judged`` texts with known APIs; None where there is
    none. ``needs``: texts by number of needs, the last for five and more.
    """

    model_config = ConfigDict(frozen=True)

    texts: int
    words: Spread
    distinct: dict[int, float]
    same_start: float
    same_end: float
    overlap_mean: float
    overlap_p90: float
    in_document: float | None
    judged: int
    needs_mean: float
    needs: dict[int, float]
    lower_case: float
    with_digits: float


class Comparison(BaseModel):
    """The figures of files by name, and the sizes of the samples that are the same for all."""

    model_config = ConfigDict(frozen=True)

    seed: int
    tokens: int
    sampled: int
    overlap_sampled: int
    files: dict[str, Figures]


def compare(
    files: Mapping[str, Sequence[Query]], apis: Iterable[Api], *, seed: int = 0
) -> Comparison:
    """Return the figures of each file of queries.

    ``apis`` are those whose documents are known. Raises UsageError for a file without a text.
    """
    empty = [name for name, queries in files.items() if not any(q.query.split() for q in queries)]
    if empty or not files:
        raise UsageError(f"there is no text in {', '.join(empty)}", hint="give a file of queries")
    told = {name: [q for q in queries if q.query.split()] for name, queries in files.items()}
    said = {name: [words(query.query) for query in queries] for name, queries in told.items()}
    texts = min(map(len, told.values()))
    tokens = min(TOKENS, *(sum(map(len, one)) for one in said.values()))
    sizes = Sizes(tokens, texts, min(OVERLAP_TEXTS, texts))
    documents = _Documents(apis)
    found = {name: _figures(told[name], said[name], documents, sizes, seed) for name in told}
    return Comparison(
        seed=seed,
        tokens=sizes.tokens,
        sampled=sizes.texts,
        overlap_sampled=sizes.overlap,
        files=found,
    )


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of one value or more; percentiles are interpolated."""
    if len(values) == 1:
        cuts = [float(values[0])] * 9
    else:
        cuts = quantiles(values, n=10, method="inclusive")
    return Spread(min=min(values), p10=cuts[0], median=cuts[4], p90=cuts[8], max=max(values))


def distinct(texts: Iterable[Sequence[str]], tokens: int) -> dict[int, float]:
    """Return the share of different n-grams by n in the first so many tokens of texts.

    N-grams do not reach from one text into the next; 1 where there is none.
    """
    different: dict[int, set[tuple[str, ...]]] = {n: set() for n in GRAMS}
    counted: Counter[int] = Counter()
    left = tokens
    for text in texts:
        part = text[:left]
        left -= len(part)
        for n in GRAMS:
            grams = _grams(part, n)
            counted[n] += len(grams)
            different[n].update(grams)
        if left <= 0:
            break
    return {n: len(different[n]) / counted[n] if counted[n] else 1.0 for n in GRAMS}


def shared_edges(texts: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return the shares of texts whose first and last four words another text has too."""
    shares = []
    for edges in ([tuple(t[:_EDGE]) for t in texts], [tuple(t[-_EDGE:]) for t in texts]):
        count = Counter(edges)
        shares.append(sum(count[edge] > 1 for edge in edges) / len(edges))
    return shares[0], shares[1]


def overlaps(texts: Sequence[Sequence[str]]) -> list[float]:
    """Return for each text the share of its 5-grams that the text most like it has too."""
    grams = [set(_grams(text, _OVERLAP)) for text in texts]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, one in enumerate(grams):
        for gram in one:
            holders[gram].append(at)
    found = []
    for at, one in enumerate(grams):
        common: Counter[int] = Counter()
        for gram in one:
            common.update(other for other in holders[gram] if other != at)
        found.append(max(common.values(), default=0) / len(one) if one else 0.0)
    return found


class _Documents:
    """The stems of API documents, made when they are asked for."""

    def __init__(self, apis: Iterable[Api]) -> None:
        self._apis = {api.id: api for api in apis}
        self._stems: dict[str, frozenset[str]] = {}

    def share(self, query: Query) -> float | None:
        """Return the share of a text's content words in its APIs' documents, None without one."""
        known = [self._of(key) for key in query.relevant_ids if key in self._apis]
        if not known:
            return None
        said = stems(content_words(query.query))
        return len(said & frozenset().union(*known)) / len(said) if said else 0.0

    def _of(self, key: str) -> frozenset[str]:
        if key not in self._stems:
            self._stems[key] = stems(" ".join(columns(self._apis[key])).split())
        return self._stems[key]


def _figures(
    queries: Sequence[Query],
    said: Sequence[Sequence[str]],
    documents: _Documents,
    sizes: Sizes,
    seed: int,
) -> Figures:
    rng = random.Random(seed)
    drawn = rng.sample(said, len(said))
    start, end = shared_edges(drawn[: sizes.texts])
    likeness = overlaps(drawn[: sizes.overlap])
    shares = [share for query in queries if (share := documents.share(query)) is not None]
    needs = [len(query.needs) or len(query.relevant_ids) for query in queries]
    count = Counter(min(one, _MOST_NEEDS) for one in needs)
    texts = [query.query for query in queries]
    return Figures(
        texts=len(texts),
        words=spread([len(text.split()) for text in texts]),
        distinct=distinct(drawn, sizes.tokens),
        same_start=start,
        same_end=end,
        overlap_mean=fmean(likeness),
        overlap_p90=spread(likeness).p90,
        in_document=fmean(shares) if shares else None,
        judged=len(shares),
        needs_mean=fmean(needs),
        needs={number: count[number] / len(needs) for number in sorted(count)},
        lower_case=_share(texts, lambda text: text == text.lower() != text.upper()),
        with_digits=_share(texts, lambda text: any(c.isdigit() for c in text)),
    )


def _share(texts: Sequence[str], holds: Callable[[str], bool]) -> float:
    return sum(map(holds, texts)) / len(texts)


def _grams(text: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(text[at : at + n]) for at in range(len(text) - n + 1)]
