"""Ctrl-C while something holds the event loop up, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

# The loop is never free: what ends this process is the timer of the first Ctrl-C. A second one,
# with the timer put far off in between, shows whether it begins anew.
HELD_UP = """
import asyncio, os, signal
from toolsrv.cli.interrupt import stoppable

async def work():
    os.kill(os.getpid(), signal.SIGINT)
    first = signal.getitimer(signal.ITIMER_REAL)[0]
    signal.setitimer(signal.ITIMER_REAL, 1000.0)
    os.kill(os.getpid(), signal.SIGINT)
    second = signal.getitimer(signal.ITIMER_REAL)[0]
    print(0 < first < 100 < second, flush=True)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        signal.pause()

asyncio.run(stoppable(work(), ask=lambda _: None, at_once=lambda: print("at once", flush=True)))
"""


def test_pressing_ctrl_c_again_and_again_does_not_put_the_end_off() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELD_UP], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["True", "at once"]
    assert (done.returncode, done.stderr) == (130, "")
