"""SIGTERM and SIGHUP in the middle of work: what there is, 128 + the signal, nothing left behind."""

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
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.nightly)]
)
def test_a_signal_in_the_middle_of_a_decode_ends_a_solve(
    ready_dir: Path, slow_model: Path, number: signal.Signals
) -> None:
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
    process.send_signal(number)
    process.send_signal(number)  # as a closing terminal does
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 4  # one or two; more on a busy machine
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    said = json.loads(out)
    assert said.get("status") == "cancelled" or said.get("exit_code") == 128 + number
    assert "Ctrl-C" not in err


@pytest.mark.nightly
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.nightly)]
)
def test_a_conversion_or_benchmark_that_a_signal_ends_leaves_nothing(
    tmp_path: Path, slow_model: Path, number: signal.Signals
) -> None:
    """Each is ended when what it would leave is there: the file being made, the folder."""
    quantized, scratch = tmp_path / "small.gguf", tmp_path / "scratch"
    scratch.mkdir()
    for words, sign in (
        (["model", "quantize", str(slow_model), "--type", "Q4_K_M", "--out", str(quantized)],
         "small.gguf.partial"),
        (["bench", "engine", "--runs", "1", "--no-replay"], "scratch/toolsrv-bench-*"),
    ):  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "toolsrv", *words],
            env={**os.environ, "TMPDIR": str(scratch)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not list(tmp_path.glob(sign)):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 128 + number, err
        assert "Traceback" not in err
        assert not list(tmp_path.glob(sign))


def test_what_ignores_a_signal_goes_on_ignoring_it() -> None:
    """As under nohup, and behind a shell's &."""
    words = (
        "import signal\n"
        "from toolsrv.cli.interrupt import signals_as_ctrl_c\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "try:\n"
        "    with signals_as_ctrl_c():\n"
        "        signal.raise_signal(signal.SIGHUP)\n"
        "        print('on')\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        print('not reached')\n"
        "except KeyboardInterrupt as error:\n"
        "    print(error.number)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["on", str(int(signal.SIGTERM))]
