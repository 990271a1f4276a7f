"""A whole task over MCP on stdio, solved by the model that ships."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.anyio
PATH = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}


async def test_a_client_has_a_task_solved(ready_dir: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolsrv", "serve"],
        env={"TOOLSRV_DATA_DIR": str(ready_dir), **PATH},
    )
    async with Client(parameters) as client:
        result = await client.call_tool("solve_task", {"task": "What is the capital of Peru?"})
    outcome = result.structured_content
    assert not result.is_error
    assert outcome is not None
    assert outcome["status"] == "answered"
    assert "Lima" in outcome["answer"]
    assert outcome["evidence"][0]["api_id"] == "Data/country_facts/capital_city"
