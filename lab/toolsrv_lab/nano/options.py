"""How a small model is trained from nothing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TrainingOptions(BaseModel):
    """How a network is trained. ``decay`` is the share of the steps in which the rate falls."""

    model_config = ConfigDict(frozen=True)

    steps: int = 4_000
    rows: int = 8
    matrix_rate: float = 0.02
    other_rate: float = 3e-3
    matrix_decay: float = 0.02
    warmup: int = 60
    decay: float = 0.45
    choice_weight: float = 4.0
    end_weight: float = 2.0
    clause_aim: float = 1.0
    line_aim: float = 0.2
    validate_every: int = 200
    seed: int = 0
