"""Hard negatives: documents that the encoder as it is finds near a text that does not need them.

What a text needs is never one, nor what reads like it in another service: that would serve as well.
"""

from __future__ import annotations

from collections.abc import Callable

from .batches import Mined
from .network import LENGTH_STEP, Network, Tensor, Weights, torch
from .options import Options
from .pairs import Texts

Counted = Callable[[int, int], None]
"""Called with (texts encoded, texts in all)."""

_RELATED = 64
_NEAREST = 48
_RANKS = slice(2, 40)
"""The nearest of what is left are too often needed, too."""
_TOO_NEAR = 0.97
"""Share of the own document's cosine above which the untrained encoder's find may be needed."""
_BLOCK = 1_024
_NEVER = -9.0


class Table:
    """Texts on the device, encoded all at once or some at a time."""

    def __init__(self, texts: Texts, network: Network, device: str) -> None:
        self.ids = torch.from_numpy(texts.ids).to(device)
        self.lengths = torch.from_numpy(texts.lengths).to(device)
        self._spans = texts.lengths
        self._network = network

    def __len__(self) -> int:
        return len(self._spans)

    def encode(
        self,
        places: Tensor,
        rows: int,
        working: Weights,
        advance: Callable[[int], None] | None = None,
    ) -> Tensor:
        """Return the vectors of the texts at ``places``, which are in order of length."""
        found, spans = [], self._spans[places.cpu().numpy()]
        for at in range(0, len(places), rows):
            some = places[at : at + rows]
            longest = int(spans[at : at + rows].max())
            padded = min(-(-longest // LENGTH_STEP) * LENGTH_STEP, self._network.shape.positions)
            ids = self.ids[some, :padded].long()
            short = padded - ids.shape[1]
            ids = torch.nn.functional.pad(ids, (0, short)) if short > 0 else ids
            found.append(self._network.encode(ids, self.lengths[some], working))
            if advance is not None:
                advance(at + len(some))
        return torch.cat(found)

    def vectors(self, rows: int, working: Weights, advance: Callable[[int], None]) -> Tensor:
        """Return the vectors of all texts."""
        order = torch.argsort(self.lengths, stable=True)
        with torch.no_grad():
            sorted_ = self.encode(order, rows, working, advance)
        return torch.empty_like(sorted_).index_copy_(0, order, sorted_)


class Miner:
    """Finds negatives and neighbours. ``alike`` are the documents' vectors of the first mining."""

    def __init__(
        self, documents: Table, texts: Table, groups: Tensor, relevant: Tensor, trained: Tensor,
        options: Options,
    ) -> None:  # fmt: skip
        self._documents = documents
        self._texts = texts
        self._groups = groups
        self._relevant = relevant
        self._trained = trained
        self._options = options
        self.alike: Tensor = None

    def mine(self, rows: int, working: Weights, counted: Counted | None = None) -> Mined:
        """Return what the encoder with these weights takes for near."""
        first = self.alike is None
        total = len(self._documents) + len(self._texts)

        def advance(done: int) -> None:
            if counted is not None:
                counted(done, total)

        documents = self._documents.vectors(rows, working, advance)
        if first:
            self.alike = documents.half()
        texts = self._texts.vectors(rows, working, lambda at: advance(at + len(self._documents)))
        negatives = [
            self._negatives(some, relevant, documents, first=first)
            for some, relevant in zip(
                texts.split(_BLOCK), self._relevant.split(_BLOCK), strict=True
            )
        ]
        near = [self._near(some, documents) for some in documents.split(_BLOCK)]
        return Mined(torch.cat(negatives).int().cpu().numpy(), torch.cat(near).int().cpu().numpy())

    def same(self, some: Tensor, others: Tensor) -> Tensor:
        """Return which of ``others`` (…, m) say the same in another service as ``some`` (…, n)."""
        kind = torch.float32 if self.alike.device.type == "cpu" else self.alike.dtype
        one, other = self.alike[some].to(kind), self.alike[others].to(kind)
        near = one @ other.transpose(-1, -2) > self._options.same
        return near & (self._groups[some][..., :, None] != self._groups[others][..., None, :])

    def _negatives(
        self, texts: Tensor, relevant: Tensor, documents: Tensor, *, first: bool
    ) -> Tensor:
        scores = texts @ documents.T
        known, needed = relevant >= 0, relevant.clamp(min=0)
        best = scores.gather(1, needed).masked_fill(~known, _NEVER).amax(1, keepdim=True)
        # -1 has no column of its own: it stands for the text's first document.
        needed = torch.where(known, needed, needed[:, :1])
        scores.scatter_(1, needed, _NEVER)
        top = scores.topk(min(_RELATED, documents.shape[0]))
        unfit = top.values <= _NEVER
        if first:
            unfit |= top.values > _TOO_NEAR * best
        unfit |= self.same(top.indices, needed).any(2)
        order = torch.argsort(unfit.to(torch.uint8), dim=1, stable=True)
        return top.indices.masked_fill(unfit, -1).gather(1, order)[:, _RANKS]

    def _near(self, some: Tensor, documents: Tensor) -> Tensor:
        """Return for each of ``some`` the nearest documents that a pair is about."""
        scores = (some @ documents.T).masked_fill(~self._trained, _NEVER)
        return scores.topk(min(_NEAREST, int(self._trained.sum()))).indices
