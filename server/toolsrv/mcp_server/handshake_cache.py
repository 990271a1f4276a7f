"""Answer the MCP handshake on stdio from a cache, before the SDK is imported.

Importing the SDK takes a second, on a loaded machine three, and clients wait no longer than that
for ``initialize``. Its answer, ``server/discover``, ``tools/list`` and the acknowledgement of
``subscriptions/listen``, for which a client may wait before it lists the tools, are the same at
every start with the same program, settings and catalogs, so they are kept in the data folder.
Claims stdin and stdout for the protocol, with the same bytes on every system. Imports neither
pydantic nor the SDK.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import toolsrv
from toolsrv.config_file import PREFIX, config_path, data_folder, write_atomic
from toolsrv_registry.catalog_state import catalog_state
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from anyio import AsyncFile

log = logging.getLogger(__name__)

FOLDER = "greetings"
KEPT = 8
"""Files in the folder: one for each way of starting the server; the oldest go."""
MOST_ANSWERS = 16
"""In a file: one for each method and version of the protocol, and some of clients with extensions."""
FILE_LIMIT = 2_000_000
LINE_LIMIT = 20_000
"""Characters of a request that is looked at."""
WAITING = 64
"""Lines that are read ahead while the server starts."""
OPENING_LINES = 20
"""Lines of a client among which its first requests are."""
FIRST_S = 0.05
"""So long the start waits for the first line: clients write it at once."""

_LEFT_OUT = ("TOOLSRV_TOKEN", "TOOLSRV_ENGINE_KEY", "TOOLSRV_KEY_", "TOOLSRV_DATA_DIR")
"""Variables of which no answer depends: secrets, and the folder that the file lies in."""

LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_CLIENT = "io.modelcontextprotocol/clientInfo"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_OF_CLIENT = {"clientInfo", "capabilities", _CLIENT, _CAPABILITIES, "progressToken"}
"""What of a request no answer depends on."""

Id = int | str


class CachedHandshake:
    """The lines of a client, and the kept answers to the first of them.

    A thread reads ``stdin`` from ``start`` on, and writes answers to the descriptor ``out`` until
    ``lines`` is taken. ``file`` None: nothing is kept and nothing answered.
    """

    def __init__(self, stdin: Iterable[str], out: int, file: Path | None = None) -> None:
        self._stdin = stdin
        self._out = out
        self._file = file
        self._kept = _read(file) if file is not None else {}
        self._queue: queue.Queue[str | None] = queue.Queue(WAITING)
        self._turn = threading.Lock()
        self._serving = False
        self._first = threading.Event()
        self._opening = _SessionOpening()
        self._asked: dict[Id, str] = {}
        self._given: dict[Id, Any] = {}
        self._changed = False

    def start(self) -> None:
        """Begin to read, and give the first line a moment to be answered."""
        threading.Thread(target=self._listen, name="greeter", daemon=True).start()
        if self._kept:
            self._first.wait(FIRST_S)

    async def lines(self) -> AsyncIterator[str]:
        """Yield all lines from the first on; from now on only the server answers."""
        import anyio

        with self._turn:
            self._serving = True
        while (line := await anyio.to_thread.run_sync(self._queue.get)) is not None:
            yield line

    def has_answered(self, known: Id | None, result: Any) -> bool:
        """Whether a request was answered before; ``result`` is the server's, None for an error.

        For ``subscriptions/listen`` the answer is its acknowledgement: an error still ends it.
        """
        asked = self._asked.pop(known, None) if known is not None else None
        if known is None or asked is None:
            return False
        if result is None and asked.startswith(LISTEN):
            return False
        answered = known in self._given
        before = self._given.pop(known, None)
        if result is not None and result != before:
            if answered:
                log.info("the kept answer to %s was an old one", asked.split()[0])
            self._kept.pop(asked, None)
            self._kept[asked] = result
            self._changed = True
        self._keep()
        return answered

    def _listen(self) -> None:
        try:
            for line in self._stdin:
                if self._file is not None and self._opening.lasts:
                    self._answer(line)
                self._first.set()
                self._queue.put(line)
        except (ValueError, OSError) as error:
            log.info("stdin cannot be read any more: %s", error)
        finally:
            self._queue.put(None)

    def _answer(self, line: str) -> None:
        try:
            request = _request(line)
            asked = self._opening.request_name(request)
        except (
            RecursionError
        ):  # nested as deep as can be read: the server says what it thinks of it
            return
        known = request.get("id")
        if not asked or known is None or known in self._asked:
            return
        with self._turn:
            self._asked[known] = asked
            if asked in self._kept and not self._serving:
                self._given[known] = self._kept[asked]
                answer = _message(request["method"], known, self._kept[asked])
                _write(self._out, json.dumps(answer, ensure_ascii=False) + "\n")

    def _keep(self) -> None:
        """Write what is known, once the data folder is there: a handshake alone makes none."""
        if not self._changed or self._file is None or not self._file.parent.parent.is_dir():
            return
        self._changed = False
        latest = dict(list(self._kept.items())[-MOST_ANSWERS:])
        try:
            write_atomic(self._file, json.dumps(latest, ensure_ascii=False))
            files = sorted(self._file.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)
            for old in files[:-KEPT]:
                old.unlink(missing_ok=True)
        except (ToolsrvError, OSError, ValueError) as error:
            log.info("the first answers are not kept: %s", error)


class _SessionOpening:
    """How far a client has opened its session: what a request asks for, by which answers are kept."""

    def __init__(self) -> None:
        self._initialize = ""
        self._initialized = False
        self._lines = 0
        self._listed = False

    @property
    def lasts(self) -> bool:
        """Whether there may still be something to answer."""
        return not self._listed and self._lines < OPENING_LINES

    def request_name(self, request: Mapping[str, Any]) -> str:
        """Return a name for what is asked, the same at every start; "" for anything else."""
        self._lines += 1
        method, params = request.get("method"), request.get("params", {})
        if method == "initialize" and not self._initialize:
            self._initialize = _name(method, params)
            return self._initialize
        if method == "notifications/initialized":
            self._initialized = bool(self._initialize)
        elif method == "tools/list":
            self._listed = True
            name = _name(method, params)
            if not self._initialize or not name:
                return name
            return f"{name} after {self._initialize}" if self._initialized else ""
        elif not self._initialize and (
            method == "server/discover" or (method == LISTEN and _has_plain_filter(params))
        ):
            return _name(method, params)
        return ""


def _has_plain_filter(params: Mapping[str, Any]) -> bool:
    """Whether a client listens to whole kinds of changes: single resources differ between starts."""
    kinds = params.get("notifications")
    return isinstance(kinds, dict) and all(isinstance(one, bool) for one in kinds.values())


def _message(method: str, known: Id, kept: Any) -> dict[str, Any]:
    """Return what answers a request: its result, or the acknowledgement of a stream."""
    if method != LISTEN:
        return {"jsonrpc": "2.0", "id": known, "result": kept}
    params = {**kept, "_meta": {**kept.get("_meta", {}), _SUBSCRIPTION: known}}
    return {"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}


def acknowledgement(params: Mapping[str, Any]) -> tuple[Id | None, dict[str, Any]]:
    """Return the id of the request that an acknowledgement is for, and what is kept of it."""
    meta = dict(params.get("_meta") or {})
    known = meta.pop(_SUBSCRIPTION, None)
    return known if isinstance(known, int | str) else None, {**params, "_meta": meta}


def handshake_cache_file(flags: Mapping[str, Any]) -> Path | None:
    """Return where the answers of a server that is started like this are kept; None: nowhere.

    The name changes with everything that the answers depend on: program, arguments, settings,
    catalogs; the data folder is where the file lies, so it does not matter what names it.
    """
    try:
        folder = data_folder(flags)
        settings = config_path(flags)
        state = catalog_state(folder)
        text = settings.read_bytes().decode(errors="replace") if settings.exists() else ""
        sdk = importlib.util.find_spec("mcp")
        own = Path(toolsrv.__file__).parent / "mcp_server"
        changed = [one.stat().st_mtime_ns for one in os.scandir(own) if one.name.endswith(".py")]
        changed.append(Path(sdk.origin).stat().st_mtime_ns if sdk and sdk.origin else 0)
    except (ToolsrvError, OSError, ValueError):
        return None
    if state is None:
        return None
    variables = sorted(
        pair
        for pair in os.environ.items()
        if pair[0].startswith(PREFIX) and not pair[0].startswith(_LEFT_OUT)
    )
    about = (toolsrv.__version__, sys.version, max(changed), sys.argv[1:], variables, text, state)
    name = hashlib.sha256(repr(about).encode(errors="replace")).hexdigest()[:24]
    return folder / FOLDER / f"{name}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > FILE_LIMIT:
            return {}
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _request(line: str) -> dict[str, Any]:
    """Return a request or notification that is surely well-formed, else an empty one."""
    if len(line) > LINE_LIMIT:
        return {}
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    right = (
        isinstance(found, dict)
        and found.keys() <= {"jsonrpc", "id", "method", "params"}
        and found.get("jsonrpc") == "2.0"
        and isinstance(found.get("params", {}), dict)
        and isinstance(found.get("params", {}).get("_meta", {}), dict)
        and isinstance(found.get("id", 0), int | str)
        and not isinstance(found.get("id"), bool)
    )
    return found if right else {}


def _name(method: str, params: Mapping[str, Any]) -> str:
    """Return a name for a request that is the same whoever the client is, "" for a doubtful one."""
    meta = params.get("_meta", {})
    who = params.get("clientInfo", meta.get(_CLIENT, {"name": "", "version": ""}))
    able = params.get("capabilities", meta.get(_CAPABILITIES, {}))
    if not isinstance(able, dict) or not isinstance(who, dict):
        return ""
    if not isinstance(who.get("name"), str) or not isinstance(who.get("version"), str):
        return ""
    rest = {key: one for key, one in meta.items() if key not in _OF_CLIENT}
    asked = {key: one for key, one in params.items() if key not in _OF_CLIENT} | {"_meta": rest}
    extensions = able.get("extensions", {})
    if not isinstance(extensions, dict):
        return ""
    present = sorted((params.keys() | meta.keys()) & _OF_CLIENT - {"progressToken"})
    said = json.dumps([asked, present, sorted(extensions)], sort_keys=True)
    return f"{method} {hashlib.sha256(said.encode(errors='replace')).hexdigest()[:24]}"


def _write(out: int, text: str) -> None:
    rest = memoryview(text.encode(errors="replace"))
    with contextlib.suppress(OSError):  # the client is gone: the end of its lines says so
        while rest:
            rest = rest[os.write(out, rest) :]


def claim_stdin() -> Iterable[str]:
    """Return the lines of stdin, and leave an empty one to libraries and child processes.

    Bytes that are not UTF-8 become U+FFFD. A closed stdin has no lines.
    """
    try:
        private = os.dup(0)
    except OSError:
        return ()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return os.fdopen(private, encoding="utf-8-sig", errors="replace", newline="\n", closefd=False)


def claim_stdout() -> AsyncFile[str]:
    r"""Return stdout for the protocol alone: UTF-8, and a line ends in ``\n`` on Windows too.

    The SDK's own would end it in ``\r\n`` there. What libraries and child processes print goes to
    stderr from now on.
    """
    import anyio

    private = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
    if sys.platform == "win32":
        from mcp.os.win32.utilities import rebind_std_handle_to_fd

        with contextlib.suppress(OSError):
            rebind_std_handle_to_fd(1)
    return anyio.wrap_file(os.fdopen(private, "w", encoding="utf-8", newline="\n", closefd=False))
