"""The recorded tree through llama-cpp-python's HTTP server (extra ``llama-cpp-python[server]``).

The server runs in this process's child, unchanged but for one thing: a request's ``seed`` is the
number of its step, whose recorded tokens are chosen for the model.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from toolsrv_lab.bench.machine import memory
from toolsrv_lab.bench.replay.plain import Counted, Forced, without_amx
from toolsrv_lab.bench.replay.tree import Recording

_START_S = 60.0
_STEP_S = 300.0


def serve(model: Path, path: Path, *, threads: int, port: int) -> None:
    """Run the server; ends when it is terminated."""
    import llama_cpp  # noqa: PLC0415 - heavy
    import uvicorn  # noqa: PLC0415
    from llama_cpp.server.app import create_app  # noqa: PLC0415
    from llama_cpp.server.settings import ModelSettings, ServerSettings  # noqa: PLC0415

    recording, counted = Recording.read(path), Counted()
    without_amx()
    create = llama_cpp.Llama.create_completion

    def scripted(self: Any, prompt: Any, *given: Any, **named: Any) -> Any:
        del prompt
        step = recording.steps[int(named["seed"])]
        named["logits_processor"] = [Forced(step.reply)]
        return create(self, list(step.prompt), *given, **named)

    for name in ("create_completion", "__call__"):
        setattr(llama_cpp.Llama, name, scripted)
    app = create_app(
        server_settings=ServerSettings(host="127.0.0.1", port=port),
        model_settings=[
            ModelSettings(
                model=str(model),
                n_ctx=recording.context,
                n_threads=threads,
                n_threads_batch=threads,
                verbose=False,
            )
        ],
    )

    async def counts() -> dict[str, float]:
        return {
            "tokens": counted.tokens,
            "steps": counted.steps,
            "cpu": time.process_time(),
        }

    app.get("/counts")(counts)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def replay(model: Path, path: Path, *, threads: int) -> dict[str, float]:
    """Start the server, write the whole tree through it; seconds leave out its start."""
    recording = Recording.read(path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "toolsrv_lab.bench.replay.process"]
    server = subprocess.Popen(  # noqa: S603 - this interpreter, our arguments
        [*command, "serve", str(model), str(path), str(threads), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=_STEP_S) as client:
            _wait(client, server)
            idle = client.get("/counts").json()["cpu"]
            began = time.perf_counter()
            for number, step in enumerate(recording.steps):
                body = {
                    "prompt": step.text,
                    "max_tokens": len(step.reply),
                    "temperature": 0.0,
                    "seed": number,
                }
                client.post("/v1/completions", json=body).raise_for_status()
            seconds = time.perf_counter() - began
            counts: dict[str, float] = client.get("/counts").json()
        peak = memory(server.pid).peak or 0.0
        return counts | {"seconds": seconds, "cpu": counts["cpu"] - idle, "peak": peak}
    finally:
        server.terminate()
        server.wait(30)


def _wait(client: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if server.poll() is not None:
            said = server.stderr.read().decode(errors="replace") if server.stderr else ""
            raise RuntimeError(said.strip().splitlines()[-1] if said.strip() else "it ended")
        try:
            client.get("/counts").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(json.dumps({"not ready after": _START_S}))
