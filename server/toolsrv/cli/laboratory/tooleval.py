"""``toolsrv lab eval pass-rate``, ``win-rate`` and ``agreement``: ToolEval.

The work is done by ``toolsrv_lab.tooleval``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.laboratory.evaluation import share_text
from toolsrv.cli.options import GivenPath, engine_model_option, example, json_option, threads_option
from toolsrv.cli.output import emit_json, note, table
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import DataError, UsageError

if TYPE_CHECKING:
    from toolsrv_lab.evaluation.statistics import Mean
    from toolsrv_lab.tooleval.agreement import Agreement, AgreementReport
    from toolsrv_lab.tooleval.answer_sets import AnswerSet
    from toolsrv_lab.tooleval.judge import Judge, VoteLog
    from toolsrv_lab.tooleval.pass_rate import PassFigures
    from toolsrv_lab.tooleval.win_rate import WinFigures

RULES = "rules"
VOTES, AGREEMENT = "votes.jsonl", "agreement.json"
PASS_RATE, PASS_BOARD = "pass_rate.json", "pass_rate_leaderboard.csv"
WIN_RATE, WIN_BOARD = "win_rate.json", "win_rate_leaderboard.csv"
"""Files of an ``--out`` folder."""

IDS_BYTES = 16 * 1024 * 1024
"""Most bytes of a file of ids."""

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--judge", "judge_name", default=RULES, show_default=True, metavar="JUDGE",
                 help="rules, which needs no model, or a chat model: a GGUF file, its name on the "
                 "list, addresses of OpenAI-compatible servers, scripted:FILE."),
    engine_model_option,
    click.option("--evaluator", type=GivenPath(), metavar="DIR",
                 help="An evaluator folder of your copy of ToolBench, whose prompts the judge gets. "
                 "[default: our own wording]"),
    click.option("--reasons", is_flag=True, help="Let the judge write a reason before a verdict."),
    click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True,
                 help="Questions asked at the same time."),
    click.option("--seed", type=int, help="Seed of votes and coins."),
    threads_option,
    click.option("--out", type=GivenPath(), metavar="DIR",
                 help="Keep votes and results here; the same command goes on there."),
    json_option,
)  # fmt: skip


def judge_options(command: F) -> F:
    """Add the options of a judge, ``--out`` and ``--json``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(
    epilog=example("toolsrv lab eval pass-rate answers/G1_instruction --judge model.gguf --out DIR")
)
@click.argument("answers", nargs=-1, required=True, type=GivenPath())
@click.option("--times", type=click.IntRange(1, 99), default=4, show_default=True,
              help="Evaluations of each answer; most of them decide.")  # fmt: skip
@click.option("--ids", type=GivenPath(), metavar="FILE",
              help="Only queries with these ids: a JSON object by id, or a list.")  # fmt: skip
@click.option("--sopr", is_flag=True,
              help="StableToolBench's solvable pass rate: every task is solvable, and an unsure "
              "vote counts half.")  # fmt: skip
@judge_options
@pass_session
def eval_pass_rate(
    session: Session,
    /,
    answers: tuple[Path, ...],
    times: int,
    ids: Path | None,
    sopr: bool,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Judge answers by ToolEval's pass rate.

    ANSWERS are answer files of ToolBench, StableToolBench or --save-answer, ToolEval's converted
    files, or folders of either. Results are written in ToolBench's formats.
    """
    from toolsrv_lab.tooleval import pass_rate
    from toolsrv_lab.tooleval.answer_sets import only, read_sets

    sets = only([one for path in answers for one in read_sets(path.expanduser())], read_ids(ids))
    _distinct(sets)
    folder = evaluation.out_folder(out)
    total = sum(len(one.answers) for one in sets)
    with (
        open_judge(session, folder, given) as (judge, votes, seed),
        evaluation.Progress("judging", total) as progress,
    ):
        labels = pass_rate.label_sets(
            judge, sets, times, seed=seed, solvable=sopr, jobs=given["jobs"],
            progress=lambda: progress.step(True),
        )  # fmt: skip
    figures = [
        pass_rate.figures(group, found, times, solvable=sopr)
        for group, found in zip(sets, labels, strict=True)
    ]
    _warn(votes, [(one.undecided.count, one.undecided.of) for one in figures])
    if folder is not None:
        rows: dict[str, dict[str, list[float]]] = {}
        for group, found in zip(sets, labels, strict=True):
            stem = f"{_file_name(group.subset)}_{_file_name(group.model)}"
            _write_json(
                folder / f"{stem}.json", pass_rate.results_json(group, found, solvable=sopr)
            )
            _write(folder / f"{stem}.csv", pass_rate.results_tsv(group, found, solvable=sopr))
            passed = [float(one.passed) for one in found.values()]
            rows.setdefault(group.model, {})[group.subset] = passed
        _write(folder / PASS_BOARD, pass_rate.leaderboard("PassRate", rows))
    document = {
        "judge": judge.name,
        "times": times,
        "sopr": sopr,
        "broken_replies": votes.broken if votes else 0,
        "sets": [one.model_dump() for one in figures],
    }
    if folder is not None:
        _write_json(folder / PASS_RATE, document)
    if as_json:
        emit_json(document)
    else:
        show_pass_rates(judge.name, figures)


@click.command(
    epilog=example("toolsrv lab eval win-rate chatgpt/ ours/ --judge http://host:8000/v1 --out DIR")
)
@click.argument("reference", type=GivenPath())
@click.argument("candidate", type=GivenPath())
@click.option("--times", type=click.IntRange(1, 99), default=4, show_default=True,
              help="Evaluations of each answer, for the pass labels.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 99), default=2, show_default=True,
              help="Comparisons of each pair.")  # fmt: skip
@click.option("--ids", type=GivenPath(), metavar="FILE",
              help="Only queries with these ids: a JSON object by id, or a list.")  # fmt: skip
@click.option("--sowr", is_flag=True,
              help="StableToolBench's solvable win rate: the answers' status decides, else the "
              "judge.")  # fmt: skip
@judge_options
@pass_session
def eval_win_rate(
    session: Session,
    /,
    reference: Path,
    candidate: Path,
    times: int,
    rounds: int,
    ids: Path | None,
    sowr: bool,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare the answers of CANDIDATE with those of REFERENCE, by ToolEval's win rate.

    An answer that passes beats one that fails; the judge compares the others. With the --out of
    pass-rate its votes are used again.
    """
    from toolsrv_lab.tooleval import pass_rate, win_rate
    from toolsrv_lab.tooleval.answer_sets import only, read_sets

    chosen = read_ids(ids)
    sides = [only(read_sets(path.expanduser()), chosen) for path in (reference, candidate)]
    pairs = win_rate.paired(sides[0], sides[1])
    if len(pairs) < max(map(len, sides)):
        note(f"note: only one side has the other subsets: {len(pairs)} are compared")
    folder = evaluation.out_folder(out)
    total = sum(len(one.answers) for pair in pairs for one in pair)
    total += sum(len(pair[0].answers.keys() | pair[1].answers.keys()) for pair in pairs)
    found, undecided = [], []
    with (
        open_judge(session, folder, given) as (judge, votes, seed),
        evaluation.Progress("judging", total) as progress,
    ):
        for pair in pairs:
            shared: dict[str, Any] = {
                "seed": seed,
                "jobs": given["jobs"],
                "progress": lambda: progress.step(True),
            }
            labels = pass_rate.label_sets(judge, pair, times, solvable=sowr, **shared)
            with_labels = () if sowr else labels
            undecided += [
                (sum(not one.decided for one in of.values()), len(of)) for of in with_labels
            ]
            found.append(
                win_rate.compare_sets(
                    judge, pair, (labels[0], labels[1]), rounds, by_status=sowr, **shared
                )
            )
    figures = [win_rate.figures(pair, one) for pair, one in zip(pairs, found, strict=True)]
    _warn(votes, undecided)
    if folder is not None:
        rows: dict[str, list[float]] = {}
        for pair, one in zip(pairs, found, strict=True):
            first, second = (_file_name(name) for name in win_rate.names(pair))
            stem = f"{_file_name(pair[0].subset)}_{first}_{second}"
            _write_json(folder / f"{stem}.json", win_rate.results_json(pair, one, rounds))
            _write(folder / f"{stem}.csv", win_rate.results_tsv(pair, one))
            scores = {"b": 1.0, "tie": 0.5, "a": 0.0}
            rows[pair[0].subset] = [scores[each.preference] for each in one.values()]
        name = win_rate.names(pairs[0])[1]
        _write(folder / WIN_BOARD, pass_rate.leaderboard("WinRate", {name: rows}))
    document = {
        "judge": judge.name,
        "times": times,
        "rounds": rounds,
        "sowr": sowr,
        "broken_replies": votes.broken if votes else 0,
        "subsets": [one.model_dump() for one in figures],
    }
    if folder is not None:
        _write_json(folder / WIN_RATE, document)
    if as_json:
        emit_json(document)
    else:
        show_win_rates(judge.name, figures)


@click.command(epilog=example("toolsrv lab eval agreement shipped --judge model.gguf --limit 50"))
@click.argument("labels", type=GivenPath())
@click.option("--times", type=click.IntRange(1, 99), default=4, show_default=True,
              help="Evaluations of each answer; most of them decide.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 99), default=2, show_default=True,
              help="Comparisons of each pair.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Only so many pairs, drawn with the seed.")  # fmt: skip
@judge_options
@pass_session
def eval_agreement(
    session: Session,
    /,
    labels: Path,
    times: int,
    rounds: int,
    limit: int | None,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare a judge with people's labels, and say whether it may be quoted.

    LABELS are JSON lines of labelled pairs, ToolBench's human_cross_annotated_data.json, or
    "shipped" for the 200 pairs that ship.
    """
    from toolsrv_lab.evaluation.statistics import draw
    from toolsrv_lab.tooleval.agreement import SHIPPED, measure, read_pairs, shipped_pairs

    every = shipped_pairs() if str(labels) == SHIPPED else read_pairs(labels.expanduser())
    folder = evaluation.out_folder(out)
    with open_judge(session, folder, given) as (judge, votes, seed):
        pairs = draw(every, limit, seed=seed, key=lambda one: one.id)
        with evaluation.Progress("judging", len(pairs)) as progress:
            report = measure(
                judge, pairs, votes=times, rounds=rounds, seed=seed, jobs=given["jobs"],
                progress=lambda: progress.step(True),
            )  # fmt: skip
    _warn(votes, [(report.undecided.count, report.undecided.of)])
    kinds = {"pass_labels": report.pass_labels, "preferences": report.preferences}
    document = {
        "labels": str(labels),
        **report.model_dump(),
        "broken_replies": votes.broken if votes else 0,
        "quotable": {name: one is not None and one.quotable for name, one in kinds.items()},
    }
    if folder is not None:
        _write_json(folder / AGREEMENT, document)
    if as_json:
        emit_json(document)
    else:
        show_agreement(report)


@contextlib.contextmanager
def open_judge(
    session: Session, folder: Path | None, given: Mapping[str, Any]
) -> Iterator[tuple[Judge, VoteLog | None, int]]:
    """Give the judge, its votes (None where it needs none) and the seed.

    Raises:
        UsageError: the judge is no chat model.
        DataError: a vote failed; says what is kept.
    """
    name, seed = given["judge_name"], given["seed"]
    if name == RULES:
        from toolsrv_lab.tooleval.rules import RulesJudge

        if given["evaluator"] is not None or given["reasons"]:
            raise UsageError(
                "the judge rules reads no prompts and writes no reasons",
                hint="name a model with --judge, or leave --evaluator and --reasons out",
            )
        yield RulesJudge(), None, seed or 0
        return
    from toolsrv_lab.evaluation.result_log import ResultLog
    from toolsrv_lab.tooleval.judge import OURS, ModelJudge, StoppedError, VoteLog, read_wording

    evaluator = given["evaluator"]
    wording = read_wording(evaluator.expanduser()) if evaluator else OURS
    flags = {key: given[key] for key in ("engine_model", "seed", "threads")}
    bench = session.workbench(model=name, **flags)
    seed = bench.options().seed
    settings = {
        "judge": evaluation.identity(bench.settings)[1],
        "wording": wording.digest,
        "reasons": given["reasons"],
        "seed": seed,
    }
    with ResultLog(folder / VOTES if folder else None, settings) as log:
        votes = VoteLog(log)
        model = evaluation.chat_model_of(bench)
        try:
            with evaluation.stop_on_interrupt() as stop:
                judge = ModelJudge(
                    model, votes, wording=wording, reasons=given["reasons"], seed=seed, stop=stop
                )
                with contextlib.suppress(StoppedError):
                    yield judge, votes, seed
        except KeyboardInterrupt:
            note(log.kept())
            raise
        except DataError as error:
            raise DataError(
                error.message, hint=f"{error.hint}; {log.kept()}".lstrip("; ")
            ) from error


def read_ids(path: Path | None) -> frozenset[str] | None:
    """Return the query ids of a file: the keys of an object, or a list's ids or query_ids."""
    if path is None:
        return None
    from toolsrv_registry import wellformed
    from toolsrv_runtime.files import read_text

    hint = "give test_query_ids/<subset>.json of ToolBench, or a JSON list of ids"
    text = read_text(path.expanduser(), IDS_BYTES, hint=hint)
    try:
        value = wellformed.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON: {error}", hint=hint) from error
    every = list(value) if isinstance(value, dict | list) else []
    ids = [one.get("query_id", one.get("id")) if isinstance(one, dict) else one for one in every]
    found = frozenset(str(one) for one in ids if isinstance(one, str | int))
    if not found:
        raise DataError(f"{path} names no query ids", hint=hint)
    return found


def _distinct(sets: Sequence[AnswerSet]) -> None:
    seen = set()
    for one in sets:
        key = _file_name(one.subset), _file_name(one.model)
        if key in seen:
            raise UsageError(
                f"two of the ANSWERS are of the model {one.model} on {one.subset}",
                hint="name each once, or put them into folders named by model: MODEL/SUBSET",
            )
        seen.add(key)


def _warn(votes: VoteLog | None, undecided: Sequence[tuple[int, int]]) -> None:
    coins, total = sum(one for one, _ in undecided), sum(of for _, of in undecided)
    if total and coins == total:
        note(f"note: the judge decided none of {total} answers: the labels are coins")
    if votes is not None and votes.broken:
        note(f"note: {votes.broken} questions got no usable reply and count as unsure")


def _file_name(name: str) -> str:
    return "".join(one if one.isalnum() or one in "-_." else "-" for one in name)[:80] or "answers"


def _write(path: Path, text: str) -> None:
    from toolsrv_runtime.files import open_atomic

    with open_atomic(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    import json

    _write(path, f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")


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
