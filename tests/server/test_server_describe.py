"""What ``toolsrv describe`` and ``describe_apis`` show of nested arguments, and within which size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from jsonschema import Draft202012Validator

from toolsrv.mcp_server import results, texts
from toolsrv.views.apis import DescribeView, api_view
from toolsrv_registry.api import Api, Parameter

Run = Callable[..., Result]
SHIP = {
    "type": "object",
    "required": ["to"],
    "properties": {
        "to": {
            "type": "object",
            "required": ["zip"],
            "properties": {
                "zip": {"type": "string", "pattern": "^[0-9]{4}$", "description": "Postal code"},
                "mode": {"type": "string", "enum": ["air", "sea"], "default": "sea"},
            },
        }
    },
}


def test_nested_fields_and_the_schema_of_a_body_are_shown(run: Run, tmp_path: Path) -> None:
    body = {"type": "object", "required": ["ship"], "properties": {"ship": SHIP}}
    content = {"required": True, "content": {"application/json": {"schema": body}}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Post"},
        "servers": [{"url": "https://post.example"}],
        "paths": {"/o": {"post": {"operationId": "order", "requestBody": content}}},
    }
    path = tmp_path / "post.json"
    path.write_text(json.dumps(document))
    assert run("catalog", "import", str(path), "--no-index").exit_code == 0
    shown = " ".join(run("describe", "Other/post/order").stdout.split())
    assert "zip (string, required)" in shown
    assert "one of air, sea, default sea" in shown
    schema = json.loads(run("describe", "Other/post/order", "--schema").stdout)
    Draft202012Validator.check_schema(schema)
    checked = Draft202012Validator(schema)
    assert checked.is_valid({"ship": {"to": {"zip": "0150", "mode": "air"}}})
    assert not checked.is_valid({"ship": {"to": {"mode": "air"}}})
    assert not checked.is_valid({"ship": {"to": {"zip": "x"}}})
    whole = json.loads(run("describe", "Other/post/order", "--schema", "--json").stdout)
    assert whole["arguments_schema"] == schema
    assert whole["parameters"][0]["fields"][1] == "  zip (string, required): Postal code"


def _api(fields: int) -> Api:
    many: dict[str, Any] = {f"field{n}": {"description": "word " * 20} for n in range(fields)}
    schema = {"type": "object", "properties": {"deep": {"type": "object", "properties": many}}}
    parameter = Parameter(name="a", type="OBJECT", place="body", json_schema=schema)
    return Api(id="O/t/x", category="O", tool="t", name="x", required=(parameter,))


def test_fields_and_schema_of_a_result_stay_within_its_size() -> None:
    small = DescribeView(apis=(api_view(_api(3), schema=True),), not_found=())
    kept = results.fit_to_limit(small, 8_000)
    assert kept.apis[0].arguments_schema is not None
    assert "field2 (any)" in texts.describe_text(kept)
    large = DescribeView(apis=(api_view(_api(900), schema=True),), not_found=())
    cut = results.fit_to_limit(large, 8_000)
    assert results.rendered_bytes(cut) <= 8_000
    assert cut.apis[0].arguments_schema is None
    assert "no room" in cut.next_step
    assert "deep (object)" in texts.describe_text(cut)
    some = results.fit_to_limit(
        DescribeView(apis=(api_view(_api(60), schema=True),), not_found=()), 8_000
    )
    assert some.apis[0].arguments_schema is not None  # without its texts
    assert "word" not in json.dumps(some.apis[0].arguments_schema)
