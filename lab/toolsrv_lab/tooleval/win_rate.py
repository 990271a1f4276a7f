"""ToolEval's win rate, and StableToolBench's.

A round is decided by the pass labels where they differ, by a missing answer, else by the judge:
solved beats unsure beats unsolved, and equals are compared. Unlike the reference, an answer's status
stays with it when the two are shuffled, and every round counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.tooleval.answer_sets import AnswerSet, Judged
from toolsrv_lab.tooleval.judge import Judge
from toolsrv_lab.tooleval.pass_rate import Label, in_parallel, tsv
from toolsrv_lab.tooleval.verdicts import AnswerStatus, Preference, coin
from toolsrv_registry.errors import DataError

_ORDER: tuple[AnswerStatus, ...] = ("Solved", "Unsure", "Unsolved")
_LABELS: Mapping[Preference, str] = {"a": "1", "b": "2", "tie": "3"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rounds won on one query: ``a`` is the reference, ``b`` the candidate."""

    a: int
    b: int
    by_judge: bool

    @property
    def preference(self) -> Preference:
        """Who won more rounds."""
        return "tie" if self.a == self.b else "a" if self.a > self.b else "b"


class WinFigures(BaseModel):
    """A subset in figures, from the candidate's side.

    ``wins`` without ties as the reference prints it; ``win_rate`` with half of the ties, as the
    paper's tables have it. ``compared``: queries that the labels left to the judge.
    """

    model_config = ConfigDict(frozen=True)

    reference: str
    candidate: str
    subset: str
    wins: Share
    ties: Share
    losses: Share
    win_rate: float
    compared: Share


def prefer(
    judge: Judge,
    answers: tuple[Judged, Judged],
    statuses: tuple[AnswerStatus, AnswerStatus],
    at: int,
    *,
    seed: int = 0,
) -> int:
    """Return 0 or 1: which of two answers to one query is better in round ``at``.

    Which answer the judge reads first is drawn for the first round and alternates from there, so
    that a judge that goes by the position prefers nobody.
    """
    ranks = [_ORDER.index(one) for one in statuses]
    if ranks[0] != ranks[1]:
        return 0 if ranks[0] < ranks[1] else 1
    first, second = answers
    swapped = coin(seed, first.id, "order") != bool(at % 2)
    if _compared_text(first) == _compared_text(second):
        return int(swapped)
    if swapped:
        return 1 - judge.select_better_answer(second, first, at)
    return judge.select_better_answer(first, second, at)


def compare(
    judge: Judge,
    pair: tuple[Judged | None, Judged | None],
    labels: tuple[Label | None, Label | None],
    rounds: int,
    *,
    seed: int = 0,
    by_status: bool = False,
) -> Comparison:
    """Return the rounds on one query; ``by_status``: the labels are not looked at (SoWR).

    Raises:
        ValueError: both answers are missing.
    """
    first, second = pair
    if first is None or second is None:
        if first is None and second is None:
            raise ValueError("no answer to compare")
        return Comparison(rounds, 0, False) if second is None else Comparison(0, rounds, False)
    one, other = labels
    if one is not None and other is not None and not by_status and one.passed != other.passed:
        return Comparison(rounds, 0, False) if one.passed else Comparison(0, rounds, False)
    won = [0, 0]
    for at in range(rounds):
        statuses = _status(one, at), _status(other, at)
        won[prefer(judge, (first, second), statuses, at, seed=seed)] += 1
    return Comparison(won[0], won[1], True)


def compare_sets(
    judge: Judge,
    sets: tuple[AnswerSet, AnswerSet],
    labels: tuple[Mapping[str, Label], Mapping[str, Label]],
    rounds: int,
    *,
    seed: int = 0,
    by_status: bool = False,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> dict[str, Comparison]:
    """Return the comparison of each query that either set answers, the reference's order first."""
    reference, candidate = sets
    ids = list(dict.fromkeys([*reference.answers, *candidate.answers]))

    def one(key: str) -> Comparison:
        return compare(
            judge,
            (reference.answers.get(key), candidate.answers.get(key)),
            (labels[0].get(key), labels[1].get(key)),
            rounds,
            seed=seed,
            by_status=by_status,
        )

    return dict(zip(ids, in_parallel(one, ids, jobs, progress), strict=True))


def paired(
    references: Sequence[AnswerSet], candidates: Sequence[AnswerSet]
) -> list[tuple[AnswerSet, AnswerSet]]:
    """Return the sets of one subset side by side; one set each is a pair whatever its name.

    Raises:
        DataError: they share no subset, or no query, or one query id has two wordings.
    """
    if len(references) == len(candidates) == 1:
        pairs = [(references[0], candidates[0])]
    else:
        others = {one.subset: one for one in candidates}
        pairs = [(one, others[one.subset]) for one in references if one.subset in others]
    if not pairs:
        raise DataError(
            "the two sides share no subset", hint="name folders that hold the same <subset>.json"
        )
    for reference, candidate in pairs:
        common = reference.answers.keys() & candidate.answers.keys()
        if not common:
            raise DataError(
                f"{reference.model} and {candidate.model} answer no query in common "
                f"({reference.subset})",
                hint="give answers to the same queries",
            )
        for key in common:
            if reference.answers[key].query.strip() != candidate.answers[key].query.strip():
                raise DataError(
                    f"the query {key!r} is another one for {candidate.model} than for "
                    f"{reference.model}",
                    hint="give answers to the same queries",
                )
    return pairs


def figures(sets: tuple[AnswerSet, AnswerSet], found: Mapping[str, Comparison]) -> WinFigures:
    """Return compared sets in figures."""
    every = [one.preference for one in found.values()]
    wins, ties = every.count("b"), every.count("tie")
    return WinFigures(
        reference=sets[0].model,
        candidate=sets[1].model,
        subset=sets[0].subset,
        wins=share(one == "b" for one in every),
        ties=share(one == "tie" for one in every),
        losses=share(one == "a" for one in every),
        win_rate=round((wins + ties / 2) / len(every), 4) if every else 0.0,
        compared=share(one.by_judge for one in found.values()),
    )


def names(sets: tuple[AnswerSet, AnswerSet]) -> tuple[str, str]:
    """Return the models' names, told apart where they are equal."""
    first, second = sets[0].model, sets[1].model
    return (first, second) if first != second else (first, f"{second} (2)")


def results_json(
    sets: tuple[AnswerSet, AnswerSet], found: Mapping[str, Comparison], rounds: int
) -> dict[str, Any]:
    """Return a subset in the form of ToolEval's preference file."""
    first, second = names(sets)
    done = {f"round_{at}": "complete" for at in range(rounds)}
    return {key: {first: one.a, second: one.b} | done for key, one in found.items()}


def results_tsv(sets: tuple[AnswerSet, AnswerSet], found: Mapping[str, Comparison]) -> str:
    """Return the same as ToolEval's tab-separated table; 1 is the reference, 2 the candidate."""
    first, second = names(sets)
    rows = []
    for key, one in found.items():
        reference, candidate = sets[0].answers.get(key), sets[1].answers.get(key)
        known = reference or candidate
        rows.append(
            {
                "query": known.query if known else "",
                "available_tools": str(known.tool_names if known else []),
                "ref_model_intermediate_steps": reference.steps_text() if reference else "",
                "ref_model_final_step": reference.final_step() if reference else "",
                "output_model_intermediate_steps": candidate.steps_text() if candidate else "",
                "output_model_final_step": candidate.final_step() if candidate else "",
                "preference_label": _LABELS[one.preference],
                "query_id": key,
                "ref_model": first,
                "output_model": second,
            }
        )
    return tsv(list(rows[0]) if rows else ["query"], rows)


def _compared_text(answer: Judged) -> tuple[str, str]:
    return answer.final_answer, answer.steps_text()


def _status(one: Label | None, at: int) -> AnswerStatus:
    """Return the status of a round; rounds beyond the votes begin again with the first."""
    return one.votes[at % len(one.votes)].answer if one is not None and one.votes else "Unsure"
