"""Requests on the wire beside those of another implementation, swagger-client.

From one set of documents and arguments toolsrv and the library behind Swagger UI build requests;
method, address, headers and body are compared. The library's requests for the set are kept in
``data/wire_requests.json``, so the comparison needs no node; with it they are made anew:

    npm install swagger-client --prefix FOLDER
    python -m toolsrv_lab.evaluation.wire [--oracle FOLDER]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from toolsrv_catalogs.openapi.reader import read_openapi
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.request import build_request

DATA = files("toolsrv_lab.evaluation") / "data"
KEPT, ORACLE = "wire_requests.json", "wire_oracle.mjs"
_SECONDS = 120
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_WORD, _ODD = "blue", "a b/ü&=?#"
_VALUES: dict[str, tuple[Any, ...]] = {
    "string": (_WORD, _ODD),
    "array": (["blue", "black"], ["x y", "ü"]),
    "object": ({"R": 100, "G": 200}, {"k": "a b"}),
}
# Style, explode and place of OpenAPI 3.0's table of styles, with the types each is defined for.
_STYLES = (
    ("path", "simple", ("string", "array", "object")),
    ("path", "label", ("string", "array", "object")),
    ("path", "matrix", ("string", "array", "object")),
    ("query", "form", ("string", "array", "object")),
    ("query", "spaceDelimited", ("array",)),
    ("query", "pipeDelimited", ("array",)),
    ("query", "deepObject", ("object",)),
    ("header", "simple", ("string", "array", "object")),
    ("cookie", "form", ("string",)),
)

SETTLED = {
    "path label whole array": "OpenAPI 3.0.4 and 3.1.1 write .a,b as RFC 6570 does; earlier .a.b",
    "path label whole object": "the same",
    "query spaceDelimited whole array 1": "an item holds the separator; toolsrv refuses it",
    "cookie form whole string 1": "signs that RFC 6265 keeps out of a cookie are escaped",
    "cookie form explode string 1": "the same",
}
"""Beginnings of the ids of cases in which the two differ, and why toolsrv is as it is."""


@dataclass(frozen=True)
class Case:
    """One operation with its arguments: ``parameters`` by name, ``body`` where it has one."""

    id: str
    document: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    media: str = ""


@dataclass(frozen=True)
class Request:
    """A request, or the ``fault`` for which there is none."""

    id: str
    method: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Difference:
    """A part of a request in which two differ."""

    id: str
    part: str
    ours: str
    theirs: str


def cases() -> list[Case]:
    """Return the set: every style, explode and type of the specification's table, and bodies."""
    return [*_parameters(), *_bodies()]


def _parameters() -> Iterator[Case]:
    for place, style, kinds in _STYLES:
        for explode in (False, True) if style != "deepObject" else (True,):
            for kind in kinds:
                if "Delimited" in style and explode:
                    continue  # the same as form
                for at, value in enumerate(_VALUES[kind]):
                    if place == "header" and not _ascii(value):
                        continue  # what a header may hold beyond ASCII is not settled
                    schema: dict[str, Any] = {"type": kind}
                    if kind == "array":
                        schema["items"] = {"type": "string"}
                    one = {
                        "name": "color",
                        "in": place,
                        "required": True,
                        "style": style,
                        "explode": explode,
                        "schema": schema,
                    }
                    name = f"{place} {style} {'explode' if explode else 'whole'} {kind} {at}"
                    path = "/colors/{color}/end" if place == "path" else "/colors"
                    yield Case(name, _document(path, "get", [one]), {"color": value})
    reserved = {
        "name": "q",
        "in": "query",
        "allowReserved": True,
        "schema": {"type": "string"},
    }
    yield Case("query allowReserved", _document("/s", "get", [reserved]), {"q": "a/b:c,d"})
    content = {
        "name": "q",
        "in": "query",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    yield Case("query content", _document("/s", "get", [content]), {"q": {"a": [1, "b c"]}})


def _bodies() -> Iterator[Case]:
    body = {"name": "Ada B.", "tags": ["x y", "z"], "size": {"w": 1}}
    properties = {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "object"},
    }
    schema = {"type": "object", "properties": properties}
    for media in ("application/json", "application/merge-patch+json", "application/vnd.api+json"):
        yield Case(f"body {media}", _with_body(media, {"schema": schema}), {}, body, media)
    form = "application/x-www-form-urlencoded"
    flat = {"name": "Ada B.", "note": "a&b=c+d"}
    texts = {"type": "object", "properties": {key: {"type": "string"} for key in flat}}
    yield Case("body form", _with_body(form, {"schema": texts}), {}, flat, form)
    lists = {"type": "object", "properties": {"tags": properties["tags"]}}
    for explode in (True, False):
        styled = {"schema": lists, "encoding": {"tags": {"style": "form", "explode": explode}}}
        yield Case(
            f"body form list {explode}", _with_body(form, styled), {}, {"tags": ["x", "z"]}, form
        )


def _ascii(value: Any) -> bool:
    return json.dumps(value, ensure_ascii=False).isascii()


def _document(path: str, method: str, parameters: list[Any], **more: Any) -> dict[str, Any]:
    operation = {"operationId": "operation", "parameters": parameters, "responses": {}, **more}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Wire", "version": "1"},
        "servers": [{"url": "https://wire.example/v1"}],
        "paths": {path: {method: operation}},
    }


def _with_body(kind: str, media: dict[str, Any]) -> dict[str, Any]:
    return _document("/b", "post", [], requestBody={"required": True, "content": {kind: media}})


def ours(case: Case) -> Request:
    """Return the request that toolsrv builds."""

    def load(path: PurePosixPath) -> Any:
        raise KeyError(path)

    tool = read_openapi(case.document, PurePosixPath("wire.json"), "Other", load=load)
    try:
        (api,) = tool.apis
        given = case.parameters | (case.body if isinstance(case.body, dict) else {})
        built = build_request(api, bind(api, given))
    except (ToolsrvError, ValueError) as error:
        return Request(case.id, fault=str(error)[:200])
    headers = {name: str(value) for name, value in built.headers.items()}
    return Request(case.id, built.method, str(built.url), headers, built.content.decode())


def theirs(listed: Sequence[Case], folder: Path | None = None) -> list[Request]:
    """Return the library's requests: those that are kept, or made now with the one in ``folder``.

    Raises:
        DataError: node or the library is not there, or something is missing of what is kept.
    """
    if folder is None:
        found = json.loads((DATA / KEPT).read_text("utf-8"))
    else:
        found = _made(listed, folder)
    known = {one["id"]: Request(**one) for one in found}
    missing = [one.id for one in listed if one.id not in known]
    if missing:
        raise DataError(f"no request is kept for {missing[0]!r}", hint="make them with --oracle")
    return [known[one.id] for one in listed]


def _made(listed: Sequence[Case], folder: Path) -> list[dict[str, Any]]:
    given = [
        {"id": one.id, "document": one.document, "parameters": one.parameters}
        | ({"body": one.body, "media": one.media} if one.media else {})
        for one in listed
    ]
    with as_file(DATA / ORACLE) as script:
        try:
            done = subprocess.run(  # noqa: S603 - our own script
                ["node", str(script), str(folder.resolve())],  # noqa: S607 - wherever node is
                input=json.dumps(given).encode(),
                capture_output=True,
                check=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DataError(
                f"node could not build the requests: {str(error)[:200]}",
                hint="npm install swagger-client --prefix FOLDER, then --oracle FOLDER",
            ) from None
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


def compare(one: Request, other: Request) -> list[Difference]:
    """Return what differs on the wire, of ours and theirs.

    Two spellings of one address count as one: a sign that needs no escape, escaped or not.
    """
    if one.fault or other.fault:
        return [Difference(one.id, "fault", one.fault, other.fault)]
    a, b = urlsplit(one.url), urlsplit(other.url)
    pairs = [
        ("method", one.method.upper(), other.method.upper()),
        ("host", a.netloc, b.netloc),
        ("path", _normal(a.path), _normal(b.path)),
        ("query", _normal(a.query), _normal(b.query)),
        *(
            (f"header {name}", _headers(one).get(name, ""), value)
            for name, value in _headers(other).items()
        ),
        ("body", *_bodies_of(one, other)),
    ]
    return [Difference(one.id, part, x, y) for part, x, y in pairs if x != y]


def _headers(request: Request) -> dict[str, str]:
    return {name.lower(): one for name, one in request.headers.items() if name.lower() != "accept"}


def _bodies_of(one: Request, other: Request) -> tuple[str, str]:
    kind = _headers(other).get("content-type", "")
    if kind.endswith("json"):
        return tuple(  # type: ignore[return-value]  # two of them
            json.dumps(json.loads(each.body or "null"), sort_keys=True) for each in (one, other)
        )
    if "urlencoded" in kind:
        return repr(parse_qsl(one.body)), repr(parse_qsl(other.body))
    return one.body, other.body


def _normal(text: str) -> str:
    """Return a part of an address with the escapes that it needs, in capitals, and no others."""

    def plain(found: re.Match[str]) -> str:
        sign = chr(int(found[0][1:], 16))
        return sign if sign in _PLAIN else found[0].upper()

    escaped = _ESCAPE.sub(plain, text)
    for sign in "[],:|":  # a server reads them alike, escaped or not
        escaped = escaped.replace(sign, f"%{ord(sign):02X}")
    return escaped


def differences(folder: Path | None = None) -> tuple[int, list[Difference]]:
    """Return how many requests were compared, and what differs, settled ones too.

    Raises as ``theirs``.
    """
    listed = cases()
    found = theirs(listed, folder)
    return len(listed), [
        one for case, other in zip(listed, found, strict=True) for one in compare(ours(case), other)
    ]


def settled_by(one: Difference) -> str:
    """Return why a difference stays, ``""`` for one that nothing explains."""
    return next((why for start, why in SETTLED.items() if one.id.startswith(start)), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs; return 0 where all of it is settled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", type=Path, help="folder with node_modules/swagger-client")
    parser.add_argument("--keep", type=Path, help="file to write the library's requests to")
    given = parser.parse_args(arguments)
    if given.oracle and given.keep:
        made = _made(cases(), given.oracle)
        given.keep.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    count, found = differences(given.oracle)
    open_ones = [one for one in found if not settled_by(one)]
    for one in found:
        why = "" if one in open_ones else f" ({settled_by(one)})"
        print(f"{one.id}: {one.part}{why}\n  ours   {one.ours}\n  theirs {one.theirs}")
    print(f"{count} requests compared, {len(found)} differ, {len(open_ones)} of them open")
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
