"""The answer of a compact conversation: what it tells of each response, in full."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolsrv_runtime.contract.format import FINISH, Action, Interrupted, Step
from toolsrv_runtime.planner import answering, layout
from toolsrv_runtime.planner.turn import Turn
from toolsrv_runtime.values import facts


def finish(
    turn: Turn, told: Sequence[tuple[Step, Sequence[facts.Fact]]], missing: Sequence[str]
) -> Action:
    """Let the model choose what the answer says of each response; tell it in full.

    ``told`` are the calls that answered something, with their facts. An answer that is longer than
    a reply may be tells everything that is news.

    Raises:
        Interrupted: somebody stopped it.
    """
    turn.force(f"{layout.DONE}{layout.ACTION}{FINISH}{layout.INPUT}")
    steps = [step for step, _ in told]
    groups = [group for _, group in told]
    known = _echoes(steps)
    try:
        said = turn.write(answering.grammar(groups, known)).removeprefix(layout.ANSWER)
        chosen = answering.chosen(said, groups)
    except Interrupted:
        if turn.is_stopped:
            raise
        chosen = answering.news(groups, known)
    sentences = []
    for step, names in zip(steps, chosen, strict=True):
        full = facts.verbatim(step.response)
        sentences.append(facts.sentence((name, full[name]) for name in names))
    answer = {"return_type": "give_answer", "final_answer": "; ".join(sentences)}
    arguments = json.dumps(answer, ensure_ascii=False)
    return Action(layout.DONE, FINISH, arguments, turn.pieces(), missing=tuple(missing))


def _echoes(steps: Sequence[Step]) -> list[set[str]]:
    """Return what the calls were made with, for each; not what tells calls of one function apart."""
    given = [
        {str(value).lower() for value in json.loads(step.move.arguments).values()} for step in steps
    ]
    told: set[str] = set().union(*given)
    return [
        told
        - {
            value
            for other, theirs in zip(steps, given, strict=True)
            if other.move.function == step.move.function
            for value in mine - theirs
        }
        for step, mine in zip(steps, given, strict=True)
    ]
