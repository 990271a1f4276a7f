"""What this machine can run: cores, memory, GPU, disk, and the model that this suggests."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from toolsrv_runtime.footprint import told
from toolsrv_runtime.hub.recommended import Recommended, recommended

GB = 1_000_000_000
_CORE_GB = 4
"""GB of memory of a recommended model that one core without a GPU reads fast enough."""


@dataclass(frozen=True)
class Power:
    """Cores of the processor, free bytes of memory, of the GPUs' memory and of the disk."""

    cores: int
    memory: int
    gpu: str
    gpu_memory: int
    disk: int

    @property
    def room(self) -> int:
        """The most that a model may take: of the GPU where there is one, else of the memory."""
        return max(self.memory, self.gpu_memory)

    @property
    def words(self) -> str:
        """It in one line."""
        gpu = f"{self.gpu} ({told(self.gpu_memory)} free)" if self.gpu else "no GPU in use"
        return (
            f"{self.cores} cores, {told(self.memory)} of memory free, {gpu}, "
            f"{told(self.disk)} of disk free"
        )

    def suggested(self) -> Recommended | None:
        """Return the largest recommended model that fits, None where the least does not."""
        fitting = [
            one
            for one in recommended()
            if one.file
            and one.memory_gb * GB <= self.room
            and (self.gpu or one.memory_gb <= _CORE_GB * self.cores)
        ]
        return fitting[-1] if fitting else None


def power(folder: Path) -> Power:
    """Return what this machine has; ``folder`` says which disk. Loads llama.cpp for its GPUs."""
    from toolsrv_runtime.engine.devices import devices
    from toolsrv_runtime.machine import available_memory, physical_cores

    gpus = [one for one in devices() if one.kind in ("gpu", "igpu")]
    place = next(one for one in (folder, *folder.parents) if one.exists())
    return Power(
        cores=physical_cores(),
        memory=available_memory() or 0,
        gpu=", ".join(one.description or one.name for one in gpus),
        gpu_memory=sum(one.free for one in gpus),
        disk=shutil.disk_usage(place).free,
    )
