"""toolsrv in processes that have no more than Windows has (``bare_system.py``)."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolsrv import loopback
from toolsrv.cli import error_handler
from toolsrv_lab.finetune import checkpoints
from toolsrv_registry.errors import BusyError

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="takes away from a POSIX system what Windows has not"
)
BARE = [
    *(sys.executable, "-X", "warn_default_encoding", "-W", "ignore::EncodingWarning"),
    str(Path(__file__).with_name("bare_system.py")),
]
ROOMS = ("toolsrv_registry", "toolsrv_catalogs", "toolsrv_runtime", "toolsrv", "toolsrv_lab")
EXTRA = {"torch", "transformers", "peft", "accelerate", "sentence_transformers", "lightgbm", "onnx"}
EXTRA |= {"matplotlib", "hypothesis", "onnxscript", "safetensors", "datasets"}
"""Packages of the extra ``lab``, which a plain install has not."""

IMPORT_ALL = """
import importlib, json, os, pkgutil, signal, sys
gone = [hasattr(os, "fork"), hasattr(signal, "SIGHUP"), "fcntl" in sys.modules]
faults = {}
for room in sys.argv[1:]:
    package = importlib.import_module(room)
    for one in pkgutil.walk_packages(package.__path__, room + "."):
        if not one.name.endswith("__main__"):
            try:
                importlib.import_module(one.name)
            except Exception as error:
                faults[one.name] = [f"{type(error).__name__}: {error}", getattr(error, "name", "")]
print(json.dumps([gone, len(sys.modules), faults]))
"""


def bare(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*BARE, *words], capture_output=True, timeout=300, check=False, env=env)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSRV_")}
    return kept | {"TOOLSRV_DATA_DIR": str(tmp_path / "Ann's data"), "HOME": str(tmp_path)}


def test_every_module_can_be_imported() -> None:
    done = bare("-", IMPORT_ALL, *ROOMS)
    assert done.returncode == 0, done.stderr
    gone, modules, faults = json.loads(done.stdout)
    assert gone == [False, False, False]
    assert modules > 500
    unexpected = {
        name: said for name, (said, missing) in faults.items() if missing.split(".")[0] not in EXTRA
    }
    assert unexpected == {}


@pytest.mark.parametrize(
    "line", ["import fcntl", "import resource", "open(__file__).close()", "import os; os.getuid"]
)
def test_the_bare_process_refuses_what_it_should(line: str, tmp_path: Path) -> None:
    (tmp_path / "toolsrv_odd.py").write_text(f"{line}\n", "utf-8")
    done = bare("-", "import toolsrv_odd", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert b"toolsrv_odd.py" in done.stderr


def test_a_task_is_solved(environment: dict[str, str]) -> None:
    task = "What is the complementary color of teal?"
    done = bare("toolsrv", "solve", "--json", task, env=environment)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "answered"
    assert "Traceback" not in done.stderr.decode()


def test_a_client_is_served_and_lines_end_as_the_protocol_says(
    environment: dict[str, str],
) -> None:
    capabilities: dict[str, Any] = {}
    client = {"name": "test", "version": "1"}
    opening = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": client,
    }
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [*BARE, "toolsrv", "serve", "--no-warm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for one in messages:
            # A client on Windows may well end its lines so.
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | one).encode() + b"\r\n")
            server.stdin.flush()
        lines = [server.stdout.readline() for _ in range(2)]
        server.send_signal(signal.SIGTERM)
        rest = server.stdout.read()
        assert server.wait(60) == 128 + signal.SIGTERM
    assert [line[-2:-1] + line[-1:] for line in lines] == [b"}\n"] * 2
    assert rest == b""
    tools = json.loads(lines[1])["result"]["tools"]
    assert "solve_task" in {one["name"] for one in tools}


CONNECT = r"""
import json, os, sys, tomllib
from pathlib import Path, PureWindowsPath
import yaml
from toolsrv.clients.known import CLIENTS
from toolsrv.clients.places import Machine
from toolsrv.clients.register import registered, registration_change
from toolsrv.clients.known import server_command
home = Path(sys.argv[1])
roaming, local = home / "App Data" / "Roaming", home / "App Data" / "Local"
(local / "Packages" / "Claude_x1").mkdir(parents=True)
(roaming / "Claude").mkdir(parents=True)
at = Machine("win32", home, {"APPDATA": str(roaming), "LOCALAPPDATA": str(local)})
program = PureWindowsPath(r"C:\Users\Ann Lee\Scripts\toolsrv.exe")
read = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
found = []
for client in CLIENTS.values():
    for path in client.paths(at):
        registration_change(client, at, ["--data-dir", r"D:\new\tools", "serve"], path=path,
                   program=program).write()
        text = path.read_bytes().decode("utf-8")
        entry = read[client.form](text)[client.keys[0]]["toolsrv"]
        start = server_command(entry)
        found.append([client.id, path.relative_to(home).as_posix(), "\r" in text,
                      start.command, start.arguments])
    assert registered(client, at)
print(json.dumps(found))
"""


def test_clients_are_connected_with_the_paths_of_windows(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = bare("-", CONNECT, str(tmp_path), env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    claude = [path for client, path, *_ in found if client == "claude-desktop"]
    assert claude == [
        "App Data/Local/Packages/Claude_x1/LocalCache/Roaming/Claude/claude_desktop_config.json",
        "App Data/Roaming/Claude/claude_desktop_config.json",
    ]
    assert len(found) == 25
    for _, _, carriage_returns, command, arguments in found:
        assert not carriage_returns
        assert command == r"C:\Users\Ann Lee\Scripts\toolsrv.exe"
        assert arguments == ["--data-dir", r"D:\new\tools", "serve"]


STOPPED = """
import asyncio, os, signal
from toolsrv.cli.interrupt import stoppable

async def main():
    asked = asyncio.Event()

    async def work():
        os.kill(os.getpid(), signal.SIGTERM)
        await asked.wait()
        return "partial"

    before = signal.getsignal(signal.SIGINT)
    print(await stoppable(work(), ask=lambda _: asked.set(), at_once=print))
    print(signal.getsignal(signal.SIGINT) is before, signal.getsignal(signal.SIGTERM))

asyncio.run(main())
"""
STUCK = """
import asyncio, os, signal, threading
from toolsrv.cli import interrupt
interrupt.GRACE_S = interrupt.STUCK_S = interrupt.SAY_S = 0.05

async def work():
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()

def say():
    print("at once", flush=True)
    {hang}

asyncio.run(interrupt.stoppable(work(), ask=print, at_once=say))
"""


def test_work_is_asked_to_stop_by_a_signal() -> None:
    done = bare("-", STOPPED)
    said = done.stdout.decode().splitlines()
    assert said == [f"('partial', {int(signal.SIGTERM)})", "True 0"], done.stderr


@pytest.mark.parametrize("hang", ["pass", "threading.Event().wait()"])
def test_work_that_is_stuck_is_left_even_where_nothing_can_be_said(hang: str) -> None:
    done = bare("-", STUCK.replace("{hang}", hang))
    assert done.returncode == 130, done.stderr
    assert done.stdout.strip() == b"at once"


CORES = """
import os, sys
import psutil
for name in ("cpu_affinity", "rlimit"):
    delattr(psutil.Process, name)
del psutil.RLIMIT_AS
from toolsrv_registry.host_resources import is_memory_scarce
from toolsrv_registry.host_resources import addresses_left, usable_cores
from toolsrv_runtime.requirements import ProcessMemory, available_memory
from toolsrv_runtime.requirements import memory_shortage, physical_cores
sys.platform = "darwin"
assert usable_cores() == os.cpu_count()
assert 1 <= physical_cores() <= os.cpu_count()
assert addresses_left() is None
assert not is_memory_scarce()
assert available_memory() > 1 << 20
assert memory_shortage(ProcessMemory(1 << 50, 0)).needed > 1 << 49
assert memory_shortage(ProcessMemory(0, 1 << 50)) is None
"""


def test_cores_and_memory_are_known_where_nothing_binds_a_process() -> None:
    done = bare("-", CORES)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_link_is_not_read_where_opening_cannot_refuse_it(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"{}")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    code = (
        "import pathlib, sys\n"
        "from toolsrv_catalogs.sources import content\n"
        "print(content(pathlib.Path(sys.argv[1], 'real')))\n"
        "content(pathlib.Path(sys.argv[1], 'link'))\n"
    )
    done = bare("-", code, str(tmp_path))
    assert done.stdout.strip() == b"b'{}'"
    assert b"is a link" in done.stderr


def test_a_fault_is_logged_where_no_folder_can_be_written(
    environment: dict[str, str], tmp_path: Path
) -> None:
    code = (
        "import pathlib, sys\n"
        "from toolsrv import faults\n"
        "print(faults.record(ValueError('odd'), pathlib.Path(sys.argv[1])))\n"
    )
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "temporary").mkdir()
    env = environment | {"TMPDIR": str(tmp_path / "temporary")}
    done = bare("-", code, str(tmp_path / "file"), env=env)
    log = Path(done.stdout.decode().strip())
    assert log.parent == tmp_path / "temporary" / "toolsrv-faults", done.stderr
    assert "ValueError: odd" in log.read_text("utf-8")


def test_a_port_that_is_taken_is_not_shared_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    # No system has this number: where it is set the address is refused.
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", 99_999, raising=False)
    with pytest.raises(BusyError):
        loopback.listen("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("system", "named", "encoding"),
    [("win32", None, "utf-8"), ("win32", "cp1252", "cp1252"), ("linux", None, "cp1252")],
)
def test_redirected_output_of_windows_is_utf_8(
    system: str, named: str | None, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named is None:
        monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    else:
        monkeypatch.setenv("PYTHONIOENCODING", named)
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="cp1252") for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    error_handler._prepare_streams(system)
    for stream in streams:
        assert (stream.encoding, stream.errors) == (encoding, "backslashreplace")


def test_a_checkpoint_is_sealed_where_folders_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    opened: Callable[..., int] = os.open

    def refusing(path: Any, *words: Any, **options: Any) -> int:
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *words, **options)

    def flushing(number: int) -> None:
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")

    (tmp_path / "weights").write_bytes(b"1")
    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(sys, "platform", "win32")
    checkpoints.seal(tmp_path)
    assert (tmp_path / checkpoints.SEAL).is_file()


def test_the_workflow_names_files_that_exist() -> None:
    root = Path(__file__).parents[1]
    path = root / ".github" / "workflows" / "ci.yml"
    if not path.exists():
        pytest.skip("a source distribution has no workflow")
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    lines = " ".join(step.get("run", "") for step in jobs["test"]["steps"]).split()
    named = [word for word in lines if word.startswith("tests/")]
    assert len(named) > 3
    assert [one for one in named if not (root / one).is_file()] == []
