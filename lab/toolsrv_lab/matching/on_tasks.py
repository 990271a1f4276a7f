"""What a matcher makes of whole tasks: which of a search's hits it takes for needed, and their values.

It is asked as a solve asks it. Over a catalog in other words (``evaluation.other_words``) it shows
what a matcher knows by heart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Share, share
from toolsrv_lab.solving import GoldCall, Task
from toolsrv_registry.api import Api
from toolsrv_registry.matcher import Asked, Match, Matcher
from toolsrv_registry.retriever import Hit
from toolsrv_runtime.agent.candidates import rerank
from toolsrv_runtime.agent.coverage import NEEDED_LOG_ODDS, UNSERVED_LOG_ODDS

HITS = 8
"""Hits of the search for a task that the matcher reads, as many as a chat model's candidates."""


class TaskFigures(BaseModel):
    """Shares over tasks; ``values`` over arguments, ``unneeded`` over hits.

    ``found``: every needed hit is above ``NEEDED``; ``unneeded``: so is a hit that no call needs;
    ``kept``: a served task is not given up; ``given_up``: one that nothing serves is
    (``NOTHING``). ``values``: an argument that stands in the task is what the matcher points at;
    those with allowed values do not count.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    found: Share
    unneeded: Share
    kept: Share
    given_up: Share
    values: Share


def evaluate_tasks(
    matcher: Matcher,
    tasks: Sequence[Task],
    search: Callable[[str], Sequence[Hit]],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> TaskFigures:
    """Return the figures of a matcher over tasks.

    ``search`` returns a text's hits, which the matcher reranks as in a solve.

    Raises:
        DataError: the matcher cannot be loaded.
    """
    found: list[bool] = []
    unneeded: list[bool] = []
    kept: list[bool] = []
    given_up: list[bool] = []
    values: list[bool] = []
    for number, task in enumerate(tasks, start=1):
        ranked = rerank(search(task.task), task.task, matcher.match)[:HITS]
        hits = [one.hit for one in ranked]
        apis = [hit.api for hit in hits]
        matches = dict(
            zip((api.id for api in apis), matcher.match(Asked(task.task), apis), strict=True)
        )
        needed = {call.api for call in task.calls}
        best = max((one.serves for one in matches.values()), default=UNSERVED_LOG_ODDS)
        (kept if needed else given_up).append((best >= UNSERVED_LOG_ODDS) == bool(needed))
        scores = [one.serves for api, one in matches.items() if api in needed]
        if needed:
            found.append(len(scores) == len(needed) and min(scores) >= NEEDED_LOG_ODDS)
        unneeded += [
            one.serves >= NEEDED_LOG_ODDS for api, one in matches.items() if api not in needed
        ]
        known = {api.id: api for api in apis}
        for call in task.calls:
            if call.api in matches:
                values += _values(task.task, call, known[call.api], matches[call.api])
        progress(number, len(tasks))
    return TaskFigures(
        tasks=len(tasks), found=share(found), unneeded=share(unneeded), kept=share(kept),
        given_up=share(given_up), values=share(values),
    )  # fmt: skip


def _values(task: str, call: GoldCall, api: Api, match: Match) -> list[bool]:
    """Return for each argument that stands in the task whether it is pointed at."""
    judged = []
    for parameter in api.parameters:
        said = str(call.arguments.get(parameter.name, ""))
        slot = match.parameters.get(parameter.name)
        if slot is None or parameter.enum or not said or said.lower() not in task.lower():
            continue
        best = slot.best(1)
        words = ""
        if best and not best[0].source and best[0].score > slot.none:
            words = task[best[0].begin : best[0].end]
        judged.append(words.lower() == said.lower())
    return judged
