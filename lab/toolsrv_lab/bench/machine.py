"""What the figures depend on: the machine, the versions, and a process's memory.

Reads Linux's ``/proc``; elsewhere what cannot be known is "unknown" or None. Measures no time.
"""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict

from toolsrv_registry.process import usable_cores

_PACKAGES = (
    "toolsrv",
    "mcp",
    "llama-cpp-python",
    "llguidance",
    "chromadb",
    "onnxruntime",
    "tokenizers",
)


class Memory(BaseModel):
    """A process's resident memory in MiB, now and at its peak; None where it cannot be known."""

    model_config = ConfigDict(frozen=True)

    resident: float | None = None
    peak: float | None = None


def memory(pid: int) -> Memory:
    """Return the resident memory of a process of ours."""
    lines = _lines(Path(f"/proc/{pid}/status"))
    return Memory(resident=_mebibytes(lines, "VmRSS"), peak=_mebibytes(lines, "VmHWM"))


def machine() -> dict[str, str | int | float]:
    """Return processor, usable cores, system and Python, and how busy the machine is already."""
    return {
        "cpu": _processor(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "load": _load(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the packages that the figures depend on."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _mebibytes(lines: list[str], key: str) -> float | None:
    for line in lines:
        name, _, rest = line.partition(":")
        if name == key and rest.split():
            return int(rest.split()[0]) / 1024
    return None


def _processor() -> str:
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, rest = line.partition(":")
        if name.strip() == "model name":
            return " ".join(rest.split())
    return platform.processor() or "unknown"


def _load() -> float | str:
    try:
        return round(float(psutil.getloadavg()[0]), 2)
    except OSError:
        return "unknown"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
