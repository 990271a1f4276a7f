"""Agreement of a judge with human labels: shares, Cohen's kappa, intervals, variance."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_lab.evaluation.statistics import Mean, Share, mean_in_unit, share
from toolsrv_lab.tooleval.answer_sets import Judged, ToolStep, parse_judged
from toolsrv_lab.tooleval.judge import Judge
from toolsrv_lab.tooleval.pass_rate import Label, in_parallel, label
from toolsrv_lab.tooleval.verdicts import AnswerStatus, Preference, TaskStatus, Verdict, passes
from toolsrv_lab.tooleval.win_rate import Comparison, compare
from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError
from toolsrv_registry.functions import FINISH
from toolsrv_runtime.files import read_text

MOST_BYTES = 256 * 1024 * 1024
SHIPPED = "shipped"
"""Name of the labelled pairs that ship."""

_HINT = "give JSON lines of labelled pairs, or ToolBench's human_cross_annotated_data.json"


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class LabelledStep(_Shape):
    """A call of a labelled answer."""

    thought: str = ""
    function: str
    arguments: Any = Field(default_factory=dict)
    response: Any = None


class LabelledFinish(_Shape):
    """How a labelled answer ended."""

    return_type: str
    final_answer: str = ""


class LabelledAnswer(_Shape):
    """One side of a labelled pair."""

    steps: tuple[LabelledStep, ...] = ()
    finish: LabelledFinish | None = None


class _Line(_Shape):
    id: str
    task: str
    functions: tuple[dict[str, Any], ...]
    a: LabelledAnswer
    b: LabelledAnswer
    task_status: TaskStatus
    pass_a: AnswerStatus
    pass_b: AnswerStatus
    preferred: Preference


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two answers and what people say of them; statuses are None where nobody was asked.

    ``people`` are the single preferences where there are several.
    """

    id: str
    a: Judged
    b: Judged
    preferred: Preference
    task_status: TaskStatus | None = None
    status_a: AnswerStatus | None = None
    status_b: AnswerStatus | None = None
    people: tuple[int, ...] = ()


def shipped_pairs() -> list[LabelledPair]:
    """Return the 200 labelled pairs that ship."""
    data = (files("toolsrv_lab.tooleval") / "data" / "labelled_pairs.jsonl").read_text("utf-8")
    return list(_lines(data, "labelled_pairs.jsonl"))


def read_pairs(path: Path) -> list[LabelledPair]:
    """Return the labelled pairs of a file.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or an entry is no labelled pair; names its place.
    """
    text = read_text(path, MOST_BYTES, hint=_HINT)
    found = list(_annotations(text, path) if text.lstrip().startswith("[") else _lines(text, path))
    if not found:
        raise DataError(f"{path} holds no labelled pairs", hint=_HINT)
    if len({one.id for one in found}) < len(found):
        raise DataError(f"{path} has an id twice", hint="give each pair an id of its own")
    return found


def _lines(text: str, where: str | Path) -> Iterator[LabelledPair]:
    for at, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            one = _Line.model_validate(wellformed.loads(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise DataError(f"{where}, line {at}, {place}: {first['msg']}", hint=_HINT) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}, line {at}: not JSON: {error}", hint=_HINT) from None
        yield LabelledPair(
            id=one.id,
            a=_judged(one, one.a),
            b=_judged(one, one.b),
            preferred=one.preferred,
            task_status=one.task_status,
            status_a=one.pass_a,
            status_b=one.pass_b,
        )


def _judged(line: _Line, answer: LabelledAnswer) -> Judged:
    steps = [_step(one.function, one.arguments, one.response) for one in answer.steps]
    final = ""
    if answer.finish is not None:
        steps.append(_step(FINISH, answer.finish.model_dump(), ""))
        gave = answer.finish.return_type == "give_answer"
        final = answer.finish.final_answer if gave else answer.finish.return_type
    return Judged(
        id=line.id,
        query=line.task,
        tools=line.functions,
        final_answer=final,
        method="labelled",
        total_steps=len(steps) + 2,
        steps=tuple(steps),
    )


def _step(name: str, arguments: Any, response: Any) -> ToolStep:
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    given = json.dumps(arguments, ensure_ascii=False)
    message = str({"name": name, "arguments": given, "response": text})
    return ToolStep(name, given, text, message)


def _annotations(text: str, path: Path) -> Iterator[LabelledPair]:
    """Yield the pairs of ToolBench's human annotations; most people decide."""
    try:
        entries = wellformed.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON, or cut off: {error}", hint=_HINT) from None
    for at, entry in enumerate(entries):
        where = f"{path}, entry {at}"
        answers = entry.get("answers") if isinstance(entry, dict) else None
        if not isinstance(answers, list) or len(answers) != 2:
            raise DataError(f"{where}: no pair of answers", hint=_HINT)
        said = entry.get("preference")
        people = tuple(said) if isinstance(said, list) else (said,)
        if not people or any(one not in (0, 1) for one in people):
            raise DataError(f"{where}: a preference is 0 or 1, or a list of these", hint=_HINT)
        both = [parse_judged(str(at), {**entry, "answer": one}, where) for one in answers]
        ahead = people.count(0) - people.count(1)
        yield LabelledPair(
            id=str(at),
            a=both[0],
            b=both[1],
            preferred="tie" if not ahead else "a" if ahead > 0 else "b",
            people=people,
        )


PAPER_PASS, PAPER_WIN = 0.871, 0.803
"""Agreement of the paper's judge with its people, on pass labels and on preferences."""

LEAST_KAPPA = 0.4
"""Lower end of kappa's interval from which on a judge may be quoted: moderate agreement."""

_SAMPLES = 2_000


class Agreement(BaseModel):
    """A judge beside people on one kind of label.

    ``agreed`` is of what most votes say; on a preference, a tie of the judge agrees with nobody.
    ``single``: the share of single votes that agree, mean over items, as ToolBench's own program
    counts. ``kappa`` is None where one side has a single label. ``variance``: of single votes about
    their mean, mean over items; None with one vote.
    """

    model_config = ConfigDict(frozen=True)

    agreed: Share
    single: Mean
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None
    variance: float | None
    paper: float
    people: Share | None = None

    @property
    def quotable(self) -> bool:
        """Whether it reaches the paper's judge within its interval, and agrees beyond chance."""
        return (
            self.single.high is not None
            and self.single.high >= self.paper
            and self.kappa_low is not None
            and self.kappa_low >= LEAST_KAPPA
        )


class AgreementReport(BaseModel):
    """All of a judge's agreement. ``undecided``: answers that a coin decided.

    ``answers``: of single answers' status as people gave it, three labels.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    pairs: int
    votes: int
    rounds: int
    pass_labels: Agreement | None
    answers: Agreement | None
    tasks: Agreement | None
    preferences: Agreement
    undecided: Share


def kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Return Cohen's kappa; None where chance alone agrees always."""
    total = len(pairs)
    agreed = sum(one == other for one, other in pairs) / max(1, total)
    chance = _chance(pairs)
    return None if not total or chance >= 1 else (agreed - chance) / (1 - chance)


def _chance(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """Return how often two sides with these labels agree by chance."""
    return sum(
        sum(one == name for one, _ in pairs) * sum(other == name for _, other in pairs)
        for name in {one for pair in pairs for one in pair}
    ) / max(1, len(pairs) ** 2)


def kappa_interval(
    pairs: Sequence[tuple[Hashable, Hashable]],
) -> tuple[float | None, float | None, float | None]:
    """Return kappa and its 95 % interval, the percentile bootstrap over pairs.

    Where all pairs agree every draw does, however few there are: then it is Wilson's of the share.
    """
    value = kappa(pairs)
    if value is None:
        return None, None, None
    if value == 1:
        least = share(True for _ in pairs).low
        return 1.0, round(1 - (1 - least) / (1 - _chance(pairs)), 4), 1.0
    names = {name: at for at, name in enumerate({one for pair in pairs for one in pair})}
    coded = np.array([(names[one], names[other]) for one, other in pairs])
    rng = np.random.default_rng(0)
    drawn = coded[rng.integers(0, len(coded), (_SAMPLES, len(coded)))]
    agreed = (drawn[:, :, 0] == drawn[:, :, 1]).mean(axis=1)
    chance = sum(
        (drawn[:, :, 0] == at).mean(axis=1) * (drawn[:, :, 1] == at).mean(axis=1)
        for at in names.values()
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(chance < 1, (agreed - chance) / (1 - chance), np.nan)
    low, high = np.nanpercentile(values, (2.5, 97.5))
    return round(value, 4), round(float(low), 4), round(float(high), 4)


def measure(
    judge: Judge,
    pairs: Sequence[LabelledPair],
    *,
    votes: int = 1,
    rounds: int = 2,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> AgreementReport:
    """Return how a judge labels the pairs beside people; ``rounds`` comparisons a pair."""

    def one(pair: LabelledPair) -> tuple[Label, Label, Comparison]:
        first, second = (label(judge, answer, votes, seed=seed) for answer in (pair.a, pair.b))
        found = compare(judge, (pair.a, pair.b), (first, second), rounds, seed=seed)
        return first, second, found

    made = in_parallel(one, pairs, jobs, progress)
    sides = [
        (pair, status, found)
        for pair, (first, second, _) in zip(pairs, made, strict=True)
        for status, found in ((pair.status_a, first), (pair.status_b, second))
        if status is not None and pair.task_status is not None
    ]
    labelled: list[tuple[Verdict, Label]] = [
        (passes(status, pair.task_status or "Unsure"), found) for pair, status, found in sides
    ]
    sure = [(said, found) for said, found in labelled if said != "Unsure"]
    asked = [
        (pair, found)
        for pair, found in zip(pairs, (one[0] for one in made), strict=True)
        if pair.task_status is not None and found.votes and found.votes[0].answer != "Solved"
    ]
    return AgreementReport(
        judge=judge.name,
        pairs=len(pairs),
        votes=votes,
        rounds=rounds,
        pass_labels=_agreement(
            [(said, _passed(found)) for said, found in sure],
            [[vote.verdict == said for vote in found.votes] for said, found in sure],
            PAPER_PASS,
        )
        if sure
        else None,
        answers=_agreement(
            [(status, found.solved) for _, status, found in sides],
            [[vote.answer == status for vote in found.votes] for _, status, found in sides],
            PAPER_PASS,
        )
        if sides
        else None,
        tasks=_agreement(
            [(pair.task_status, found.task) for pair, found in asked],
            [[vote.task == pair.task_status for vote in found.votes] for pair, found in asked],
            PAPER_PASS,
        )
        if asked
        else None,
        preferences=_preferences(pairs, [found for *_, found in made], rounds),
        undecided=share(not each.decided for first, second, _ in made for each in (first, second)),
    )


def _passed(found: Label) -> Verdict:
    return "Passed" if found.passed else "Failed"


def _preferences(
    pairs: Sequence[LabelledPair], found: Sequence[Comparison], rounds: int
) -> Agreement:
    said: list[tuple[Preference, Preference]] = [
        (pair.preferred, one.preference) for pair, one in zip(pairs, found, strict=True)
    ]
    clear = [(wanted, one) for (wanted, _), one in zip(said, found, strict=True) if wanted != "tie"]
    value, low, high = kappa_interval(said)
    won = [(one.a, one.b) if wanted == "a" else (one.b, one.a) for wanted, one in clear]
    votes = [[True] * right + [False] * wrong for right, wrong in won]
    return Agreement(
        agreed=share(one.preference == wanted for wanted, one in clear),
        single=_single(votes),
        kappa=value,
        kappa_low=low,
        kappa_high=high,
        variance=_variance(votes) if rounds > 1 else None,
        paper=PAPER_WIN,
        people=_among_people(pairs),
    )


def _among_people(pairs: Sequence[LabelledPair]) -> Share | None:
    """Return how often one person agrees with most of the others; None with one a pair."""
    found = []
    for pair in pairs:
        for at, one in enumerate(pair.people):
            others = pair.people[:at] + pair.people[at + 1 :]
            if others and others.count(0) != others.count(1):
                found.append(one == (others.count(1) > others.count(0)))
    return share(found) if found else None


def _agreement(
    pairs: Sequence[tuple[Hashable, Hashable]], votes: Sequence[Sequence[bool]], paper: float
) -> Agreement:
    value, low, high = kappa_interval(pairs)
    several = [one for one in votes if len(one) > 1]
    return Agreement(
        agreed=share(one == other for one, other in pairs),
        single=_single(votes),
        kappa=value,
        kappa_low=low,
        kappa_high=high,
        variance=_variance(several) if several else None,
        paper=paper,
    )


def _single(votes: Sequence[Sequence[bool]]) -> Mean:
    return mean_in_unit([sum(one) / len(one) for one in votes if one])


def _variance(votes: Sequence[Sequence[bool]]) -> float | None:
    if not votes:
        return None
    means = [sum(one) / len(one) for one in votes]
    return round(math.fsum(one * (1 - one) for one in means) / len(means), 4)
