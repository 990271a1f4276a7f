"""Training of the ranker: LambdaMART over signals of searches with known answers."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.extras import load
from toolsrv_lab.instructions.compose import compose
from toolsrv_lab.instructions.samples import groups
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.errors import DataError
from toolsrv_registry.onnx_runtime import onnxruntime
from toolsrv_registry.ranker import MODEL_FILE
from toolsrv_registry.registry import Registry
from toolsrv_registry.search.recall import RecalledApis
from toolsrv_registry.search.retriever import Retriever
from toolsrv_registry.search.signals import SIGNALS, Floats

NAME = "toolsrv-ranker"
TREES = 250
# Small trees and strong regularisation: a few hundred queries teach no more.
PARAMETERS: dict[str, Any] = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 10,
    "num_leaves": 8,
    "learning_rate": 0.05,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "deterministic": True,
    "num_threads": 1,
    "verbose": -1,
}
_EXACT = 1e-3


class List(NamedTuple):
    """The candidates of one query: signals (n, len(SIGNALS)), needed (n,), and its weight."""

    signals: Floats
    needed: npt.NDArray[np.bool_]
    weight: float = 1.0


def train_ranker(lists: Sequence[List], *, seed: int = 0, trees: int = TREES) -> Any:
    """Return the LightGBM booster trained on the lists that have a needed candidate."""
    lightgbm = load("lightgbm")
    useful = [one for one in lists if one.needed.any()]
    if not useful:
        raise DataError("no query of the ranker's training has a needed API among its candidates")
    data = lightgbm.Dataset(
        np.concatenate([one.signals for one in useful]),
        np.concatenate([one.needed for one in useful]).astype(np.int32),
        group=[len(one.needed) for one in useful],
        weight=np.concatenate([np.full(len(one.needed), one.weight) for one in useful]),
        feature_name=[f"s{at}" for at in range(len(SIGNALS))],
    )
    return lightgbm.train({**PARAMETERS, "seed": seed}, data, trees)


def calibrate(totals: Floats, needed: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and offset of the logistic curve that fits the trees' sums best (Platt)."""
    slope, offset = 1.0, 0.0
    x, y = totals.astype(np.float64), needed.astype(np.float64)
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(slope * x + offset, -30, 30)))
        w = np.maximum(p * (1 - p), 1e-9)
        gradient = np.asarray([((p - y) * x).sum(), (p - y).sum()])
        hessian = np.asarray([[(w * x * x).sum(), (w * x).sum()], [(w * x).sum(), w.sum()]])
        step = np.linalg.solve(hessian + 1e-6 * np.eye(2), gradient)
        slope, offset = slope - float(step[0]), offset - float(step[1])
        if np.abs(step).max() < 1e-8:
            break
    return slope, offset


def export_ranker(
    booster: Any, lists: Sequence[List], out: Path, about: dict[str, Any]
) -> dict[str, Any]:
    """Write ``ranker.onnx`` and ``card.json`` to a folder and return the card.

    Raises DataError when the exported trees do not agree with LightGBM's.
    """
    content = to_onnx(booster)
    runtime = onnxruntime()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    signals = np.concatenate([one.signals for one in lists])
    needed = np.concatenate([one.needed for one in lists])
    totals = session.run(None, {"signals": signals})[0][:, 0]
    apart = np.abs(totals - booster.predict(signals)) > _EXACT
    if apart.mean() > _EXACT:
        raise DataError(f"{apart.mean():.2%} of the exported ranker's scores are not LightGBM's")
    slope, offset = calibrate(totals, needed)
    packages = ("lightgbm", "onnx", "onnxruntime", "numpy")
    card = {
        "name": NAME,
        "signals": list(SIGNALS),
        "slope": round(slope, 6),
        "offset": round(offset, 6),
        "files": {MODEL_FILE: hashlib.sha256(content).hexdigest()},
        "trees": booster.num_trees(),
        "parameters": PARAMETERS,
        **about,
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as name:
        work = Path(name)
        (work / MODEL_FILE).write_bytes(content)
        (work / "card.json").write_text(json.dumps(card, indent=2) + "\n", "utf-8")
        for file in (MODEL_FILE, "card.json"):
            (work / file).replace(out / file)
    return card


def to_onnx(booster: Any) -> bytes:
    """Return LightGBM trees as a serialised ONNX model: ``signals`` (n, k) -> ``score`` (n, 1)."""
    onnx = load("onnx")
    attributes: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in (
            "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
            "missing_value_tracks_true", "hitrates",
        )
    } | {f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}  # fmt: skip
    for tree in booster.dump_model()["tree_info"]:
        _add_tree(attributes, tree["tree_index"], tree["tree_structure"])
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["signals"],
        ["score"],
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        **attributes,
    )
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [node],
        NAME,
        [onnx.helper.make_tensor_value_info("signals", floats, [None, len(SIGNALS)])],
        [onnx.helper.make_tensor_value_info("score", floats, [None, 1])],
    )
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _floor(threshold: float) -> float:
    """Return the greatest float32 not above a threshold: ``x <= threshold`` stays true for it."""
    # A split of "missing or not" has the greatest double there is.
    limit = float(np.finfo(np.float32).max)
    threshold = min(max(threshold, -limit), limit)
    rounded = np.float32(threshold)
    if float(rounded) > threshold:
        rounded = np.nextafter(rounded, np.float32(-np.inf))
    return float(rounded)


def _add_tree(attributes: dict[str, list[Any]], tree: int, root: dict[str, Any]) -> None:
    waiting, count = [(root, 0)], 1
    while waiting:
        node, number = waiting.pop()
        leaf = "leaf_value" in node
        left, right = (0, 0) if leaf else (count, count + 1)
        values = {
            "treeids": tree,
            "nodeids": number,
            "featureids": 0 if leaf else node["split_feature"],
            "values": 0.0 if leaf else _floor(node["threshold"]),
            "modes": "LEAF" if leaf else "BRANCH_LEQ",
            "truenodeids": left,
            "falsenodeids": right,
            "missing_value_tracks_true": 0 if leaf else int(node["default_left"]),
            "hitrates": 1.0,
        }
        for name, value in values.items():
            attributes[f"nodes_{name}"].append(value)
        if leaf:
            target = {"treeids": tree, "nodeids": number, "ids": 0, "weights": node["leaf_value"]}
            for name, value in target.items():
                attributes[f"target_{name}"].append(value)
        else:
            waiting += [(node["left_child"], left), (node["right_child"], right)]
            count += 2


# So many of the ranker's lists come a second time without vectors.
_BLIND_SHARE = 0.3

Counted = Callable[[int, int], None]


def ranker_lists(
    retriever: Retriever, queries: Sequence[Query], *, seed: int = 0, weight: float = 1.0
) -> Iterator[List]:
    """Yield the judged candidates of each query, and of some a second time by words alone."""
    rng = random.Random(seed)
    for query in queries:
        yield from _list(retriever.recall(query.query), query, weight)
        if rng.random() < _BLIND_SHARE:
            yield from _list(retriever.recall(query.query, words_only=True), query, weight / 2)


def small_lists(*, rounds: int = 2, seed: int = 0, weight: float = 0.5) -> Iterator[List]:
    """Yield lists of searches in the small catalog that ships.

    Ranks and shares mean something else among 170 APIs than among thousands; a ranker that met
    only large catalogs orders a small one worse than no ranker at all.
    """
    catalog = load_offline_catalog()
    rng = random.Random(seed)
    queries = [
        Query(
            query_id=str(at),
            query=compose(members, rng).text,
            relevant=tuple(Named(id=one.id) for one in members),
        )
        for at, members in enumerate(groups(catalog.apis, rounds, rng))
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        Registry.open(Path(folder), [catalog]) as registry,
    ):
        registry.ensure_index()
        yield from ranker_lists(registry.retriever, queries, seed=seed, weight=weight)


def service_lists(
    apis: Sequence[Api],
    queries: Sequence[Query],
    *,
    counted: Counted | None = None,
    seed: int = 0,
    weight: float = 0.5,
) -> Iterator[List]:
    """Yield lists of searches among the operations of many services.

    Documents of real services differ in style from ToolBench's, and their APIs are named by ids: a
    ranker that met only the latter costs points there.
    """
    tools: dict[tuple[str, str], list[Api]] = defaultdict(list)
    for api in apis:
        tools[api.category, api.tool].append(api)
    catalog = Catalog(
        name="services",
        tools=tuple(
            Tool(category=category, name=name, apis=tuple(found))
            for (category, name), found in tools.items()
        ),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        Registry.open(Path(folder), [catalog]) as registry,
    ):
        registry.ensure_index(counted)
        yield from ranker_lists(registry.retriever, queries, seed=seed, weight=weight)


def _list(recalled: RecalledApis, query: Query, weight: float) -> Iterator[List]:
    wanted, places = set(query.relevant_ids), recalled.judged.places
    if len(places):
        needed = np.asarray([recalled.lexicon.ids[at] in wanted for at in places])
        yield List(recalled.judged.signals, needed, weight)
