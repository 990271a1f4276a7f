"""Shared by the runtime's tests: the shipped model, loaded once, and the offline catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.models import load_engine
from toolsrv_runtime.profile import Profile

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def loaded() -> Iterator[tuple[Engine, Profile]]:
    engine, profile = load_engine(threads=2)
    yield engine, profile
    engine.close()


@pytest.fixture(scope="session")
def engine(loaded: tuple[Engine, Profile]) -> Engine:
    return loaded[0]


@pytest.fixture(scope="session")
def apis() -> dict[str, Api]:
    return {api.id: api for api in load_offline_catalog().apis}


@pytest.fixture(scope="session")
def tiny_llama() -> Path:
    path = SHARED / "models" / "llama-2-tiny-random.gguf"
    if not path.exists():
        pytest.skip("needs the tiny LLaMA of the shared data")
    return path
