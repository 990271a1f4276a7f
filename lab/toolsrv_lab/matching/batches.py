"""Samples as numbers, in steps of groups: an API that serves a clause beside some that do not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolsrv_lab.matching.samples import Sample
from toolsrv_registry import pairing
from toolsrv_registry.api import Api
from toolsrv_registry.pairing import Document, Paired


class Row(NamedTuple):
    """One API beside one text. ``aims``: marker -> (first token, last token); (0, 0) none.

    Markers that teach nothing are not in ``aims``.
    """

    paired: Paired
    serves: bool
    aims: Mapping[int, tuple[int, int]]


class Rows:
    """Makes rows of samples. Documents are tokenised once."""

    def __init__(self, tokenizer: Any, apis: Mapping[str, Api]) -> None:
        self._tokenizer = tokenizer
        self._apis = apis
        self._documents: dict[str, Document] = {}

    def group(self, sample: Sample, others: Sequence[str]) -> list[Row]:
        """Return the sample's API, where one serves it, and ``others`` beside its text."""
        text = pairing.tokenise(self._tokenizer, sample.text)
        facts = [
            (pairing.tokenise(self._tokenizer, n), pairing.tokenise(self._tokenizer, v))
            for n, v in sample.facts
        ]
        rows = []
        for api in [*([sample.api] if sample.api else []), *others]:
            clause = None if sample.whole else sample.clause
            paired = pairing.pair(self._document(api), text, clause, facts)
            mine = api == sample.api
            rows.append(Row(paired, mine, self._aims(sample, paired) if mine else {}))
        return rows

    def _aims(self, sample: Sample, paired: Paired) -> dict[int, tuple[int, int]]:
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

    def _document(self, api: str) -> Document:
        if api not in self._documents:
            self._documents[api] = pairing.document(self._tokenizer, self._apis[api])
        return self._documents[api]


def steps(
    rows: Rows, samples: Sequence[Sample], *, groups: int, others: int, seed: int, count: int
) -> Iterator[list[list[Row]]]:
    """Yield ``count`` steps of groups; each sample comes once before any comes again."""
    made, epoch = 0, 0
    while made < count:
        rng = random.Random(f"{seed}/{epoch}")
        order = list(range(len(samples)))
        rng.shuffle(order)
        for begin in range(0, len(order) - groups + 1, groups):
            some = []
            for at in order[begin : begin + groups]:
                sample = samples[at]
                near = list(sample.others)
                # The first are those that the text also asks for: the hardest.
                kept = near[:1] if rng.random() < 0.7 else []
                rest = [one for one in near if one not in kept]
                kept += rng.sample(rest, min(len(rest), others - len(kept)))
                some.append(rows.group(sample, kept))
            yield some
            made += 1
            if made == count:
                return
        epoch += 1
