"""What holds for the tests of every room."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does, and proves nothing.
settings.register_profile("toolsrv", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("toolsrv")
