"""The matcher's network over rows that lie flat, with its weights as int8 will have them if asked.

The weights' names are those of ``toolsrv_lab.matching.network``, which a training begins and ends
with. Word and place embeddings are not trained: words mean what they meant.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from .rows import Part

torch: Any = importlib.import_module("torch")  # types are checked where there is none, too
functional: Any = torch.nn.functional
Tensor: TypeAlias = Any

HEADS = ("serves_in", "serves_out", "wanted", "given")
_EMBEDDINGS = "encoder.embeddings."
_WORDS, _PLACES, _KINDS = (
    f"{_EMBEDDINGS}{name}_embeddings.weight" for name in ("word", "position", "token_type")
)
_FIXED = (_WORDS, _PLACES)
_EPSILON = 1e-12
_STEPS = 64
"""Steps of a weight to each side: the export leaves one bit of the eight unused."""


class Network:
    """The weights of a matcher by name, and what it makes of a batch.

    ``state`` is a matcher's whole state; ``attention_heads`` is not to be seen in it.
    """

    def __init__(self, state: Mapping[str, Tensor], attention_heads: int, device: str) -> None:
        self.state = {name: one.detach().to(device).clone() for name, one in state.items()}
        self._attention_heads = attention_heads
        self._width = int(self.state[_WORDS].shape[1])
        self._pointer = int(self.state["wanted.weight"].shape[0]) // 2
        layers = [f"encoder.encoder.layer.{number}." for number in range(len(state))]
        self._layers = [one for one in layers if f"{one}output.dense.weight" in state]
        self.trained = [name for name in self.state if self._is_trained(name)]
        for name in self.trained:
            self.state[name].requires_grad_()

    def _is_trained(self, name: str) -> bool:
        return (
            name not in _FIXED
            and ".pooler." not in name
            and bool(self.state[name].is_floating_point())
        )

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over the trained weights of a checkpoint."""
        with torch.no_grad():
            for name in self.trained:
                self.state[name].copy_(state[name])

    def __call__(
        self, batch: Mapping[str, Tensor], parts: Sequence[Part], *, quantised: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what serves (rows,), and firsts and lasts (rows with aims, markers, tokens).

        All as logits; the last two are None for a batch without aims.
        """
        w = self._quantised() if quantised else self.state
        hidden = self._hidden(w, batch, parts)
        first = torch.tanh(_line(w, hidden.index_select(0, batch["starts"]), "serves_in"))
        serves = _line(w, first, "serves_out")[:, 0].float()
        if "given" not in batch:
            return serves, None, None
        given = _line(w, hidden.index_select(0, batch["given"].flatten()), "given")
        wanted = _line(w, hidden.index_select(0, batch["markers"].flatten()), "wanted")
        given = given.view(*batch["given"].shape, -1).split(self._pointer, -1)
        wanted = wanted.view(*batch["markers"].shape, -1).split(self._pointer, -1)
        firsts, lasts = (
            torch.bmm(one, other.transpose(1, 2)).float() * self._pointer**-0.5
            for one, other in zip(wanted, given, strict=True)
        )
        return (
            serves,
            torch.where(batch["firsts"], firsts, firsts - 1e4),
            torch.where(batch["lasts"], lasts, lasts - 1e4),
        )

    def _hidden(
        self, w: Mapping[str, Tensor], batch: Mapping[str, Tensor], parts: Sequence[Part]
    ) -> Tensor:
        """Return the last hidden states of all tokens."""
        x = functional.embedding(batch["ids"], w[_WORDS])
        x = x + functional.embedding(batch["kinds"], w[_KINDS])
        x = x + functional.embedding(batch["places"], w[_PLACES])
        x = _norm(w, x, f"{_EMBEDDINGS}LayerNorm")
        slots = [batch["slots"][part.begin : part.end] for part in parts]
        masks = [_mask(part, own) for part, own in zip(parts, slots, strict=True)]
        for layer in self._layers:
            own = [f"{layer}attention.self.{name}" for name in ("query", "key", "value")]
            joined = functional.linear(
                x,
                torch.cat([w[f"{name}.weight"] for name in own]),
                torch.cat([w[f"{name}.bias"] for name in own]),
            )
            seen = torch.cat([
                self._attend(joined[part.begin : part.end], part, places, mask)
                for part, places, mask in zip(parts, slots, masks, strict=True)
            ])  # fmt: skip
            seen = _line(w, seen, f"{layer}attention.output.dense")
            x = _norm(w, x + seen, f"{layer}attention.output.LayerNorm")
            inner = functional.gelu(_line(w, x, f"{layer}intermediate.dense"))
            x = _norm(w, x + _line(w, inner, f"{layer}output.dense"), f"{layer}output.LayerNorm")
        return x

    def _attend(self, joined: Tensor, part: Part, slots: Tensor, mask: Tensor) -> Tensor:
        """Return what the tokens of a part see of each other."""
        heads = self._attention_heads
        padded = _Padded.apply(joined, slots, part.rows * part.longest)
        padded = padded.view(part.rows, part.longest, 3, heads, self._width // heads)
        query, key, value = padded.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return _Unpadded.apply(seen.transpose(1, 2).reshape(-1, self._width), slots)

    def _quantised(self) -> dict[str, Tensor]:
        """Return the weights as the export's int8 has them; gradients pass straight through."""
        w = dict(self.state)
        for name in self.trained:
            if name == _KINDS:
                w[name] = _rounded_table(w[name])
            elif w[name].dim() == 2:
                w[name] = _rounded(w[name])
        return w


class _Padded(torch.autograd.Function):  # type: ignore[misc]
    """Rows of tokens with zeros between them. Autograd's own way adds gradients one by one."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, slots: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(slots)
        out = flat.new_zeros(size, flat.shape[1])
        out[slots] = flat
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[ctx.saved_tensors[0]], None, None


class _Unpadded(torch.autograd.Function):  # type: ignore[misc]
    """The way back."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, slots: Tensor) -> Tensor:
        ctx.save_for_backward(slots)
        ctx.size = padded.shape[0]
        return padded[slots]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        out = gradient.new_zeros(ctx.size, gradient.shape[1])
        out[ctx.saved_tensors[0]] = gradient
        return out, None


def _mask(part: Part, slots: Tensor) -> Tensor:
    """Return which tokens of a part's rows may be seen (rows, 1, longest, longest)."""
    mask = torch.zeros(part.rows * part.longest, dtype=torch.bool, device=slots.device)
    mask[slots] = True
    mask = mask.view(part.rows, 1, 1, part.longest)
    return mask.expand(part.rows, 1, part.longest, part.longest)


def _line(w: Mapping[str, Tensor], x: Tensor, name: str) -> Tensor:
    return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def _norm(w: Mapping[str, Tensor], x: Tensor, name: str) -> Tensor:
    return functional.layer_norm(
        x, (x.shape[-1],), w[f"{name}.weight"], w[f"{name}.bias"], _EPSILON
    )


def _rounded(weights: Tensor) -> Tensor:
    """Return a matrix in 129 steps a row, as dynamic int8 of seven bits has it."""
    held = weights.detach()
    scale = held.abs().amax(1, keepdim=True).clamp_min(1e-12) / _STEPS
    return weights + ((held / scale).round().clamp_(-_STEPS, _STEPS) * scale - held)


def _rounded_table(weights: Tensor) -> Tensor:
    """Return a table of embeddings in 256 steps: one scale and one zero for all."""
    held = weights.detach()
    low, high = held.min().clamp_max(0), held.max().clamp_min(0)
    scale = (high - low).clamp_min(1e-12) / 255
    zero = (-low / scale).round()
    rounded = ((held / scale).round() + zero).clamp(0, 255).sub(zero) * scale
    return weights + (rounded - held)
