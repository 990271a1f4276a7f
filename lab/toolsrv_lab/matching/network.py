"""The matcher's network: a BERT-class encoder over an API and a text, and two heads.

One head says whether the API serves the clause, or any of a whole text; the other points, for each
marker (the clause to be found, a parameter), at the first and the last token of what it stands for,
or at the first token of all where there is none (as in SQuAD 2.0: Devlin et al. 2019, 4.3). Nothing
here knows files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolsrv_lab.extras import load
from toolsrv_registry import pairing

KINDS = 4
POINTER = 192
"""Numbers by which a parameter and a token are compared."""


def matcher_network(base: Path) -> Any:
    """Return a torch module over the encoder in ``base`` (a transformers folder), heads untrained.

    ``forward(ids, kinds, mask, markers)`` takes (rows, tokens), the same, the same, and
    (rows, parameters); it returns what serves (rows,), and first and last tokens
    (rows, parameters, tokens) as logits.
    """
    torch = load("torch")
    transformers = load("transformers")
    model = transformers.AutoModel.from_pretrained(str(base), attn_implementation="eager")
    width = int(model.config.hidden_size)
    table = model.embeddings.token_type_embeddings
    kinds = torch.nn.Embedding(KINDS, width)
    with torch.no_grad():
        kinds.weight.copy_(table.weight[[0, 1, 1, 1]])
        kinds.weight[pairing.CLAUSE :] += 0.02 * torch.randn(2, width)
    model.embeddings.token_type_embeddings = kinds
    # Words mean what they meant, and half of all weights need no gradient.
    for fixed in (model.embeddings.word_embeddings, model.embeddings.position_embeddings):
        fixed.weight.requires_grad_(False)

    class Matcher(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = model
            self.serves_in = torch.nn.Linear(width, width)
            self.serves_out = torch.nn.Linear(width, 1)
            self.wanted = torch.nn.Linear(width, 2 * POINTER)
            self.given = torch.nn.Linear(width, 2 * POINTER)

        def forward(self, ids: Any, kinds: Any, mask: Any, markers: Any) -> Any:
            hidden = self.encoder(
                input_ids=ids, token_type_ids=kinds, attention_mask=mask
            ).last_hidden_state
            return self.heads(hidden, markers)

        def heads(self, hidden: Any, markers: Any) -> Any:
            # Kept in three dimensions: as a product of two, its weights would not be quantised.
            serves = self.serves_out(torch.tanh(self.serves_in(hidden[:, :1])))[:, 0, 0]
            at = markers[:, :, None].expand(-1, -1, width)
            wanted = self.wanted(hidden.gather(1, at))
            given = self.given(hidden)
            begins = wanted[..., :POINTER] @ given[..., :POINTER].transpose(1, 2)
            ends = wanted[..., POINTER:] @ given[..., POINTER:].transpose(1, 2)
            return serves, begins * POINTER**-0.5, ends * POINTER**-0.5

    return Matcher()
