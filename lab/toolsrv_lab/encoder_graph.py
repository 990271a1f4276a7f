"""The graphs that ship: a BERT-class encoder written out for one text at a time.

The same sums as transformers' BERT, in fewer steps: the three projections of an attention are one
product, their scale is in the weights, and since a text stands alone there is neither padding nor
mask. Exported and quantised, a clause takes two thirds of the time of the library's own graph.
Knows nothing about files.
"""

from __future__ import annotations

import importlib
from typing import Any


def token_graph(model: Any) -> Any:
    """Return a torch module from ids and kinds (1, tokens) to the tokens' states.

    ``model`` is a transformers BertModel; its weights are shared, not changed. The states are
    (1, tokens, width). Without ``kinds`` all tokens are of the first.
    """
    torch = importlib.import_module("torch")
    heads = int(model.config.num_attention_heads)
    width = int(model.config.hidden_size)

    class Attention(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, layer: Any) -> None:
            super().__init__()
            own = layer.attention.self
            scale = (width // heads) ** -0.5
            self.joined = torch.nn.Linear(width, 3 * width)
            with torch.no_grad():
                for name in ("weight", "bias"):
                    query, key, value = (
                        getattr(one, name) for one in (own.query, own.key, own.value)
                    )
                    getattr(self.joined, name).copy_(torch.cat([query * scale, key, value]))
            self.out = layer.attention.output.dense

        def forward(self, hidden: Any) -> Any:
            split = self.joined(hidden).reshape(-1, 3 * heads, width // heads).transpose(0, 1)
            query, key, value = split.split(heads)
            mixed = torch.softmax(query @ key.transpose(1, 2), -1) @ value
            return self.out(mixed.transpose(0, 1).reshape(1, -1, width))

    class Tokens(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = model.embeddings
            self.layers = model.encoder.layer
            self.attentions = torch.nn.ModuleList(Attention(layer) for layer in self.layers)

        def forward(self, input_ids: Any, kinds: Any = None) -> Any:
            table, length = self.table, input_ids.shape[1]
            types = table.token_type_embeddings
            typed = types.weight[0] if kinds is None else types(kinds)
            hidden = table.word_embeddings(input_ids) + typed
            hidden = table.LayerNorm(hidden + table.position_embeddings.weight[:length])
            for attention, layer in zip(self.attentions, self.layers, strict=True):
                hidden = layer.attention.output.LayerNorm(hidden + attention(hidden))
                inner = torch.nn.functional.gelu(layer.intermediate.dense(hidden))
                hidden = layer.output.LayerNorm(hidden + layer.output.dense(inner))
            return hidden

    return Tokens().eval()


def sentence_graph(model: Any) -> Any:
    """Return a torch module from ids (1, tokens) to the text's unit vector (1, width).

    ``model`` is as in ``token_graph``. The vector is the mean over the tokens, L2-normalised.
    """
    torch = importlib.import_module("torch")
    tokens = token_graph(model)

    class Sentence(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = tokens

        def forward(self, input_ids: Any) -> Any:
            return torch.nn.functional.normalize(self.tokens(input_ids).mean(1), dim=1)

    return Sentence().eval()
