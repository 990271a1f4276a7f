"""Memory that runs short: what is sound stays, and what failed is told as what it is."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.host_resources import is_memory_error
from toolsrv_registry.index.chroma import DATABASE
from toolsrv_registry.registry import Registry

# A process that may take so many bytes more, with chromadb imported and its core not yet.
SHORT = """
import resource, sys
from pathlib import Path
import chromadb
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_registry.registry import Registry

registry = Registry.open(Path(sys.argv[1]), encoder=HashingEncoder())
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + int(sys.argv[2]),) * 2)
try:
    registry.index.build()
except (DataError, MemoryError) as error:
    print(type(error).__name__)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("spare", [100_000, 20_000_000, 200_000_000])
def test_a_sound_index_outlives_a_build_without_memory(tmp_path: Path, spare: int) -> None:
    catalog = load_offline_catalog()
    with Registry.open(tmp_path, [catalog], encoder=HashingEncoder()) as registry:
        collection = registry.ensure_index().collection
    done = subprocess.run(
        [sys.executable, "-c", SHORT, str(tmp_path), str(spare)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "building it anew" not in done.stderr
    assert (tmp_path / "chroma" / DATABASE).is_file()
    with Registry.open(tmp_path, encoder=HashingEncoder()) as registry:
        assert registry.ensure_index().collection == collection
        assert registry.index.build().collection == collection


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (RuntimeError("can't start new thread"), True),
        (ImportError("x.so: failed to map segment from shared object"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("no such table: collections"), False),
        (OSError(errno.ENOSPC, "No space left on device"), False),
    ],
)
def test_a_failure_for_want_of_memory_is_known_by_itself_and_by_its_cause(
    error: Exception, short: bool
) -> None:
    assert is_memory_error(error) is short
    outer = ValueError("it failed")
    outer.__cause__ = error
    assert is_memory_error(outer) is short
