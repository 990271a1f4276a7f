"""One offline application for the whole folder: its libraries load only once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolsrv_catalogs.offline.testing import OfflineClient


@pytest.fixture(scope="session")
def offline() -> Iterator[OfflineClient]:
    with OfflineClient() as client:
        yield client
