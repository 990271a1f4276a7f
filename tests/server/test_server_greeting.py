"""The first answers of a server on stdio are kept, and the next start gives them before the SDK is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsrv.mcp_server import handshake_cache
from toolsrv.mcp_server.handshake_cache import CachedHandshake, handshake_cache_file

Wire = Callable[..., dict[str, Any]]

CLIENT: dict[str, Any] = {"name": "test", "version": "1"}
INITIALIZE: dict[str, Any] = {
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT},
}
INITIALIZED: dict[str, Any] = {"method": "notifications/initialized"}
LIST: dict[str, Any] = {"id": 2, "method": "tools/list"}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER: dict[str, Any] = {"id": 1, "method": "server/discover", "params": {"_meta": META}}
LIST_ALONE: dict[str, Any] = {
    "id": 2,
    "method": "tools/list",
    "params": {"_meta": {**META, "progressToken": 5}},
}
LISTEN: dict[str, Any] = {
    "id": 3,
    "method": handshake_cache.LISTEN,
    "params": {"_meta": META, "notifications": {"toolsListChanged": True}},
}
OPENINGS: dict[str, list[dict[str, Any]]] = {
    "2025-11-25": [INITIALIZE, INITIALIZED, LIST],
    "2026-07-28": [DISCOVER, LIST_ALONE],
}

# The SDK cannot be imported before a line says so on a pipe of the test's own.
HELD = """
import os, sys
class Held:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("mcp."):
            os.read({gate}, 1)
            sys.meta_path.remove(self)
sys.meta_path.insert(0, Held())
sys.argv = ["toolsrv", "serve", "--no-warm"]
from toolsrv.cli.main import main
main()
"""


@pytest.fixture
def serve() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts a server; ``gate`` holds back the import of its SDK."""
    started: list[subprocess.Popen[str]] = []

    def start(gate: int | None = None) -> subprocess.Popen[str]:
        code = (
            HELD.format(gate=gate) if gate is not None else HELD.replace("os.read({gate}, 1)", "")
        )
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=() if gate is None else (gate,),
            )
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def leave(process: subprocess.Popen[str]) -> str:
    """Close the client's side and return what the server still wrote on stdout."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return out


def kept_files(data_dir: Path) -> list[Path]:
    return list((data_dir / handshake_cache.FOLDER).glob("*.json"))


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
def test_a_second_start_answers_at_once_what_the_server_then_confirms(
    ready_dir: Path,
    wire: Wire,
    serve: Callable[..., subprocess.Popen[str]],
    opening: list[dict[str, Any]],
) -> None:
    first = serve()
    answers = [wire(first, one) for one in opening]
    assert leave(first) == ""
    (file,) = kept_files(ready_dir)
    before = file.read_bytes()

    gate, opener = os.pipe()
    second = serve(gate)
    assert [wire(second, one) for one in opening] == answers
    os.write(opener, b".")
    ping: dict[str, Any] = {
        "id": 3,
        "method": "tools/call",
        "params": {"name": "no_such_tool", "arguments": {}},
    }
    if opening[0] is DISCOVER:
        ping["params"] = {**ping["params"], "_meta": META}
    assert "unknown tool" in str(wire(second, ping))
    assert leave(second) == ""
    os.close(gate)
    os.close(opener)
    assert file.read_bytes() == before


@pytest.mark.usefixtures("ready_dir")
def test_a_client_that_listens_before_it_lists_the_tools_is_acknowledged_at_once(
    wire: Wire, serve: Callable[..., subprocess.Popen[str]]
) -> None:
    def open_session(process: subprocess.Popen[str], known: int) -> list[Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        said = [wire(process, DISCOVER)]
        process.stdin.write(line({**LISTEN, "id": known}))
        process.stdin.flush()
        said.append(json.loads(process.stdout.readline()))
        said.append(wire(process, LIST_ALONE))
        return said

    first = serve()
    discovered, acknowledged, listed = open_session(first, 3)
    assert acknowledged["method"] == handshake_cache.ACKNOWLEDGED
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert acknowledged["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 3}
    leave(first)

    gate, opener = os.pipe()
    second = serve(gate)
    again = open_session(second, 9)
    acknowledged["params"]["_meta"] = {"io.modelcontextprotocol/subscriptionId": 9}
    assert again == [discovered, acknowledged, listed]
    os.write(opener, b".")
    assert handshake_cache.ACKNOWLEDGED not in leave(second)
    os.close(gate)
    os.close(opener)


def test_an_old_answer_is_replaced_by_what_the_server_says(
    ready_dir: Path, wire: Wire, serve: Callable[..., subprocess.Popen[str]]
) -> None:
    first = serve()
    answer = wire(first, INITIALIZE)
    leave(first)
    (file,) = kept_files(ready_dir)
    kept = json.loads(file.read_text())
    ((asked, result),) = kept.items()
    file.write_text(json.dumps({asked: {**result, "instructions": "of yesterday"}}))

    second = serve()
    assert wire(second, INITIALIZE)["result"]["instructions"] == "of yesterday"
    wire(second, INITIALIZED)
    wire(second, LIST)
    leave(second)
    assert json.loads(file.read_text())[asked] == answer["result"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        *(
            pytest.param(one, marks=pytest.mark.nightly)
            for one in ("", "[]", '{"a":' * 5_000, "\udcff")
        ),
    ],
)
def test_a_damaged_file_is_made_anew(
    ready_dir: Path, wire: Wire, serve: Callable[..., subprocess.Popen[str]], text: str
) -> None:
    first = serve()
    answer = wire(first, INITIALIZE)
    leave(first)
    (file,) = kept_files(ready_dir)
    whole = file.read_text()
    file.write_text(text, errors="surrogateescape")

    second = serve()
    assert wire(second, INITIALIZE) == answer
    leave(second)
    assert file.read_text() == whole


def test_a_folder_that_cannot_be_written_to_is_left_alone(
    ready_dir: Path, wire: Wire, serve: Callable[..., subprocess.Popen[str]]
) -> None:
    (ready_dir / handshake_cache.FOLDER).write_text("in the way")
    process = serve()
    assert "result" in wire(process, INITIALIZE)
    leave(process)
    assert (ready_dir / handshake_cache.FOLDER).read_text() == "in the way"


def test_a_variable_that_repeats_the_data_folder_of_an_entry_changes_nothing(
    ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client in a terminal hands on its shell's variables, and another one few or none."""
    flags = {"data_dir": str(ready_dir)}
    named = handshake_cache_file(flags)
    monkeypatch.delenv("TOOLSRV_DATA_DIR")
    assert named == handshake_cache_file(flags)
    assert named is not None


def test_the_answers_belong_to_program_settings_and_catalogs(
    ready_dir: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def name() -> str:
        file = handshake_cache_file({})
        assert file is not None
        return file.name

    names = [name()]
    assert name() == names[0]
    monkeypatch.setenv("TOOLSRV_TOKEN", "another, and no word of any answer")
    assert name() == names[0]
    monkeypatch.setenv("TOOLSRV_MODE", "offline")
    names.append(name())
    assert run("config", "set", "parallel", "3").exit_code == 0
    names.append(name())
    assert run("catalog", "disable", "offline").exit_code == 0
    names.append(name())
    monkeypatch.setattr(sys, "argv", ["toolsrv", "serve", "--model", "small"])
    names.append(name())
    monkeypatch.setattr("toolsrv.__version__", "99")
    names.append(name())
    assert len(set(names)) == len(names)

    (ready_dir / "registry.sqlite3").write_bytes(b"no database" * 100)
    assert handshake_cache_file({}) is None


class Hearing:
    """A greeter between a test's lines and a pipe."""

    def __init__(self, file: Path, *lines: str) -> None:
        self._read, self._write = os.pipe()
        self.greeter = CachedHandshake(lines, self._write, file)
        self.greeter.start()
        self._lines = lines

    def said(self) -> list[dict[str, Any]]:
        """Return what was answered."""
        while self.greeter._queue.qsize() <= len(self._lines):
            pass
        os.close(self._write)
        with os.fdopen(self._read, encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]


def line(message: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that has answers to both openings."""
    path = tmp_path / handshake_cache.FOLDER / "one.json"
    for opening in OPENINGS.values():
        hearing = Hearing(path, *map(line, opening))
        assert hearing.said() == []
        for message in opening:
            if "id" in message:
                assert not hearing.greeter.has_answered(message["id"], {"of": message["method"]})
    return path


def test_requests_are_known_again_whoever_sends_them(file: Path) -> None:
    who = {"capabilities": {"roots": {}}, "clientInfo": {"name": "other", "version": "2"}}
    hello = {**INITIALIZE, "id": 7, "params": INITIALIZE["params"] | who}
    other = {**LIST, "id": "other", "params": {"_meta": {"progressToken": "t"}}}
    lines = [line(hello), line(INITIALIZED), line(other)]
    assert Hearing(file, *lines).said() == [
        {"jsonrpc": "2.0", "id": 7, "result": {"of": "initialize"}},
        {"jsonrpc": "2.0", "id": "other", "result": {"of": "tools/list"}},
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [line(LIST)],
        [line(INITIALIZED), line(LIST)],
        [line({**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "2025-06-18"}})],
        [line({**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": None}})],
        [line({**INITIALIZE, "params": {**INITIALIZE["params"], "clientInfo": {"name": "a"}}})],
        [line({**INITIALIZE, "params": {"protocolVersion": "2025-11-25"}})],
        [line({**INITIALIZE, "id": None})],
        [line({**INITIALIZE, "id": True})],
        [line({**INITIALIZE, "jsonrpc": "1.0"})],
        [line({**INITIALIZE, "extra": 1})],
        [line({"method": "initialize", "params": INITIALIZE["params"]})],
        [line({**DISCOVER, "params": {"_meta": 5}})],
        [line({**DISCOVER, "params": []})],
        ["[" + line(INITIALIZE).strip() + "]\n"],
        [line(INITIALIZE)[:-2]],
        ["[" * 10_000 + "\n"],
        *(
            [
                f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"x":{"[" * n}{"]" * n}}}}}\n'
            ]
            for n in (900, 960, 990, 5_000)
        ),
        [line({**INITIALIZE, "params": {"padding": "x" * handshake_cache.LINE_LIMIT}})],
        [
            *[line({"id": n, "method": "ping"}) for n in range(handshake_cache.OPENING_LINES)],
            line(INITIALIZE),
        ],
    ],
)
def test_what_is_not_surely_the_same_request_is_left_to_the_server(
    file: Path, lines: list[str]
) -> None:
    assert Hearing(file, *lines).said() == []


def test_an_id_that_comes_twice_is_answered_once(file: Path) -> None:
    lines = [line(DISCOVER), line({**LIST_ALONE, "id": 1})]
    assert [one["id"] for one in Hearing(file, *lines).said()] == [1]


def test_a_stream_that_was_acknowledged_may_end_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / handshake_cache.FOLDER / "one.json"
    first = Hearing(path, line(LISTEN))
    assert first.said() == []
    assert not first.greeter.has_answered(LISTEN["id"], {"notifications": {}, "_meta": {}})
    second = Hearing(path, line(LISTEN))
    assert [one["method"] for one in second.said()] == [handshake_cache.ACKNOWLEDGED]
    assert not second.greeter.has_answered(LISTEN["id"], None)


@pytest.mark.parametrize("kinds", [None, [], {"resourceSubscriptions": ["toolsrv://runs/run_1"]}])
def test_the_acknowledgement_of_single_resources_is_not_kept(tmp_path: Path, kinds: Any) -> None:
    path = tmp_path / handshake_cache.FOLDER / "one.json"
    asked = {**LISTEN, "params": {**LISTEN["params"], "notifications": kinds}}
    hearing = Hearing(path, line(asked))
    assert hearing.said() == []
    assert not hearing.greeter.has_answered(LISTEN["id"], {"notifications": {}, "_meta": {}})
    assert not path.exists()


def test_errors_are_never_kept(tmp_path: Path) -> None:
    path = tmp_path / handshake_cache.FOLDER / "one.json"
    hearing = Hearing(path, line(DISCOVER))
    assert hearing.said() == []
    assert not hearing.greeter.has_answered(DISCOVER["id"], None)
    assert not path.exists()


def test_the_oldest_files_go(tmp_path: Path) -> None:
    for number in range(handshake_cache.KEPT + 3):
        path = tmp_path / handshake_cache.FOLDER / f"{number}.json"
        hearing = Hearing(path, line(DISCOVER))
        hearing.said()
        hearing.greeter.has_answered(DISCOVER["id"], {"number": number})
        os.utime(path, (number, number))
    left = sorted(int(one.stem) for one in path.parent.iterdir())
    assert left == list(range(3, handshake_cache.KEPT + 3))
