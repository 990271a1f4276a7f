"""How the encoder is trained. Knows nothing about torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How the encoder is trained.

    A run ends after ``steps`` or ``seconds``, whichever is first; at least one is given. Rates, the
    quantised end and ``seconds`` follow the share of that budget that is spent.
    """

    steps: int | None = None
    seconds: float | None = None
    batch_size: int = 1024
    learning_rate: float = 1.2e-4
    seed: int = 0
    warmup: int = 80
    """Steps in which the rate rises."""
    decay: float = 0.6
    """Last share of the budget, in which it falls to nothing."""
    weight_decay: float = 0.01
    scale: float = 25.0
    """Inverse temperature of the cosines."""
    backward: float = 0.5
    """Weight of finding the text for a document beside finding the document for a text."""
    negatives: int = 3
    """Mined documents of a text in a batch."""
    mine_every: int = 400
    """Steps between two minings."""
    whole: float = 0.25
    """Share of the texts of several needs that an epoch meets whole as well."""
    same: float = 0.95
    """Cosine under the base from which documents of two groups count as one."""
    quantised_from: float = 0.7
    """Share of the budget from which the weights are rounded as the export rounds them."""

    @classmethod
    def for_device(cls, *, fast: bool, **given: float | None) -> Options:
        """Return the options for a GPU (``fast``) or processors, with what is ``given`` set."""
        small = {} if fast else {"batch_size": 128, "learning_rate": 8e-5}
        return cls(**{**small, **given})  # type: ignore[arg-type]
