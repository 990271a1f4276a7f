"""Requests to well-known services: which operation is called, out of thousands of real documents.

A hundred requests in people's words (``data/openapi_requests.jsonl``) to 14 services, whose OpenAPI
documents are not kept here: ``data/openapi_sources.json`` says where each was read, in which
version, and to what part it was cut. They are imported each for itself and the requests solved by
``toolsrv lab eval models``, which knows no alternatives; this counts its results with them:

    python -m toolsrv_lab.evaluation.openapi_requests DIR/results.jsonl
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.evaluation.toolbench_queries import ALL, QueryResult
from toolsrv_registry.errors import DataError, NotFoundError


class Request(BaseModel):
    """A request in words, and the operations that serve it.

    ``relevant`` has an operation for each need, ``arguments`` what the request says for it, and
    ``alternatives`` other operations that serve the same need. What nothing serves needs none.
    """

    model_config = ConfigDict(frozen=True)

    query_id: str
    query: str
    set: str
    relevant: tuple[str, ...]
    arguments: tuple[dict[str, Any], ...]
    alternatives: tuple[tuple[str, ...], ...]
    services: tuple[str, ...]

    @model_validator(mode="after")
    def _aligned(self) -> Request:
        if not len(self.relevant) == len(self.alternatives) == len(self.arguments):
            raise ValueError("relevant, alternatives and arguments are not of one length")
        return self

    @property
    def needs(self) -> list[frozenset[str]]:
        """The operations that serve each need."""
        pairs = zip(self.relevant, self.alternatives, strict=True)
        return [frozenset((first, *others)) for first, others in pairs]


class RequestFigures(BaseModel):
    """``met``: every need has its operation among the calls, the failed ones too.

    ``first``: the first call is of an operation that serves a need.
    """

    model_config = ConfigDict(frozen=True)

    met: Share
    first: Share


class _Line(BaseModel):
    """What is read of a line of results."""

    model: str
    strategy: str
    aids: str
    result: QueryResult


@cache
def requests() -> Mapping[str, Request]:
    """Return the requests by their ids."""
    with as_file(files("toolsrv_lab.evaluation") / "data" / "openapi_requests.jsonl") as path:
        lines = path.read_text("utf-8").splitlines()
    found = [Request.model_validate_json(line) for line in lines]
    return {one.query_id: one for one in found}


def figures(results: Iterable[QueryResult]) -> dict[str, RequestFigures]:
    """Return the figures per set and over all, of the results on these requests."""
    judged: dict[str, list[tuple[bool, bool]]] = {ALL: []}
    for result in results:
        request = requests().get(result.id)
        if request is None:
            continue
        called = set(result.called)
        met = all(need & called for need in request.needs)
        first = any(result.called[:1] and result.called[0] in need for need in request.needs)
        for name in (request.set, ALL):
            judged.setdefault(name, []).append((met, first))
    return {
        name: RequestFigures(met=share(met for met, _ in ones), first=share(one for _, one in ones))
        for name, ones in judged.items()
    }


def read_results(path: Path) -> dict[str, list[QueryResult]]:
    """Return the results of a file of ``lab eval models``, by model, strategy and aids.

    Raises:
        NotFoundError: there is no such file.
        DataError: the file cannot be read, or is no such file.
    """
    try:
        lines = path.read_text("utf-8").removesuffix("\n").split("\n")[1:]
    except FileNotFoundError:
        raise NotFoundError(f"{path} does not exist", hint="name a results.jsonl") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", hint="name a results.jsonl") from None
    found: dict[str, list[QueryResult]] = {}
    for at, text in enumerate(lines, start=2):
        try:
            line = _Line.model_validate_json(text)
        except ValidationError as error:
            raise DataError(
                f"{path}, line {at}: not a result: {error.errors()[0]['msg']}",
                hint="name the results.jsonl of an evaluation over the requests",
            ) from None
        found.setdefault(f"{line.model} {line.strategy} {line.aids}", []).append(line.result)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of a file of results."""
    parser = argparse.ArgumentParser(prog="toolsrv_lab.evaluation.openapi_requests")
    parser.add_argument("results", type=Path, help="results.jsonl of toolsrv lab eval models")
    try:
        found = read_results(parser.parse_args(arguments).results)
    except (DataError, NotFoundError) as error:
        print(f"{error.message} ({error.hint})", file=sys.stderr)
        return 1
    for cell, results in found.items():
        for name, one in figures(results).items():
            print(
                f"{cell}, {name}: needs met {one.met.count} of {one.met.of}, "
                f"first call right {one.first.count}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
