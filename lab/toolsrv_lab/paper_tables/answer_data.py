"""Table 1: how many tools, APIs, instances and calls a folder of answer files holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.annotation.pipeline import RECORD
from toolsrv_lab.evaluation.statistics import mean, share
from toolsrv_lab.paper_tables.published import DATA, DATA_COLUMNS, PAPER_V2
from toolsrv_lab.paper_tables.table import HERE, PaperTable, Provenance, Row, Value, mean_value
from toolsrv_lab.tooleval.answer_sets import parse_judged, tooleval_form
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_registry.functions import FINISH, FunctionList
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.toolbench.answer_files import read_answer, tree_of

_HINT = (
    "name a folder of answer files, as toolsrv lab annotate, --save-answer or ToolBench write them"
)

World = Literal["real", "simulated"]


@dataclass(slots=True)
class AnswerData:
    """Counts of a folder. ``real`` is None where nothing says which calls were answered for real."""

    folder: Path
    world: str
    real: int | None = None
    tools: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    instances: int = 0
    calls: int = 0
    lengths: list[int] = field(default_factory=list)


def read_answer_data(
    folder: Path, world: World | None = None, *, progress: Callable[[int, int], None] | None = None
) -> AnswerData:
    """Count the answer files below a folder; ``world`` says how its calls were answered.

    In a folder of ``lab annotate`` the catalog that ships answered for real, all others did not.

    Raises:
        NotFoundError: there is no such folder.
        DataError: it has no answer file, or a damaged one.
    """
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", hint=_HINT)
    files = sorted(one for one in folder.rglob("*.json") if one.is_file())
    if not files:
        raise DataError(f"{folder} has no answer file", hint=_HINT)
    real = _real_functions(folder, world)
    found = AnswerData(folder, _world_text(folder, world), None if real is None else 0)
    for at, file in enumerate(files, start=1):
        _count(file, found, real)
        if progress is not None:
            progress(at, len(files))
    return found


def _real_functions(folder: Path, world: World | None) -> Callable[[str], bool] | None:
    """Return whether a function was called for real, None where nobody knows."""
    if world is not None:
        return lambda _name: world == "real"
    if not (folder / RECORD).is_file():
        return None
    names = frozenset(FunctionList(load_offline_catalog().apis).names)
    return lambda name: name in names


def _world_text(folder: Path, world: World | None) -> str:
    if world is not None:
        return world
    if (folder / RECORD).is_file():
        return "the catalog that ships for real, all others simulated"
    return "not said by the files"


def _count(file: Path, found: AnswerData, real: Callable[[str], bool] | None) -> None:
    answer = read_answer(file)
    names = [str(one.get("name", "")) for one in answer.answer_generation.function]
    functions = [one for one in names if one and one != FINISH]
    found.functions.update(functions)
    found.tools.update(one.rpartition("_for_")[2] for one in functions)
    for node in tree_of(answer):
        if node.kind != "call" or not node.function or node.code == Code.UNKNOWN_FUNCTION:
            continue
        found.calls += 1
        if real is not None and real(node.function):
            found.real = (found.real or 0) + 1
    if answer.win:
        found.instances += 1
        judged = parse_judged(file.stem, tooleval_form(answer, ""), str(file))
        found.lengths.append(len(judged.steps))


def data_table(folders: Sequence[AnswerData], command: str) -> PaperTable:
    """Return Table 1 with a row for each folder."""
    rows = [
        Row(
            name="/".join(one.folder.absolute().parts[-2:]), source=HERE, cells=_cells(one, command)
        )
        for one in folders
    ]
    return PaperTable(
        number="1",
        title="data with solution paths",
        columns=DATA_COLUMNS,
        rows=(*rows, *DATA),
        published=f"{PAPER_V2}, Table 1, and ToolBench's README",
        notes=(
            (
                "Tools and APIs are those whose functions were offered; an instance is an answer; calls "
                "are those of whole search trees, in the paper of the real API alone; the reasoning "
                "length counts the calls of the answer's path, Finish included."
            ),
        ),
    )


def _cells(one: AnswerData, command: str) -> dict[str, Value]:
    simulated = None
    if one.real is not None:
        simulated = share(at >= one.real for at in range(one.calls))
    made = Provenance(command=command, seed=0, world=one.world, simulated=simulated)
    counts = (len(one.tools), len(one.functions), one.instances, one.calls, one.real)
    cells = {
        name: Value(value=count, digits=0, percent=False, made=made)
        for name, count in zip(DATA_COLUMNS, counts, strict=False)
        if count is not None
    }
    length = mean_value(mean(one.lengths), len(one.lengths), made)
    return cells if length is None else cells | {DATA_COLUMNS[-1]: length}
