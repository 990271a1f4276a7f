"""A process that writes and reads one data folder in forked children, which it kills when told.

``python fault_worker.py FOLDER`` answers each JSON line on stdin with one on stdout:
``write`` stores a version of a catalog and builds the index, ``check`` reads everything,
``room`` gives the tmpfs at FOLDER's parent another size. Everything heavy is imported once, so
that a child begins with the work itself.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.registry import Registry
from toolsrv_registry.search import recall

PER_TOOL = 22


def catalog(version: int, apis: int, name: str) -> Catalog:
    """Return a catalog whose texts all say its version."""
    tools = []
    for start in range(0, apis, PER_TOOL):
        tool = f"{name} {start // PER_TOOL}"
        tools.append(
            Tool(
                category="Tools",
                name=tool,
                apis=tuple(
                    Api(
                        id=f"Tools/{tool.replace(' ', '_')}/task_{n}",
                        category="Tools",
                        tool=tool,
                        name=f"task {n}",
                        description=f"does task {n} as of version{version}",
                    )
                    for n in range(start, min(start + PER_TOOL, apis))
                ),
            )
        )
    return Catalog(name=name, tools=tuple(tools))


def encoder() -> HashingEncoder:
    """Return the fake; few dimensions, for its speed."""
    return HashingEncoder(16)


def write(folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Store and build; ``file_limit`` is the largest file in bytes that may be written."""
    if "file_limit" in asked:
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["file_limit"], asked["file_limit"]))
    one = catalog(asked["version"], asked["apis"], asked.get("name", "made"))
    with Registry.open(folder, encoder=encoder()) as registry:
        changes = registry.store.put_catalog(one)
        status = registry.index.build() if asked.get("build", True) else None
    return {
        "changed": len(changes.added) + len(changes.changed),
        "state": status.state if status else "",
    }


def check(folder: Path) -> dict[str, Any]:
    """Open and read everything; nothing is built."""
    connection = sqlite3.connect(folder / STORE_FILE)
    whole = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    with Registry.open(folder, encoder=encoder()) as registry:
        apis = registry.store.apis()
        result = registry.retriever.search("does task 7") if apis else None
        return {
            "integrity": whole,
            "versions": sorted({api.description.rpartition("version")[2] for api in apis}),
            "apis": len(apis),
            "by_words": len(registry.store.names.match(["task"], 5)),
            "hits": len(result.hits) if result else 0,
            "measured": bool(result and result.hits and result.hits[0].dense_rank),
            "degraded": result.degraded if result else "",
            "state": registry.index.state(),
        }


def in_child(work: Callable[[], dict[str, Any]], kill_after: float | None) -> dict[str, Any]:
    """Run ``work`` in a fork; kill it after so many seconds. Adds ``killed`` and ``seconds``."""
    began = time.perf_counter()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            said = work()
        except ToolsrvError as error:
            said = {"error": error.message, "hint": error.hint, "kind": type(error).__name__}
        except BaseException as error:  # noqa: BLE001 - told to the test, which fails on it
            said = {"fault": repr(error)}
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    killed = not select.select([reading], [], [], kill_after)[0]
    if killed:
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        text = b"" if killed else pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found: dict[str, Any] = json.loads(text) if text else {}
    return found | {"killed": killed, "code": code, "seconds": time.perf_counter() - began}


def room(folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Give the tmpfs another size."""
    options = f"remount,size={asked['size']}"
    subprocess.run(["mount", "-o", options, str(folder.parent)], check=True)
    return {}


def main() -> None:
    """Answer until stdin ends."""
    folder = Path(sys.argv[1])
    importlib.import_module("chromadb")
    recall._BUILD_AT_ONCE = 0
    answer({})
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        match asked["do"]:
            case "room":
                answer(room(folder, asked))
            case "write":
                answer(in_child(partial(write, folder, asked), asked.get("kill_after")))
            case _:
                answer(in_child(partial(check, folder), None))


def answer(found: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
