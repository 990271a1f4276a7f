"""A BERT sentence encoder as functions of its weights, in full or as its int8 export rounds them.

The sums are those of transformers' BERT with mean pooling and L2-normalised vectors, without dropout.
Rounding is that of onnxruntime's dynamic quantisation as the export asks for it; gradients pass straight
through. Names of weights are those of the checkpoint.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

torch: Any = importlib.import_module("torch")  # types are checked where there is none, too
functional: Any = torch.nn.functional
checkpointed: Any = importlib.import_module("torch.utils.checkpoint").checkpoint
Tensor: TypeAlias = Any
Weights: TypeAlias = dict[str, Tensor]

LENGTH_STEP = 16
"""Padded lengths are multiples of it: each new shape costs a CPU a fresh set of kernels."""
_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_EPSILON = 1e-12
_FAR = -30_000.0
_ROUNDED = ("joined.weight", "out.weight", "up.weight", "down.weight")


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a network is."""

    width: int
    heads: int
    layers: int
    positions: int

    @classmethod
    def of(cls, tensors: Weights, heads: int) -> Shape:
        """Return the shape that weights have."""
        layers = {int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer.")}
        positions, width = tensors[_POSITIONS].shape
        return cls(int(width), heads, len(layers), int(positions))


def rounded_rows(weight: Tensor) -> Tensor:
    """Return a matrix as the export holds it: whole numbers from -64 to 64, a scale a row."""
    with torch.no_grad():
        scale = (weight.abs().amax(1, keepdim=True) / 64).clamp_min(1e-12)
        away = (weight / scale).round().clamp(-64, 64) * scale - weight
    return weight + away


def rounded_table(weight: Tensor) -> Tensor:
    """Return the table of words as the export holds it: 0 to 255, one scale and zero for all."""
    with torch.no_grad():
        low, high = weight.amin().clamp(max=0), weight.amax().clamp(min=0)
        scale = ((high - low) / 255).clamp_min(1e-12)
        zero = (-low / scale).round()
        away = (((weight / scale).round() + zero).clamp(0, 255) - zero) * scale - weight
    return weight + away


class Network:
    """The masters in float32 and the vectors that they give."""

    def __init__(self, tensors: Weights, shape: Shape, device: str) -> None:
        self.shape = shape
        self.masters: Weights = {
            name: one.to(device, torch.float32, copy=True).requires_grad_()
            for name, one in tensors.items()
            if one.is_floating_point() and not name.startswith("pooler")
        }
        self._fast = device != "cpu"

    def working(self, *, quantised: bool) -> Weights:
        """Return the weights of one step in bfloat16, cast once for all its texts."""
        table = self.masters[_WORDS]
        made = {"table": rounded_table(table) if quantised else table}
        for layer in range(self.shape.layers):
            for name, one in self._layer(layer):
                rounded = rounded_rows(one) if quantised and name.endswith(_ROUNDED) else one
                made[name] = rounded.to(torch.bfloat16)
        return made

    def encode(self, ids: Tensor, lengths: Tensor, working: Weights) -> Tensor:
        """Return the unit vectors (rows, width) in float32 of padded ids (rows, tokens)."""
        inside = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
        mask = torch.zeros(inside.shape, dtype=torch.bfloat16, device=ids.device)
        mask = mask.masked_fill_(~inside, _FAR)[:, None, None, :]
        hidden = self._embedded(ids, working)
        for layer in range(self.shape.layers):
            hidden = self._block(hidden, mask, working, f"{layer}.")
        mean = (hidden * inside[:, :, None]).sum(1, dtype=torch.float32)
        return functional.normalize(mean, dim=1)

    def _layer(self, layer: int) -> Iterator[tuple[str, Tensor]]:
        place = f"encoder.layer.{layer}."
        attention = f"{place}attention.self."
        for part in ("weight", "bias"):
            three = [self.masters[f"{attention}{one}.{part}"] for one in ("query", "key", "value")]
            yield f"{layer}.joined.{part}", torch.cat(three)
            for name, given in (
                ("out", "attention.output.dense"),
                ("norm", "attention.output.LayerNorm"),
                ("up", "intermediate.dense"),
                ("down", "output.dense"),
                ("last", "output.LayerNorm"),
            ):
                yield f"{layer}.{name}.{part}", self.masters[f"{place}{given}.{part}"]

    def _embedded(self, ids: Tensor, working: Weights) -> Tensor:
        masters = self.masters
        hidden = functional.embedding(ids, working["table"], padding_idx=0)
        typed = masters["embeddings.token_type_embeddings.weight"][0]
        hidden = hidden + (typed + masters[_POSITIONS][: ids.shape[1]])
        scale, shift = (masters[f"embeddings.LayerNorm.{part}"] for part in ("weight", "bias"))
        hidden = functional.layer_norm(hidden, (self.shape.width,), scale, shift, _EPSILON)
        return hidden.to(torch.bfloat16)

    def _block(self, hidden: Tensor, mask: Tensor, working: Weights, place: str) -> Tensor:
        def of(name: str) -> tuple[Tensor, Tensor]:
            return working[f"{place}{name}.weight"], working[f"{place}{name}.bias"]

        def norm(value: Tensor, name: str) -> Tensor:
            return functional.layer_norm(value, (self.shape.width,), *of(name), _EPSILON)

        rows, tokens, width = hidden.shape
        heads = self.shape.heads
        split = functional.linear(hidden, *of("joined")).view(
            rows, tokens, 3, heads, width // heads
        )
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        seen = self._attend()(query, key, value, mask).transpose(1, 2).reshape(hidden.shape)
        hidden = norm(hidden + functional.linear(seen, *of("out")), "norm")
        inner = (hidden, *of("up"), *of("down"))
        if self._fast and torch.is_grad_enabled():
            # The inner states are most of the memory and cheap to make again.
            grown = checkpointed(_feed, *inner, use_reentrant=False, preserve_rng_state=False)
        else:
            grown = _feed(*inner)
        return norm(hidden + grown, "last")

    def _attend(self) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
        """Return an attention: the fused one has a slow backward pass on a CPU."""
        return functional.scaled_dot_product_attention if self._fast else _attended


def _attended(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + mask
    return torch.softmax(scores, -1) @ value


def _feed(hidden: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor) -> Tensor:
    inner = functional.gelu(functional.linear(hidden, up, up_bias))
    return functional.linear(inner, down, down_bias)
