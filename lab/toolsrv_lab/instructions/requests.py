"""Whole requests of a person with a situation, written one by one: ``data/requests.txt``.

A line is a text in which the words that tell a need stand behind the API that serves it:
``[[Category/tool/api: where is parcel RX-55]]``. Each was written for APIs that were offered
together as ToolLLM 2.2 samples them (``samples``), those chosen that one person could want at once.
What composed instructions cannot teach is here: needs that belong together, told as people do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from toolsrv_lab.instructions.writer import entry
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.files import open_atomic_text

_MARK = re.compile(r"\[\[([^\[\]:]+): ([^\[\]]+(?:\[[^\[\]]*\][^\[\]]*)*)\]\]")


@dataclass(frozen=True, slots=True)
class Request:
    """A text, and API id -> the words of it that tell the need, in their order."""

    text: str
    needs: Mapping[str, str]


@cache
def requests() -> tuple[Request, ...]:
    """Return the requests that come with the laboratory."""
    text = (files("toolsrv_lab.instructions") / "data" / "requests.txt").read_text("utf-8")
    return tuple(read_request(line) for line in text.splitlines())


def read_request(line: str) -> Request:
    """Return the request in a line."""
    needs: dict[str, str] = {}
    for api_id, words in _MARK.findall(line):
        needs.setdefault(api_id, words)
    return Request(_MARK.sub(lambda match: match[2], line), needs)


def write_requests(known: Mapping[str, Api], path: Path, *, name: str = "requests") -> int:
    """Write the requests all of whose APIs are ``known`` as an instruction file; return how many.

    Raises:
        UsageError: there is none.
    """
    fitting = [one for one in requests() if one.needs.keys() <= known.keys()]
    if not fitting:
        raise UsageError(
            "no request is about these APIs alone",
            hint="import the catalog that they are about: toolsrv catalog pull toolbench",
        )
    with open_atomic_text(path) as file:
        for at, one in enumerate(fitting, start=1):
            members = [known[api_id] for api_id in one.needs]
            line = entry(f"{name}/{at}", one.text, name, members, needs=list(one.needs.values()))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return len(fitting)
