"""Import of whole documents: operations read and refused, seconds and memory of each.

``large_document`` makes an OpenAPI document of many operations over connected schemas.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_catalogs import yaml_text
from toolsrv_catalogs.importer import ImportResult, read_catalog
from toolsrv_catalogs.sources import SUFFIXES
from toolsrv_lab.bench.report import memory
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError
from toolsrv_registry.storage.store import Store

_TYPES = ("string", "integer", "boolean", "number")
_OPTIONS = ("top", "skip", "filter", "count")


def large_document(
    operations: int, *, entities: int | None = None, properties: int = 30
) -> dict[str, Any]:
    """Return a document with so many operations.

    Args:
        operations: how many there are, four of a path.
        entities: schemas with ``properties`` each; one for 12 operations where it is not given.
        properties: of an entity; a fifth of them lead to other entities.
    """
    entities = max(1, operations // 12) if entities is None else entities
    paths: dict[str, Any] = {}
    for at in range(-(-operations // 4)):
        item = _item(at, at % entities)
        left = operations - 4 * at
        paths[f"/areas/{{area_id}}/things{at}/{{thing_id}}"] = dict(list(item.items())[:left])
    return {
        "openapi": "3.0.3",
        "info": {"title": "Large", "version": "1"},
        "servers": [{"url": "https://large.example/v1"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(entities, properties),
            "parameters": {
                name: {
                    "name": f"${name}",
                    "in": "query",
                    "description": f"The {name} of the list",
                    "schema": {"type": "integer"},
                }
                for name in _OPTIONS
            },
        },
    }


def _item(at: int, entity: int) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/entity{entity}"}
    own = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("area_id", "thing_id")
    ]
    shared = [{"$ref": f"#/components/parameters/{name}"} for name in _OPTIONS]
    many = {"type": "object", "properties": {"value": {"type": "array", "items": reference}}}
    body = {"required": True, "content": {"application/json": {"schema": reference}}}
    tags = [f"area {entity % 20}"]

    def operation(verb: str, schema: Any, parameters: list[Any], **more: Any) -> dict[str, Any]:
        answer = {"description": "Done", "content": {"application/json": {"schema": schema}}}
        return {
            "operationId": f"{verb}_thing{at}",
            "summary": f"{verb.title()} the things of kind {at} in an area",
            "tags": tags,
            "parameters": parameters,
            "responses": {"200": answer},
            **more,
        }

    return {
        "get": operation("list", many, [*own, *shared]),
        "post": operation("add", reference, own, requestBody=body),
        "patch": operation("change", reference, own, requestBody=body),
        "delete": operation("remove", {}, own),
    }


def _schemas(entities: int, properties: int) -> dict[str, Any]:
    base = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("id", "name", "created")},
    }
    found: dict[str, Any] = {"base": base}
    for at in range(entities):
        own: dict[str, Any] = {}
        for number in range(properties):
            other = {"$ref": f"#/components/schemas/entity{(at * 7 + number + 1) % entities}"}
            plain = {
                "type": _TYPES[number % len(_TYPES)],
                "description": f"Property {number} of entity {at}, as it is kept",
            }
            own[f"property{number}"] = other if number % 5 == 4 else plain
        found[f"entity{at}"] = {
            "allOf": [
                {"$ref": "#/components/schemas/base"},
                {"type": "object", "properties": own, "required": ["property0"]},
            ]
        }
    return found


METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"})
"""Fields of a path item that are operations (OpenAPI 3.2, section 4.8.10)."""
_WORDS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class Document(BaseModel):
    """What became of one document.

    ``declared`` are the operations that stand in it, ``read`` those that are APIs now, ``refused``
    counts the others by reason, ``parts`` what was refused of operations that were read, ``lost``
    operations of which nothing is told. ``fault`` says why it was not read at all; ``cpu_seconds``
    are those of a processor, which other work on the machine hardly alters; ``peak`` is the
    resident memory of its process in MiB, None where that cannot be known.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    bytes: int
    version: str = ""
    declared: int = 0
    read: int = 0
    refused: dict[str, int] = {}
    parts: dict[str, int] = {}
    notes: int = 0
    lost: int = 0
    fault: str = ""
    read_seconds: float = 0.0
    store_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds of reading and storing."""
        return self.read_seconds + self.store_seconds


class Totals(BaseModel):
    """Sums over documents; ``reasons`` and ``parts`` begin with the most frequent.

    ``per_second`` are operations read in a second of the processor.
    """

    model_config = ConfigDict(frozen=True)

    documents: int
    failed: int
    bytes: int
    declared: int
    read: int
    refused: int
    lost: int
    reasons: dict[str, int]
    parts: dict[str, int]
    seconds: float
    cpu_seconds: float
    per_second: float
    peak: float | None


def documents_in(folder: Path, limit: int | None = None) -> list[Path]:
    """Return the files below a folder that may be documents, evenly picked where there are more.

    Raises:
        UsageError: there is none.
    """
    found = sorted(
        path
        for path in ([folder] if folder.is_file() else folder.rglob("*"))
        if path.suffix.lower() in SUFFIXES and path.is_file() and path.name != "package.json"
    )
    if not found:
        raise UsageError(
            f"no documents are in {str(folder)!r}", hint="name a folder of JSON or YAML"
        )
    if limit is None or len(found) <= limit:
        return found
    return [found[at * len(found) // limit] for at in range(limit)]


def evaluate(
    paths: Sequence[Path],
    root: Path,
    *,
    seconds: float = 600.0,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Document]:
    """Yield what became of each document; files that are no OpenAPI are left out.

    Args:
        paths: the documents.
        root: the folder that their paths are told relative to.
        seconds: how long one of them may take.
        progress: hears (documents done, documents in all).
    """
    kinds = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in kinds else "spawn")
    for at, path in enumerate(paths, start=1):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(path, theirs), daemon=True)
        process.start()
        theirs.close()
        found: dict[str, Any] | None = {"fault": f"took more than {seconds:.0f} s"}
        if ours.poll(seconds):
            try:
                found = ours.recv()
            except EOFError:
                process.join()
                found = {"fault": f"its process ended with {process.exitcode}"}
        process.kill()
        process.join()
        ours.close()
        if found is not None:
            name = path.name if path == root else path.relative_to(root).as_posix()
            yield Document(path=name, bytes=path.stat().st_size, **found)
        if progress is not None:
            progress(at, len(paths))


def totals(documents: Sequence[Document]) -> Totals:
    """Return the sums over documents."""
    reasons: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for one in documents:
        reasons.update(one.refused)
        parts.update(one.parts)
    seconds = sum(one.seconds for one in documents)
    busy = sum(one.cpu_seconds for one in documents)
    read = sum(one.read for one in documents)
    return Totals(
        documents=len(documents),
        failed=sum(bool(one.fault) for one in documents),
        bytes=sum(one.bytes for one in documents),
        declared=sum(one.declared for one in documents),
        read=read,
        refused=sum(reasons.values()),
        lost=sum(one.lost for one in documents),
        reasons=dict(reasons.most_common()),
        parts=dict(parts.most_common()),
        seconds=round(seconds, 2),
        cpu_seconds=round(busy, 2),
        per_second=round(read / busy, 1) if busy else 0.0,
        peak=max((one.peak for one in documents if one.peak is not None), default=None),
    )


def declared(value: Any) -> int:
    """Return the number of operations that stand in the paths of a parsed document."""
    paths = value.get("paths") if isinstance(value, dict) else None
    items = [one for one in paths.values() if isinstance(one, dict)] if paths else []
    return sum(
        isinstance(operation, dict)
        for item in items
        for methods in (item, item.get("additionalOperations") or {})
        for method, operation in methods.items()
        if methods is not item or str(method).lower() in METHODS
    )


def _work(path: Path, answer: Connection) -> None:
    """Send what became of a document, None for one that is no OpenAPI."""
    with suppress(BrokenPipeError):
        answer.send(_document(path))
    answer.close()


def _document(path: Path) -> dict[str, Any] | None:
    version, count, fault = _looked_at(path)
    if not version and not fault:
        return None
    found: dict[str, Any] = {"version": version, "declared": count, "fault": fault}
    if fault:
        return found
    started, busy = time.perf_counter(), time.process_time()
    try:
        reading = read_catalog(path)
    except ToolsrvError as error:
        return found | {"fault": error.message, "read_seconds": time.perf_counter() - started}
    found["read_seconds"] = time.perf_counter() - started
    found["store_seconds"] = _stored(reading)
    found["cpu_seconds"] = time.process_time() - busy
    refusals = [one for file in reading.files for one in file.refused]
    refused = Counter(reason(one.reason) for one in refusals if one.what == "API")
    read = len(reading.catalog.apis)
    return found | {
        "read": read,
        "refused": dict(refused),
        "parts": dict(
            Counter(f"{one.what}: {reason(one.reason)}" for one in refusals if one.what != "API")
        ),
        "notes": sum(len(file.notes) for file in reading.files),
        "lost": max(0, count - read - sum(refused.values())),
        "peak": memory(os.getpid()).peak,
    }


def _looked_at(path: Path) -> tuple[str, int, str]:
    """Return a document's version, its operations and why it cannot be parsed."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        value = json.loads(text) if path.suffix.lower() == ".json" else yaml_text.load(text)
    except (OSError, ValueError, RecursionError) as error:
        return "", 0, f"cannot be parsed: {str(error)[:200]}"
    told = (value.get("openapi") or value.get("swagger")) if isinstance(value, dict) else None
    return (str(told)[:20], declared(value), "") if told else ("", 0, "")


def _stored(reading: ImportResult) -> float:
    """Return the seconds of storing a catalog in an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        try:
            with Store.open(Path(folder) / STORE_FILE) as store:
                store.put_catalog(reading.catalog, hold=True, files=reading.origins)
        except DataError:
            return 0.0
        return time.perf_counter() - started


def reason(text: str) -> str:
    """Return a reason without the names and numbers in it, so that equal ones add up."""
    return _WORDS.sub("…", text)
