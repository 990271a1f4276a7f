"""What a batch of rows is to predict, and where it may look, as tensors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from toolsrv_lab.extras import load
from toolsrv_lab.nano.options import TrainingOptions
from toolsrv_lab.nano.rows import Numbers

# Where a mask forbids.
_NEVER = -1e4
# Logits are computed for a multiple of so many positions: each other shape is compiled anew.
_ROOM = 1024


class Targets(NamedTuple):
    """Tensors of a batch.

    ``ids`` and ``places`` (batch, length); ``mask`` (batch, 1, length, length), added to scores;
    ``wanted``, the flat indices of the positions that predict, padded; ``aims`` and ``weights``,
    what the unpadded ones are to predict and how much that counts.
    """

    ids: Any
    places: Any
    mask: Any
    wanted: Any
    aims: Any
    weights: Any


def targets(rows: Numbers, weights: Any, options: TrainingOptions, *, second: bool) -> Targets:
    """Return the targets of rows (batch, 5, length); ``weights`` are those of each token's aim.

    With ``second`` the second aims count too. All lie on the device of ``weights``.
    """
    torch, device = load("torch"), weights.device
    data = torch.from_numpy(rows.astype(np.int64)).to(device)
    ids, first, places, owner, later = data.unbind(1)
    length = ids.shape[1]
    seen = (owner[:, None] == 0) | (owner[:, None] == owner[:, :, None])
    seen &= torch.ones(length, length, dtype=torch.bool, device=device).tril()
    mask = torch.zeros(seen.shape, dtype=torch.bfloat16, device=device)
    mask = mask.masked_fill_(~seen, _NEVER)[:, None]
    aims, counts = first.flatten(), weights[first.flatten().clamp(min=0)]
    if second:
        extra = (aims < 0) & (later.flatten() >= 0)
        aims = torch.where(extra, later.flatten(), aims)
        of_task = owner.flatten() > 0
        counts = torch.where(
            extra, torch.where(of_task, options.clause_aim, options.line_aim), counts
        )
    wanted = (aims >= 0).nonzero()[:, 0]
    room = math.ceil(len(wanted) / _ROOM) * _ROOM
    padded = torch.nn.functional.pad(wanted, (0, room - len(wanted)))
    return Targets(ids, places, mask, padded, aims[wanted], counts[wanted])
