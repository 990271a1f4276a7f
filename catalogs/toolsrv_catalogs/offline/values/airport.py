"""Airports by their IATA codes. Library: airportsdata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import airportsdata

from toolsrv_catalogs.offline.values.once import once

Airport = Mapping[str, Any]


@once
def airports() -> Mapping[str, Airport]:
    """Return IATA code -> the airport's row, read once."""
    return airportsdata.load("IATA")
