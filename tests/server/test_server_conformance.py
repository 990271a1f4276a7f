"""The official conformance suite's scenarios about tasks, where it is at hand.

``TOOLSRV_CONFORMANCE`` names ``dist/index.js`` of ``@modelcontextprotocol/conformance`` (0.2.0-alpha.12
was run), ``TOOLSRV_NODE`` a Node of version 22 or later.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SUITE = os.environ.get("TOOLSRV_CONFORMANCE", "")
NODE = os.environ.get("TOOLSRV_NODE") or shutil.which("node") or ""
SERVER = Path(__file__).with_name("conformance_server.py")
SCENARIOS = {
    "tasks-lifecycle": 9,
    "tasks-capability-negotiation": 5,
    "tasks-wire-fields": 4,
    "tasks-request-state-removal": 3,
    "tasks-mrtr-input": 4,
    "tasks-request-headers": 5,
    "tasks-dispatch-and-envelope": 9,
    "tasks-required-task-error": 3,
    "tasks-mrtr-composition": 2,
}
"""Each with the checks that it has; ``tasks-status-notifications`` is skipped by the suite itself."""

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not (SUITE and NODE), reason="no conformance suite here"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server with the suite's tools."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("conformance") / "data"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(port)],
        env=environment | {"TOOLSRV_DATA_DIR": str(folder)},
    )
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None
        time.sleep(0.2)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    process.wait(30)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_about_tasks_passes_with_all_its_checks(url: str, scenario: str) -> None:
    done = subprocess.run(
        [NODE, SUITE, "server", "--url", url, "--scenario", scenario, "--timeout", "120000"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = re.search(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", done.stdout)
    assert said, done.stdout + done.stderr
    assert tuple(map(int, said.groups())) == (*[SCENARIOS[scenario]] * 2, 0, 0), done.stdout
