"""The chat templates of the conformance set: each with its source, licence and markers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

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
