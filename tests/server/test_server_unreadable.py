"""What JSON allows and UTF-8 does not, and requests that cannot be read: always an answer.

On stdio and over HTTP, in both eras; the next request is served as ever.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from mcp.shared.exceptions import MCPError

from toolsrv.mcp_server.messages import Unreadable, WellFormedResults, read
from toolsrv_catalogs import yaml_text
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store

FaultyHost = runpy.run_path(str(Path(__file__).parent / "writing.py"))["FaultyHost"]
SERVE = [sys.executable, "-m", "toolsrv", "serve", "--no-warm"]
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": HELLO["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Client:
    """Sends bytes as a message and returns the answers to it."""

    def __init__(self, modern: bool) -> None:
        self._modern = modern
        self._next = 100

    def send(self, message: bytes) -> dict[str, Any]:
        """Return the answer to a message."""
        raise NotImplementedError

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request in ASCII, and return its answer."""
        self._next += 1
        return self.send(self.line(self._next, method, params).encode())

    def line(self, number: int, method: str, params: dict[str, Any]) -> str:
        """Return a request as JSON."""
        params = params | ({"_meta": ENVELOPE} if self._modern else {})
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


class Stdio(Client):
    def __init__(self, modern: bool, process: subprocess.Popen[bytes]) -> None:
        super().__init__(modern)
        self._process = process
        if modern:
            self.request("tools/list", {})
        else:
            self.request("initialize", HELLO)
            self._write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, message: bytes) -> dict[str, Any]:
        self._write(message)
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline().decode())
        return answer

    def _write(self, message: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(message + b"\n")
        self._process.stdin.flush()


class Http(Client):
    def __init__(self, modern: bool, url: str, token: str) -> None:
        super().__init__(modern)
        self._url = url
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if modern:
            self._headers["MCP-Protocol-Version"] = "2026-07-28"
        else:
            hello = self.line(1, "initialize", HELLO)
            response = httpx.post(url, content=hello, headers=self._headers, timeout=60)
            self._headers["mcp-session-id"] = response.headers["mcp-session-id"]
            self._headers["MCP-Protocol-Version"] = "2025-11-25"

    def send(self, message: bytes) -> dict[str, Any]:
        headers = dict(self._headers)
        if "mcp-session-id" not in headers:
            headers |= routed(message)
        response = httpx.post(self._url, content=message, headers=headers, timeout=60)
        text = response.content.decode()
        if "event-stream" in response.headers["content-type"]:
            text = [one for one in text.splitlines() if one.startswith("data: {")][-1][6:]
        answer: dict[str, Any] = json.loads(text)
        return answer


def routed(message: bytes) -> dict[str, str]:
    """Return the headers that the modern era repeats a request in."""
    try:
        value = json.loads(message.decode(errors="replace"))
        return {"Mcp-Method": value["method"]} | (
            {"Mcp-Name": value["params"]["name"]} if "name" in value["params"] else {}
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


@pytest.fixture
def host(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A host with an API in an installed catalog that answers half pairs."""
    with FaultyHost() as one:
        apis = tuple(
            Api(
                id=f"Data/t/{name}",
                category="Data",
                tool="t",
                name=name,
                method="GET",
                url=f"{one.url}/{path}",
                optional=(Parameter(name="q"),),
            )
            for name, path in (("cut", "cut"), ("bad", "cut/bad"), ("echo", "echo"))
        )
        data_dir.mkdir()
        with Store.open(data_dir / STORE_FILE) as store:
            tool = Tool(category="Data", name="t", apis=apis)
            store.put_catalog(Catalog(name="theirs", tools=(tool,)))
        monkeypatch.setenv("TOOLSRV_OWN_HOSTS", one.url.removeprefix("http://"))
        yield one


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(transport: str, host: Any, era: str) -> Iterator[Client]:
    """A client of a server process, over the transport and in the era."""
    assert host.url
    http = transport == "http"
    command = [*SERVE, "--http", "--port", "0"] if http else SERVE
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        if http:
            assert process.stderr is not None
            url = process.stderr.readline().decode().split()[-1]
            token = process.stderr.readline().decode().strip().rpartition(" ")[2]
            yield Http(era == "auto", url, token)
        else:
            yield Stdio(era == "auto", process)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate(timeout=20)


CALLED = {"\ufffd": "\U0001f600"}


def test_half_a_pair_in_a_response_is_answered_and_ends_nothing(client: Client) -> None:
    for name, status in (("cut", 200), ("bad", 404)):
        call = {"name": "call_api", "arguments": {"id": f"Data/t/{name}", "arguments": {}}}
        result = client.request("tools/call", call)["result"]
        view = result["structuredContent"]
        assert view["response"] == {"cut \ufffd": ["\ufffd text", CALLED]}
        assert view["status"] == status
        assert "\ufffd" in result["content"][0]["text"]
    assert "tools" in client.request("tools/list", {})["result"]


def test_half_a_pair_in_a_request_is_served_cleaned(client: Client) -> None:
    call = {"id": "Data/t/echo", "arguments": {"q": "sun \ud83d"}}
    result = client.request("tools/call", {"name": "call_api", "arguments": call})["result"]
    assert result["structuredContent"]["response"]["path"] == "/echo?q=sun%20%EF%BF%BD"
    for arguments in (
        {"id": "Data/t/\ud83d"},
        {"id": "Data/t/echo", "arguments": {"\ud83d": {"\ude00": ["\ud83d"]}}},
    ):
        answer = client.request("tools/call", {"name": "call_api", "arguments": arguments})
        assert answer["result"]["isError"]
    ignored = {"name": "call_api", "arguments": {"id": "Data/t/echo", "\ud83d": 1}}
    data = client.request("tools/call", ignored)["result"]["structuredContent"]
    assert data["ignored_arguments"] == ["\ufffd"]
    assert "error" in client.request("no/such", {"\ud83d": 1})
    assert "tools" in client.request("tools/list", {})["result"]


BROKEN: list[tuple[bytes, int, list[int | str | None]]] = [
    (b'{"jsonrpc":"2.0","id":7,"method":', -32700, [7]),
    (b'{"jsonrpc":"2.0","method":"ping","params":{"a":[1,{"id":5}', -32700, [None]),
    (b'{"jsonrpc":"2.0","params":{"id":5},"id":"x-1","method":"pi', -32700, ["x-1"]),
    (b'{"jsonrpc":"2.0","id":12', -32700, [None]),
    (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, -32700, [None]),
    (
        b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"a":'
        + b"[" * 5_000
        + b"]" * 5_000
        + b"}}",
        -32700,
        [8],
    ),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping"} more', -32700, [9]),
    (b'[{"jsonrpc":"2.0","id":2,"method":"ping"}]', -32600, [2]),
    (b"[]", -32600, [None]),
    (b"[1]", -32600, [None]),
    (b"17", -32600, [None]),
    (b'"text"', -32600, [None]),
    (b"null", -32600, [None]),
    (b"{}", -32600, [None]),
    (b"\xff\xfe\xfa", -32700, [None]),
    (b'{"jsonrpc":"2.0","id":3}', -32600, [3]),
    (b'{"jsonrpc":"2.0","id":3,"method":5}', -32600, [3]),
    (b'{"id":4,"method":"ping"}', -32600, [4]),
    (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', -32600, [4]),
    (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', -32600, [4]),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, [None]),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, [None]),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600, [None]),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, [None]),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, [None]),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, [None]),
]


def test_every_request_that_cannot_be_read_has_its_error(client: Client) -> None:
    for message, code, ids in BROKEN:
        answer = client.send(message)
        assert (answer["error"]["code"], [answer["id"]]) == (code, ids), message[:80]
        assert answer["error"]["message"]
    assert "tools" in client.request("tools/list", {})["result"]


def test_bytes_that_are_not_utf_8_are_served_with_replacements(client: Client) -> None:
    call = {"id": "Data/t/echo", "arguments": {"q": "QQ"}}
    line = client.line(50, "tools/call", {"name": "call_api", "arguments": call}).encode()
    answer = client.send(line.replace(b"QQ", b"\xff"))
    assert answer["result"]["structuredContent"]["response"]["path"] == "/echo?q=%EF%BF%BD"


def test_a_batch_is_refused_request_by_request() -> None:
    found = read('[{"id": 1, "method": "a"}, {"method": "b"}, {"id": "z", "method": "c"}, 5]')
    assert isinstance(found, Unreadable)
    assert [one.id for one in found.answers()] == [1, "z"]


@pytest.mark.parametrize("params", ["[]", "5", 'null,"jsonrpc":"1.0"'])
def test_nobody_waits_for_the_answer_to_a_notification(params: str) -> None:
    found = read(f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}')
    assert isinstance(found, Unreadable)
    assert found.answers() == []


def test_responses_of_the_client_and_blank_members_pass() -> None:
    for text in (
        '{"jsonrpc": "2.0", "id": 1, "result": {}}',
        '{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}',
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        '{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": null}',
    ):
        assert read(text) == json.loads(text)


def test_a_malformed_answer_of_the_client_does_not_leave_a_call_waiting(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_CALLS", "ask GET")
    assert host.url
    process = subprocess.Popen(
        SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def say(message: dict[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()

    def hear() -> dict[str, Any]:
        assert process.stdout is not None
        heard: dict[str, Any] = json.loads(process.stdout.readline())
        return heard

    try:
        hello = HELLO | {"capabilities": {"elicitation": {}}}
        say({"id": 1, "method": "initialize", "params": hello})
        assert hear()["id"] == 1
        say({"method": "notifications/initialized"})
        call = {"name": "call_api", "arguments": {"id": "Data/t/echo", "arguments": {}}}
        say({"id": 2, "method": "tools/call", "params": call})
        question = hear()
        assert question["method"] == "elicitation/create"
        say({"id": question["id"], "result": "yes"})
        answer = hear()
        assert answer["id"] == 2
        assert answer["result"]["structuredContent"]["kind"] == "needs_consent"
    finally:
        process.kill()
        process.communicate(timeout=20)


Run = Callable[..., Result]


def test_half_a_pair_on_the_command_line_is_replaced(host: Any, run: Run) -> None:
    assert host.url
    shown = run("call", "Data/t/cut", "{}", "--json")
    assert json.loads(shown.stdout)["response"] == {"cut \ufffd": ["\ufffd text", CALLED]}
    assert "\\ud8" not in shown.stdout
    sent = run("call", "Data/t/echo", '{"q": "\\ud83d"}', "--json")
    assert json.loads(sent.stdout)["response"]["path"] == "/echo?q=%EF%BF%BD"


def test_half_a_pair_in_an_imported_document_is_in_no_entry(
    tmp_path: Path, data_dir: Path, run: Run
) -> None:
    half = "HALF"
    document = f"""
openapi: 3.0.3
info: {{title: "T {half}", version: "1", description: "{half}"}}
servers: [{{url: "https://api.example.com/{half}"}}]
paths:
  "/f/{half}":
    get:
      operationId: "op{half}"
      summary: "{half}"
      tags: ["{half}"]
      parameters:
        - {{name: "p{half}", in: query, description: "{half}", example: "{half}",
            schema: {{type: string, default: "{half}", enum: ["{half}", "b"]}}}}
      responses:
        "200": {{description: "{half}", content: {{application/json: {{schema:
          {{type: object, properties: {{"{half}": {{type: string, description: "{half}"}}}}}}}}}}}}
"""
    text = json.dumps(yaml_text.load(document)).replace("HALF", "x\\ud83d")
    (tmp_path / "a.json").write_text(text)
    done = run("catalog", "import", str(tmp_path / "a.json"), "--name", "a", "--no-index")
    assert done.exit_code == 0, done.output
    (tmp_path / "b.yaml").write_text(document.replace("HALF", "x\\ud83d"))
    assert run("catalog", "import", str(tmp_path / "b.yaml"), "--name", "b").exit_code == 1
    with Store.open(data_dir / STORE_FILE) as store:
        apis = [api.model_dump(mode="json") for api in store.catalog("a").tools[0].apis]
    assert apis
    assert "\\ud8" not in json.dumps(apis)
    shown = run("catalog", "show", "a", "--json")
    assert "\\ud8" not in shown.stdout


def test_half_a_pair_in_a_solve_is_in_no_record(host: Any, run: Run, tmp_path: Path) -> None:
    assert host.url
    replies = [
        {"function": "cut_for_t", "arguments": {"q": "sent \ud83d"}},
        {
            "function": "Finish",
            "arguments": {"return_type": "give_answer", "final_answer": "It is \ud83d text."},
        },
    ]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": replies}))
    words = ("--model", f"scripted:{script}", "--category", "Data", "--strategy", "react")
    done = run("solve", "cut the text of t \udcff", *words, "--json")
    shown = run("run", "show", "last", "--json")
    answer = json.loads(done.stdout)
    assert answer["evidence"][0]["response"] == {"cut \ufffd": ["\ufffd text", CALLED]}
    assert answer["evidence"][0]["arguments"] == {"q": "sent \ufffd"}
    for text in (done.stdout, shown.stdout):
        assert json.loads(text)
        assert "\\ud8" not in text
        assert "\ufffd" in text


def test_whatever_a_handler_returns_or_raises_can_be_written() -> None:
    def handled(outcome: object) -> Any:
        async def call_next(_: Any) -> Any:
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        context: Any = None
        return asyncio.run(WellFormedResults()(context, call_next))

    fine = {"a": [1, "é"]}
    assert handled(fine) is fine
    assert handled({"\ud83d": [{"b": "x\ude00"}]}) == {"\ufffd": [{"b": "x\ufffd"}]}
    with pytest.raises(MCPError, match="cannot be written") as caught:
        handled({"a": object()})
    assert caught.value.code == -32603
    for error in (MCPError(-32602, "no \ud83d", {"\ud83d": "\ud83d"}), ValueError("no \ud83d")):
        with pytest.raises(MCPError, match="no \ufffd") as caught:
            handled(error)
        assert b"\xef\xbf\xbd" in caught.value.error.model_dump_json().encode()
    with pytest.raises(ValueError, match="plain"):
        handled(ValueError("plain"))
