"""Network of the matcher: a BERT encoder over an API and a text, with two heads.

Training can continue from a shipped matcher without its float weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from toolsrv_lab.extras import load
from toolsrv_registry import pairing
from toolsrv_registry.errors import DataError

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


MODEL_FILE, CARD_FILE = "model.int8.onnx", "card.json"
_PREFIX = "network."
_JOINED = "inner.attentions."


def holds_shipped(folder: Path) -> bool:
    """Return whether a folder holds a matcher as it ships."""
    return (folder / MODEL_FILE).is_file()


def load_shipped(network: Any, folder: Path) -> dict[str, Any]:
    """Give a network the weights of the matcher in ``folder``; return what its card says of them.

    Raises DataError where the graph is not one of this network.
    """
    try:
        card = json.loads((folder / CARD_FILE).read_text("utf-8"))
        found = _weights(folder / MODEL_FILE, network.encoder.config)
        network.load_state_dict({**_unused(network), **found})
        return {"int8": card["files"][MODEL_FILE], **card["training"]}
    except (OSError, ValueError, KeyError, RuntimeError, DecodeError) as error:
        raise DataError(f"cannot go on from the matcher in {folder}: {error}") from error


def _unused(network: Any) -> dict[str, Any]:
    """Return what of a network's state no graph holds: places' numbers, and BERT's own pooler."""
    learnt = {name for name, _ in network.named_parameters() if ".pooler." not in name}
    return {name: one for name, one in network.state_dict().items() if name not in learnt}


def _weights(path: Path, config: Any) -> dict[str, Any]:
    """Return parameter -> tensor."""
    onnx, torch = load("onnx"), load("torch")
    graph = onnx.load(str(path)).graph
    values = {one.name: torch.tensor(onnx.numpy_helper.to_array(one)) for one in graph.initializer}
    taking = {name: node for node in graph.node for name in node.input}
    giving = {name: node for node in graph.node for name in node.output}

    def dequantised(name: str, scale: Any, zero: Any) -> Any:
        return (values[name].float() - zero.float()) * scale

    found: dict[str, Any] = {}
    for name, value in values.items():
        own = name.startswith((_PREFIX, _JOINED)) and name.endswith((".weight", ".bias"))
        if own and value.dtype == torch.float32:
            found[name.removeprefix(_PREFIX)] = value
    for node in graph.node:
        if node.op_type == "DequantizeLinear":
            name = giving[node.input[0]].input[0]  # a row of the table is taken first
            plain = name.removeprefix(_PREFIX).removesuffix("_quantized")
            found[plain] = dequantised(name, values[node.input[1]], values[node.input[2]])
        if node.op_type == "MatMulInteger":
            stem = node.input[1].removesuffix("_quantized")
            weight = dequantised(node.input[1], values[f"{stem}_scale"], values[node.input[3]])
            bias = _bias(node, taking, values)
            found[f"{bias.removeprefix(_PREFIX).removesuffix('bias')}weight"] = weight.T
    for name in [one for one in found if one.startswith(_JOINED)]:
        found |= _parted(name, found.pop(name), config)
    return found


def _bias(node: Any, taking: dict[str, Any], values: dict[str, Any]) -> str:
    """Return the name of what is added to a product, some nodes later."""
    while node.op_type != "Add":
        node = taking[node.output[0]]
    name: str = next(one for one in node.input if one in values)
    return name


def _parted(name: str, joined: Any, config: Any) -> dict[str, Any]:
    """Return the three projections of an attention that the graph computes as one, unscaled."""
    layer, kind = name.removeprefix(_JOINED).split(".")[0], name.rsplit(".", 1)[1]
    query, key, value = joined.chunk(3)
    scale = (config.hidden_size // config.num_attention_heads) ** 0.5
    parts = {"query": query * scale, "key": key, "value": value}
    own = f"encoder.encoder.layer.{layer}.attention.self"
    return {f"{own}.{part}.{kind}": one for part, one in parts.items()}
