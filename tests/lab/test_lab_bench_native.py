"""The tree of native calls: what it evaluates, and completion beside it, on a tiny model."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolsrv_lab.bench.native import measure_native, tools, write_tree
from toolsrv_runtime.contract.models import ChatRequest, ReplyConstraints, UserMessage
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
    rates = ("native_read", "plain_read", "native_write_cpu", "plain_write_cpu")
    assert all((found[one].median or 0) > 0 for one in rates)
    engine.close()


def test_the_tree_calls_other_functions_and_another_call_where_one_is_excluded(
    tiny: Path,
) -> None:
    engine = LlamaEngine(tiny, context=8192, threads=1)
    template = ToolTemplate(None, tokens=engine.special_tokens)
    written = write_tree(engine, template)
    assert len(written.replies) == len(written.paths) == 5
    assert written.another.text != written.replies[0].text
    names = tuple(one.name for one in tools())
    request = ChatRequest((UserMessage("x"),), tools(), ReplyConstraints(names=names, text=False))
    calls = [template.parse(one.text, request).calls for one in written.replies]
    for branch, at in ((3, 1), (4, 0)):
        if calls[branch] and calls[at]:  # a random model may not come to the end of a value
            assert calls[branch][0].name != calls[at][0].name
    engine.close()
