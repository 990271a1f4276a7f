"""The trained matcher as it ships: one int8 ONNX graph, its tokeniser, a card with figures.

The graph takes one row of tokens: ``input_ids`` and ``kinds`` (1, tokens), ``markers``
(parameters,). It returns what serves (1,), and first and last tokens (parameters, tokens).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from toolsrv_lab.card import library_versions
from toolsrv_lab.encoder_export import PACKAGE, SOURCE_SHA256, quantise, sha256, token_graph
from toolsrv_lab.extras import load
from toolsrv_lab.matching.network import matcher_network
from toolsrv_lab.matching.training import load_finished

NAME = "matcher-int8"


def matcher_graph(network: Any) -> Any:
    """Return a torch module of one row of tokens; the weights are shared, not changed."""
    torch = load("torch")
    inner = token_graph(network.encoder)

    class Graph(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner
            self.network = network

        def forward(self, input_ids: Any, kinds: Any, markers: Any) -> Any:
            hidden = self.inner(input_ids, kinds)
            serves, begins, ends = self.network.heads(hidden, markers[None])
            return serves, begins[0], ends[0]

    return Graph().eval()


def export_matcher(
    runs: Sequence[Path],
    base: Path,
    out: Path,
    judge: Callable[[Path], dict[str, Any]],
    *,
    offset: float = 0.0,
) -> dict[str, Any]:
    """Write model, tokeniser and card of finished trainings; return the card.

    The weights of several ``runs``, each begun with the one before, are averaged: what two stages
    agree on stays, what one of them forgot or learnt by heart counts half (model soups, Wortsman
    et al. 2022). ``offset`` goes onto the card, for whoever runs the model. ``judge`` returns the figures of a matcher's folder, for the card.

    Files appear only when all is well. Raises DataError where a run is not finished.
    """
    network = matcher_network(base)
    training = _mean(network, runs)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        work = Path(folder)
        _export(network, work / "model.fp32.onnx")
        quantise(work / "model.fp32.onnx", work / "model.int8.onnx")
        shutil.copyfile(base / "tokenizer.json", work / "tokenizer.json")
        card = {
            "name": NAME,
            "files": {one: sha256(work / one) for one in ("model.int8.onnx", "tokenizer.json")},
            "source": {"model": "sentence-transformers/all-MiniLM-L6-v2", "licence": "Apache-2.0",
                       "package": PACKAGE, "sha256": SOURCE_SHA256},
            "offset": offset,
            "training": training,
            "quantisation": "dynamic int8, MatMul and embeddings, per channel, 7-bit weight range",
            "made_by": "toolsrv lab export matcher",
            "versions": library_versions("torch", "transformers", "onnx", "onnxruntime", "tokenizers"),
        }  # fmt: skip
        _write(card, work)
        _write(card | {"figures": judge(work)}, work)
        out.mkdir(exist_ok=True)
        for file in ("model.int8.onnx", "tokenizer.json", "card.json"):
            (work / file).replace(out / file)
    return card


def _mean(network: Any, runs: Sequence[Path]) -> dict[str, Any]:
    """Give a network the mean weights of trainings; return what is known of the last one."""
    training = {}
    total: dict[str, Any] = {}
    for run in runs:
        training = load_finished(network, run)
        for name, value in network.state_dict().items():
            total[name] = value.clone() if name not in total else total[name] + value
    # Whole numbers among them are places, the same in all.
    network.load_state_dict({name: (one / len(runs)).to(one.dtype) for name, one in total.items()})
    return training | ({"mean_of_the_last": len(runs)} if len(runs) > 1 else {})


def _write(card: dict[str, Any], folder: Path) -> None:
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", "utf-8")


def _export(network: Any, target: Path) -> None:
    torch = load("torch")
    ids = torch.arange(5, 5 + 17)[None]
    kinds = torch.zeros_like(ids)
    markers = torch.tensor([3, 6, 9])
    size = torch.export.Dim("tokens", min=2, max=512)
    torch.onnx.export(
        matcher_graph(network),
        (ids, kinds, markers),
        str(target),
        input_names=["input_ids", "kinds", "markers"],
        output_names=["serves", "begins", "ends"],
        dynamic_shapes={
            "input_ids": {1: size},
            "kinds": {1: size},
            "markers": {0: torch.export.Dim("parameters", min=1, max=64)},
        },
        dynamo=True,
        external_data=False,
        opset_version=20,
    )
