"""Fuzzing targets of importers: tool files, OpenAPI documents, YAML, archives, arbitrary text.

Inputs are nearly valid or invalid.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from hypothesis import strategies as st

from toolsrv_catalogs import yaml_text
from toolsrv_catalogs.fields import EXTRA_LIMIT
from toolsrv_catalogs.importer import read_catalog
from toolsrv_catalogs.openapi.reader import read_openapi
from toolsrv_catalogs.text import cleaned
from toolsrv_catalogs.toolbench import read_tool
from toolsrv_lab.fuzzing.strategies import METHODS, NASTY, TEXTS, Target, hold, json_values
from toolsrv_registry.api import Tool
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.request import build_request
from toolsrv_runtime.errors import ArgumentError, PolicyError

_TOOL_KEYS = st.sampled_from(
    ["name", "type", "description", "default", "enum", "in", "url", "method", "x-toolsrv",
     "security", "id", "required_parameters", "optional_parameters", "host", "api_list"]
)  # fmt: skip
_URLS = st.sampled_from(
    ["https://api.test/a/{a}", "http://127.0.0.1/x", "https://me@api.test/", "ftp://api.test",
     "https://api.test\\@evil.test", "//api.test", "https://{a}.test/x", "https://api.test:99999/"]
) | TEXTS.map("https://".__add__) | TEXTS.map("https://api.test/".__add__)  # fmt: skip
_PARAMETERS = st.lists(
    st.fixed_dictionaries(
        {"name": TEXTS},
        optional={"type": TEXTS, "default": json_values(leaves=3), "enum": json_values(leaves=3),
                  "in": TEXTS, "description": TEXTS},
    ),
    max_size=3,
)  # fmt: skip
_ENTRIES = st.fixed_dictionaries(
    {"name": TEXTS, "url": _URLS},
    optional={"method": st.sampled_from(METHODS) | TEXTS, "required_parameters": _PARAMETERS,
              "optional_parameters": _PARAMETERS, "x-toolsrv": json_values(_TOOL_KEYS),
              "description": TEXTS},
)  # fmt: skip
DOCUMENTS = st.fixed_dictionaries(
    {"tool_name": TEXTS, "api_list": st.lists(_ENTRIES, max_size=3) | json_values(_TOOL_KEYS)},
    optional={"tool_description": json_values(leaves=2), "host": TEXTS, "home_url": TEXTS,
              "pricing": json_values(leaves=3)},
)  # fmt: skip
_OPENAPI_KEYS = st.sampled_from(
    ["$ref", "type", "properties", "items", "allOf", "oneOf", "enum", "required", "name", "in",
     "schema", "content", "application/json", "default", "example", "get", "post", "parameters",
     "requestBody", "security", "servers", "url", "variables", "operationId", "description", "A"]
)  # fmt: skip
_OPENAPI_TEXTS = st.sampled_from(
    ["#/components/schemas/A", "#/paths", "query", "path", "header", "cookie", "object", "array"]
)
_OPENAPI_VALUES = json_values(_OPENAPI_KEYS, leaves=6) | st.recursive(
    _OPENAPI_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_OPENAPI_KEYS, inner, max_size=4),
    max_leaves=8,
)
_OPERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "operationId": TEXTS,
        "summary": TEXTS,
        "parameters": st.lists(
            st.fixed_dictionaries(
                {"name": TEXTS, "in": st.sampled_from(["path", "query", "header", "cookie"])},
                optional={"schema": _OPENAPI_VALUES, "required": st.booleans()},
            ),
            max_size=3,
        ),
        "requestBody": _OPENAPI_VALUES,
        "responses": _OPENAPI_VALUES
        | st.fixed_dictionaries(
            {"schema": _OPENAPI_VALUES},
        ).map(lambda media: {"200": {"content": {"application/json": media}}}),
        "security": _OPENAPI_VALUES,
    },
)
OPENAPI = st.fixed_dictionaries(
    {
        "openapi": st.sampled_from(["3.0.3", "3.1.0"]),
        "info": st.fixed_dictionaries({}, optional={"title": TEXTS, "description": TEXTS}),
        "servers": st.lists(_URLS.map(lambda one: {"url": one}), max_size=2) | _OPENAPI_VALUES,
        "paths": st.dictionaries(
            st.sampled_from(["/a", "/b/{c}", "x"]) | TEXTS.map("/".__add__),
            st.dictionaries(st.sampled_from(["get", "post", "trace"]), _OPERATIONS, max_size=2)
            | _OPENAPI_VALUES,
            max_size=2,
        ),
    },
    optional={"components": _OPENAPI_VALUES, "security": _OPENAPI_VALUES},
)
YAML = st.lists(
    st.sampled_from(
        ["a: ", "- ", "&x ", "*x", "<<: ", "{", "}", "[", "]", ", ", "? ", "!!int ", "0x1f", "1e999",
         "~", "|\n ", ">\n ", "\n", "  ", "---\n", "'", '"', "%YAML 1.1\n", "no", *NASTY]
    ),
    max_size=14,
).map("".join)  # fmt: skip


_BIDI = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_UNSEEN = frozenset("\u200b\u200c\u200d\u2060\ufeff") | {chr(0xE0000 + at) for at in range(128)}


def hidden(text: str) -> list[str]:
    """Return the characters of a text that a person would not see and a model would."""
    return [
        one
        for one in text
        if (unicodedata.category(one) in {"Cc", "Cs"} and one not in "\t\n")
        or unicodedata.bidirectional(one) in _BIDI
        or one in _UNSEEN
    ]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for pair in value.items() for one in pair for text in _strings(one)]
    if isinstance(value, list | tuple):
        return [text for one in value for text in _strings(one)]
    return []


def _check_tool(tool: Tool) -> None:
    dirty = [text for text in _strings(tool.model_dump()) if hidden(text)]
    hold(not dirty, "no hidden character comes in", dirty)
    json.dumps(tool.model_dump(mode="json"), allow_nan=False)
    ids = [api.id for api in tool.apis]
    hold(len(ids) == len(set(ids)), "ids are unique", ids)
    for api in tool.apis:
        parts = api.id.split("/")
        hold(len(parts) == 3 and ".." not in parts, "an id is three harmless parts", api.id)
        if api.url:
            url = urlsplit(api.url)
            fine = url.scheme in {"http", "https"} and url.hostname and url.username is None
            hold(fine, "an address is a web address", api.url)
        given = {one.key: one.enum[0] if one.enum else "1" for one in api.required}
        try:
            sent = build_request(api, bind(api, given)).url.host
        except (ArgumentError, PolicyError):
            continue
        named = (urlsplit(api.url).hostname or "").rstrip(".")
        hold(sent.rstrip(".") == named or not named.isascii(), "a call goes there", sent, api.url)


def _check_toolbench(case: Any) -> None:
    try:
        tool = read_tool(case["document"], case["category"], stem=case["stem"])
    except DataError:
        return
    _check_tool(tool)


def _nothing(path: PurePosixPath) -> Any:
    raise KeyError(path)


def _check_openapi(case: Any) -> None:
    try:
        tool = read_openapi(case, PurePosixPath("a.yaml"), "Other", load=_nothing)
    except DataError:
        return
    _check_tool(tool)
    hold(len(tool.api_extras) in {0, len(tool.apis)}, "each API has its own beside it", tool)
    for extra in tool.api_extras:
        text = json.dumps(extra, ensure_ascii=False)
        hold(not hidden(text) and len(text) <= EXTRA_LIMIT, "a response schema is clean", text)


def _check_yaml(case: Any) -> None:
    try:
        value = yaml_text.load(case)
    except ValueError:
        return
    text = json.dumps(value, allow_nan=False)
    hold(json.loads(text) == value, "YAML reads as a JSON value", value)


def _check_text(case: Any) -> None:
    once = cleaned(case["text"], case["limit"])
    hold(not hidden(once.text), "cleaned text has nothing hidden", once.text)
    hold(len(once.text) <= case["limit"], "cleaned text is within its limit", once.text)
    again = cleaned(once.text, case["limit"])
    hold(again.text == once.text, "cleaning is idempotent", once.text, again.text)


def _check_archive(case: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / "in"
        inside.mkdir()
        path = inside / f"x{case['suffix']}"
        path.write_bytes(_damaged(case))
        try:
            reading = read_catalog(path)
        except DataError:
            reading = None
        there = sorted(str(one.relative_to(folder)) for one in Path(folder).rglob("*"))
        hold(there == ["in", f"in/{path.name}"], "nothing is unpacked to disk", there)
    for tool in reading.catalog.tools if reading else ():
        _check_tool(tool)
    for report in reading.files if reading else ():
        hold(not any(map(hidden, _strings(report.model_dump()))), "a report is clean", report)


def _damaged(case: Mapping[str, Any]) -> bytes:
    data = bytearray(_PACKED[case["suffix"]])
    for at, byte in case["bytes"]:
        data[at % len(data)] = byte
    return bytes(data[: len(data) * case["share"] // 100])


def _pack() -> dict[str, bytes]:
    """Return small archives by suffix; made in memory, the same every time."""
    document = {"tool_name": "One", "api_list": [{"name": "ping", "url": "https://api.test/x"}]}
    files = {
        "tools/Data/one.json": json.dumps(document).encode(),
        "tools/Data/two.yaml": b"openapi: 3.0.0\ninfo: {title: T}\npaths: {/a: {get: {}}}\n",
        "../out.json": b"{}",
    }
    packed = {}
    for suffix, mode in ((".tar", "w"), (".tar.gz", "w:gz"), (".tar.bz2", "w:bz2")):
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode=mode) as tar:  # type: ignore[call-overload]
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        packed[suffix] = held.getvalue()
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return {**packed, ".zip": held.getvalue(), ".json": files["tools/Data/one.json"],
            ".yaml": files["tools/Data/two.yaml"]}  # fmt: skip


_PACKED = _pack()
TARGETS = (
    Target(
        "tool-files",
        "ToolBench's tool files",
        st.fixed_dictionaries({"document": DOCUMENTS, "category": TEXTS, "stem": TEXTS}),
        _check_toolbench,
    ),
    Target("openapi", "OpenAPI documents", OPENAPI, _check_openapi),
    Target("yaml", "YAML as JSON values", YAML, _check_yaml),
    Target(
        "archives",
        "damaged and cut archives and files",
        st.fixed_dictionaries(
            {
                "suffix": st.sampled_from(sorted(_PACKED)),
                "bytes": st.lists(
                    st.tuples(st.integers(0, 20_000), st.integers(0, 255)).map(list), max_size=4
                ),
                "share": st.integers(1, 100),
            }
        ),
        _check_archive,
    ),
    Target(
        "text",
        "cleaning of text",
        st.fixed_dictionaries(
            {
                "text": st.lists(st.sampled_from(NASTY) | st.characters().map(str)).map("".join),
                "limit": st.integers(1, 40),
            }
        ),
        _check_text,
    ),
)
