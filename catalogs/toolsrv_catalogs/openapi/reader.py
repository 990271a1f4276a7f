"""Reading OpenAPI 3.0 to 3.2 and Swagger 2.0 documents: one tool per document, one API per operation.

Parameters of path, query, header and cookie, and the body's properties, become the API's
parameters; servers become its address, security schemes what it asks for. An operation that
cannot be read is refused, the others are kept. Knows the format; does not know where documents
come from, and fetches nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from toolsrv_catalogs import fields
from toolsrv_catalogs.fields import METHODS, URL_LIMIT, listed, mapping, unused
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.hosts import server_fault, server_of
from toolsrv_catalogs.layout import api_place, numbered
from toolsrv_catalogs.openapi.body import (
    Body,
    StyleFault,
    content_style,
    parameter_style,
    place_schema,
    read_body,
    whole_query_style,
)
from toolsrv_catalogs.openapi.references import (
    Load,
    Node,
    ReferenceFault,
    References,
    node_at,
    split_reference,
)
from toolsrv_catalogs.openapi.response import accepted, read_response
from toolsrv_catalogs.openapi.schema import parameter, shape
from toolsrv_catalogs.openapi.security import Schemes
from toolsrv_catalogs.openapi.swagger import as_openapi, as_operation, is_swagger
from toolsrv_catalogs.selection import Selection
from toolsrv_catalogs.text import DESCRIPTION_LIMIT, NAME_LIMIT
from toolsrv_registry.api import Api, Parameter, Place, PlaceSchema, SecurityScheme, Tool
from toolsrv_registry.errors import DataError
from toolsrv_registry.media import FORM

OPERATIONS_LIMIT = 50_000
PARAMETERS_LIMIT = 5_000
_PLACES: dict[str, Place] = {
    "path": "path",
    "query": "query",
    "header": "header",
    "cookie": "cookie",
}
# Said by other means: media types and security schemes (OpenAPI 3.1, 4.8.12.2.1).
_IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})
_OPERATIONS = frozenset({method.lower() for method in METHODS} | {"trace"})
_OF_OPERATIONS = frozenset({"operationId", "summary", "responses", "parameters", "requestBody"})
"""Keys of which an operation has at least one; only one that is referred to is held to that."""
_EXAMPLES = frozenset({"example", "examples"})
_MISSED_LIMIT = 5
"""Faults of parts that are told of one operation."""
_Described = dict[tuple[str, str], tuple[Node, dict[str, Any], Node]]
"""Parameters by name and place: what describes one, as an object too, and where it is listed."""
QUERYSTRING = "querystring"
"""Where a parameter goes that is the whole query."""
_PLACEHOLDER = re.compile(r"\{([^{}/]+)\}")


def version_fault(document: Mapping[str, Any]) -> str:
    """Return why a document is not one that is read here; ``""`` when it is."""
    if is_swagger(document):
        return ""
    version = document.get("openapi")
    version = str(version) if isinstance(version, str | float) else None  # 3.1 without quotes
    if version is None or not version.startswith("3."):
        told = document.get("openapi", document.get("swagger"))
        return f"is of version {str(told)[:20]!r}; Swagger 2.0 and OpenAPI 3.0 to 3.2 are read"
    return ""


def read_openapi(
    document: Mapping[str, Any],
    path: PurePosixPath,
    category: str,
    *,
    load: Load,
    found: FileFindings | None = None,
    server: str = "",
    variables: Mapping[str, str] | None = None,
    location: str = "",
    wanted: Selection | None = None,
) -> Tool:
    """Return the tool that an OpenAPI document describes.

    Args:
        document: the parsed document.
        path: where it lies in its source; references are relative to it.
        category: the category of its APIs.
        load: reads another file of the source, for references.
        found: hears what is refused or altered.
        server: the address that is called in place of servers with a host, and that servers
            without one are relative to.
        variables: values of the variables of servers.
        location: the URL that the document was read from, which servers without a host are
            relative to.
        wanted: says which operations are read; all of them without.

    Raises:
        DataError: the document is of another version.
    """
    found = FileFindings(path=str(path)) if found is None else found
    if fault := version_fault(document):
        raise DataError(f"{str(path)!r} {fault}")
    reader = _Reader(document, path, category, load, found, server, variables or {}, location)
    return reader.tool(wanted or Selection())


class _Reader:
    def __init__(
        self,
        document: Mapping[str, Any],
        path: PurePosixPath,
        category: str,
        load: Load,
        found: FileFindings,
        server: str,
        variables: Mapping[str, str],
        location: str,
    ) -> None:
        self._found = found
        self._variables = variables
        self._location = location
        self._server = server
        self._swagger = document if is_swagger(document) else None
        document = document if self._swagger is None else as_openapi(document)
        self._refs = References(document, path, load)
        self._root = document
        self._schemes = Schemes(document, self._refs, found)
        info = mapping(document.get("info"))
        self._name = found.text(info.get("title"), NAME_LIMIT).strip() or path.stem or "unnamed"
        self._description = found.text(
            info.get("description") or info.get("summary"), DESCRIPTION_LIMIT
        ).strip()
        self._category = fields.category(category, found)

    def tool(self, wanted: Selection) -> Tool:
        apis, extras = [], []
        for count, (url_path, method, items, entry) in enumerate(self._operations()):
            if count >= OPERATIONS_LIMIT:
                self._found.refuse("API", f"more than {OPERATIONS_LIMIT} operations")
                break
            operation = self._operation(f"{method} {url_path}", entry)
            if operation is None:
                continue
            parts = items
            if self._swagger is not None:
                parts, operation = as_operation(self._swagger, self._refs, items, operation)
            if not wanted.wanted(listed(operation.value.get("tags")), url_path, method):
                self._found.unselected += 1
            elif api := self._safely(url_path, method, parts, operation):
                apis.append(api)
                extras.append(self._kept_beside(operation, api.name))
        self._found.apis += len(apis)
        info = mapping(self._root.get("info"))
        docs = mapping(self._root.get("externalDocs")).get("url")
        home = self._found.text(docs or mapping(info.get("contact")).get("url"), URL_LIMIT)
        hosts = [urlsplit(api.url).netloc for api in apis if api.url]
        return Tool(
            category=self._category,
            name=self._name,
            description=self._description,
            home_url=home,
            host=hosts[0] if hosts else "",
            apis=numbered(apis, self._found.note),
            api_extras=tuple(extras) if any(extras) else (),
        )

    def _operations(self) -> Iterator[tuple[str, str, list[Node], Node]]:
        """Yield path, method, the parts of its path item, and the operation."""
        paths = self._root.get("paths")
        if not isinstance(paths, dict):
            self._found.note("has no paths")
            return
        for url_path, entry in paths.items():
            if str(url_path).startswith("x-"):  # an extension
                continue
            if not str(url_path).startswith("/"):
                self._found.refuse("API", "its path begins with no slash", name=str(url_path))
                continue
            self._refs.renew()
            reference, beside = split_reference(Node(entry, self._refs.root.resolver))
            try:
                items = [self._refs.follow(one) for one in (reference, beside) if one is not None]
            except ReferenceFault as fault:
                self._found.refuse("API", str(fault), name=str(url_path))
                continue
            if not all(isinstance(one.value, dict) for one in items):
                self._found.refuse("API", "is no object", name=str(url_path))
                continue
            operations = {
                str(method).upper(): Node(operation, item.resolver)
                for item in items
                for methods in (item.value, mapping(item.value.get("additionalOperations")))
                for method, operation in methods.items()
                if methods is not item.value or str(method).lower() in _OPERATIONS
            }
            for method, node in operations.items():
                yield str(url_path), method, items, node

    def _operation(self, name: str, entry: Node) -> Node | None:
        """Return an operation, or what it refers to; None where that is none, which is told."""
        self._refs.renew()
        try:
            operation = self._refs.follow(entry)
        except ReferenceFault as fault:
            self._found.refuse("API", str(fault), name=name)
            return None
        if not isinstance(operation.value, dict):
            self._found.refuse("API", "is no object", name=name)
            return None
        keys = operation.value.keys()
        if "$ref" in keys or (
            operation is not entry and (keys & _OPERATIONS or not keys & _OF_OPERATIONS)
        ):
            self._found.refuse("API", "its reference leads to no operation", name=name)
            return None
        return operation

    def _safely(self, url_path: str, method: str, items: list[Node], operation: Node) -> Api | None:
        name = f"{method} {url_path}"
        if method not in METHODS:
            self._found.refuse("API", f"{method} is never called", name=name)
            return None
        self._refs.renew()
        self._refs.missed.clear()
        try:
            api = self._api(url_path, method, items, operation)
            for fault in self._refs.missed[:_MISSED_LIMIT]:
                self._found.note(f"{name}: any value is taken where {fault}")
        except (ReferenceFault, ValueError) as fault:
            self._found.refuse("API", str(fault), name=name)
        except RecursionError:
            self._found.refuse("API", "is nested too deep", name=name)
        else:
            return api
        return None

    def _api(self, url_path: str, method: str, items: list[Node], operation: Node) -> Api:
        about, found = operation.value, self._found
        item = {key: one for part in items for key, one in part.value.items()}
        name = found.text(about.get("operationId"), NAME_LIMIT).strip()
        name = name or found.text(about.get("summary"), NAME_LIMIT).strip()
        name = name or found.text(f"{method} {url_path}", NAME_LIMIT)
        together: list[PlaceSchema] = []
        required, optional = self._parameters(url_path, items, operation, together)
        body = Body()
        if "requestBody" in about:
            node = Node(about["requestBody"], operation.resolver)
            body = read_body(self._refs, node, found)
            required, optional = [*required, *body.required], [*optional, *body.optional]
            together += [body.together] if body.together is not None else []
        if len(required) + len(optional) > PARAMETERS_LIMIT:
            raise ValueError(f"it has more than {PARAMETERS_LIMIT} parameters")
        security = self._schemes.of(about)
        needed = [one for one in required if not _is_key(one, security)]
        optional = [*(one for one in required if _is_key(one, security)), *optional]
        required, optional = distinct(needed, optional)
        url = self._url(url_path, item, about, name)
        return Api(
            id=api_place(self._category, self._name, name),
            category=self._category,
            tool=self._name,
            name=name,
            description=self._about(about, item, name),
            tool_description=self._description,
            method=method,
            url=url,
            required=tuple(required),
            optional=tuple(optional),
            body_type=body.media,
            body_required=body.is_needed,
            together=tuple(together),
            accept=self._accept(operation),
            security=security,
        )

    def _accept(self, operation: Node) -> str:
        """Return the media type to ask for; "" where the responses are not described."""
        self._refs.renew()
        answers = Node(operation.value.get("responses"), operation.resolver)
        return self._found.text(accepted(self._refs, answers), NAME_LIMIT)

    def _kept_beside(self, operation: Node, name: str) -> dict[str, Any]:
        """Return what else is kept of an operation: what its responses look like."""
        self._refs.renew()
        answers = Node(operation.value.get("responses"), operation.resolver)
        return read_response(self._refs, answers, self._found, name=name)

    def _about(self, about: Mapping[str, Any], item: Mapping[str, Any], name: str) -> str:
        text: list[str] = []
        found = self._found
        for value in (about.get("summary"), about.get("description"), item.get("description")):
            part = found.text(value, DESCRIPTION_LIMIT).strip()
            if part and part != name and not any(part in other for other in text):
                text.append(part)
        if about.get("deprecated") is True:
            text.append("Deprecated.")
        return found.text("\n".join(text), DESCRIPTION_LIMIT)

    def _parameters(
        self,
        url_path: str,
        items: list[Node],
        operation: Node,
        together: list[PlaceSchema],
    ) -> tuple[list[Parameter], list[Parameter]]:
        """Return required and optional parameters; an operation's go over its path's.

        ``together`` takes what those of a query have to fulfil together.
        """
        merged: _Described = {}
        for owner in (*items, operation):
            found = self._refs.follow(Node(owner.value.get("parameters"), owner.resolver))
            entries = found.value
            if not isinstance(entries, list | None):
                raise ReferenceFault("parameters is no list")
            own: set[tuple[str, str]] = set()
            for entry in entries or []:
                try:
                    node = self._refs.follow(Node(entry, found.resolver))
                except ReferenceFault as fault:
                    self._found.refuse("parameter", str(fault), name=url_path)
                    continue
                if mapping(node.value).get("in") == QUERYSTRING:
                    merged |= self._querystring(node, together)
                    continue
                about = mapping(node.value)
                name, place = about.get("name"), about.get("in")
                if (
                    not isinstance(name, str)
                    or not name.strip()
                    or not isinstance(place, str)
                    or place not in _PLACES
                ):
                    reason = "has no name or no known place"
                    self._found.refuse("parameter", reason, name=str(name or ""))
                elif place != "header" or name.lower() not in _IGNORED_HEADERS:
                    if (name, place) in own:
                        twice = f"{name!r} is there twice in {place}; the last one counts"
                        self._found.note(f"{url_path[:80]}: {twice}")
                    own.add((name, place))
                    merged[name, place] = (node, about, Node(entry, found.resolver))
        required: list[Parameter] = []
        optional: list[Parameter] = []
        for (name, place), (node, about, entry) in merged.items():
            needed = place == "path" or about.get("required") is True
            try:
                make = partial(self._parameter, node, about, name, _PLACES[place])
                one = self._refs.once("parameter", entry, make)
            except StyleFault as fault:
                if needed:
                    raise ValueError(f"its parameter {name[:80]!r}: {fault}") from fault
                self._found.refuse("parameter", str(fault), name=name)
                continue
            (required if needed else optional).append(one)
        holes = _PLACEHOLDER.findall(url_path)
        for one in [one for one in required if one.place == "path" and one.name not in holes]:
            self._found.refuse("parameter", "stands nowhere in its path", name=one.name)
            required.remove(one)
        for name in holes:
            if (name, "path") not in merged:
                self._found.note(f"{url_path[:80]}: {name!r} is not described; taken as text")
                required.append(Parameter(name=name, place="path"))
        return required, optional

    def _querystring(self, node: Node, together: list[PlaceSchema]) -> _Described:
        """Return the fields of a whole query that is a form, else the query (OpenAPI 3.2).

        ``together`` takes what they have to fulfil together.
        """
        about = mapping(node.value)
        media = self._refs.follow(Node(mapping(about.get("content")).get(FORM), node.resolver))
        within = Node(mapping(media.value).get("schema"), media.resolver)
        flat = shape(self._refs, within)
        if not flat.properties:
            return {(str(about.get("name") or QUERYSTRING), "query"): (node, about, node)}
        needs = about.get("required") is True
        needed = flat.required if needs else set()
        whole = place_schema(self._refs, within, "query", required=needs)
        if whole is None and needs and not needed:  # an empty query would be none at all
            whole = PlaceSchema(place="query", json_schema={"minProperties": 1}, required=True)
        if whole is not None:
            together[:] = [whole]
        encoding = mapping(mapping(media.value).get("encoding"))
        found: _Described = {}
        for name, one in flat.properties.items():
            told = {"schema": one, "required": name in needed, **mapping(encoding.get(name))}
            found[name, "query"] = (one, told, one)
        return found

    def _parameter(self, node: Node, about: dict[str, Any], name: str, place: Place) -> Parameter:
        schema, written = about.get("schema"), ""
        if schema is None:
            contents = Node(about.get("content"), node.resolver)
            written, schema, examples = self._content(contents)
            about = about | examples
        within = node_at(schema, node.resolver)
        flat = shape(self._refs, within)
        if about.get("in") == QUERYSTRING:
            style = whole_query_style(written, flat.structure)
        elif written:
            style = content_style(written, flat.structure)
        else:
            style = parameter_style(about, place, flat.structure)
        is_query = place == "query"
        return parameter(
            self._refs,
            within,
            self._found,
            name=name,
            place=place,
            about=about,
            flat=flat,
            style=style,
            reserved=is_query and about.get("allowReserved") is True,
            empty=is_query and about.get("allowEmptyValue") is True,
        )

    def _content(self, node: Node) -> tuple[str, Node, dict[str, Any]]:
        """Return the media type of a parameter's content, its schema and its examples."""
        written, entry = next(iter(mapping(node.value).items()), ("", None))
        media = self._refs.follow(Node(entry, node.resolver))
        about = mapping(media.value)
        examples = {key: one for key, one in about.items() if key in _EXAMPLES}
        return str(written), Node(about.get("schema"), media.resolver), examples

    def _url(
        self, url_path: str, item: Mapping[str, Any], about: Mapping[str, Any], name: str
    ) -> str:
        servers = about.get("servers") or item.get("servers") or self._root.get("servers")
        base, others = server_of(servers, self._server, self._variables, self._location)
        if others:
            told = f"{base[:200]!r} is called, not {', '.join(others)[:200]}"
            if (
                line := f"of several servers {told} (choose with --server)"
            ) not in self._found.notes:
                self._found.note(line)
        base = self._found.text(base, URL_LIMIT).strip()
        if fault := server_fault(base):
            self._found.refuse("address", f"{fault}; the API cannot be called", name=name)
            return ""
        return self._found.text(base.split("?")[0].split("#")[0].rstrip("/") + url_path, URL_LIMIT)


def _is_key(one: Parameter, security: tuple[tuple[SecurityScheme, ...], ...]) -> bool:
    """Whether a parameter is an API key of a security scheme too, which fills it."""
    wanted = (one.place, one.name.lower())
    return any(
        (scheme.place, scheme.key.lower()) == wanted for group in security for scheme in group
    )


def distinct(
    required: list[Parameter], optional: list[Parameter]
) -> tuple[list[Parameter], list[Parameter]]:
    """Return the parameters with names of their own: a parameter is a name in a place.

    Of those that share a name the body's keeps it and the others have their place in theirs,
    ``id__path`` and ``id__query``, as in FastMCP; a number follows where that is taken. They keep
    their own names on the wire.
    """
    shared = Counter(one.name for one in (*required, *optional))
    taken = set(shared)

    def named(one: Parameter) -> Parameter:
        if shared[one.name] == 1 or one.place in ("body", "payload"):
            return one
        name = unused(f"{one.name}__{one.place}", taken)
        return one.model_copy(update={"name": name, "wire": one.name})

    return list(map(named, required)), list(map(named, optional))
