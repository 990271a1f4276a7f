"""``python -m contrastive``: the training on a machine that has nothing of toolsrv.

    python -m contrastive --data DIR --out RUN --seconds 270

``DIR`` is what ``toolsrv lab export pairs`` wrote. ``toolsrv lab export retriever RUN`` takes what
this leaves in ``RUN``, whose weights lie in pieces of at most 15 MiB.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from .files import read_pairs, read_weights, write_run
from .network import torch
from .options import Options
from .training import train

_EVERY_STEPS = 50
_FIRST_STEPS = 5


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and write the run; ``arguments`` None are the process's own."""
    fast = torch.cuda.is_available()
    preset = Options.for_device(fast=fast)
    parser = argparse.ArgumentParser(
        prog="contrastive", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, help="end after so many")
    parser.add_argument("--seconds", type=float, help="end after so many; with --steps the first")
    parser.add_argument("--batch-size", type=int, default=preset.batch_size)
    parser.add_argument("--learning-rate", type=float, default=preset.learning_rate)
    parser.add_argument("--seed", type=int, default=preset.seed)
    given = vars(parser.parse_args(arguments))
    data, out = given.pop("data"), given.pop("out")
    if not (given["steps"] or given["seconds"]):
        parser.error("give --steps, --seconds or both")
    options = Options(**given)
    pairs, base = read_pairs(data), read_weights(data)
    begun = time.monotonic()

    def show(step: int, _: float, loss: float) -> None:
        if step % _EVERY_STEPS == 0 or step <= _FIRST_STEPS:
            print(f"step {step}, {time.monotonic() - begun:.0f} s, loss {loss:.4f}", flush=True)

    trained = train(pairs, base, options, "cuda" if fast else "cpu", progress=show)
    write_run(out, trained)
    print(f"{trained.about['steps']} steps, loss {trained.about['loss']:.4f}: {out}", flush=True)


if __name__ == "__main__":
    main()
