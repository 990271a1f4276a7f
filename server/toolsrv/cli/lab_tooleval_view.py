"""Tables of ToolEval's rates and of a judge's agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from toolsrv.cli.lab_eval import share_text
from toolsrv.cli.output import table

if TYPE_CHECKING:
    from toolsrv_lab.evaluation.statistics import Mean
    from toolsrv_lab.tooleval.agreement import Agreement, AgreementReport
    from toolsrv_lab.tooleval.pass_rate import PassFigures
    from toolsrv_lab.tooleval.win_rate import WinFigures


def show_pass_rates(judge: str, figures: Sequence[PassFigures]) -> None:
    """Print a row a set."""
    sopr = any(one.sopr_percent is not None for one in figures)
    columns = ["model", "subset", "passed#", "solved#", "solvable#", "unfinished#", "coins#"]
    rows = []
    for one in figures:
        row = [one.model, one.subset]
        row += map(
            share_text, (one.passed, one.solved, one.solvable, one.unfinished, one.undecided)
        )
        if sopr and one.sopr_percent is not None:
            row.append(f"{one.sopr_percent:.1f} ± {one.sopr_deviation or 0.0:.1f}")
        rows.append(row)
    title = f"pass rate by {judge}, % (95 % interval)"
    table([*columns, "SoPR#"] if sopr else columns, rows, title=title)


def show_win_rates(judge: str, figures: Sequence[WinFigures]) -> None:
    """Print a row a subset."""
    table(
        ("subset", "reference", "candidate", "wins#", "ties#", "losses#", "win rate#", "judged#"),
        [
            (
                one.subset,
                one.reference,
                one.candidate,
                *map(share_text, (one.wins, one.ties, one.losses)),
                f"{100 * one.win_rate:.1f}",
                share_text(one.compared),
            )
            for one in figures
        ],
        title=f"the candidate's wins by {judge}, % (95 % interval); the win rate has half of the ties",
    )


def show_agreement(report: AgreementReport) -> None:
    """Print how far a judge agrees, beside the paper's, and whether it may be quoted."""
    kinds: dict[str, Agreement | None] = {
        "pass labels": report.pass_labels,
        "preferences": report.preferences,
        "answers' status": report.answers,
        "tasks' status": report.tasks,
    }
    rows = []
    for name, one in kinds.items():
        if one is None or not one.agreed.of:
            continue
        quoted = name in ("pass labels", "preferences")
        kappa = "" if one.kappa is None else f"{one.kappa:.2f}"
        if one.kappa_low is not None and one.kappa_high is not None:
            kappa += f" ({one.kappa_low:.2f} to {one.kappa_high:.2f})"
        rows.append(
            (
                name,
                share_text(one.agreed),
                _percent(one.single),
                kappa,
                "" if one.variance is None else f"{one.variance:.3f}",
                "" if one.people is None else share_text(one.people),
                f"{100 * one.paper:.1f}" if quoted else "",
            )
        )
    table(
        (
            "labels",
            "agreed#",
            "single votes#",
            "kappa#",
            "variance#",
            "people#",
            "the paper's judge#",
        ),
        rows,
        title=f"{report.judge} beside people on {report.pairs} pairs, % (95 % interval)",
    )
    for name in ("pass labels", "preferences"):
        if (kind := kinds[name]) is not None and kind.agreed.of:
            verdict = "may" if kind.quotable else "may not"
            click.echo(f"{name}: {report.judge} {verdict} be quoted")


def _percent(one: Mean) -> str:
    """Return a mean share with its interval, in per cent."""
    if one.mean is None:
        return ""
    if one.low is None or one.high is None:
        return f"{100 * one.mean:.0f}"
    return f"{100 * one.mean:.0f} ({100 * one.low:.0f}-{100 * one.high:.0f})"
