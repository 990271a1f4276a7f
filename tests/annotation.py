"""Annotation of assignments over the offline catalog: an annotator without a model, and what it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.annotation.annotators import Annotator, OracleAnnotator
from toolsrv_lab.annotation.assignments import Assignment
from toolsrv_lab.annotation.pipeline import AnswerFolder, Report, Workplace, annotate
from toolsrv_lab.execution import LocalPool
from toolsrv_lab.instructions.errands import ErrandStep, Value
from toolsrv_registry.api import Api
from toolsrv_registry.registry import Registry
from toolsrv_runtime.outcome import TreeNode
from toolsrv_runtime.solve import SolveOptions
from toolsrv_runtime.toolbench.answer_files import read_answer, tree_of

APIS = {api.id: api for api in load_offline_catalog().apis}
METHOD = "DFS_woFilter_w2"
CAPITAL = "Data/country_facts/capital_city"
OPTIONS = SolveOptions(width=2, depth=12)
TASKS = Path(__file__).parent / "runtime" / "data" / "tasks.jsonl"


def oracle(mistakes: float = 0.0, options: SolveOptions = OPTIONS) -> OracleAnnotator:
    """Return an annotator that knows the calls and makes mistakes at this rate."""
    return OracleAnnotator(options, mistakes=mistakes, offered=9)


def asked(country: str, *, fails: bool = False, api: str = CAPITAL) -> Assignment:
    """Return an assignment of one call; ``fails``: its API is down."""
    step = ErrandStep(f"the capital of {country}", api, {"country": Value(country, country)})
    down = (api,) if fails else ()
    return Assignment(country, f"What is the capital of {country}?", (step,), fails=down)


def solve(
    registry: Registry,
    out: Path,
    assignments: Sequence[Assignment],
    annotator: Annotator,
    apis: dict[str, Api] | None = None,
) -> Report:
    """Annotate the assignments into a folder."""
    with AnswerFolder(out, METHOD, {"seed": 0}) as folder:
        place = Workplace(annotator, registry, ["offline"], apis or APIS)
        pool = LocalPool(place.open, 2)
        return asyncio.run(annotate(assignments, folder, annotator.name, pool))


def tree(out: Path, name: str) -> tuple[TreeNode, ...]:
    """Return the tree of an answer."""
    return tree_of(read_answer(out / f"{name}_{METHOD}.json"))


def files(out: Path) -> dict[str, bytes]:
    """Return the answers of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.json"))}
