"""Planted keys are in no byte that the servers, the pages, the resources and the packs hold.

Everything is real: a client over stdio, a process that serves the world, a host that echoes what
it is sent, the command line. Only the host may see the keys, and it must.
"""

from __future__ import annotations

import base64
import json
import os
import re
import runpy
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import keyring
import pytest
from click.testing import CliRunner
from keyring.backends import fail

from toolsrv.cli.main import cli
from toolsrv_registry.api import Api, Catalog, Parameter, SecurityScheme, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
FaultyHost = runpy.run_path(str(HERE / "writing.py"))["FaultyHost"]
SCHEMES = {
    "header": SecurityScheme(name="header", kind="apiKey", place="header", key="X-Key"),
    "query": SecurityScheme(name="query", kind="apiKey", place="query", key="key"),
    "basic": SecurityScheme(name="basic", kind="http", scheme="basic"),
    "bearer": SecurityScheme(name="bearer", kind="http", scheme="bearer"),
}
KEYS = {name: f"canary-{name}-7d/+=91" for name in SCHEMES} | {"basic": "me:canary-basic-7d/+=91"}
UNUSED = "canary-rapidapi-7d/+=91"
MARK = "canary"
TASK = "echo what I send, by header, query, basic and bearer"


def spellings() -> list[bytes]:
    """Every spelling in which a key might get out."""
    found = [MARK, MARK.upper(), MARK[::-1]]
    for key in (*KEYS.values(), UNUSED):
        found += [quote(key, safe=""), key.encode().hex(), json.dumps(key)[1:-1]]
        for shift in range(3):  # base64 of a text that the key stands in anywhere
            coded = base64.b64encode(b"\0" * shift + key.encode()).decode()
            found.append(coded[4 : len(coded) - 4])
    return [one.encode() for one in found]


def leaks(data: bytes) -> list[bytes]:
    return [one for one in spellings() if one in data]


def catalog(host: Any) -> Catalog:
    apis = tuple(
        Api(
            id=f"Data/mirror/{path}_{name}",
            category="Data",
            tool="mirror",
            name=f"{path}_{name}",
            description=f"Echo what is sent by {name}",
            url=f"{host.url}/{path}",
            optional=(Parameter(name="q"),),
            security=((scheme,),),
        )
        for name, scheme in SCHEMES.items()
        for path in ("echo", "500", "html")
    )
    return Catalog(name="theirs", tools=(Tool(category="Data", name="mirror", apis=apis),))


@pytest.fixture
def host(ready_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A host that wants keys: two in the environment, two in the file."""
    with FaultyHost() as one:
        with Store.open(ready_dir / STORE_FILE) as store:
            store.put_catalog(catalog(one))
        monkeypatch.setenv("TOOLSRV_DATA_DIR", str(ready_dir))
        monkeypatch.setenv("TOOLSRV_OWN_HOSTS", one.url.removeprefix("http://"))
        monkeypatch.setenv("TOOLSRV_MODE", "record")
        monkeypatch.setenv("RAPIDAPI_KEY", UNUSED)
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        before = keyring.get_keyring()
        keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
        for name in ("header", "query"):
            monkeypatch.setenv(f"TOOLSRV_KEY_127_0_0_1_{name.upper()}", KEYS[name])
        for name in ("basic", "bearer"):
            told = toolsrv("keys", "set", f"127.0.0.1/{name}", given=KEYS[name])
            assert not leaks(told)
        yield one
        keyring.set_keyring(before)


def toolsrv(*words: str, given: str = "") -> bytes:
    """Run a command; return all that it says."""
    done = CliRunner().invoke(cli, list(words), input=given, prog_name="toolsrv")
    assert done.exit_code == 0, done.output
    return done.output_bytes


def script(folder: Path) -> Path:
    calls = [
        {"function": f"{path}_{name}_for_mirror", "arguments": {"q": f"{name}"}}
        for name in SCHEMES
        for path in ("echo", "500", "html")
    ]
    answer = {"return_type": "give_answer", "final_answer": "They echo."}
    replies = [*calls, {"function": "Finish", "arguments": answer}]
    path = folder / "script.json"
    path.write_text(json.dumps({"replies": replies}), "utf-8")
    return path


async def through_mcp(folder: Path) -> None:
    """Solve, call and read every resource; the wire and the log are kept as files."""
    from mcp import Client, StdioServerParameters

    serve = f"{sys.executable} -m toolsrv --debug serve --no-warm --profile {folder}/bare.toml --model scripted:{script(folder)}"
    (folder / "bare.toml").write_text('base = "remote"\naids = []\n', "utf-8")
    parameters = StdioServerParameters(
        command="bash",
        args=["-c", f"{serve} 2> {folder}/mcp.err | tee {folder}/mcp.out"],
        env=dict(os.environ),
    )
    async with Client(parameters) as one:
        how = {"category": "Data", "strategy": "react", "candidates": 12, "depth": 90}
        task = {"task": TASK, "wait_s": 60, "options": how}
        run = (await one.call_tool("solve_task", task)).structured_content
        assert run["status"] == "answered"
        assert len(run["evidence"]) >= 6
        await one.call_tool("show_run", {"run_id": run["run_id"]})
        read = 0
        for call in run["evidence"]:
            uri = f"toolsrv://runs/{run['run_id']}/responses/{call['node']}"
            got = await one.read_resource(uri)
            read += "[key]" in got.model_dump_json()
        assert read  # what a host echoed was there, and its key was not
        for name in SCHEMES:
            for path in ("echo", "500", "html"):
                await one.call_tool("call_api", {"id": f"Data/mirror/{path}_{name}"})
            wrong = {"id": f"Data/mirror/echo_{name}", "arguments": {"nope": 1}}
            await one.call_tool("call_api", wrong)
        await one.call_tool("describe_apis", {"ids": ["Data/mirror/echo_header"]})
        await one.call_tool("search_apis", {"query": TASK})


def through_the_world(folder: Path) -> None:
    """Ask the world for everything, on both of its paths."""
    process = subprocess.Popen(
        [sys.executable, "-m", "toolsrv", "world", "serve", "--port", "0", "--no-token"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    said = b""
    try:
        first = process.stderr.readline()
        found = re.search(rb"http://127\.0\.0\.1:\d+", first)
        assert found, first
        echoed = 0
        for path in ("/rapidapi", "/virtual"):
            for name in (f"{kind}_{one}" for one in SCHEMES for kind in ("echo", "500", "html")):
                asked = {"category": "Data", "tool_name": "mirror", "api_name": name,
                         "tool_input": {"q": "1"}, "strip": "", "toolbench_key": ""}  # fmt: skip
                got = httpx.post(found[0].decode() + path, json=asked, timeout=60)
                said += repr(got.headers.raw).encode() + got.content
                echoed += "[key]" in got.text
        assert echoed >= 6
    finally:
        process.terminate()
        said += process.stderr.read()
        process.wait(timeout=60)
        process.stderr.close()
    (folder / "world.said").write_bytes(said)


def through_the_command_line(folder: Path) -> None:
    """Write every page and every pack."""
    node = json.loads(toolsrv("run", "show", "last", "--json"))["nodes"][1]["id"]
    commands: list[tuple[str, ...]] = [
        ("run", "list", "--json"),
        ("run", "show", "last", "--full"),
        ("run", "show", "last", "--json"),
        ("run", "show", "last", "--html", str(folder / "run.html")),
        ("run", "response", "last", str(node), "--json"),
        ("recordings", "stats", "--json"),
        ("recordings", "export", str(folder / "calls.pack")),
        ("recordings", "export", str(folder / "cache"), "--stabletoolbench"),
        ("catalog", "export", "theirs", str(folder / "theirs")),
        ("config", "show"),
        ("keys", "list", "--json"),
    ]
    said = b"\n".join(toolsrv(*one) for one in commands)
    (folder / "commands.said").write_bytes(said)


def contents(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, and what is in it where it is a database or an archive."""
    yield path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as pack:
            yield from (pack.read(name) for name in pack.namelist())
    elif path.read_bytes()[:15] == b"SQLite format 3":
        with sqlite3.connect(path) as database:
            yield "\n".join(database.iterdump()).encode("utf-8", "surrogatepass")
        database.close()


def search(folder: Path, data_dir: Path) -> None:
    """Look through every file, and see that what should have been written was."""
    searched = 0
    for path in (*folder.rglob("*"), *data_dir.rglob("*")):
        if path.is_file() and path.name != "keys.json":
            for data in contents(path):
                assert not leaks(data), path
                searched += len(data)
    assert searched > 100_000
    names = {path.name for path in folder.rglob("*")}
    assert {"mcp.out", "mcp.err", "run.html", "calls.pack", "world.said"} <= names
    assert (folder / "mcp.out").read_bytes().count(b'"jsonrpc"') > 20
    for name in ("mcp.out", "run.html", "world.said", "commands.said"):
        assert b"[key]" in (folder / name).read_bytes(), name  # where a key stood, and went


async def test_planted_keys_are_in_no_byte_that_is_written_or_sent(
    host: Any, ready_dir: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    await through_mcp(folder)
    through_the_world(folder)
    through_the_command_line(folder)
    assert any(MARK in path for _, _, path in host.calls)  # the host did get its keys
    search(folder, ready_dir)


def test_the_search_sees_a_key_in_any_spelling() -> None:
    key = KEYS["query"]
    for text in (key, quote(key, safe=""), base64.b64encode(key.encode()).decode(), key.upper(),
                 base64.b64encode(b"a:" + key.encode()).decode(), key.encode().hex()):  # fmt: skip
        assert leaks(f'{{"a": "{text}"}}'.encode()), text
    assert not leaks(b'{"X-Key": "[key]"}')
