"""The tree of native calls: what it evaluates, and completion beside it, on a tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolsrv_lab.bench.native import measure_native, tools, write_tree
from toolsrv_runtime.contract.chat import ChatRequest, Expected, UserMessage
from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.templates.tool_template import ToolTemplate


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("native") / "tiny"
    write_tiny_checkpoint(folder, tokenizer="bpe", max_position_embeddings=8192)
    return Path(convert(folder).path)


def test_a_tree_of_calls_is_evaluated_about_once(tiny: Path) -> None:
    engine = LlamaEngine(tiny, context=8192, threads=1)
    found = measure_native(tiny, engine, None, threads=1, runs=1)
    assert found["native_ratio"].median is not None
    assert 0.9 < found["native_ratio"].median <= 1.05
    rates = ("native_read", "plain_read", "native_write", "plain_write")
    assert all((found[one].median or 0) > 0 for one in rates)
    engine.close()


def test_every_reply_of_the_tree_is_another_call(tiny: Path) -> None:
    engine = LlamaEngine(tiny, context=8192, threads=1)
    template = ToolTemplate(None, tokens=engine.special_tokens)
    written = write_tree(engine, template)
    request = ChatRequest(
        (UserMessage("x"),), tools(), Expected(names=tuple(one.name for one in tools()), text=False)
    )
    complete = [one.text for one in written.replies if one.finish == "grammar"]
    calls = [template.parse(text, request).calls for text in complete]
    assert all(len(one) == 1 for one in calls)
    said = [json.dumps([one[0].name, one[0].arguments]) for one in calls]
    if len(complete) == len(written.replies):
        assert said[3] != said[1]
        assert said[4] != said[0]
    engine.close()
