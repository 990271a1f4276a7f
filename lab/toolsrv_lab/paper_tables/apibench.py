"""Table 5: APIBench, hallucination and AST accuracy by domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolsrv_lab.evaluation.apibench import PickFigures
from toolsrv_lab.paper_tables.published import APIBENCH, APIBENCH_COLUMNS, HUBS, PAPER_V2
from toolsrv_lab.paper_tables.table import HERE, PaperTable, Provenance, Row, share_value

WORLD = "no calls: a call is compared with the corpus"


def apibench_table(
    found: Mapping[str, Mapping[str, PickFigures]],
    commands: Mapping[str, str],
    seed: int,
    notes: Sequence[str] = (),
) -> PaperTable:
    """Return Table 5 of figures by row and domain, and of the command that makes each row."""
    rows = []
    for name, domains in found.items():
        made = Provenance(command=commands[name], seed=seed, world=WORLD)
        cells = {}
        for domain, one in domains.items():
            for measure, part in (("hallucination", one.hallucination), ("AST", one.accuracy)):
                if (value := share_value(part, made)) is not None:
                    cells[f"{HUBS[domain]} {measure}"] = value
        rows.append(Row(name=name, source=HERE, cells=cells))
    return PaperTable(
        number="5",
        title="APIBench, in per cent of the questions",
        columns=APIBENCH_COLUMNS,
        rows=(*rows, *APIBENCH),
        published=f"{PAPER_V2}, Table 5",
        notes=("Low hallucination is good, high AST accuracy is good.", *dict.fromkeys(notes)),
    )
