"""Freed memory that is kept: the C library hears it, and pages are not faulted in again."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import platform, resource, sys
from toolsrv_lab.training_runs import keep_freed_memory
heard = sys.argv[1] == "keep" and keep_freed_memory()
import numpy as np  # blocks beyond 32 MiB: below that glibc learns by itself
for _ in range(3):
    np.ones(40 << 20, np.uint8)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(40 << 20, np.uint8)
print(platform.libc_ver()[0], heard, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_large_blocks_are_not_asked_for_again() -> None:
    told = {}
    for way in ("keep", "leave"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, way], check=True, capture_output=True, text=True
        )
        told[way] = done.stdout.split()
    if told["keep"][0] != "glibc":
        pytest.skip("only glibc can be told")
    assert told["keep"][1] == "True"
    assert int(told["keep"][2]) < 0.2 * int(told["leave"][2])
