"""Replay of the recorded tree by llama-cpp-python: ``create_completion``, and its HTTP server.

The server needs the extra ``llama-cpp-python[server]``.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from toolsrv_lab.bench.replay.tree import Recording, Step
from toolsrv_lab.bench.report import memory


class Forced:
    """A logits processor that leaves only the next recorded token."""

    def __init__(self, reply: Sequence[int]) -> None:
        self._rest: Iterator[int] = iter(reply)

    def __call__(self, ids: Any, scores: Any) -> Any:
        """Return scores, (vocabulary,), in which one token is possible."""
        del ids
        token = next(self._rest)
        kept = np.full_like(scores, -np.inf)
        kept[token] = 0.0
        return kept


class Counted:
    """Counts the library's decodes and their tokens, from now on, for this process."""

    def __init__(self) -> None:
        from llama_cpp import _internals  # noqa: PLC0415 - heavy

        self.tokens = self.steps = 0
        decode = _internals.LlamaContext.decode

        def counted(context: Any, batch: Any) -> Any:
            self.steps += 1
            self.tokens += batch.batch.n_tokens
            return decode(context, batch)

        setattr(_internals.LlamaContext, "decode", counted)  # noqa: B010 - typed as fixed


def without_amx() -> None:
    """Let the library load models as this project does: not for AMX, which can kill the process."""
    from llama_cpp import llama_cpp as low  # noqa: PLC0415 - heavy

    from toolsrv_runtime.engine.context import has_amx  # noqa: PLC0415 - heavy

    defaults = low.llama_model_default_params

    def params() -> Any:
        found = defaults()
        found.use_extra_bufts = not has_amx()
        return found

    low.llama_model_default_params = params


def complete(llama: Any, step: Step, *, fresh: bool) -> Any:
    """Write one step's reply."""
    if fresh:
        llama.reset()
        llama._ctx.kv_cache_clear()  # noqa: SLF001 - the library offers no other way
    return llama.create_completion(
        prompt=list(step.prompt),
        max_tokens=len(step.reply),
        temperature=0.0,
        logits_processor=[Forced(step.reply)],
    )


def replay(model: Path, recording: Recording, *, threads: int, fresh: bool) -> dict[str, float]:
    """Write the whole tree; return seconds (wall, processor), tokens and decodes."""
    import llama_cpp  # noqa: PLC0415 - heavy

    counted = Counted()
    without_amx()
    llama = llama_cpp.Llama(
        str(model),
        n_ctx=recording.context,
        n_threads=threads,
        n_threads_batch=threads,
        verbose=False,
    )
    began, cpu = time.perf_counter(), time.process_time()
    for step in recording.steps:
        complete(llama, step, fresh=fresh)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "tokens": counted.tokens, "steps": counted.steps}


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


def replay_served(model: Path, path: Path, *, threads: int) -> dict[str, float]:
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
