"""An answer's number by its initials: "the lcm in Dutch" of ``least_common_multiple``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolsrv_runtime.planner.reading import spans
from toolsrv_runtime.values.facts import Fact, words

_WORD = re.compile(r"[a-z]+")
_LEAST = 3
"""Words that a name has to have."""


def told(part: str, seen: Iterable[Fact]) -> str:
    """Return the one number of the answers whose name has the initials that a part says, else ""."""
    # "the" is no total of hours elapsed
    said = {one for one in _WORD.findall(part.lower()) if spans.content(one)}
    found = {
        value
        for fact, value in seen
        if len(names := words(fact).split()) >= _LEAST
        and "".join(one[0] for one in names).lower() in said
        and re.fullmatch(r"-?\d+(?:\.\d+)?", value)
    }
    return found.pop() if len(found) == 1 else ""
