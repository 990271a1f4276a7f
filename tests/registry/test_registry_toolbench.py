"""ToolBench's own catalog and queries, where they lie beside the checkout."""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsrv_catalogs.toolbench import read_tool
from toolsrv_registry.api import Catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_registry.registry import Registry

DATA = Path(__file__).parents[3] / "shared" / "data" / "toolbench"
APIS = 300

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="ToolBench's data is not here")


@pytest.fixture(scope="module")
def queries() -> list[dict[str, Any]]:
    lines = (DATA / "queries_dev.jsonl").read_text("utf-8").splitlines()
    chosen: list[dict[str, Any]] = [json.loads(line) for line in lines[:12]]
    return chosen


@pytest.fixture(scope="module")
def toolbench(queries: list[dict[str, Any]]) -> Catalog:
    """The tools that the queries need, and others up to a few hundred APIs."""
    needed = {(a["category"], a["tool"]) for query in queries for a in query["relevant"]}
    tools, count = [], 0
    with tarfile.open(DATA / "toolenv.tar.gz") as archive:
        for member in archive:
            parts = Path(member.name).parts
            file = archive.extractfile(member) if parts[1:2] == ("tools",) else None
            if file is None:
                continue
            tool = read_tool(json.load(file), parts[2], stem=Path(parts[3]).stem)
            wanted = (tool.category, tool.name) in needed
            if wanted or count < APIS:
                tools.append(tool)
                count += 0 if wanted else len(tool.apis)
    return Catalog(name="toolbench", tools=tuple(tools))


@pytest.fixture(scope="module")
def registry(toolbench: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry.open(tmp_path_factory.mktemp("toolbench"), [toolbench]) as opened:
        started = time.perf_counter()
        status = opened.ensure_index()
        print(f"{status.apis / (time.perf_counter() - started):.0f} APIs/s")  # noqa: T201  (a figure)
        yield opened


def test_real_apis_go_in_and_come_out_whole(registry: Registry, toolbench: Catalog) -> None:
    assert tuple(registry.store.apis()) == toolbench.apis
    assert registry.store.put_catalog(toolbench).unchanged == len(toolbench.apis)


def test_real_queries_find_their_apis(registry: Registry, queries: list[dict[str, Any]]) -> None:
    found = total = 0
    for query in queries:
        hits = {hit.api.id for hit in registry.retriever.search(query["query"], limit=10).hits}
        relevant = {api["id"] for api in query["relevant"]}
        found += len(hits & relevant)
        total += len(relevant)
    assert total >= 20
    assert found / total > 0.6


def test_real_apis_make_whole_function_lists(toolbench: Catalog) -> None:
    offered = FunctionList(toolbench.apis)
    assert len(offered) == len(toolbench.apis)
    literal = FunctionList(toolbench.apis, literal=True).to_json()
    assert len(json.dumps(literal)) > 10_000
    for function in offered:
        schema = function.argument_schema()
        assert set(schema["required"]) <= set(schema["properties"])
