"""What the MCP server tells its client about calls is what the settings make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolsrv.mcp_server import descriptions
from toolsrv.settings import load

pytestmark = pytest.mark.anyio


async def told(folder: Path, **given: Any) -> tuple[list[str], Any]:
    """Return what a client reads about calls (instructions, description), and the hints."""
    from mcp import Client

    from toolsrv.mcp_server.server import build_server
    from toolsrv.workbench import Workbench

    bench = Workbench(load({"data_dir": str(folder), **given}).settings)
    async with Client(build_server(bench, warm=False)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        call = tools["call_api"]
        return [client.instructions or "", call.description or ""], call.annotations


@pytest.mark.parametrize("mode", ["live", "record"])
async def test_calls_that_reach_their_hosts_are_not_called_local_or_read_only(
    data_dir: Path, mode: str
) -> None:
    texts, hints = await told(data_dir, mode=mode)
    for text in texts:
        assert "read-only" not in text.lower()
        assert "without network" not in text
        for part in ("GET", "hosts", "catalog", "the user's yes", "settings"):
            assert part in text
        assert ("recorded" in text) == (mode == "record")
    assert (hints.read_only_hint, hints.open_world_hint) == (False, True)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"mode": "replay"}, "recordings"),
        ({"mode": "offline"}, "read-only"),
        ({"simulate": "schema"}, "simulated"),
        ({"simulate": "model", "mode": "offline"}, "simulated"),
        ({"simulate": "schema", "mode": "replay"}, "recordings"),
    ],
)
async def test_calls_that_reach_nobody_are_told_as_such(
    data_dir: Path, given: dict[str, str], word: str
) -> None:
    texts, hints = await told(data_dir, **given)
    for text in texts:
        assert word in text
        assert "GET" not in text
    assert (hints.read_only_hint, hints.open_world_hint) == (True, False)


@pytest.mark.parametrize(
    ("model", "who"),
    [
        ("", "a local model"),
        ("mine.gguf", "a local model"),
        ("http://127.0.0.1:9/v1", "the model of its settings"),
        ("sampling", "the client's own model"),
    ],
)
def test_who_solves_tasks_is_told_as_it_is(tmp_path: Path, model: str, who: str) -> None:
    settings = load({"data_dir": str(tmp_path), "model": model}).settings
    said = descriptions.instructions(["Food"], settings)
    assert f"solve a whole task with {who}." in said
    assert f"Let {who} solve" in descriptions.descriptions(["Food"], settings)["solve_task"]
    assert ("that ships is small" in said) == (model == "")
    assert len(said.encode()) < descriptions.INSTRUCTIONS_LIMIT
