"""Inputs of the importers' targets: tool files, OpenAPI documents, YAML, nearly right and wrong."""

from __future__ import annotations

from hypothesis import strategies as st

from toolsrv_lab.fuzzing.strategies import METHODS, NASTY, TEXTS, json_values

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
