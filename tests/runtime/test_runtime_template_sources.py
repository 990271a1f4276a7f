"""The chat templates of the conformance set: sources, licences, and calls in their syntax.

What a template writes for a call is read by the dialects too, without any learning.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest
from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from toolsrv_runtime.contract.models import ChatRequest, ReplyConstraints, Tool, UserMessage
from toolsrv_runtime.templates.dialects import read_dialects

TEMPLATES = Path(__file__).parent / "data" / "templates"
SOURCES: dict[str, dict[str, Any]] = json.loads(
    (TEMPLATES / "sources.json").read_text(encoding="utf-8")
)
FAMILIES = {
    *("Qwen2.5", "Qwen2.5-Coder", "Qwen3", "Qwen3-Coder", "Llama 3.1", "Llama 3.2", "Mistral v3"),
    *("Mistral v11", "Granite 3.3", "Granite 4", "Phi-4-mini", "Gemma 3", "SmolLM2", "SmolLM3"),
    *("Hermes", "Command-R7B", "DeepSeek-R1 distill", "FunctionGemma", "LFM2", "GLM-4.5"),
    *("gpt-oss", "Hammer"),
}


def test_every_template_has_a_source_and_every_family_a_template() -> None:
    assert {path.name for path in TEMPLATES.glob("*.jinja")} == set(SOURCES)
    assert {source["family"] for source in SOURCES.values()} >= FAMILIES


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_template_of_others_is_unchanged_and_licensed(name: str) -> None:
    source = SOURCES[name]
    data = (TEMPLATES / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == source["sha256"]
    assert name.endswith("_like.jinja") == source["own"]
    if source["own"]:
        assert source["reason"]
        assert b"Our own template" in data
    else:
        assert source["licence"] in ("Apache-2.0", "MIT")
        assert source["package"]
        assert source["path"]
    assert not {*source["control"]} & {*source["user_defined"]}
    assert source["eos"] in source["control"]


CITY = {"type": "string", "description": "A city."}
SIZE = {"type": "object", "description": "A size.", "properties": {"w": {"type": "number"}}}
TAGS = {"type": "array", "description": "Tags.", "items": {"type": "string"}}
PROPERTIES = {
    "city": CITY,
    "count": {"type": "integer", "description": "A count."},
    "flag": {"type": "boolean", "description": "A flag."},
    "tags": TAGS,
    "size": SIZE,
}
TOOL = Tool("zz_first", "Does it.", {"type": "object", "properties": PROPERTIES})
REQUEST = ChatRequest(
    (UserMessage("Go."),), (TOOL,), ReplyConstraints(names=("zz_first",), calls=2)
)
CALLS: list[dict[str, Any]] = [
    {
        "city": 'B "q" < é \' & \\ \n x',
        "count": 3,
        "flag": True,
        "tags": ["a", "b,'"],
        "size": {"w": 1.5},
    },
    {"city": "</tool_call> }] 007 "},
]
ONE_ONLY = {"gpt_oss.jinja", "llama_3_1_like.jinja", "llama_3_2_like.jinja"}
NEVER = {
    *("gemma_3_like.jinja", "granite_3_3.jinja", "hammer_like.jinja", "lfm2_like.jinja"),
    *("phi_4_mini_like.jinja", "smollm2.jinja", "smollm3_like.jinja", "smollm3_unsloth.jinja"),
}


def refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def to_json(value: Any, *, indent: int | None = None, ensure_ascii: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def today(form: str) -> str:
    return datetime(2026, 1, 2, tzinfo=UTC).strftime(form)


def rendered(name: str, calls: list[dict[str, Any]]) -> str:
    """Return what a template writes for an assistant turn with these calls."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols], autoescape=False
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = today
    template = environment.from_string((TEMPLATES / name).read_text(encoding="utf-8"))
    user = {"role": "user", "content": "Go."}
    written = [
        {
            "id": f"abcdefgh{i}",
            "type": "function",
            "function": {"name": "zz_first", "arguments": one},
        }
        for i, one in enumerate(calls)
    ]
    turn = {"role": "assistant", "content": "", "tool_calls": written}
    given = {
        "tools": [TOOL.to_json()],
        "bos_token": SOURCES[name]["bos"],
        "eos_token": SOURCES[name]["eos"],
        "enable_thinking": False,
    }
    before = template.render(messages=[user], add_generation_prompt=True, **given)
    whole = template.render(messages=[user, turn], add_generation_prompt=False, **given)
    pairs = zip(before, whole, strict=False)
    shared = next((i for i, (one, two) in enumerate(pairs) if one != two), len(before))
    return whole[shared - 1 if whole[shared - 1] == "<" else shared :]  # a marker stays whole


@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("count", [1, 2])
def test_calls_that_a_template_writes_are_read_by_the_dialects(name: str, count: int) -> None:
    calls = CALLS[: 1 if name in ONE_ONLY else count]
    text = rendered(name, calls)
    reply = read_dialects(text, REQUEST)
    if name in NEVER:
        assert "zz_first" not in text.rpartition("Go.")[2]
        return
    assert reply is not None
    assert [call.arguments for call in reply.calls] == calls
    assert reply.problem == ""
