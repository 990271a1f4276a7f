"""Retrievers over an APIBench corpus: the product's own, BM25, the oracle, none.

Each gives the documents of a question: different calls, best first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import numpy as np

from toolsrv_lab.evaluation.apibench_data import HUBS, Corpus, CorpusApi, Question
from toolsrv_lab.retrieval.baselines import bm25
from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.encoder import Progress
from toolsrv_registry.registry import Registry

Kind = Literal["ours", "bm25", "oracle", "none"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Retrieve = Callable[[Question], Sequence[CorpusApi]]
"""Returns a question's documents, best first."""


@contextlib.contextmanager
def retriever(
    kind: Kind, corpus: Corpus, most: int, *, progress: Progress | None = None
) -> Iterator[Retrieve]:
    """Give a retriever of at most ``most`` documents; the oracle has the one that is needed.

    ``ours`` indexes the corpus in a scratch folder, telling ``progress``.

    Raises:
        DataError: no index can be built.
    """
    if kind == "oracle":
        yield lambda question: [question.api]
    elif kind == "none":
        yield lambda _question: []
    elif kind == "bm25":
        rank = _bm25(corpus)
        yield lambda question: _distinct(rank(question.text), most)
    else:
        with (
            TemporaryDirectory(prefix="toolsrv-", ignore_cleanup_errors=True) as folder,
            Registry.open(Path(folder), [catalog(corpus)]) as registry,
        ):
            registry.ensure_index(progress)
            apis = dict(zip(_ids(corpus), corpus.apis, strict=True))
            yield lambda question: _distinct(
                (apis[api_id] for api_id, _ in registry.retriever.rank(question.text)), most
            )


def catalog(corpus: Corpus) -> Catalog:
    """Return a corpus as a catalog: a tool per domain of use, an API per entry, in its order."""
    apis: dict[str, list[Api]] = {}
    for api_id, one in zip(_ids(corpus), corpus.apis, strict=True):
        category, name = _category(one), str(one.fields.get("api_name") or "unnamed")
        said = (one.fields.get("functionality"), one.fields.get("description"))
        found = Api(
            id=api_id,
            category=category,
            tool=HUBS[corpus.domain],
            name=name,
            description=". ".join(text for text in said if isinstance(text, str) and text),
        )
        apis.setdefault(category, []).append(found)
    tools = tuple(
        Tool(category=category, name=HUBS[corpus.domain], apis=tuple(group))
        for category, group in apis.items()
    )
    return Catalog(name="apibench", tools=tools)


def _ids(corpus: Corpus) -> list[str]:
    return [f"{_category(one)}/{corpus.domain}/{at}" for at, one in enumerate(corpus.apis)]


def _category(api: CorpusApi) -> str:
    return names.standardize_category(api.domain) or "Other"


def _bm25(corpus: Corpus) -> Callable[[str], Iterable[CorpusApi]]:
    """Return BM25 over the documents, each one field of words."""
    scores = bm25([one.document for one in corpus.apis])

    def rank(text: str) -> Iterable[CorpusApi]:
        return (corpus.apis[int(at)] for at in np.argsort(-scores(text), kind="stable"))

    return rank


def _distinct(ranked: Iterable[CorpusApi], most: int) -> list[CorpusApi]:
    """Return the first ``most`` with different calls: a corpus may list one call many times."""
    found: dict[str, CorpusApi] = {}
    for one in ranked:
        if len(found) == most:
            break
        found.setdefault(one.call, one)
    return list(found.values())
