"""A time of day with its day, where the task tells the two apart: "at 18:40 local time on 3 May 2027"."""

from __future__ import annotations

import re

from toolsrv_registry.api import Parameter
from toolsrv_runtime.values import kinds

_CLOCK = re.compile(
    r"\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\.?)?|\d{1,2}\s?[ap]\.?m\.?", re.IGNORECASE
)
_STOP = re.compile(r"[.?!;]\s")


def dated(parameter: Parameter, value: str, part: str, task: str) -> str:
    """Return a bare time of day with the one full date of its sentence, else as it is.

    Of the part's sentence, for a parameter whose document shows a time with a date. The time itself
    may stand in another form there: "6.40 pm".
    """
    if not _CLOCK.fullmatch(value) or not any(map(_has_both, _shown(parameter))):
        return value
    at = max(0, task.find(part))
    begin = max((one.end() for one in _STOP.finditer(task, 0, at)), default=0)
    end = _STOP.search(task, at + len(part) - 1)
    sentence = task[begin : end.start() if end else len(task)]
    days = {kinds.normalise_value("date", one) for one in kinds.find_values("date", sentence)}
    full = [one for one in days if re.fullmatch(r"\d{4}-\d\d-\d\d", one)]
    return (
        kinds.normalise_value("time", f"{full[0]} {value}")
        if len(days) == len(full) == 1
        else value
    )


def _shown(parameter: Parameter) -> tuple[str, ...]:
    return (str(parameter.default or ""), parameter.description)


def _has_both(text: str) -> bool:
    return any(
        kinds.find_values("date", one) and _CLOCK.search(one)
        for one in kinds.find_values("time", text)
    )
