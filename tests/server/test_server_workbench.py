"""The workbench lets go of what it opened, of models too, and opens it again."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.profiles import Profile

pytestmark = pytest.mark.anyio
PROFILE = Profile(name="toolllama-2", format="toolllama", context=8192)


class Lent(ScriptedEngine):
    """A model that says when it is closed, and takes as long as its last call takes."""

    def __init__(self) -> None:
        super().__init__([""])
        self.closing = threading.Event()
        self.last_call_ended = threading.Event()
        self.closed = 0

    def close(self) -> None:
        """Wait for the last call."""
        self.closing.set()
        self.last_call_ended.wait()
        self.closed += 1


async def test_the_model_that_ships_is_closed_and_loaded_again(data_dir: Path) -> None:
    bench = Workbench(load({"data_dir": str(data_dir)}).settings)
    engine, _ = bench.engine()
    assert engine.count((Piece("Lima"),)) > 0
    await bench.aclose()
    with pytest.raises(ModelError):
        engine.count((Piece("Lima"),))
    again, _ = bench.engine()
    assert again is not engine
    assert again.count((Piece("Lima"),)) > 0
    await bench.aclose()
    await bench.aclose()


async def test_the_loop_runs_on_while_the_last_call_of_a_model_is_waited_for(
    data_dir: Path,
) -> None:
    engine = Lent()
    settings = load({"data_dir": str(data_dir)}).settings
    bench = Workbench(settings, load_engine=lambda: (engine, PROFILE))
    bench.model()
    closing = asyncio.ensure_future(bench.aclose())
    assert await asyncio.to_thread(engine.closing.wait, 30)
    assert not closing.done()
    engine.last_call_ended.set()
    await closing
    assert engine.closed == 1


async def test_a_model_that_simulates_is_closed_too(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Lent()
    engine.last_call_ended.set()
    monkeypatch.setattr("toolsrv.workbench.load_simulator", lambda _: (engine, PROFILE))
    given = {"simulate": "another.gguf"}
    bench = Workbench(load({"data_dir": str(data_dir), **given}).settings)
    bench._simulator.get()
    await bench.aclose()
    assert engine.closed == 1
