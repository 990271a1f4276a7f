"""Trains the matcher beside what ``toolsrv lab export samples`` wrote: torch and numpy, no toolsrv.

    python -m trainer --out RUN --seconds 300

Reads ``rows.npz`` and ``start.npz`` in ``--data``, the folder that this package is in unless given.
RUN is then a finished training, which ``toolsrv lab export matcher RUN`` takes; started again after
a stop it goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from .loop import Run, torch
from .network import Network
from .options import Options, options_of
from .rows import Rows

_SAVE_SECONDS = 100.0
_TELL_STEPS = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says and return the exit status."""
    given = _parsed(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out: Path = given.out
    out.mkdir(parents=True, exist_ok=True)
    options = options_of(**{one.name: getattr(given, one.name) for one in fields(Options)})
    rows = Rows(given.data / "rows.npz")
    with np.load(given.data / "start.npz", allow_pickle=False) as file:
        start = {name: file[name] for name in file.files}
    about = json.loads(str(start.pop("about")))
    heads = int(start.pop("attention_heads"))
    state = {name: torch.from_numpy(one) for name, one in start.items()}
    torch.manual_seed(options.seed)
    run = Run(rows, Network(state, heads, device), options, device)
    settings = json.dumps([asdict(options), rows.made_of, about])
    keeper = _Keeper(out / "checkpoint.pt", settings, run)
    keeper.resume(device)
    run.train(_tell, keeper.saved)
    keeper.write({name: one.detach().cpu() for name, one in run.network.state.items()},
                 out / "matcher.pt")  # fmt: skip
    told = {
        **about, "options": asdict(options), "steps": run.step, "loss": run.loss,
        "tokens": run.tokens, "seconds": round(run.seconds), "samples": len(rows),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }  # fmt: skip
    (out / "training.json").write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    return 0


class _Keeper:
    """Writes a run's checkpoint now and then: whole or not at all."""

    def __init__(self, path: Path, settings: str, run: Run) -> None:
        self._path, self._settings, self._run = path, settings, run
        self._last = time.monotonic()

    def resume(self, device: str) -> None:
        """Go on from the checkpoint if there is one. Exits where it is of another run."""
        if not self._path.exists():
            return
        state = torch.load(self._path, map_location=device, weights_only=True)
        if state["settings"] != self._settings:
            sys.exit(f"{self._path} is of a run with other settings: choose another --out")
        self._run.resume(state)

    def saved(self) -> None:
        """Write a checkpoint where the last is old."""
        if time.monotonic() - self._last > _SAVE_SECONDS:
            self.write({**self._run.state(), "settings": self._settings}, self._path)
            self._last = time.monotonic()

    def write(self, what: dict[str, Any], path: Path) -> None:
        """Write a file of torch's."""
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("wb") as file:
            torch.save(what, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer", description="Train the matcher.")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--out", type=Path, required=True)
    for one in fields(Options):
        kind = int if one.name in ("steps", "groups", "others", "warmup", "seed") else float
        parser.add_argument(f"--{one.name.replace('_', '-')}", type=kind)
    return parser.parse_args(arguments)


def _tell(done: int, total: int, loss: float, tokens: int) -> None:
    if done % _TELL_STEPS == 0 or done in (1, total):
        sys.stderr.write(f"{done} of {total} steps, loss {loss:.4f}, {tokens / 1e6:.1f} M tokens\n")


if __name__ == "__main__":
    sys.exit(main())
