"""MCP servers that misbehave, as real processes: endless lines, floods, wrong ids, ends, silence."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import Result

from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_runtime.calls.result import CallResult

Run = Callable[..., Result]
SERVER = Path(__file__).parent / "odd_tool_server.py"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_keyring")]


class Odd:
    """The server, imported; what it counted."""

    def __init__(self, run: Run, state: Path) -> None:
        self.run = run
        self.state = state

    def import_(self, source: str = "mcp:odd") -> dict[str, Any]:
        done = self.run("catalog", "import", source, "--name", "odd", "--no-index", "--json")
        assert done.exit_code == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def count(self, what: str) -> int:
        return self.state.read_text().splitlines().count(what)

    @asynccontextmanager
    async def calls(self, **settings: Any) -> AsyncIterator[Callable[..., Any]]:
        bench = Workbench(load().settings.model_copy(update=settings))

        async def call(tool: str) -> CallResult:
            api, caller = bench.api(f"Other/odd/{tool}"), bench.caller()
            got = await caller.call(api, {})
            if got.consent is not None:
                got = await caller.call(api, {}, consent=got.consent)
            return got

        try:
            yield call
        finally:
            await bench.aclose()


@pytest.fixture
def odd(run: Run, tmp_path: Path) -> Odd:
    server = Odd(run, tmp_path / "state")
    server.import_("mcp:" + shlex.join([sys.executable, str(SERVER), str(server.state)]))
    return server


@pytest.mark.parametrize("tool", ["endless_line", "hundred_megabytes"])
async def test_a_line_without_end_ends_its_server_and_fills_no_memory(odd: Odd, tool: str) -> None:
    async with odd.calls() as call:
        assert (await call("fine")).response == "fine"
        before = psutil.Process().memory_info().rss
        got = await call(tool)
        assert (got.kind, got.status) == ("too_large", 0)
        assert "16,000,000 bytes" in got.error
        assert psutil.Process().memory_info().rss - before < 100_000_000
        assert odd.count(f"calls of {tool}") == 1  # not asked for it again
        assert (await call("fine")).response == "fine"
        assert odd.count("starts") == 3  # the import's, and one after the end


async def test_a_server_that_ends_within_a_call_is_told_with_its_last_words(odd: Odd) -> None:
    async with odd.calls() as call:
        got = await call("dies_late")
        assert got.kind == "network_error"
        assert "may have been carried out" in got.error
        assert "out of coal" in got.error
        assert odd.count("calls of dies_late") == 1
        assert (await call("fine")).ok


@pytest.mark.parametrize(
    ("tool", "said"),
    [("wrong_ids", "this one"), ("loud", "said"), ("garbage", "behind it")],
)
async def test_what_is_no_answer_is_passed_over(odd: Odd, tool: str, said: str) -> None:
    async with odd.calls() as call:
        got = await call(tool)
        assert (got.kind, got.response) == ("ok", said)
        assert (await call("fine")).ok
    assert odd.count("starts") == 2


async def test_a_server_that_is_silent_at_first_is_left_in_time(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_runtime.mcp_client.connection.START_S", 1.0)
    words = shlex.join([sys.executable, str(SERVER), str(tmp_path / "state"), "--silent"])
    done = await asyncio.to_thread(run, "catalog", "import", f"mcp:{words}", "--no-index")
    assert done.exit_code == 1
    assert "did not answer within 1 seconds" in done.stderr
    assert not [one for one in psutil.Process().children(recursive=True) if _is_odd(one)]


def _is_odd(process: psutil.Process) -> bool:
    try:
        return str(SERVER) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


async def test_bytes_of_a_tool_are_files_and_not_words(odd: Odd) -> None:
    async with odd.calls() as call:
        got = await call("files")
    assert [(one.media, one.name) for one in got.files] == [
        ("image/png", ""),
        ("image/png", ""),  # what it says is wrong
        ("image/png", "b.bin"),
    ]
    assert {one.content for one in got.files} == {PNG}
    words, image, _, resource = got.response
    assert (words, image["bytes"], resource["resource"]["bytes"]) == ("three files", 264, 264)
    assert "iVBOR" not in json.dumps(got.response)


async def test_an_announced_tool_comes_with_the_next_import_only(odd: Odd) -> None:
    async with odd.calls() as call:
        assert (await call("fine")).ok
        lists = odd.count("lists")
        assert (await call("fine")).ok
        assert odd.count("lists") == lists  # the list is kept a while
        odd.state.with_suffix(".new").touch()
        assert (await call("announce")).ok
        assert (await call("fine")).ok
        assert odd.count("lists") == lists + 1  # asked for again, as it was said to have changed
        with pytest.raises(Exception, match="no API"):
            await call("fresh")
    told = await asyncio.to_thread(odd.import_)
    assert told["added"] == ["Other/odd/fresh"]
    async with odd.calls() as call:
        assert (await call("fresh")).response == "fresh"
