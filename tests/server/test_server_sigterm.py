"""SIGTERM in the middle of a decode: what there is, exit code 130, and no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolsrv_runtime.convert.checkpoint import convert
from toolsrv_runtime.convert.tiny import write_tiny_checkpoint


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a random model that needs seconds for one prompt."""
    folder = tmp_path_factory.mktemp("slow") / "llama"
    write_tiny_checkpoint(
        folder, hidden_size=1024, intermediate_size=4096, num_hidden_layers=10,
        num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=4096,
    )  # fmt: skip
    return Path(convert(folder, type="f16").path)


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_sigterm_in_the_middle_of_a_decode_ends_a_solve(ready_dir: Path, slow_model: Path) -> None:
    assert ready_dir.is_dir()
    words = ["solve", "capital of Peru", "--json", "--threads", "1", "--model", str(slow_model)]
    process = subprocess.Popen(
        [sys.executable, "-m", "toolsrv", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("candidates"):
        assert process.poll() is None
    begun = cpu_seconds(process.pid)
    while cpu_seconds(process.pid) < begun + 0.7:  # the prompt takes seconds: it is being read
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
        assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 4  # one or two; more on a busy machine
    assert process.returncode == 130
    assert "Traceback" not in err
    said = json.loads(out)
    assert said.get("status") == "cancelled" or said.get("exit_code") == 130
