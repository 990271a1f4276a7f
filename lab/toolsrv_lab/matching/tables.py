"""Samples as the flat arrays that the trainer reads (``trainer.rows``): each API and text once.

What an API and a text are in tokens is ``toolsrv_registry.pairing``'s, so that the matcher is asked
as it was taught.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolsrv_lab.matching.samples import Sample
from toolsrv_lab.matching.trainer.rows import BEHIND
from toolsrv_registry import pairing
from toolsrv_registry.api import Api
from toolsrv_registry.pairing import Document, PairedTokens, Sentence

MOST_OTHERS = 5
"""APIs that do not serve, of one sample: the first and as many others by lot."""

_KEPT = 100_000

_LAYOUT = {
    "document_ids": "H", "document_length": "H", "marker": "H", "marker_listed": "B",
    "marker_count": "B", "option": "H", "option_count": "H", "text_ids": "H", "text_length": "H",
    "text_end": "H", "text_clause": "H", "text_allowed": "B", "sample_text": "I",
    "sample_api": "i", "other": "I", "other_count": "B", "aim": "H", "aim_count": "B",
}  # fmt: skip
_WIDTHS = {"option": 3, "text_clause": 2, "aim": 3}


class Tables:
    """Takes samples and returns them as arrays. Twice the same is taken once."""

    def __init__(self, tokenizer: Any, apis: Mapping[str, Api], *, seed: int = 0) -> None:
        self._apis = apis
        self._rng = random.Random(f"{seed}/others")
        self._columns = {name: array(kind) for name, kind in _LAYOUT.items()}
        self._documents: dict[str, int] = {}
        self._same_document: dict[bytes, int] = {}
        self._texts: dict[bytes, int] = {}
        self._seen: set[bytes] = set()
        self._tokens: Callable[[str], Sentence] = lru_cache(_KEPT)(
            lambda text: pairing.tokenise(tokenizer, text)
        )
        self._read: Callable[[str], Document] = lru_cache(_KEPT // 10)(
            lambda api: pairing.document(tokenizer, apis[api])
        )

    def add(self, sample: Sample) -> None:
        """Take a sample, unless nothing can be learnt of it or it is there already."""
        others = [one for one in dict.fromkeys(sample.others) if one != sample.api]
        if len(others) > MOST_OTHERS:
            others = [others[0], *self._rng.sample(others[1:], MOST_OTHERS - 1)]
        if not sample.api and not others:
            return
        first = sample.api or others[0]
        paired = self._paired(first, sample)
        before = self._behind(paired)
        clause = _clause(paired, before)
        if clause is None or (not sample.whole and clause[0] == clause[1]):
            return
        text = self._text(paired, before, clause)
        api = self._document(first) if sample.api else -1
        wrong = [one for one in dict.fromkeys(map(self._document, others)) if one != api]
        aims = self._aims(sample, paired) if sample.api else {}
        if wrong or aims:
            self._put(text, api, wrong, [(at, *_own_aim(aim, before)) for at, aim in aims.items()])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was taken as arrays by name."""
        found = {}
        for name, column in self._columns.items():
            values = np.frombuffer(column, dtype=column.typecode) if column else np.empty(
                0, dtype=column.typecode
            )  # fmt: skip
            found[name] = values.reshape(-1, _WIDTHS[name]) if name in _WIDTHS else values
        found["marker_listed"] = found["marker_listed"].astype(bool)
        found["text_allowed"] = np.packbits(found["text_allowed"])
        return found

    def __len__(self) -> int:
        return len(self._columns["sample_text"])

    def _paired(self, api: str, sample: Sample) -> PairedTokens:
        facts = [(self._tokens(name), self._tokens(value)) for name, value in sample.facts]
        clause = None if sample.whole else sample.clause
        return pairing.pair(self._read(api), self._tokens(sample.text), clause, facts)

    def _behind(self, paired: PairedTokens) -> int:
        """Return how many tokens of a row are the API's."""
        return next(at for at, kind in enumerate(paired.kinds) if kind != pairing.DOCUMENT)

    def _document(self, api: str) -> int:
        """Return the number of an API; those that read the same have one."""
        if api in self._documents:
            return self._documents[api]
        paired = pairing.pair(self._read(api), Sentence((), ()), None)
        ids = paired.ids[: self._behind(paired)]
        options = [
            (at, *one)
            for at, listed in enumerate(paired.options)
            for one in listed
            if one is not None
        ]
        listed = [bool(one) for one in paired.options]
        key = _key(ids, paired.markers, options, listed)
        number = self._same_document.setdefault(key, len(self._same_document))
        if number == len(self._columns["document_length"]):
            self._extend("document_ids", ids, "document_length")
            self._extend("marker", paired.markers, "marker_count")
            self._columns["marker_listed"].extend(listed)
            self._columns["option"].extend(one for option in options for one in option)
            self._columns["option_count"].append(len(options))
        self._documents[api] = number
        return number

    def _text(self, paired: PairedTokens, before: int, clause: tuple[int, int]) -> int:
        """Return the number of what stands behind an API."""
        ids, kinds = paired.ids[before:], paired.kinds[before:]
        allowed = [one is not None for one in paired.sources[before:]]
        end = kinds.index(pairing.FACT) if pairing.FACT in kinds else len(kinds)
        key = _key(ids, clause, allowed, (end,))
        number = self._texts.setdefault(key, len(self._texts))
        if number == len(self._columns["text_length"]):
            self._extend("text_ids", ids, "text_length")
            self._columns["text_end"].append(end)
            self._columns["text_clause"].extend(clause)
            self._columns["text_allowed"].extend(allowed)
        return number

    def _put(self, text: int, api: int, others: list[int], aims: list[tuple[int, ...]]) -> None:
        key = _key((text, api), others, [])
        if key in self._seen:
            return
        self._seen.add(key)
        self._columns["sample_text"].append(text)
        self._columns["sample_api"].append(api)
        self._extend("other", others, "other_count")
        self._columns["aim"].extend(one for aim in aims for one in aim)
        self._columns["aim_count"].append(len(aims))

    def _extend(self, name: str, values: Sequence[int], counts: str) -> None:
        self._columns[name].extend(values)
        self._columns[counts].append(len(values))

    def _aims(self, sample: Sample, paired: PairedTokens) -> dict[int, tuple[int, int]]:
        """Return marker -> (first token, last token); (0, 0) for what has no value.

        Markers that teach nothing are not among them.
        """
        found: dict[int, tuple[int, int]] = {}
        places = {0: (0, *sample.clause)} if sample.whole else {}
        for at, one in enumerate(pairing.parameters(self._apis[sample.api]), start=1):
            span = sample.spans.get(one.name, ...)
            if paired.options[at] and one.name in sample.listed:
                option = paired.options[at][one.enum.index(sample.listed[one.name])]
                if option is not None:
                    found[at] = option
            elif span is None:
                found[at] = (0, 0)
            elif span is not ... and not paired.options[at]:
                places[at] = span
        return found | pairing.targets(paired, places)


def write_rows(
    path: Path,
    samples: Iterable[Sample],
    apis: Mapping[str, Api],
    tokenizer: Any,
    *,
    made_of: str,
    progress: Callable[[int], None] = lambda _done: None,
) -> int:
    """Write samples for the trainer and return how many; ``made_of`` tells them from others.

    ``progress`` is called with the number of samples read. Raises OSError where the file cannot be
    written.
    """
    tables = Tables(tokenizer, apis)
    for number, sample in enumerate(samples, start=1):
        tables.add(sample)
        progress(number)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        arrays: dict[str, Any] = {**tables.arrays(), "made_of": np.array(made_of)}
        np.savez_compressed(file, **arrays)
    fresh.replace(path)
    return len(tables)


def _clause(paired: PairedTokens, before: int) -> tuple[int, int] | None:
    """Return where the clause's tokens begin and end, (0, 0) for none; None where it has gaps."""
    at = [at - before for at, kind in enumerate(paired.kinds) if kind == pairing.CLAUSE]
    if not at:
        return 0, 0
    return (at[0], at[-1] + 1) if at[-1] - at[0] + 1 == len(at) else None


def _own_aim(aim: tuple[int, int], before: int) -> tuple[int, int]:
    """Return an aim apart from the API that stands in front of its text."""
    first, last = aim
    shift = BEHIND - before if first >= before else 0
    return first + shift, last + shift


def _key(*parts: Iterable[Any]) -> bytes:
    told = repr([tuple(part) for part in parts])
    return hashlib.sha256(told.encode()).digest()[:16]
