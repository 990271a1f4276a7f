"""Network: a small LLaMA with tied embeddings that trains on two cores; training options."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.extras import load
from toolsrv_registry.errors import UsageError


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


class Shape(BaseModel):
    """The sizes of a network. ``context`` is in tokens."""

    model_config = ConfigDict(frozen=True)

    vocabulary: int = 8192
    width: int = 256
    layers: int = 6
    heads: int = 4
    inner: int = 704
    context: int = 4096
    rope_base: float = 10_000.0
    epsilon: float = 1e-5

    @property
    def parameters(self) -> int:
        """The number of weights."""
        block = 4 * self.width**2 + 3 * self.width * self.inner + 2 * self.width
        return self.vocabulary * self.width + self.layers * block + self.width


def check_shape(shape: Shape) -> None:
    """Raise UsageError for sizes that fit no network that llama.cpp can run."""
    if shape.width % (2 * shape.heads):
        raise UsageError(
            f"a width of {shape.width} cannot be shared by {shape.heads} heads",
            hint="make --width a multiple of twice --heads",
        )
    if shape.width % 32 or shape.inner % 32:
        raise UsageError(
            f"a width of {shape.width} or an inner one of {shape.inner} cannot be quantised",
            hint="make --width and --inner multiples of 32",
        )


def make_network(shape: Shape) -> Any:
    """Return a fresh network: a torch module; see ``check_shape`` for what it cannot be.

    ``forward(ids, places, mask, wanted)`` takes ids and positions (batch, length), an additive
    mask (batch, 1, length, length) and the flat indices of the positions whose logits are wanted;
    it returns logits (wanted, vocabulary).
    """
    check_shape(shape)
    torch = load("torch")
    functional = torch.nn.functional
    size = shape.width // shape.heads

    class Norm(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(shape.width))

        def forward(self, x: Any) -> Any:
            return functional.rms_norm(x, (shape.width,), self.weight.to(x.dtype), shape.epsilon)

    class Block(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            width, inner = shape.width, shape.inner
            self.before_attention, self.before_inner = Norm(), Norm()
            self.query_key_value = torch.nn.Linear(width, 3 * width, bias=False)
            self.out = torch.nn.Linear(width, width, bias=False)
            self.gate_up = torch.nn.Linear(width, 2 * inner, bias=False)
            self.down = torch.nn.Linear(inner, width, bias=False)
            # Each block adds to the stream: the more of them, the less each at the start.
            depth = 1 / math.sqrt(2 * shape.layers)
            for layer, gain in (
                (self.query_key_value, 1.0), (self.out, depth),
                (self.gate_up, 1.0), (self.down, depth),
            ):  # fmt: skip
                torch.nn.init.normal_(layer.weight, std=gain / math.sqrt(layer.in_features))

        def forward(self, x: Any, cos: Any, sin: Any, mask: Any) -> Any:
            batch, length, width = x.shape
            joined = self.query_key_value(self.before_attention(x))
            query, key, value = joined.view(batch, length, 3, shape.heads, size).permute(
                2, 0, 3, 1, 4
            )
            query, key = _rotated(query, cos, sin), _rotated(key, cos, sin)
            weights = torch.softmax(query * size**-0.5 @ key.transpose(-1, -2) + mask, -1)
            x = x + self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))
            gate, up = self.gate_up(self.before_inner(x)).chunk(2, -1)
            return x + self.down(functional.silu(gate) * up)

    def _rotated(x: Any, cos: Any, sin: Any) -> Any:
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    class Network(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(shape.vocabulary, shape.width)
            torch.nn.init.normal_(self.embedding.weight, std=0.05)
            self.blocks = torch.nn.ModuleList(Block() for _ in range(shape.layers))
            self.last = Norm()
            rates = shape.rope_base ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
            self.register_buffer("rates", rates, persistent=False)

        def forward(self, ids: Any, places: Any, mask: Any, wanted: Any) -> Any:
            x = self.embedding(ids).to(mask.dtype)
            angles = places[..., None].float() * self.rates
            cos, sin = angles.cos()[:, None].to(x.dtype), angles.sin()[:, None].to(x.dtype)
            for block in self.blocks:
                x = block(x, cos, sin, mask)
            x = self.last(x).flatten(0, 1)[wanted]
            return functional.linear(x, self.embedding.weight.to(x.dtype))

    return Network()
